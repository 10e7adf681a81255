"""ozaki2_f32 and ozaki2_f64 executed on the host: their plans as a call makes them, with the kernels before and after
the int8 products, which NumPy does. Needs neither a GPU nor NVRTC."""

import ctypes
import itertools
import sys
from math import gcd

import fake_cupy
import host_kernels
import numpy as np
import pytest
from pysimd.gpu_kernels import ladder_table

import pysimd
from pysimd import operands, sources
from pysimd.backends.cuda import device as cuda_device
from pysimd.backends.cuda import tensor_maps
from pysimd.backends.cuda.implementation import CUDA
from pysimd.backends.cuda.ladder import remainders
from pysimd.backends.cuda.ladder import rungs as cuda_ladder
from pysimd.backends.gpu.gemm_launches import FIELDS
from pysimd.backends.gpu.plans import SCRATCH, A, Argument, B, C, KernelLaunch, Slot
from pysimd.operands import GemmOptions

pytestmark = pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")

ROWS = [row for row in ladder_table.RUNGS if row.remainders]
LAYOUTS = ("K_MAJOR", "MN_MAJOR")
DTYPES = {"f32": np.float32, "f64": np.float64}
BOUND = {"f32": (-25.35, -54.7, -24), "f64": (-56.39, -116.78, -51)}
"""Exponents of the factors of the bound in the header."""


def int8_products(grid, block, arguments, shared_bytes, stream, cooperative):
    """Replaces i8_wgmma's kernel: what a Gemm says, by NumPy."""
    p = dict(zip(FIELDS, np.frombuffer(bytes_at(arguments[0].ptr, 8 * 18), np.int64).tolist(), strict=True))
    assert p["factors"] == 1
    assert p["c0"] == p["lda"] % 16 == p["a"] % 16 == p["b"] % 16 == 0
    for i in range(block[0]):
        a, b = (
            np.frombuffer(bytes_at(p[x] + i * p[f"{x}_batch"], p[rows] * p[f"ld{x}"]), np.int8).reshape(p[rows], -1)
            for x, rows in (("a", "m"), ("b", "n"))
        )
        sums = a[:, : p["k"]].astype(np.int64) @ b[:, : p["k"]].T.astype(np.int64)
        c = (ctypes.c_int32 * (p["m"] * p["ldc"])).from_address(p["c"] + 4 * i * p["c_batch"])
        np.frombuffer(c, np.int32).reshape(p["m"], -1)[:, : p["n"]] = sums  # no sum is 2^31
        assert np.abs(sums).max(initial=0) < 2**31


def bytes_at(address, count):
    return (ctypes.c_char * count).from_address(address)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return {
        row.name: host_kernels.Library(
            "ladder/remainders.cuh",
            sorted({x for layout in LAYOUTS for x in ladder_table.remainder_entries(row, layout)}),
            tmp_path_factory.mktemp(row.name),
        )
        for row in ROWS
    }


@pytest.fixture
def run(monkeypatch, libraries):
    """Calls a rung as ``gemm`` does, on ``fake_cupy.Array``."""

    def functions(name, layout, device):
        row = ladder_table.BY_NAME[name]
        return tuple(libraries[name].function(x) for x in ladder_table.remainder_entries(row, layout))

    def products(c_bytes, gemm):
        assert (c_bytes, gemm.layouts, gemm.products) == (4, ("K_MAJOR", "K_MAJOR"), gemm.row.remainders)
        assert gemm.k <= remainders.MOST_K
        return cuda_ladder._Part([KernelLaunch(int8_products, (1,), (gemm.products,), (gemm.argument,))])

    pysimd.rungs("cuda")
    monkeypatch.setattr(cuda_ladder, "_remainder_functions", functions)
    monkeypatch.setattr(cuda_ladder, "_tensor", products)
    monkeypatch.setattr(cuda_device, "why_not", lambda *_: "")
    monkeypatch.setattr(cuda_ladder, "current_device", lambda: 0)
    monkeypatch.setattr(cuda_ladder, "multiprocessors", lambda device: 1)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module(memory=fake_cupy.HostMemory))

    def call(types, a, b, c=None, *, alpha=1.0, beta=0.0, out=None):
        rung = pysimd.rung(f"ozaki2_{types}")
        product = operands.check_gemm(rung, a, b, c, out, GemmOptions.checked(alpha, beta, False, False, c), (types,))
        out = fake_cupy.array(product.full, DTYPES[types]) if out is None else out
        CUDA._product_work(rung, product._replace(out=out)).run()
        return out

    return call


