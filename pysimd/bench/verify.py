"""The error of a result against a wider type, and the bound that every kernel keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pysimd import dtypes

#: Products are checked in pieces of about this many multiply-adds, so that the wide copies stay small.
_PIECE_MACS = 1 << 22


@dataclass(frozen=True)
class Verified:
    """How far a result is from the exact one.

    Attributes:
        reference: the type that the exact result was computed in: float64, longdouble (for f64) or int64.
        max_abs_error: largest |C - C*|.
        max_error_over_bound: largest |C - C*| / ((K + 3) u (|A||B| + |C0|)); 0 or infinity for integers.
        holds: whether every element is within the bound; integers must be exact (modulo 2**32), and NaN and infinity
            where the reference has them.
    """

    reference: str
    max_abs_error: float
    max_error_over_bound: float
    holds: bool


def verify(types: str, a, b, c, result) -> Verified:
    """Compare ``result`` with ``c + a @ b``.

    Args:
        types: family of the operands, e.g. ``f32``.
        a, b, c, result: NumPy arrays, (..., m, K), (..., K, n), (..., m, n) or None, (..., m, n). uint16 operands of a
            bf16 family hold bfloat16 bits.
    """
    family = dtypes.FAMILIES[types]
    reference = "int64" if not family.roundoff else "longdouble" if types == "f64" else "float64"
    wide = np.dtype(reference)
    (m, k), n, batch = a.shape[-2:], b.shape[-1], result.shape[:-2]
    if c is None:
        c = np.zeros((1, 1), result.dtype)
    count = math.prod(batch)
    a, b, c = (np.broadcast_to(x, batch + x.shape[-2:]).reshape(count, *x.shape[-2:]) for x in (a, b, c))
    result = result.reshape(count, m, n)
    step = max(1, _PIECE_MACS // max(1, m * n * k))
    worst_error = worst_part = 0.0
    holds = True
    with np.errstate(all="ignore"):
        for at in range(0, count, step):
            x, y, z = (_widen(operand[at : at + step], wide) for operand in (a, b, c))
            got, exact = result[at : at + step], x @ y + z
            if family.roundoff:
                same = (got == exact) | (np.isnan(got) & np.isnan(exact))  # infinity - infinity is no error
                error = np.where(same, 0, np.abs(got - exact))
                bound = (k + 3) * wide.type(family.roundoff) * (np.abs(x) @ np.abs(y) + np.abs(z))
                bound = np.where(np.isfinite(exact), bound, 0)
            else:
                error = np.abs(got.astype(wide) - exact.astype(np.int32))
                bound = np.zeros_like(error)
            holds = holds and bool(np.all(error <= bound))
            outside = np.where(error == 0, 0.0, np.inf)
            worst_error = max(worst_error, _largest(error))
            worst_part = max(
                worst_part, _largest(np.divide(error, bound, out=outside, where=bound > 0, casting="unsafe"))
            )
    return Verified(reference, worst_error, worst_part, holds)


def _largest(x) -> float:
    if x.size == 0:
        return 0.0
    return float("inf") if np.isnan(x).any() else float(x.max())


def _widen(x: np.ndarray, wide: np.dtype) -> np.ndarray:
    if x.dtype.name == "uint16":
        return (x.astype(np.uint32) << 16).view(np.float32).astype(wide)
    return x.astype(wide)
