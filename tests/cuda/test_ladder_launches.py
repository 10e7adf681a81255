"""What the host computes for a rung: layouts, leading dimensions, grids, copies. A NumPy function replaces the kernel
and reads and writes the addresses that a launch passes. Needs neither CuPy nor a GPU."""

import ctypes
import itertools
import re
from types import SimpleNamespace
from typing import ClassVar

import fake_cupy
import numpy as np
import pytest
from pysimd.gpu_kernels import ladder_table

import pysimd
from pysimd import operands
from pysimd.backends.cuda import device as cuda_device
from pysimd.backends.cuda.implementation import CUDA
from pysimd.backends.cuda.ladder import rungs as cuda_ladder
from pysimd.backends.gpu import cupy_arrays, gemm_launches
from pysimd.backends.gpu import memory as gpu_memory
from pysimd.operands import GemmOptions

SHAPES = ((8, 12, 4), (5, 7, 3), (1, 6, 5), (6, 1, 5), (4, 4, 1), (1, 1, 1), (3, 2, 0))
FIELDS = ("a", "b", "c0", "c", "m", "n", "k", "lda", "ldb", "c0_rs", "c0_cs", "ldc")
FIELDS += ("a_batch", "b_batch", "c0_batch", "c_batch", "c_vector", "factors")


def memory(shape, rng=None, before=0):
    """An array of floats ``before`` elements past an address divisible by 64."""
    x = fake_cupy.array(shape, before=before)
    if rng is not None:
        x[...] = rng.integers(-4, 5, shape)
    return x


def strided(pointer, shape, strides):
    """The floats at an address; strides in elements, of any sign."""
    if 0 in shape:
        return np.zeros(shape, np.float32)
    first = ctypes.c_float.from_address(pointer)
    return np.lib.stride_tricks.as_strided(
        np.frombuffer(first, np.float32), shape, tuple(4 * s for s in strides), writeable=True
    )


def words(argument, count):
    """The first words of an argument of a kernel."""
    return np.frombuffer((ctypes.c_char * (8 * count)).from_address(argument.ptr), np.int64).tolist()


