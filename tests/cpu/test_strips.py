"""Products with a short side (core/strips.c, and rows of C in core/driver.c): every microkernel through every route.

The bits are those of any other route: a part of a product, which another route computes, shows a wrong order of terms.
"""

import itertools

import numpy as np
import pytest
from cases import few
from pysimd._cpu import lib
from reference import check, check_factors, layouts_of, pair, random_result, same_bits

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

KERNELS = [k for k in pysimd.kernels("cpu", available=True) if k.form == "outer"]
LONG_K = 2100  # longer than a block of k for all but the smallest tiles
THREADS = (2, 3, 8)


def all_threads(a, b, kernel=None):
    """The product, which has the same bits for any number of threads."""
    one = pysimd.matmul(a, b, kernel=kernel, threads=1)
    for threads in THREADS:
        assert pysimd.matmul(a, b, kernel=kernel, threads=threads).tobytes() == one.tobytes(), threads
    return one


def tall(types, k):
    """Rows of an A that is larger than L2."""
    size = dtypes.dtype_of(dtypes.FAMILIES[types].a).itemsize
    return lib.pysimd_caches().l2 // (k * size) + 77


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("tiles", [1, 2, 4])
@pytest.mark.parametrize("transposed", ["", "A", "B"])
def test_few_rows(kernel, tiles, transposed, rng):
    """B in place, in pieces, and in pieces of its columns; a last tile, piece and block that are not whole."""
    m, k, n = tiles * kernel.mr - (tiles > 1), LONG_K + 3, 7 * kernel.nr + 5
    a, b = pair(rng, kernel.types, (m, k), (k, n))
    x, y = np.asfortranarray(a) if transposed == "A" else a, np.asfortranarray(b) if transposed == "B" else b
    found = all_threads(x, y, kernel)
    check(found, kernel.types, a, b)
    columns = kernel.nr + 1
    part = pysimd.matmul(a, np.ascontiguousarray(b[:, -columns:]), kernel=kernel)  # too few columns for strips
    assert part.tobytes() == found[:, -columns:].tobytes()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_few_columns_of_a_transposed_a(kernel, rng):
    """The operands are exchanged. The last rows are those of a smaller product, which is computed as it is."""
    k, n = 300, kernel.nr - 1
    a, b = pair(rng, kernel.types, (tall(kernel.types, k), k), (k, n))
    found = all_threads(np.asfortranarray(a), b, kernel)
    check(found, kernel.types, a, b)
    part = pysimd.matmul(a[-50:], b, kernel=kernel)
    assert part.tobytes() == found[-50:].tobytes()
    assert pysimd.matmul(np.asfortranarray(a), np.asfortranarray(b), kernel=kernel).tobytes() == found.tobytes()


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("shape", few([(2, 700, 1500), (16, 700, 1009), (57, 300, 1009), (6, 5000, 130)]), ids=str)
def test_strides(types, shape, rng):
    m, k, n = shape
    a, b = pair(rng, types, (m, k), (k, n))
    if a.dtype.name == "uint16":
        pytest.skip("bfloat16 without ml_dtypes is for named kernels")
    expected = all_threads(a, b)
    check(expected, types, a, b)
    named = CPU.chosen(types, n, m, k)  # dispatch itself may take another kernel for another order
    expected = all_threads(a, b, named)
    checked = set()
    for (name_a, x), (name_b, y) in itertools.product(layouts_of(a).items(), layouts_of(b).items()):
        assert same_bits(named, x, y, expected, threads=2), (name_a, name_b)
        found = pysimd.matmul(x, y)
        if found.tobytes() not in checked:  # one kernel or two; the reference of float64 takes half a second
            check(found, types, a, b)
        checked.add(found.tobytes())


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("rows", few([3, 8, 20, 59]))
def test_a_prefetched_b(types, rows, rng):
    """A B beyond L2, whose next piece is prefetched. Wider tiles than those of dispatch's kernel add the same terms in
    the same order."""
    size = dtypes.dtype_of(dtypes.FAMILIES[types].b).itemsize
    k, n = 3003, 3 * lib.pysimd_caches().l2 // (3000 * size) + 37
    a, b = pair(rng, types, (rows, k), (k, n))
    if a.dtype.name == "uint16":
        pytest.skip("bfloat16 without ml_dtypes is for named kernels")
    check(all_threads(a, b), types, a, b)
    check(all_threads(a, np.asfortranarray(b)), types, a, b)
    named = CPU.chosen(types, n, rows, k)
    expected = all_threads(a, b, named)
    for name, y in layouts_of(b).items():
        assert same_bits(named, a, y, expected, threads=1), name
    a, b = pair(rng, types, (n, k), (k, rows))
    check(all_threads(np.asfortranarray(a), b), types, a, b)


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("layout", ["in place", "in pieces", "exchanged"])
def test_factors(types, layout, rng):
    """alpha and beta are applied once, and C is not read with beta 0: each of several blocks of k adds to it."""
    m, k, n = {"in place": (5, LONG_K, 300), "in pieces": (50, LONG_K, 300)}.get(layout) or (tall(types, 2200), 2200, 7)
    a, b = pair(rng, types, (m, k), (k, n))
    if a.dtype.name == "uint16":
        pytest.skip("bfloat16 without ml_dtypes is for named kernels")
    if layout == "exchanged":
        a = np.asfortranarray(a)
    c = random_result(rng, dtypes.dtype_of(dtypes.FAMILIES[types].c), (m, n))
    for alpha, beta in ((1, 1), (2, 0), (-1, 3)):
        found = pysimd.gemm(a, b, c, alpha=alpha, beta=beta, threads=2)
        check_factors(found, types, a, b, c, alpha, beta)
    if c.dtype.kind == "f":
        assert not np.isnan(pysimd.gemm(a, b, np.full_like(c, np.nan), alpha=2, beta=0)).any()