def given(x, dtype, *, by_columns=False, more=0):
    """A copy with a leading dimension ``more`` longer than it must be; NaN lies between its rows."""
    lines = x.swapaxes(-1, -2) if by_columns else x
    room = fake_cupy.array((*lines.shape[:-1], lines.shape[-1] + more), dtype)
    room[...] = np.nan
    found = room[..., : lines.shape[-1]]
    found[...] = lines
    return found.swapaxes(-1, -2) if by_columns else found


def check(types, result, a, b, c=None, alpha=1.0, beta=0.0):
    """The bound that the header promises, and one rounding each for alpha and beta."""
    a, b = a.astype(np.longdouble), b.astype(np.longdouble)
    product = (a[..., :, :, None] * b[..., None, :, :]).sum(-2)
    expected = alpha * product + (beta * c.astype(np.longdouble) if beta else 0)
    root, whole, rounding = (2.0**x for x in BOUND[types])
    k, norms = a.shape[-1], np.sqrt((a * a).sum(-1))[..., :, None] * np.sqrt((b * b).sum(-2))[..., None, :]
    bound = abs(alpha) * ((k**0.5 * root + k * whole) * norms + rounding * abs(product))
    bound += np.finfo(DTYPES[types]).eps / 2 * ((alpha != 1) * abs(alpha * product) + (beta != 0) * abs(expected))
    assert result.dtype == DTYPES[types]
    assert (abs(result - expected) <= bound * (1 + 1e-6)).all()


def graded(rng, shape, axis, span):
    grades = 2.0 ** rng.uniform(-span, span, shape[axis])
    return rng.standard_normal(shape) * (grades if axis in (-1, 1) else grades[:, None])


@pytest.mark.parametrize("types", DTYPES)
@pytest.mark.parametrize("span", [0, 10], ids=["normal", "graded"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 7, 3), (33, 40, 65), (70, 34, 130), (3, 300, 2)])
def test_within_the_bound(run, rng, types, m, n, k, span):
    """In every layout, with longer leading dimensions."""
    a, b = graded(rng, (m, k), -1, span).astype(DTYPES[types]), graded(rng, (k, n), 0, span).astype(DTYPES[types])
    for columns_a, columns_b in itertools.product((False, True), repeat=2):
        x = given(a, DTYPES[types], by_columns=columns_a, more=3)
        y = given(b, DTYPES[types], by_columns=columns_b, more=1)
        check(types, run(types, x, y), a, b)


@pytest.mark.parametrize("types", DTYPES)
def test_factors_batches_and_a_column_major_c(run, rng, types):
    dtype = DTYPES[types]
    a, c = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 20, 17), (3, 20, 9)))
    b = rng.standard_normal((17, 9)).astype(dtype)
    out = fake_cupy.array((3, 9, 20), dtype).swapaxes(1, 2)
    for alpha, beta in ((1.0, 0.0), (-1.5, 0.75), (0.0, 1.0)):
        result = run(types, given(a, dtype), given(b, dtype), given(c, dtype) if beta else None, alpha=alpha, beta=beta)
        check(types, result, a, np.broadcast_to(b, (3, 17, 9)), c, alpha, beta)
        run(types, given(a, dtype), given(b, dtype), given(c, dtype) if beta else None, alpha=alpha, beta=beta, out=out)
        assert np.array_equal(out, result)


@pytest.mark.parametrize("types", DTYPES)
def test_nothing_to_add(run, rng, types):
    c = given(rng.standard_normal((4, 6)), DTYPES[types])
    a, b = fake_cupy.array((4, 0), DTYPES[types]), fake_cupy.array((0, 6), DTYPES[types])
    sys.modules["cupy"].zeros = lambda shape, dtype: fake_cupy.array(shape, dtype)
    sys.modules["cupy"].empty = lambda shape, dtype: fake_cupy.array(shape, dtype)
    assert not run(types, a, b).any()
    assert np.array_equal(run(types, a, b, c, beta=2.0), 2 * c)


@pytest.mark.parametrize("types", DTYPES)
def test_extreme_magnitudes(run, types):
    """Of a row and of a column: neither squares that overflow nor denormals lose anything."""
    dtype = DTYPES[types]
    least, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    a, b = np.array([[3 * least, least], [most, -most / 2]], dtype), np.array([[1, 0], [1, -1]], dtype)
    assert np.array_equal(run(types, given(a, dtype), given(b, dtype)), a @ b)


