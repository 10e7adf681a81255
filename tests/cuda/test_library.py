"""What cuBLAS is called with: a NumPy program in its place reads and writes the very addresses. Needs no GPU."""

import ctypes
import itertools
from types import SimpleNamespace
from typing import ClassVar

import fake_cupy
import numpy as np
import pytest

from pysimd import dtypes, operands
from pysimd.backends.cuda import library
from pysimd.backends.gpu import cupy_arrays
from pysimd.backends.gpu.plans import ArrayWork, addresses_of
from pysimd.errors import OptionError
from pysimd.operands import GemmOptions, Product

DTYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: np.uint16}
"""By cudaDataType; uint16 holds bfloat16 bits."""
TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.float16): "f16"}


TF32, ONE_ROUNDING = 3, 16
"""cublasMath_t: a mode that CuPy's handle may have, and the flag against partial results of 16 bits."""


class Memory(np.ndarray):
    """A NumPy array with the address where a CuPy array has it."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


def array(rng, *shape, dtype=np.float32):
    return rng.integers(-4, 5, shape).astype(dtype).view(Memory)


def matrix(address, dtype, rows, columns, ld):
    """The column-major matrix at an address."""
    assert ld >= max(1, rows)
    assert ld < 1 << 31
    size = (ld * (columns - 1) + rows) * np.dtype(dtype).itemsize
    flat = np.frombuffer((ctypes.c_char * size).from_address(address), dtype)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (flat.itemsize, ld * flat.itemsize), writeable=True)


class Cublas:
    """gemmEx and gemmStridedBatchedEx in NumPy; ``calls`` are the sizes of the batches, ``capturing`` is whether a
    stream captures."""

    calls: ClassVar[list[int]] = []
    modes: ClassVar[list[int]] = [TF32]
    capturing = False

    def getMathMode(self, handle):
        assert handle == 99
        return self.modes[-1]

    def setMathMode(self, handle, mode):
        assert handle == 99
        self.modes.append(mode)

    def gemmEx(self, handle, op_a, op_b, m, n, k, alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc, compute, algorithm):
        if self.capturing:
            raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
        assert (handle, algorithm) == (99, -1)
        assert self.modes[-1] == (TF32 | ONE_ROUNDING if tc in (2, 14) else TF32)
        assert ta == tb
        assert tc in ((0, 14) if ta == 14 else (ta,))
        assert compute == (70 if tc == 1 else 68)
        dtype, factor = DTYPES[ta], np.float64 if compute == 70 else np.float32
        alpha, beta = (np.frombuffer((ctypes.c_char * 8).from_address(x), factor)[0] for x in (alpha, beta))
        x = matrix(a, dtype, k, m, lda).T if op_a else matrix(a, dtype, m, k, lda)
        y = matrix(b, dtype, n, k, ldb).T if op_b else matrix(b, dtype, k, n, ldb)
        z = matrix(c, DTYPES[tc], m, n, ldc)
        x, y = (dtypes.float32_of_bits(v) if ta == 14 else v for v in (x, y))
        old = dtypes.float32_of_bits(z) if tc == 14 else z
        product = alpha * (x.astype(factor) @ y) + (beta * old if beta else 0)
        z[...] = dtypes.bits_of_float32(product.astype(np.float32)) if tc == 14 else product
        self.calls.append(1)

    def gemmStridedBatchedEx(self, *given):
        (handle, op_a, op_b, m, n, k, alpha, a, ta, lda, sa, b, tb, ldb, sb, beta, c, tc, ldc, sc, count, *how) = given
        size = np.dtype(DTYPES[tc]).itemsize
        for i in range(count):
            x, y, z = (at + i * step * size for at, step in ((a, sa), (b, sb), (c, sc)))
            self.gemmEx(handle, op_a, op_b, m, n, k, alpha, x, ta, lda, y, tb, ldb, beta, z, tc, ldc, *how)
        self.calls[-count:] = [count]


@pytest.fixture
def gemm(monkeypatch):
    """``gemm`` by the library alone, on ``Memory``; the work that was done is returned too."""
    cupy = fake_cupy.module()
    cupy.empty = lambda shape, dtype: np.empty(shape, dtype).view(Memory)
    fake_cupy.install(monkeypatch, cupy)
    monkeypatch.setattr(library, "_cublas", Cublas)
    monkeypatch.setattr(library, "_handle", lambda: 99)
    monkeypatch.setattr(library, "_copy", lambda to, source, nbytes: ctypes.memmove(to, source, nbytes))
    Cublas.calls, Cublas.modes = [], [TF32]

    def call(a, b, c=None, out=None, alpha=1.0, beta=0.0):
        types = (TYPES[a.dtype],)
        product = operands.check_gemm(None, a, b, c, out, GemmOptions.checked(alpha, beta, 0, 0, c), types)
        out = np.full(product.full, 77, a.dtype).view(Memory) if out is None else out
        assert library.takes(product)
        work = library.work(product._replace(out=out))
        work.run()
        assert Cublas.modes[-1] == TF32
        return out, work

    return call


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 3), (1, 6, 5), (6, 1, 5), (4, 4, 1), (1, 1, 1), (1, 1, 9)])
def test_layouts(gemm, rng, dtype, m, n, k):
    """By rows or by columns, with gaps; alpha, beta and C, which is the result, apart from it, or a broadcast row."""
    for by_a, by_b, by_c in itertools.product((False, True), repeat=3):
        a = array(rng, k, m + 2, dtype=dtype)[:, :m].T if by_a else array(rng, m, k + 3, dtype=dtype)[:, :k]
        b = array(rng, n, k, dtype=dtype).T if by_b else array(rng, k, n, dtype=dtype)
        room = array(rng, n, m + 1, dtype=dtype)[:, :m].T if by_c else array(rng, m, n + 1, dtype=dtype)[:, :n]
        product = np.array(a, np.float64) @ np.array(b, np.float64)
        assert np.array_equal(gemm(a, b)[0], product)
        c = array(rng, m, n, dtype=dtype)
        for given in (c, array(rng, 1, n, dtype=dtype)[:1].repeat(m, 0).view(Memory), room):
            expected = 2 * product - np.array(given, np.float64)
            out, _ = gemm(a, b, given, room, 2, -1)
            assert out is room
            assert np.array_equal(room, expected)


def test_a_call_is_a_plan_for_other_arrays(gemm, rng):
    a, b, c, out = array(rng, 3, 5, 4), array(rng, 3, 4, 6), array(rng, 3, 5, 6), array(rng, 3, 5, 6)
    _, work = gemm(a, b, c, out, 2, 0.5)
    arrays = array(rng, 3, 5, 4), array(rng, 3, 4, 6), array(rng, 3, 5, 6), array(rng, 3, 5, 6)
    work.plan.run(addresses_of(arrays))
    assert np.array_equal(arrays[3], 2 * (arrays[0] @ arrays[1]) + 0.5 * arrays[2])
    c0, expected = arrays[2], 2 * (arrays[0] @ arrays[1]) + 0.5 * arrays[2]
    work.plan.run(addresses_of((arrays[0], arrays[1], c0, c0)))
    assert np.array_equal(c0, expected)
    assert Cublas.calls == [3, 3, 3]


def test_c_is_not_read_without_beta(gemm, rng):
    a, b, c = array(rng, 3, 5), array(rng, 5, 4), array(rng, 3, 4)
    c[...] = np.nan
    out, _ = gemm(a, b, c, c, alpha=3)
    assert np.array_equal(out, 3 * (a @ b))


@pytest.mark.parametrize(
    ("batch_a", "batch_b", "calls"),
    [((5,), (5,), [5]), ((5,), (), [5]), ((), (2, 3), [6]), ((2, 1), (1, 3), [3, 3]), ((1,), (1,), [1])],
)
def test_batches(gemm, rng, batch_a, batch_b, calls):
    a, b = array(rng, *batch_a, 3, 4), array(rng, *batch_b, 4, 5)
    assert np.array_equal(gemm(a, b)[0], np.array(a) @ np.array(b))
    assert Cublas.calls == calls


def test_what_cublas_cannot_take_is_copied(gemm, rng):
    a, b, out = array(rng, 12, 15), array(rng, 15, 10), array(rng, 24, 20)
    for x, y in ((a[::2, ::3], b[::3, ::2]), (a[::-1], b[:, ::-1]), (np.broadcast_to(a[:1], (4, 15)).view(Memory), b)):
        expected = np.array(x) @ np.array(y)
        assert np.array_equal(gemm(x, y)[0], expected)
        target = out[: 2 * expected.shape[0] : 2, : 2 * expected.shape[1] : 2]
        c = array(rng, *expected.shape)
        assert np.array_equal(gemm(x, y, c, target, 1, 3)[0], expected + 3 * np.array(c))
    assert np.array_equal(gemm(a, b, out[::2, ::2], out[::2, ::2])[0], np.array(a) @ np.array(b))


def test_a_c_with_gaps_has_no_plan(gemm, rng):
    """In place it could have one, but at another address C would have to be copied."""
    a, b, room = array(rng, 3, 5), array(rng, 5, 4), array(rng, 3, 6)[:, :4]
    assert isinstance(gemm(a, b, room, room, 1, 1)[1], ArrayWork)
    assert isinstance(gemm(a, b, array(rng, 3, 4), room, 1, 1)[1], ArrayWork)
    assert gemm(a, b, None, room)[1].plan is not None


def test_factors_beyond_the_dtype_are_infinite(gemm):
    a = np.ones((3, 3), np.float16).view(Memory)
    assert np.isposinf(gemm(a, a, alpha=1e6)[0]).all()


def test_the_math_mode_is_restored_after_an_error(gemm, rng, monkeypatch):
    a, b = array(rng, 3, 4, dtype=np.float16), array(rng, 4, 5, dtype=np.float16)
    _, work = gemm(a, b)
    monkeypatch.setattr(Cublas, "capturing", True)
    with pytest.raises(OptionError, match="does not let a graph capture"):
        work.plan.run(addresses_of((a, b, None, array(rng, 3, 5, dtype=np.float16))))
    assert Cublas.modes == [TF32, TF32 | ONE_ROUNDING, TF32, TF32 | ONE_ROUNDING, TF32]


@pytest.mark.parametrize("narrow", [False, True])
def test_bfloat16_into_either_type(gemm, rng, narrow):
    """Small integers, of which every result is exact in 8 bits."""
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((3, 5), (5, 4), (3, 4)))
    x, y, z = (dtypes.bits_of_float32(v).view(Memory) for v in (a, b, c))
    given, out = (z, z.copy()) if narrow else (c.view(Memory), np.empty((3, 4), np.float32).view(Memory))
    product = Product("bf16f32", x, y, given, out, (3, 4), (3, 4), out.dtype, 2, -1)
    library.work(product).run()
    assert np.array_equal(dtypes.float32_of_bits(out) if narrow else out, 2 * a @ b - c)


@pytest.mark.parametrize(
    ("changes", "taken"),
    [({}, True), ({"alpha": 0}, False), ({"types": "bf16f32"}, True), ({"types": "i8i32"}, False)],
)
def test_what_is_taken(changes, taken, rng):
    a, b = array(rng, 3, 4), array(rng, 4, 5)
    product = operands.check_gemm(None, a, b, None, None, GemmOptions(), ("f32",))._replace(**changes)
    assert library.takes(product) == taken
    assert not library.takes(product._replace(a=a[:, :0], b=b[:0]))
    huge = SimpleNamespace(shape=((1 << 31), 4))
    assert not library.takes(product._replace(a=huge, full=(1 << 31, 5)))


def test_overlap_is_seen_as_for_cupy(rng):
    """The stand-in has what ``cupy_arrays`` looks at."""
    a = array(rng, 4, 4)
    assert cupy_arrays.overlap(a, a[1:])
    assert not cupy_arrays.overlap(a[:2], a[2:])


def test_a_capture_is_refused(gemm, rng, monkeypatch):
    """On the first call, before anything is launched; later where CuPy says that it does not call cuBLAS."""
    a, b = array(rng, 3, 4), array(rng, 4, 5)
    _, work = gemm(a, b)
    monkeypatch.setattr(Cublas, "capturing", True)
    with pytest.raises(OptionError, match="does not let a graph capture"):
        work.plan.run(addresses_of((a, b, None, array(rng, 3, 5))))
    cupy = fake_cupy.module(capturing=True, stream=7)
    fake_cupy.install(monkeypatch, cupy)
    with pytest.raises(OptionError, match="does not let a graph capture"):
        gemm(a, b)
    assert not cupy.events
