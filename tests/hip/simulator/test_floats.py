"""Sums with one rounding, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysimd.simulator import floats
from pysimd.simulator.instructions.convert import float16_towards_zero, float_to_int

FORMATS = {np.float64: floats.fma64, np.float32: floats.fma32, np.float16: floats.fma16}


def nearest(exact: Fraction, dtype) -> float:
    """The number of the format that is nearest to a fraction, ties to even, found among the neighbours of a guess."""
    largest = Fraction(float(np.finfo(dtype).max))
    step = largest - Fraction(float(np.nextafter(np.finfo(dtype).max, dtype(0))))
    if abs(exact) >= largest + step / 2:
        return np.inf if exact > 0 else -np.inf
    with np.errstate(over="ignore"):
        guess = dtype(float(max(-largest, min(largest, exact))))
    candidates = {guess, np.nextafter(guess, dtype(np.inf)), np.nextafter(guess, dtype(-np.inf))}
    finite = [x for x in candidates if np.isfinite(x)]
    bits = f"u{np.dtype(dtype).itemsize}"
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(bits)) & 1))


def check(dtype, a, b, c):
    a, b, c = (np.array([x], dtype) for x in (a, b, c))
    with np.errstate(all="ignore"):
        got = FORMATS[dtype](a, b, c)[0]
    assert got.dtype == dtype
    exact = Fraction(float(a[0])) * Fraction(float(b[0])) + Fraction(float(c[0]))
    assert got == nearest(exact, dtype), (a, b, c)


def numbers(width):
    return st.floats(width=width, allow_nan=False, allow_infinity=False)


class TestFusedMultiplyAdd:
    @given(numbers(32), numbers(32), numbers(32))
    def test_float32(self, a, b, c):
        check(np.float32, a, b, c)

    @given(numbers(16), numbers(16), numbers(16))
    def test_float16(self, a, b, c):
        check(np.float16, a, b, c)

    @given(*[st.floats(2.0**-300, 2.0**300) | st.floats(-(2.0**300), -(2.0**-300))] * 3)
    def test_float64(self, a, b, c):
        check(np.float64, a, b, c)

    def test_float64_where_terms_cancel(self):
        """What remains of a product and nearly its negative is its rounding error."""
        rng = np.random.default_rng(2)
        for _ in range(200):
            a, b = rng.standard_normal(2)
            check(np.float64, a, b, -a * b)
            check(np.float64, a, b, np.nextafter(-a * b, 0))
            check(np.float64, a, b, a * b * 2.0**52)

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_sum_just_below_the_middle(self, sign):
        """1 + 2^-23 + 2^-24 - 2^-70: in float64 the middle itself, which rounded again goes to the even neighbour."""
        a, b = np.float32(sign * 2.0**-12 * (1 + 2.0**-23)), np.float32(2.0**-12 * (1 - 2.0**-23))
        c = np.float32(sign * (1 + 2.0**-23))
        check(np.float32, a, b, c)
        twice = np.float32(np.float64(a) * np.float64(b) + np.float64(c))
        assert twice == np.float32(sign * (1 + 2.0**-22)) != floats.fma32(*(np.array([x]) for x in (a, b, c)))[0]

    def test_below_the_normal_range(self):
        rng = np.random.default_rng(1)
        for _ in range(200):
            a, b, c = (np.float32(x) for x in rng.standard_normal(3) * [2.0**-75, 2.0**-75, 2.0**-148])
            check(np.float32, a, b, c)
            a, b, c = (np.float16(x) for x in rng.standard_normal(3) * [2.0**-12, 2.0**-12, 2.0**-23])
            check(np.float16, a, b, c)

    @pytest.mark.parametrize("dtype", list(FORMATS))
    def test_special_values(self, dtype):
        inf, nan = np.inf, np.nan
        cases = [(inf, 1, 1, inf), (inf, 0, 1, nan), (inf, 1, -inf, nan), (nan, 1, 1, nan), (1, 1, -inf, -inf)]
        a, b, c, want = (np.array(x, dtype) for x in zip(*cases, strict=True))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(FORMATS[dtype](a, b, c), want)

    def test_zero_keeps_its_sign(self):
        got = floats.fma32(*(np.array([x], np.float32) for x in (-0.0, 1.0, -0.0)))
        assert np.signbit(got[0])


def test_conversion_to_integers_truncates_and_saturates():
    x = np.array([1.9, -1.9, 3e9, -3e9, 1e20, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(
        float_to_int(np.int32)(x), np.array([1, -1, 2**31 - 1, -(2**31), 2**31 - 1, 0, 2**31 - 1], np.int32)
    )
    np.testing.assert_array_equal(
        float_to_int(np.uint32)(x), np.array([1, 0, 3_000_000_000, 0, 2**32 - 1, 0, 2**32 - 1], np.uint32)
    )


def test_float16_towards_zero():
    x = np.array([1 + 2.0**-11 + 2.0**-12, -(1 + 2.0**-11 + 2.0**-12), 2.0**-25, 0.5], np.float32)
    np.testing.assert_array_equal(float16_towards_zero(x), np.array([1, -1, 0, 0.5], np.float16))


def test_bfloat16_bits():
    np.testing.assert_array_equal(
        floats.bfloat16_to_float32(np.array([0x3F80, 0xC000], np.uint16)), np.array([1, -2], np.float32)
    )
