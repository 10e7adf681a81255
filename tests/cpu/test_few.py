"""The kernels of few.inc: products of up to eight rows or columns. AVX2 alone has no rows: test_orders.py has its
choices."""

import itertools

import pytest
from few_rows import KERNELS, ORDERS, ROWS, chosen, row_of
from pysimd._cpu import lib

import pysimd

AVX512 = any(k.target == "avx512" for k in pysimd.kernels("cpu", available=True))
needs_avx512 = pytest.mark.skipif(not AVX512, reason="no AVX-512 here")


def key(row):
    return row[:4]


def test_rows_are_those_of_kernels_and_of_few():
    assert len(ROWS) > 100
    for row in ROWS:
        assert KERNELS[row.kernel].types == row.types, row
        assert KERNELS[row.kernel].target in ("avx2", "avx512", "avx512vnni", "avx512bf16"), row
        assert row.where in ("ANY", "HALVES", "WHOLE"), row
        assert row.side in ORDERS, row
        one = row.few == range(1, 2)
        for sizes, first, last in ((row.few, 1 if one else 2, 8), (row.many, 2, 256), (row.k, 2, 256 if one else 64)):
            assert sizes, row
            assert (sizes[0] >= first, sizes[-1] <= last) == (True, True), row
        assert row.a == row.b or not one, row


def test_rows_of_the_same_products_are_together():
    groups = [found for found, _ in itertools.groupby(ROWS, key)]
    assert len(groups) == len(set(groups))


def test_each_row_has_products_that_no_row_before_it_has():
    for i, row in enumerate(ROWS):
        before = [r for r in ROWS[:i] if key(r) == key(row) and r.where in ("ANY", row.where)]
        sizes = ((f, m, k) for f, m, k in itertools.product(row.few, row.many, row.k) if m >= f)
        assert any(not any(f in r.few and m in r.many and k in r.k for r in before) for f, m, k in sizes), row


def corners(row):
    """Sizes at the ends of a row's ranges, and beside them: m, k, n."""
    ends = [{sizes[0] - 1, sizes[0], sizes[-1], sizes[-1] + 1} for sizes in (row.few, row.many, row.k)]
    for few, many, k in itertools.product(*ends):
        if 1 <= few <= many and many > 1 and k > 1 and (few > 1) == (row.few[0] > 1):
            yield (few, k, many) if row.side == "ROWS" else (many, k, few)


@needs_avx512
def test_the_kernel_is_that_of_the_first_row():
    """Where AMX does not compute the product."""
    of_rows = 0
    for row in ROWS:
        a, b = ORDERS[row.a], ORDERS[row.b]
        for m, k, n in corners(row):
            found, expected = chosen(row.types, m, k, n, a, b), row_of(row.types, m, k, n, a, b)
            if expected and KERNELS[found].target != "amx":
                of_rows += 1
                assert found == expected.kernel, (row.types, m, k, n, a, b)
    assert of_rows > 1000


@needs_avx512
def test_operands_by_neither_have_no_row():
    """Their kernel is that of other rules: here it is not the row's."""
    case = "f32", 4, 16, 4
    by_rows, neither = ORDERS["ROWS"], lib.PYSIMD_BY_NEITHER
    assert row_of(*case, by_rows, ORDERS["COLUMNS"]).kernel == chosen(*case, by_rows, ORDERS["COLUMNS"])
    assert "gemv" in chosen(*case, by_rows, ORDERS["COLUMNS"])
    assert "gemv" not in chosen(*case, by_rows, neither)


@needs_avx512
def test_the_order_of_one_row_or_column_does_not_matter():
    orders = (*ORDERS.values(), lib.PYSIMD_BY_NEITHER)
    ones = [row for row in ROWS if row.few == range(1, 2)]
    assert {row.side for row in ones} == {"ROWS", "COLUMNS"}
    for row in ones:
        order, sizes = ORDERS[row.a], next(corners(row))
        own = {chosen(row.types, *sizes, *((o, order) if row.side == "ROWS" else (order, o))) for o in orders}
        assert len(own) == 1, row