@pytest.mark.parametrize("shape", [(5, 900, 700), (40, 900, 700)], ids=str)
def test_batches(shape, rng):
    m, k, n = shape
    a, b = pair(rng, "f32", (3, m, k), (3, k, n))
    for x, y in ((a, b), (a, b[0]), (a[0], b), (a, b.swapaxes(1, 2).copy().swapaxes(1, 2))):
        found = all_threads(x, y)
        for i in range(3):
            one = pysimd.matmul(x[i] if x.ndim == 3 else x, y[i] if y.ndim == 3 else y)
            assert found[i].tobytes() == one.tobytes()


def test_batches_of_exchanged_products(rng):
    a, b = pair(rng, "f32", (2, tall("f32", 300), 300), (2, 300, 5))
    x = a.swapaxes(1, 2).copy().swapaxes(1, 2)
    found = all_threads(x, b)
    for i in range(2):
        assert found[i].tobytes() == pysimd.matmul(x[i], b[i]).tobytes()
    check(found, "f32", a, b)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("k", [1, 4, 16])
@pytest.mark.parametrize("transposed", ["", "A", "B"])
def test_short_k(kernel, k, transposed, rng):
    """By rows of C. The first rows are too few for that, and the factor takes the blocks of large products."""
    m, n = 1300, 400 + 3 * kernel.nr + 1
    a, b = pair(rng, kernel.types, (m, k), (k, n))
    x, y = np.asfortranarray(a) if transposed == "A" else a, np.asfortranarray(b) if transposed == "B" else b
    found = all_threads(x, y, kernel)
    check(found, kernel.types, a, b)
    assert pysimd.matmul(a[: kernel.mr], b, kernel=kernel).tobytes() == found[: kernel.mr].tobytes()
    c = np.zeros_like(found)
    assert (pysimd.gemm(x, y, c, alpha=2, kernel=kernel) == 2 * found).all()


@pytest.mark.parametrize("types", ["f32", "f64"])
def test_few_rows_times_a_transposed_b(types, rng):
    """One row of tiles: B is packed tile by tile, though it is no batch."""
    for m, k, n in ((2, 15, 3391), (5, 40, 203), (6, 187, 435)):
        a, b = pair(rng, types, (m, k), (k, n))
        check(all_threads(a, np.asfortranarray(b)), types, a, b)
        named = CPU.chosen(types, n, m, k)
        found = all_threads(a, np.asfortranarray(b), named)
        check(found, types, a, b)
        assert found.tobytes() == pysimd.matmul(a, b, kernel=named).tobytes()
