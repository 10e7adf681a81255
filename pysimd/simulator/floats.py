"""Fused multiply-add and sums with one rounding, for float32 and float16, from float64 arithmetic.

The product of two float32 (or float16) is exact in float64; adding the third operand is not, and rounding twice may
differ from rounding once. That happens only where the float64 sum falls on the middle between two narrow numbers, or
below the normal range: there the sum is first rounded to odd, which makes the second rounding right (Boldo and
Melquiond, 2008).
"""

from __future__ import annotations

import numpy as np

_ONE = np.int64(1)


class Narrow:
    """A format narrower than float64, and how a float64 is recognised whose rounding to it may go wrong."""

    def __init__(self, dtype, fraction_bits: int, smallest_normal: float):
        self.dtype = dtype
        dropped = 52 - fraction_bits
        self.mask = np.int64((1 << dropped) - 1)
        self.middle = np.int64(1 << (dropped - 1))
        self.smallest_normal = smallest_normal

    def rounded_sum(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a + b, float64 operands, rounded once to the narrow format."""
        total = np.asarray(a + b)
        risky = (total.view(np.int64) & self.mask == self.middle) | (np.abs(total) < self.smallest_normal)
        if risky.any():
            total = np.where(risky, _to_odd(a, b, total), total)
        return total.astype(self.dtype)


def _to_odd(a, b, total):
    """The sum of a and b rounded to odd, given the sum rounded to nearest."""
    back = total - a
    error = (a - (total - back)) + (b - back)  # exact (Knuth's TwoSum); NaN where total is not finite
    bits = total.view(np.int64)
    away = (error > 0) == (total > 0)  # the exact sum is larger in magnitude than the rounded one
    inexact_and_even = (error != 0) & np.isfinite(error) & (bits & _ONE == 0)
    return np.where(inexact_and_even, np.where(away, bits + _ONE, bits - _ONE), bits).view(np.float64)


FLOAT32 = Narrow(np.float32, 23, float(np.finfo(np.float32).smallest_normal))
FLOAT16 = Narrow(np.float16, 10, float(np.finfo(np.float16).smallest_normal))


def fma32(a, b, c):
    """a * b + c on float32 (float16 operands are widened exactly), rounded once to float32."""
    return FLOAT32.rounded_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))


def fma16(a, b, c):
    """a * b + c, rounded once to float16."""
    return FLOAT16.rounded_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bit patterns (uint16)."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def halves(word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two float16 in a register, low half first."""
    return word.astype(np.uint16).view(np.float16), (word >> np.uint32(16)).astype(np.uint16).view(np.float16)


def pack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two values of 16 bits as one register."""
    return low.view(np.uint16).astype(np.uint32) | high.view(np.uint16).astype(np.uint32) << np.uint32(16)