class Kernel:
    """Replaces a compiled kernel: the contract of gemm.cuh in NumPy."""

    launched: ClassVar[list[tuple]] = []

    def __init__(self, name, layout_a, layout_b, device, block=None, fused_fixup=False):
        self.row, self.layouts, self.block = ladder_table.BY_NAME[name], (layout_a, layout_b), block
        self.fused_fixup = fused_fixup

    def __call__(self, grid, block, arguments, shared_mem, stream, cooperative):
        assert (stream, cooperative) == (None, self.fused_fixup)
        p = SimpleNamespace(**dict(zip(FIELDS, words(arguments[0], len(FIELDS)), strict=True)))
        alpha, beta = np.array([p.factors], np.int64).view(np.float32)
        Kernel.launched.append((*self.layouts, bool(p.c_vector)))
        assert shared_mem == ladder_table.dynamic_shared_bytes(self.row, *self.layouts, self.block)
        shape = self.block or self.row
        tiles = -(-p.m // shape.bm) * -(-p.n // shape.bn)
        if self.block is None:
            assert block == (self.row.threads,)
            batch, rest = divmod(grid[0], tiles)
        else:
            assert block == (self.row.threads + 128,)
            workspace, counter, all_tiles, panels, split, share, longer = words(arguments[1], 7)
            assert panels == max(1, -(-p.k // 8))
            assert (share * grid[0] + longer, longer < grid[0]) == (split * panels, True)
            assert bool(workspace) == bool(split)
            assert bool(counter) == self.fused_fixup
            batch, rest = divmod(all_tiles, tiles)
        assert rest == 0
        assert 0 < grid[0] < 1 << 31
        for which, layout in enumerate(self.layouts):
            if layout.endswith("4"):
                extent = p.k if layout == "K_MAJOR_VEC4" else (p.m, p.n)[which]
                step = (p.a_batch, p.b_batch)[which]
                assert not any(x % 4 for x in (extent, (p.lda, p.ldb)[which], step))
                assert (p.a, p.b)[which] % 16 == 0
        if p.c_vector:
            assert (p.c % 16, p.ldc % 4, p.c_batch % 4) == (0, 0, 0)
            assert not p.c0 or (p.c0 % 16, p.c0_rs % 4, p.c0_batch % 4, p.c0_cs) == (0, 0, 0, 1)
        for i in range(batch):
            a_strides = (p.lda, 1) if self.layouts[0].startswith("K_MAJOR") else (1, p.lda)
            b_strides = (1, p.ldb) if self.layouts[1].startswith("K_MAJOR") else (p.ldb, 1)
            a = strided(p.a + 4 * i * p.a_batch, (p.m, p.k), a_strides)
            b = strided(p.b + 4 * i * p.b_batch, (p.k, p.n), b_strides)
            result = alpha * (a @ b)
            if p.c0:
                result = result + beta * strided(p.c0 + 4 * i * p.c0_batch, (p.m, p.n), (p.c0_rs, p.c0_cs))
            strided(p.c + 4 * i * p.c_batch, (p.m, p.n), (p.ldc, 1))[...] = result


@pytest.fixture
def run(monkeypatch):
    """Calls a rung as ``gemm`` does, on ``fake_cupy.Array``."""
    pysimd.rungs("cuda")  # listed with what this machine can run, before why_not is replaced
    monkeypatch.setattr(cuda_ladder, "_function", Kernel)
    monkeypatch.setattr(cuda_ladder, "current_device", lambda: 0)
    monkeypatch.setattr(cuda_ladder, "has_setmaxnreg", lambda device: False)
    monkeypatch.setattr(cuda_device, "why_not", lambda *_: "")
    monkeypatch.setattr(cuda_ladder, "multiprocessors", lambda device: 4)
    cupy = fake_cupy.module()
    cupy.empty = lambda shape, dtype: memory(shape)
    fake_cupy.install(monkeypatch, cupy)
    gpu_memory._counters.cache_clear()
    Kernel.launched = []

    def call(a, b, c=None, *, alpha=1.0, beta=0.0, trans_a=False, trans_b=False, out=None, name="smem_dbuf"):
        options = GemmOptions.checked(alpha, beta, trans_a, trans_b, c)
        rung = pysimd.rung(name)
        product = operands.check_gemm(rung, a, b, c, out, options, ("f32",))
        out = memory(product.full) if out is None else out

        def compute(target) -> None:
            CUDA._product_work(rung, product._replace(out=target)).run()

        return operands.write(product._replace(out=out), cupy_arrays, compute)

    return call


def test_gemm_has_the_fields_of_the_struct():
    text = pysimd.sources.read("gpu_kernels/ladder/gemm.cuh")
    struct = re.sub(r"/\*.*?\*/", "", re.search(r"struct Gemm \{(.*?)\};", text, re.DOTALL)[1])
    names = re.findall(r"(\w+)(?=[,;])", struct)
    assert tuple(names) == (*FIELDS[:-1], "alpha", "beta")
    assert 8 * len(FIELDS) == gemm_launches.GEMM.itemsize


@pytest.mark.parametrize("name", ["smem_dbuf", "smem", "naive", "cpasync", "f32_best"])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_layouts(run, rng, name, m, n, k):
    """By flags and as views, aligned or not, into a row-major or a column-major C."""
    for before, trans_a, trans_b, trans_c in itertools.product((0, 1), *[(False, True)] * 3):
        a = memory((k, m) if trans_a else (m, k), rng, before)
        b = memory((n, k) if trans_b else (k, n), rng, before)
        c, out = memory((m, n), rng, before), memory((n, m) if trans_c else (m, n))
        x, y, target = a.T if trans_a else a, b.T if trans_b else b, out.T if trans_c else out
        expected = 2 * (np.array(x) @ np.array(y)) - np.array(c)
        for pair, flags in (((x, y), {}), ((a, b), {"trans_a": trans_a, "trans_b": trans_b})):
            assert np.array_equal(run(*pair, c, alpha=2, beta=-1, name=name, **flags), expected)
            assert run(*pair, c, alpha=2, beta=-1, out=target, name=name, **flags) is target
            assert np.array_equal(target, expected)


def test_16_byte_loads_where_all_is_aligned(run, rng):
    a, b = memory((8, 16), rng), memory((16, 12), rng)
    run(a, b)
    run(a.T, b.T, trans_a=True, trans_b=True)
    run(np.ascontiguousarray(a.T).view(fake_cupy.Array), b, trans_a=True)
    run(memory((8, 16), rng, 1), b)
    run(a[:, :15], b[:15])
    run(a, b, name="smem")
    run(a, b[:, :11])
    assert Kernel.launched == [
        ("K_MAJOR_VEC4", "MN_MAJOR_VEC4", True),
        ("K_MAJOR_VEC4", "MN_MAJOR_VEC4", True),
        ("MN_MAJOR_VEC4", "MN_MAJOR_VEC4", True),
        ("K_MAJOR", "MN_MAJOR_VEC4", True),
        ("K_MAJOR", "MN_MAJOR_VEC4", True),  # rows of A aligned, but k is no multiple of 4
        ("K_MAJOR", "MN_MAJOR", True),
        ("K_MAJOR_VEC4", "MN_MAJOR", False),
    ]


def test_column_major_swaps_the_operands(run, rng):
    a, b, out = memory((8, 16), rng), memory((16, 12), rng), memory((12, 8))
    run(a, b, out=out.T)
    assert np.array_equal(out.T, a @ b)
    assert Kernel.launched == [("MN_MAJOR_VEC4", "K_MAJOR_VEC4", True)]


def test_any_strides(run, rng):
    a, b, out = memory((12, 15), rng), memory((15, 10), rng), memory((24, 20))
    for x, y in ((a[::2, ::3], b[::3, ::2]), (a[::-1], b[:, ::-1]), (a[:, ::-1], b[::-1]), (a[::3], b[:, ::5])):
        expected = np.array(x) @ np.array(y)
        assert np.array_equal(run(x, y), expected)
        target = out[: 2 * x.shape[0] : 2, : 2 * y.shape[1] : 2]
        assert run(x, y, out=target) is target
        assert np.array_equal(target, expected)
    assert not out[1::2].any()


@pytest.mark.parametrize(
    ("batch_a", "batch_b", "batch_c", "launches"),
    [((5,), (5,), (5,), 1), ((5,), (), (), 1), ((), (), (6,), 1), ((2, 1, 3), (4, 1), (1,), 6), ((0,), (0,), (), 0)],
)
def test_batches(run, rng, batch_a, batch_b, batch_c, launches):
    """A launch has one dimension of the batch: the longest of those that do not merge."""
    a, b, c = memory((*batch_a, 3, 4), rng), memory((*batch_b, 4, 5), rng), memory((*batch_c, 3, 5), rng)
    assert np.array_equal(run(a, b, c, beta=3), np.array(a) @ np.array(b) + 3 * np.array(c))
    assert len(Kernel.launched) == launches


def test_long_batches_are_several_launches(run, rng, monkeypatch):
    monkeypatch.setattr(gemm_launches, "_MOST_BLOCKS", 10)
    a, b = memory((7, 40, 4), rng), memory((7, 4, 70), rng)
    assert np.array_equal(run(a, b, name="naive"), np.array(a) @ np.array(b))
    assert len(Kernel.launched) == 7  # six tiles each


def test_out_may_overlap(run, rng):
    for which in range(3):
        operands = [memory((6, 6), rng) for _ in range(3)]
        expected = np.array(operands[0]) @ np.array(operands[1]) + np.array(operands[2])
        assert run(*operands, beta=1, out=operands[which]) is operands[which]
        assert np.array_equal(operands[which], expected)
    rows = memory((7, 6), rng)
    expected = np.array(operands[0]) @ np.array(operands[1]) + np.array(rows[1:])
    run(*operands[:2], rows[1:], beta=1, out=rows[:-1])
    assert np.array_equal(rows[:-1], expected)


def test_factors_beyond_float32_are_infinite(run, rng):
    a = memory((4, 4))
    a[...] = 1
    assert np.isposinf(run(a, a, alpha=1e300)).all()


def test_factors_of_integers_are_exact():
    for pair in ((16777217, -(2**31)), (-16777217.0, 2**31 - 1)):
        assert np.array([gemm_launches.pair("i8i32", *pair)]).view(np.int32).tolist() == list(pair)


@pytest.mark.parametrize("shapes", [((0, 3), (3, 6)), ((3, 5), (5, 0)), ((0, 3, 5), (5, 4))])
def test_nothing_to_store(run, shapes):
    """An array without elements may have any strides: CuPy's are zero."""
    a, b = (np.lib.stride_tricks.as_strided(memory(shape), shape, (0,) * len(shape), subok=True) for shape in shapes)
    assert run(a, b).size == 0
    assert Kernel.launched == []


@pytest.mark.parametrize("name", ["smem_dbuf", "cpasync", "f32_best"])
@pytest.mark.parametrize("shape", [(), (24,), (1, 24), (16, 1), (3, 1, 24), (3, 16, 1), (1, 1)], ids=str)
def test_c_broadcasts_in_rows_and_columns(run, rng, name, shape):
    """Strides of C0 are 0 where it broadcasts, for a column-major C too; only rows of C0 are read in vectors."""
    a, b, c = memory((3, 16, 8), rng), memory((8, 24), rng), memory(shape, rng)
    expected = 2 * (np.array(a) @ np.array(b)) - np.array(c)
    for out in (memory((3, 16, 24)), memory((3, 24, 16)).swapaxes(-1, -2)):
        np.testing.assert_allclose(run(a, b, c, alpha=2, beta=-1, out=out, name=name), expected, rtol=1e-5, atol=1e-5)
