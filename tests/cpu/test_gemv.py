"""Products of one row or one column: the kernels for a vector, by whatever order A is stored in."""

import itertools

import layouts
import numpy as np
import pytest
from cases import QUICK, few
from reference import adds_in_chains, check, check_factors, pair, random_result, same_bits

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU

TYPES = [t for t in CPU.offered if dtypes.dtype_of(dtypes.FAMILIES[t].a).name != "uint16"]
LAYOUTS = (layouts.contiguous, layouts.transposed, layouts.sliced, layouts.padded_rows, layouts.negative)
SIZES = few([1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33, 65], 5)
LENGTHS = few([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33, 64, 100], 5)


CHAINED = {k.types for k in pysimd.kernels("cpu", available=True) if adds_in_chains(k)}
"""Types of which a kernel adds the terms in another order where the columns of A, or rows of B, are adjacent elements:
the other kernels have the same bits for every order."""


@pytest.fixture(params=TYPES)
def types(request):
    return request.param


def order(types, matrix):
    """What the bits of a product by a vector may depend on, of the matrix: which elements are adjacent, and whether
    they all are."""
    if types not in CHAINED:
        return None
    *_, rows, columns = matrix.shape
    sizes = zip(matrix.shape, matrix.strides, strict=True)
    steps = [step // matrix.itemsize if size > 1 else 0 for size, step in sizes]
    if steps[-1] == 1 or steps[-2] == 1:
        return steps[-2:].index(1), steps[-2:] in ([columns, 1], [1, rows])
    return None, None


@pytest.mark.parametrize("form", ["A @ v", "v @ B"])
def test_every_length_and_order(types, form, rng):
    """The bits are those of contiguous operands in the same order, whatever the strides, at every place of a batch."""
    for size, k in itertools.product(SIZES, LENGTHS):
        m, n = (size, 1) if form == "A @ v" else (1, size)
        a, b = pair(rng, types, (3, m, k), (3, k, n))
        expected = {}
        for of_a, of_b in itertools.product(LAYOUTS, repeat=2):
            x, y = of_a(a), of_b(b)
            result = pysimd.matmul(x, y)
            first = expected.setdefault(order(types, x if n == 1 else y), result)
            assert result.tobytes() == first.tobytes(), (size, k, of_a.__name__, of_b.__name__)
            for i in range(3):
                assert pysimd.matmul(x[i], y[i]).tobytes() == result[i].tobytes()
        for result in expected.values():
            check(result, types, a, b)


@pytest.mark.parametrize("size", few([300, 1030, 4097], 2))
def test_more_elements_than_accumulators_in_memory(types, size, rng):
    for k in (5, 16, 37):
        a, b = pair(rng, types, (2, 1, k), (2, k, size))
        check_both_orders(types, a, b)


def check_both_orders(types, a, b):
    """A row times a matrix by rows, and by columns, whose bits are the same unless one is added in chains."""
    result, other = pysimd.matmul(a, b), pysimd.matmul(a, layouts.transposed(b))
    check(result, types, a, b)
    check(other, types, a, b)
    assert types in CHAINED or other.tobytes() == result.tobytes()
    return result


def test_vectors_of_numpy(types, rng):
    """1-D operands, shared by the batch, give the bits of a batch of columns or rows."""
    a, v = pair(rng, types, (40, 6, 19), (19,))
    result = pysimd.matmul(a, v)
    columns = pysimd.matmul(a, np.ascontiguousarray(np.broadcast_to(v[:, None], (40, 19, 1))))
    assert result.tobytes() == columns.tobytes()
    u, b = pair(rng, types, (19,), (40, 19, 6))
    result = pysimd.matmul(u, b)
    rows = pysimd.matmul(np.ascontiguousarray(np.broadcast_to(u, (40, 1, 19))), b)
    assert result.tobytes() == rows.tobytes()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_each_of_some_columns_has_the_bits_it_has_alone(types, n, rng):
    """Computed together, into rows of C next to each other or not, overwritten or added to, from any order of A."""
    named = pysimd.kernels("cpu", types=types, form="gemv", available=True)
    if not named:
        pytest.skip("no kernel for a vector here")
    for kernel in named:
        check_each_column(kernel, n, rng)


def check_each_column(kernel, n, rng):
    kind, types = kernel.c_dtype, kernel.types
    shapes = itertools.product((1, 2, 3, 4, 5, 9), (0, 1, 7, 8, 15, 16, 17, 33))
    short = itertools.product((8, 9, 16, 19), (2, 3, 4))  # whole rows, some of them in a register
    for m, k in (*shapes, *short, *itertools.product((12, 16, 21, 40), (13, 64, 150))):
        if m < n and adds_in_chains(kernel):
            continue  # rows of B, in chains if they are adjacent elements
        a, b = pair(rng, types, (3, m, k), (3, k, n))
        for of_a in LAYOUTS:
            x = of_a(a)
            alone = [pysimd.matmul(x, np.ascontiguousarray(b[..., j : j + 1]), kernel=kernel) for j in range(n)]
            expected = np.concatenate(alone, -1)
            check(expected, types, a, b)
            for of_b, of_out in itertools.product(LAYOUTS[:2], (layouts.contiguous, layouts.padded_rows)):
                out = of_out(random_result(rng, kind, (3, m, n)))
                pysimd.matmul(x, of_b(b), out=out, kernel=kernel)
                assert out.tobytes() == expected.tobytes(), (m, k, of_a.__name__, of_b.__name__, of_out.__name__)
        c = random_result(rng, kind, (3, m, n))
        out = layouts.padded_rows(c)
        pysimd.gemm(a, b, out, beta=1, out=out, kernel=kernel)
        check(out, types, a, b, c)


def has_tiles_before(types, n: int) -> bool:
    """Whether a kernel here is taken for n columns before those for a vector (.dispatch_before_gemv): where AVX-512 is
    executed in halves, not the one that is for any number of columns."""
    rows = [cpu_table.row(k.name) for k in pysimd.kernels("cpu", types=types, available=True)]
    halves = types == "f64" and cpu_table.lib.pysimd_halves_avx512()
    return any(0 < row.dispatch_before_gemv <= n for row in rows) and not halves


@pytest.mark.parametrize("n", [2, 3, 4])
def test_dispatch_takes_a_few_columns_of_many_rows(types, n, rng):
    named = {k.name for k in pysimd.kernels("cpu", types=types, form="gemv", available=True)}
    if not named:
        pytest.skip("no kernel for a vector here")
    assert CPU.chosen(types, n, 40, 128).name in named
    assert (CPU.chosen(types, n, 40, 40).name in named) != has_tiles_before(types, n)
    assert CPU.chosen(types, n, 40, 5).name not in named
    assert CPU.chosen(types, n, 5, 40).name not in named
    assert CPU.chosen(types, n, 5, 400).name not in named
    a, b = pair(rng, types, (3, 40, 40), (3, 40, n))
    x, y = layouts.transposed(a), layouts.transposed(b)
    for found in (pysimd.matmul(a, b), pysimd.matmul(x, y)):
        check(found, types, a, b)
    chosen = CPU.chosen(types, n, 40, 40)
    assert same_bits(chosen, x, y, pysimd.matmul(a, b, kernel=chosen))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_each_of_some_rows_has_the_bits_it_has_alone(types, m, rng):
    """Computed together from K = 128 on, as columns of exchanged operands, into any rows of C, from any order of B."""
    named = pysimd.kernels("cpu", types=types, form="gemv", available=True)
    if not named:
        pytest.skip("no kernel for a vector here")
    assert CPU.chosen(types, 40, m, 128) == named[0]
    assert CPU.chosen(types, 40, m, 63) != named[0]
    for n, k in itertools.product((16, 17, 31), (128, 150)):
        a, b = pair(rng, types, (3, m, k), (3, k, n))
        for of_b in LAYOUTS:
            y = of_b(b)
            alone = [pysimd.matmul(np.ascontiguousarray(a[:, i : i + 1]), y, kernel=named[0]) for i in range(m)]
            expected = np.concatenate(alone, -2)
            check(expected, types, a, b)
            for of_a, of_out in itertools.product(LAYOUTS[:2], (layouts.contiguous, layouts.padded_rows)):
                out = of_out(random_result(rng, named[0].c_dtype, (3, m, n)))
                pysimd.matmul(of_a(a), y, out=out, kernel=named[0])
                assert out.tobytes() == expected.tobytes(), (n, k, of_a.__name__, of_b.__name__, of_out.__name__)
        c = random_result(rng, named[0].c_dtype, (3, m, n))
        out = layouts.padded_rows(c)
        pysimd.gemm(a, b, out, beta=1, out=out)
        check(out, types, a, b, c)
        check_factors(pysimd.gemm(a[0], b[0], c[0], alpha=2, beta=3), types, a[0], b[0], c[0], 2, 3)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_more_elements_of_some_columns_than_accumulators_in_memory(types, n, rng):
    """A by columns; the last of several blocks of rows is shorter than a register."""
    for m, k in ((1030, 16), (1367, 70), (4097, 130)):
        a, b = pair(rng, types, (m, k), (k, n))
        check(pysimd.matmul(np.asfortranarray(a), b), types, a, b)
        named = CPU.chosen(types, n, m, k)
        assert same_bits(named, np.asfortranarray(a), b, pysimd.matmul(a, b, kernel=named))


@pytest.mark.parametrize("threads", [2, 3, 8, 300])
def test_threads_divide_a_matrix_by_columns_into_whole_registers(types, threads, rng):
    """So that no part is computed as a matrix of few rows, whose terms are added in another order."""
    for size, k in itertools.product((17, 31, 33, 49, 64, 100, 1000), (9, 40)):
        for shape_a, shape_b in (((1, k), (k, size)), ((2, 1, k), (2, k, size))):
            a, b = pair(rng, types, shape_a, shape_b)
            assert pysimd.matmul(a, b, threads=threads).tobytes() == pysimd.matmul(a, b, threads=1).tobytes(), (size, k)
        a, b = pair(rng, types, (size, k), (k, 2))
        a = layouts.transposed(a)
        assert pysimd.matmul(a, b, threads=threads).tobytes() == pysimd.matmul(a, b, threads=1).tobytes(), (size, k)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads(types, threads, rng):
    for shape_a, shape_b in (((3, 50, 40), (3, 40, 1)), ((3, 1, 40), (3, 40, 50)), ((200, 40), (40,))):
        a, b = pair(rng, types, shape_a, shape_b)
        assert pysimd.matmul(a, b, threads=threads).tobytes() == pysimd.matmul(a, b).tobytes()


@pytest.mark.parametrize("of_out", [layouts.contiguous, layouts.padded_rows, layouts.negative_rows])
def test_out_and_c(types, of_out, rng):
    """Rows of C at any distance; C added to, or overwritten though it holds NaN."""
    kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    for m, n in ((11, 1), (1, 11), (8, 1), (1, 8), (1, 1), (2, 1)):
        a, b = pair(rng, types, (3, m, 10), (3, 10, n))
        c = random_result(rng, kind, (3, m, n))
        out = of_out(np.full((3, m, n), np.nan if kind.kind == "f" else 77).astype(kind))
        pysimd.matmul(a, b, out=out)
        check(out, types, a, b)
        out = of_out(c)
        assert pysimd.gemm(a, b, out, beta=1, out=out) is out
        check(out, types, a, b, c)


@pytest.mark.parametrize("types", [t for t in TYPES if not t.endswith("i8i32")])
def test_nan_stays_in_its_element(types, rng):
    for k in (1, 5, 8, 19):
        for order in (layouts.contiguous, layouts.transposed):
            a, b = pair(rng, types, (2, 13, k), (2, k, 1))
            a[0, 3, k - 1], a[1, 12, 0] = np.nan, np.inf
            check(pysimd.matmul(order(a), b), types, a, b)
            check(
                pysimd.matmul(b.swapaxes(-1, -2), order(a).swapaxes(-1, -2)),
                types,
                b.swapaxes(-1, -2),
                a.swapaxes(-1, -2),
            )


@pytest.mark.parametrize("types", ["i8i32", "u8i8i32"])
def test_integer_extremes(types):
    """Every pair of extremes at lengths that leave a single last term; uint8 is the row, then the matrix."""
    family = dtypes.FAMILIES[types]
    kinds = [dtypes.dtype_of(name) for name in (family.a, family.b)]
    ends = [(np.iinfo(kind).min, np.iinfo(kind).max) for kind in kinds]
    for in_a, in_b, k in itertools.product(*ends, (1, 15, 16, 17, 33)):
        for m, n in ((9, 1), (1, 9)):
            a, b = np.full((2, m, k), in_a, kinds[0]), np.full((2, k, n), in_b, kinds[1])
            for of_a, of_b in itertools.product((layouts.contiguous, layouts.transposed), repeat=2):
                check(pysimd.matmul(of_a(a), of_b(b)), types, a, b)


def test_gemm_by_name_has_any_number_of_columns(types, rng):
    """A kernel for a vector that is named computes column after column."""
    named = pysimd.kernels("cpu", types=types, form="gemv", available=True)
    if not named:
        pytest.skip("no kernel for a vector here")
    for m, n in ((5, 3), (1, 4), (17, 2)):
        a, b = pair(rng, types, (2, m, 9), (2, 9, n))
        check(pysimd.matmul(a, b, kernel=named[0]), types, a, b)


@pytest.mark.skipif(QUICK, reason="all values")
def test_every_float16_and_bfloat16_is_widened_exactly():
    """Times one: the value itself, as float32. NaN stays NaN."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    for types in ("f16f32", "bf16f32"):
        dtype = dtypes.dtype_of(dtypes.FAMILIES[types].a)
        values = bits.view(dtype).reshape(-1, 1)
        right = dtypes.widened(values, np.float32)
        for kernel in pysimd.kernels("cpu", types=types, available=True):
            if types == "bf16f32" and kernel.target in ("avx512bf16", "amx"):
                continue  # takes denormals as zero; the parts of a float16 are none
            one = (
                dtypes.bits_of_float32(np.ones((1, kernel.nr), np.float32)).view(dtype)
                if types == "bf16f32"
                else (np.ones((1, kernel.nr), dtype))
            )
            result = pysimd.matmul(values, one, kernel=kernel)
            np.testing.assert_array_equal(result, np.broadcast_to(right, result.shape), err_msg=kernel.name)


@pytest.mark.parametrize("of_out", [layouts.contiguous, layouts.padded_rows, layouts.negative_rows])
def test_columns_of_a_into_any_rows_of_c(types, of_out, rng):
    """One register of C to three, and groups of them, of which the last overlaps or not: stored or added to."""
    kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    for m, k in itertools.product((8, 9, 16, 19, 24, 29, 33, 53), (1, 6, 17)):
        a, b = pair(rng, types, (2, m, k), (2, k, 1))
        expected = pysimd.matmul(layouts.transposed(a), b)
        check(expected, types, a, b)
        out = of_out(random_result(rng, kind, (2, m, 1)))
        pysimd.matmul(layouts.transposed(a), b, out=out)
        assert out.tobytes() == expected.tobytes(), (m, k)
        c = random_result(rng, kind, (2, m, 1))
        out = of_out(c)
        pysimd.gemm(layouts.transposed(a), b, out, beta=1, out=out)
        check(out, types, a, b, c)


def test_small_matrices_with_more_terms_than_are_widened_at_once(types, rng):
    for k in (511, 512, 513, 1030):
        check_both_orders(types, *pair(rng, types, (2, 1, k), (2, k, 11)))


def test_a_batch_larger_than_the_caches_has_the_bits_of_its_products(types, rng):
    """The next matrix is prefetched; the last product has none."""
    a, b = pair(rng, types, (1, 45), (7, 45, 53))
    shared = np.ascontiguousarray(np.broadcast_to(b, (200, *b.shape))).reshape(-1, *b.shape[1:])
    result = pysimd.matmul(a, shared, threads=1)
    assert result.tobytes() == pysimd.matmul(a, b).tobytes() * 200


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])  # six are three and three, of some rows at a time
def test_rows_that_are_read_one_by_one_have_the_same_bits(types, n, rng):
    """Of a matrix from beyond the caches, and of a batch: how rows are read is tried on the first of them."""
    named = pysimd.kernels("cpu", types=types, form="gemv", available=True)
    if not named:
        pytest.skip("no kernel for a vector here")
    size = dtypes.dtype_of(dtypes.FAMILIES[types].a).itemsize
    k, some, beyond = 403 // size, 40, 17 << 20  # the last vector of a row is not whole
    many = beyond // (k * size) + 3
    a, b = pair(rng, types, (some, k + 3), (k, n))
    tall = np.resize(a, (many, k + 3))[:, :k]
    dense = np.ascontiguousarray(tall[: many // some * some])
    for kernel in named:
        rows = pysimd.matmul(tall[:some], b, kernel=kernel, threads=1)
        check(rows, types, tall[:some], b)
        expected = np.resize(rows, (many, n))
        for threads in (1, 2):
            assert pysimd.matmul(tall, b, kernel=kernel, threads=threads).tobytes() == expected.tobytes()
            for each in (some, 10):  # the smaller products may also be prefetched
                found = pysimd.matmul(dense.reshape(-1, each, k), b, kernel=kernel, threads=threads)
                assert found.tobytes() == expected[: len(dense)].tobytes()
        room = np.zeros((many, n + 2), rows.dtype)
        pysimd.matmul(tall, b, out=room[:, 1:-1], kernel=kernel)
        assert room[:, 1:-1].tobytes() == expected.tobytes()
        assert not room[:, [0, -1]].any()
        once = random_result(rng, kernel.c_dtype, (some, n))
        c = np.resize(once, (many, n))
        pysimd.gemm(tall, b, c, beta=1, out=c, kernel=kernel)
        pysimd.gemm(tall[:some], b, once, beta=1, out=once, kernel=kernel)
        assert c.tobytes() == np.resize(once, (many, n)).tobytes()


@pytest.mark.parametrize("bytes_of_matrix", [32 << 10, 64 << 10, 160 << 10])
def test_matrices_about_as_large_as_the_caches(types, bytes_of_matrix, rng):
    """Rows of one vector to those of all columns, a little below each size and above it, in a batch and alone."""
    elements = bytes_of_matrix // dtypes.dtype_of(dtypes.FAMILIES[types].b).itemsize
    for k in few([31, 32, 33, 40, 63, 64, 100, 129, 512], 4):
        for n in (elements // k, elements // k + 1):
            a, b = pair(rng, types, (3, 1, k), (3, k, n))
            result = check_both_orders(types, a, b)
            assert pysimd.matmul(a[2], b[2]).tobytes() == result[2].tobytes(), (k, n)


@pytest.mark.parametrize("types", ["f32", "f64"])
@pytest.mark.parametrize("m", [2, 3, 4, 7])
def test_few_rows_by_a_transposed_b_are_added_to_c(types, m, rng):
    """The operands are exchanged, so that the columns of the kernel's C are adjacent elements."""
    k, n, close = 96, 37, {"f32": 1e-4, "f64": 1e-12}[types]
    a, b = pair(rng, types, (m, k), (n, k))
    c = rng.standard_normal((m, n)).astype(a.dtype)
    found = pysimd.gemm(a, b.T, c, alpha=1.0, beta=1.0)
    np.testing.assert_allclose(found, c + a.astype(np.float64) @ b.T, rtol=close, atol=close)
    room = np.full((n + 2, m), 7, a.dtype)
    room[1:-1] = c.T
    pysimd.gemm(b, a.T, room[1:-1], alpha=1.0, beta=1.0, out=room[1:-1])
    np.testing.assert_allclose(room[1:-1].T, c + a.astype(np.float64) @ b.T, rtol=close, atol=close)
    assert (room[[0, -1]] == 7).all()
