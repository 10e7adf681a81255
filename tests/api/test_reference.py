"""The checker itself: it must accept right results and refuse every wrong one that a broken kernel can give."""

import numpy as np
import pytest
from reference import check, random_operand

from pysimd import dtypes

TYPES = ("f32", "f64", "bf16f32", "f16f32", "i8i32", "u8i8i32")


@pytest.fixture(params=TYPES)
def product(request, rng):
    """types, a, b and a right result."""
    family = dtypes.FAMILIES[request.param]
    a = random_operand(rng, dtypes.dtype_of(family.a), (3, 6, 9))
    b = random_operand(rng, dtypes.dtype_of(family.b), (3, 9, 6))
    accumulator = dtypes.dtype_of(family.c)
    return request.param, a, b, a.astype(accumulator) @ b.astype(accumulator)


def test_accepts_a_right_result(product):
    types, a, b, right = product
    check(right, types, a, b)
    check(right + right, types, a, b, right)


def test_refuses_one_wrong_element(product):
    types, a, b, right = product
    right[2, 5, 5] += 1 if types.endswith("i32") else 1e-3
    with pytest.raises(AssertionError, match=r"1 of 108 elements are wrong; the first at \(2, 5, 5\)"):
        check(right, types, a, b)


def test_refuses_a_transposed_result(product):
    types, a, b, right = product
    with pytest.raises(AssertionError, match="elements are wrong"):
        check(right.swapaxes(-1, -2), types, a, b)


def test_refuses_rows_stored_twice(product):
    types, a, b, right = product
    right[:, 3:] = right[:, :3]
    with pytest.raises(AssertionError, match="elements are wrong"):
        check(right, types, a, b)


def test_refuses_zeros_and_a_forgotten_c(product):
    types, a, b, right = product
    with pytest.raises(AssertionError, match="elements are wrong"):
        check(np.zeros_like(right), types, a, b)
    with pytest.raises(AssertionError, match="elements are wrong"):
        check(right, types, a, b, np.ones_like(right))


@pytest.mark.parametrize("intruder", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("types", ["f32", "f64"])
def test_refuses_nan_and_infinity_where_a_number_belongs(types, intruder, rng):
    dtype = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    a, b = random_operand(rng, dtype, (4, 4)), random_operand(rng, dtype, (4, 4))
    result = a @ b
    result[1, 2] = intruder
    with pytest.raises(AssertionError, match="1 of 16"):
        check(result, types, a, b)


def test_refuses_a_number_where_nan_or_infinity_belongs(rng):
    a, b = (random_operand(rng, np.dtype("float32"), (4, 4)) for _ in range(2))
    right = a @ b
    a[1, 1] = np.nan
    with pytest.raises(AssertionError, match="4 of 16"):
        check(right, "f32", a, b)
    a[1, 1] = np.inf
    with pytest.raises(AssertionError, match="4 of 16"):
        check(right, "f32", a, b)
    with np.errstate(all="ignore"):
        check(a @ b, "f32", a, b)


def test_refuses_an_error_just_above_the_bound():
    """One product of ones, K = 1: the bound is 4 u."""
    one = np.ones((1, 1), np.float32)
    check(one + np.float32(2**-22), "f32", one, one)
    with pytest.raises(AssertionError, match="1 of 1"):
        check(one + np.float32(2**-21), "f32", one, one)


def test_refuses_another_dtype_or_shape(product):
    types, a, b, right = product
    with pytest.raises(AssertionError, match="result is"):
        check(right.astype(np.complex64), types, a, b)
    with pytest.raises(AssertionError, match="result has shape"):
        check(right[:1], types, a, b)


def test_integers_wrap_at_32_bits():
    a = b = np.zeros((1, 1), np.int8)
    top = np.full((1, 1), 2**31 - 1, np.int32)
    a[:] = b[:] = 1
    check(np.full((1, 1), -(2**31), np.int32), "i8i32", a, b, top)
    with pytest.raises(AssertionError, match="1 of 1"):
        check(top, "i8i32", a, b, top)
