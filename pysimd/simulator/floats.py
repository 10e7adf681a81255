"""Fused multiply-add with one rounding, from float64 arithmetic; and narrow formats.

The product of two float32 is exact in float64; adding the third operand is not, and rounding twice may differ from
rounding once. That happens only where the float64 sum falls on the middle between two float32, or below their normal
range: there the sum is first rounded to odd, which makes the second rounding right (Boldo and Melquiond, 2008).
"""

from __future__ import annotations

import numpy as np

_DROPPED = np.int64((1 << 29) - 1)
_MIDDLE = np.int64(1 << 28)
"""Of the 52 bits of a float64's fraction float32 drops 29; these are theirs in the middle between two float32."""

_SMALLEST_NORMAL = float(np.finfo(np.float32).smallest_normal)


def sum_to_float32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b, both float64, rounded once to float32."""
    total = np.asarray(a + b)
    risky = (total.view(np.int64) & _DROPPED == _MIDDLE) | (np.abs(total) < _SMALLEST_NORMAL)
    if risky.any():
        total = np.where(risky, _to_odd(a, b, total), total)
    return total.astype(np.float32)


def _error_of_sum(a, b, total):
    """a + b - total, exact (Knuth's TwoSum); NaN where the total is not finite."""
    back = total - a
    return (a - (total - back)) + (b - back)


def _to_odd(a, b, total):
    """The sum of a and b rounded to odd, given the sum rounded to nearest."""
    error = _error_of_sum(a, b, total)
    bits = total.view(np.int64)
    away = (error > 0) == (total > 0)  # the exact sum is larger in magnitude than the rounded one
    inexact_and_even = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    return np.where(inexact_and_even, np.where(away, bits + 1, bits - 1), bits).view(np.float64)


def fma32(a, b, c):
    """a * b + c on float32 (float16 operands are widened exactly), rounded once to float32."""
    return sum_to_float32(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))


def fma16(a, b, c):
    """a * b + c on float16, rounded once. Where the sum is no infinity, its at most 40 bits are exact in float64."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float16)


def _split(a):
    """a as a sum of two numbers of 26 bits (Veltkamp)."""
    scaled = a * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def fma64(a, b, c):
    """a * b + c on float64, rounded once (Boldo and Melquiond's algorithm).

    Where the product is below 2^-960 or an operand above 2^990 its parts are not exact, and it is rounded twice.
    """
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    error = a_low * b_low - (product - a_high * b_high - a_low * b_high - a_high * b_low)  # exact (Dekker)
    low = c + error
    total = product + low
    rest, more = _error_of_sum(c, error, low), _error_of_sum(product, low, total)
    result = total + _to_odd(rest, more, rest + more)
    return np.where(np.isfinite(result), result, product + c)


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bit patterns (uint16)."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def halves(word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two float16 in a register, low half first."""
    return word.astype(np.uint16).view(np.float16), (word >> np.uint32(16)).astype(np.uint16).view(np.float16)


def pack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two values of 16 bits as one register."""
    return low.view(np.uint16).astype(np.uint32) | high.view(np.uint16).astype(np.uint32) << np.uint32(16)