@pytest.mark.parametrize("types", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_give_nan_in_their_row_or_column(run, rng, types, value):
    dtype = DTYPES[types]
    a, b = rng.standard_normal((6, 40)).astype(dtype), rng.standard_normal((40, 7)).astype(dtype)
    a[2, 30], b[5, 4] = value, value
    for columns in (False, True):
        result = run(types, given(a, dtype, by_columns=columns), given(b, dtype, by_columns=columns))
        expected = np.zeros((6, 7), bool)
        expected[2], expected[:, 4] = True, True
        assert np.array_equal(np.isnan(result), expected)


@pytest.mark.parametrize("types", DTYPES)
def test_a_long_k_is_several_products(run, rng, types, monkeypatch):
    monkeypatch.setattr(remainders, "MOST_K", 48)
    dtype = DTYPES[types]
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((4, 100), (100, 5), (4, 5)))
    for columns in (False, True):
        x, y = given(a, dtype, by_columns=columns), given(b, dtype, by_columns=columns, more=2)
        result = run(types, x, y, given(c, dtype), alpha=2.0, beta=-0.5)
        bound = 100 * np.finfo(dtype).eps * (2 * np.abs(a) @ np.abs(b) + np.abs(c))
        assert (np.abs(result - (2 * (a.astype(np.longdouble) @ b) - 0.5 * c)) <= bound).all()


def test_numbers_are_coprime_and_sums_fit():
    assert all(gcd(x, y) == 1 for x, y in itertools.combinations(remainders.MODULI, 2))
    assert all((p // 2) ** 2 * remainders.MOST_K < 2**31 for p in remainders.MODULI)
    assert max(row.remainders for row in ROWS) <= 16 == remainders.moduli(7)["p"].shape[1]
    assert "MOST_MODULI = 16," in sources.read("gpu_kernels/ladder/remainders.cuh")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_bound_is_that_of_the_numbers(row):
    """2^(2-L) and 2^(-2L), rounded up: L is the power of two of a row's norm. It leaves room for the rounding of the
    elements, half of one each, at MOST_K of them."""
    norm = float(remainders.moduli(row.remainders)["log2_norm"][0])
    root, whole, rounding = BOUND[row.types]
    text = pysimd.rung(row.name).source
    assert f"(sqrt(k) 2^{root} + k 2^{whole}) |a_i| |b_j| + 2^{rounding} |C|" in text
    assert 0 < root - (2 - norm) < 0.01
    assert 0 < whole - -2 * norm < 0.02
    assert 2 ** (norm - 2e-6) + remainders.MOST_K**0.5 / 2 < 2**norm


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_launches(row, monkeypatch):
    """The int8 products are one launch, of a batch, whose operands and sums lie in scratch memory, without splits."""
    maps = []
    made = np.zeros(1, tensor_maps.TENSOR_MAP)
    monkeypatch.setattr(tensor_maps, "tensor_map", lambda *given: (maps.append(given), made)[1])
    monkeypatch.setattr(cuda_ladder, "_remainder_functions", lambda *_: ("exponents", "split", "join"))
    monkeypatch.setattr(cuda_ladder, "_function", lambda *_: "products")
    monkeypatch.setattr(cuda_ladder, "current_device", lambda: 0)
    monkeypatch.setattr(cuda_ladder, "multiprocessors", lambda device: 132)
    given_to = {"a": 4096, "b": 8192, "c": 1 << 20, "m": 100, "n": 90, "k": 70_000, "lda": 70_000, "ldb": 90, "ldc": 90}
    words = np.array([given_to.get(name, 0) for name in FIELDS], np.int64)
    gemm = Argument(words, tuple(Slot(i, which) for i, which in ((0, A), (1, B), (3, C))))
    part = cuda_ladder._by_remainders(
        1.0, 0.0, cuda_ladder._Gemm(row, 100, 90, 70_000, ("K_MAJOR", "MN_MAJOR"), 1, gemm)
    )
    size, count = DTYPES[row.types]().itemsize, row.remainders
    kinds = ["exponents", "split"] * 2 + ["products", "join"]
    assert [x.function for x in part.launches] == kinds * 2
    assert part.launches[0].grid == (100,)
    assert part.launches[2].grid == (3,)
    second = part.launches[6].arguments[0]
    assert (second.slots[0].offset, second.words[4]) == (65_536 * size, 70_000 - 65_536)
    assert part.launches[8].arguments[0].slots[0].offset == 65_536 * 90 * size
    assert part.launches[11].arguments[0].slots[-1] == Slot(3, C)  # added to what the first one left
    assert [x[2] for x in maps[:2]] == [(65_536, 100, count), (65_536, 90, count)]
    sums = count * 100 * 92 * 4
    assert part.scratch_bytes >= count * 190 * 65_536 + sums
    for launch in part.launches:
        for slot in (slot for argument in launch.arguments for slot in argument.slots if slot.memory == SCRATCH):
            assert slot.offset % 16 == 0
            assert slot.offset < part.scratch_bytes
