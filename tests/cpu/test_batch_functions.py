"""Batch functions of the table called directly, for what ``matmul`` asks of them on some processors alone: half a
vector of columns (PYSIMD_HALF), one or two columns by themselves (PYSIMD_AFTER), and a B of float16 that is widened
while it is loaded. The bits are those of the function that has none of them."""

import itertools

import numpy as np
import pytest
from cases import few

from pysimd.backends.cpu import table as cpu_table

LIB, FFI = cpu_table.lib, cpu_table.ffi
RUNNABLE = [row for row in cpu_table.rows() if LIB.pysimd_can_run(row)]
HALF = [row for row in RUNNABLE if row.half and row.types in (LIB.F32, LIB.F64)]
TILES = [
    row
    for row in RUNNABLE
    if row.target == LIB.AVX512 and row.form == LIB.OUTER and row.types in (LIB.F32, LIB.F64) and row.mr * row.nr >= 192
]
WIDENING = [row for row in RUNNABLE if row.batch_widening_b]
BATCH, GAP, LANES = 3, 5, 16
LENGTHS = few([0, 1, 2, 3, 16, 17, 31], 4)
FLAGS = (LIB.PYSIMD_ZERO, 0, LIB.PYSIMD_CHAIN)


def name_of(row):
    return cpu_table.text(row.name)


def operands(rng, m, k, n, dtype, by_columns):
    """A and B of random values, and C of which no row is next to another."""
    a = rng.standard_normal((BATCH, k, m) if by_columns else (BATCH, m, k)).astype(dtype)
    b = rng.standard_normal((BATCH, k, n)).astype(dtype)
    return a, b, rng.standard_normal((BATCH, m, n + GAP)).astype(dtype)


def computed(function, flags, a, b, c, n, by_columns):
    """C after the call, which reads A and B and adds to, or writes, n columns of each row."""
    c = c.copy()
    call = FFI.new("pysimd_call *")
    m, k = (a.shape[2], a.shape[1]) if by_columns else a.shape[1:]
    call.batch, call.m, call.n, call.k = BATCH, m, n, k
    call.a, call.bs_a = FFI.from_buffer(a) if a.size else FFI.NULL, m * k
    call.rs_a, call.cs_a = (1, m) if by_columns else (k, 1)
    call.b, call.bs_b, call.rs_b = FFI.from_buffer(b) if b.size else FFI.NULL, k * n, n
    call.c, call.bs_c, call.rs_c, call.cs_c = FFI.from_buffer(c), c[0].size, c.shape[2], 1
    call.flags = flags
    function(call)
    return c


@pytest.mark.parametrize("row", HALF, ids=name_of)
@pytest.mark.parametrize("flags", FLAGS, ids=("C = A B", "C += A B", "chain"))
def test_half_a_vector_has_the_bits_of_a_part_of_one(row, flags, rng):
    dtype = np.dtype(np.float64 if row.types == LIB.F64 else np.float32)
    lanes = 64 // dtype.itemsize
    columns = [n for n in range(lanes + 1, row.nr) if 0 < n % lanes <= lanes // 2]
    assert columns
    for m, n, k, by_columns in itertools.product(range(1, row.mr + 1), few(columns, 4), LENGTHS, (False, True)):
        a, b, c = operands(rng, m, k, n, dtype, by_columns)
        want = computed(row.batch, flags, a, b, c, n, by_columns)
        got = computed(row.batch, flags | LIB.PYSIMD_HALF, a, b, c, n, by_columns)
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8), f"{m} x {k} x {n}")
        np.testing.assert_array_equal(got[..., n:], c[..., n:])


@pytest.mark.parametrize("row", TILES, ids=name_of)
@pytest.mark.parametrize("flags", FLAGS, ids=("C = A B", "C += A B", "chain"))
def test_columns_by_themselves_have_the_bits_of_a_part_of_a_vector(row, flags, rng):
    """Whatever K is, also where the flag does not apply: few rows, an A by rows, other columns. Up to nr + 2."""
    dtype = np.dtype(np.float64 if row.types == LIB.F64 else np.float32)
    lanes = 64 // dtype.itemsize
    columns = [n for n in range(lanes, row.nr + 3) if n % lanes in (0, 1, 2, 3)]
    for m, n, k, by_columns in itertools.product(range(1, row.mr + 1), columns, (0, 1, 4, 9, 15, 31), (False, True)):
        if n > row.nr and not (row.dots and by_columns and m >= 4 and n - row.nr in (1, 2)):
            continue
        a, b, c = operands(rng, m, k, n, dtype, by_columns)
        got = computed(row.batch, flags | LIB.PYSIMD_AFTER, a, b, c, n, by_columns)
        first, want = min(n, row.nr), c.copy()
        for x in (slice(0, first), slice(first, n)):
            if x.start < x.stop:
                part = np.ascontiguousarray(c[..., x])
                some = computed(row.batch, flags, a, np.ascontiguousarray(b[..., x]), part, part.shape[2], by_columns)
                want[..., x] = some
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8), f"{m} x {k} x {n}")


@pytest.mark.parametrize("row", WIDENING, ids=name_of)
@pytest.mark.parametrize("flags", FLAGS, ids=("C = A B", "C += A B", "chain"))
def test_a_widened_b_has_the_bits_of_one_that_was_widened_before(row, flags, rng):
    for m, n, k, by_columns in itertools.product(range(1, row.mr + 1), few(range(1, row.nr + 1), 8), LENGTHS, (0, 1)):
        a, b, c = operands(rng, m, k, n, np.float32, by_columns)
        b = b.astype(np.float16)
        b.reshape(-1)[::7] = (np.inf, -0.0, 6e-8, np.nan, 65504)[m % 5]
        want = computed(row.batch, flags, a, b.astype(np.float32), c, n, by_columns)
        got = computed(row.batch_widening_b, flags, a, b, c, n, by_columns)
        np.testing.assert_array_equal(got, want, f"{m} x {k} x {n}")
        np.testing.assert_array_equal(got[..., n:], c[..., n:])
        if n > LANES and 0 < n % LANES <= LANES // 2:
            got = computed(row.batch_widening_b, flags | LIB.PYSIMD_HALF, a, b, c, n, by_columns)
            np.testing.assert_array_equal(got, want, f"{m} x {k} x {n}, half")


@pytest.mark.parametrize("row", WIDENING, ids=name_of)
def test_dot_products_of_a_widened_b(row, rng):
    """One and two columns after whole vectors (PYSIMD_DOTS), which are gathered from float16."""
    flags = LIB.PYSIMD_ZERO | LIB.PYSIMD_DOTS
    columns = [n for n in range(LANES + 1, row.nr + 3) if n % LANES in (1, 2)]
    for m, n, k in itertools.product(range(1, row.mr + 1), columns, (1, 15, 16, 17, 40)):
        a, b, c = operands(rng, m, k, n, np.float32, False)
        b = b.astype(np.float16)
        want = computed(row.batch, flags, a, b.astype(np.float32), c, n, False)
        got = computed(row.batch_widening_b, flags, a, b, c, n, False)
        np.testing.assert_array_equal(got, want, f"{m} x {k} x {n}")


def test_the_rows_that_have_them():
    """Tiles of more than one vector of AVX-512 have halves; the float16 kernels for many columns widen B."""
    if not any(row.target == LIB.AVX512 for row in RUNNABLE):
        pytest.skip("no AVX-512 here")
    assert {name_of(row) for row in WIDENING} == {
        f"avx512_f16f32_outer_{tile}" for tile in ("16x16", "14x32", "8x48", "6x64")
    }
    assert len(HALF) == 6
