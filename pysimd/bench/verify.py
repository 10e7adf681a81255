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
            where the reference has them; infinity also where the reference is too large for the type of the result.
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
    (m, k), n, batch = a.shape[-2:], b.shape[-1], result.shape[:-2]
    if c is None:
        c = np.zeros((1, 1), result.dtype)
    count = math.prod(batch)
    a, b, c = (np.broadcast_to(x, batch + x.shape[-2:]).reshape(count, *x.shape[-2:]) for x in (a, b, c))
    result = result.reshape(count, m, n)
    step = max(1, _PIECE_MACS // max(1, m * n * k))
    largest_error = largest_part = 0.0
    holds = True
    for start in range(0, count, step):
        piece = slice(start, start + step)
        wide = [dtypes.widened(x[piece], np.dtype(reference)) for x in (a, b, c)]
        with np.errstate(all="ignore"):
            error, bound = _error_and_bound(*wide, result[piece], family.roundoff)
            part = np.where(error == 0, 0.0, np.inf)
            np.divide(error, bound, out=part, where=bound > 0, casting="unsafe")
        holds = holds and bool(np.all(error <= bound))
        largest_error, largest_part = max(largest_error, _largest(error)), max(largest_part, _largest(part))
    return Verified(reference, largest_error, largest_part, holds)


def _error_and_bound(a, b, c, result, roundoff: float):
    """|C - C*| and what it may be, elementwise; ``a``, ``b`` and ``c`` are widened."""
    exact = a @ b + c
    if not roundoff:
        error = np.abs(result.astype(a.dtype) - exact.astype(np.int32))
        return error, np.zeros_like(error)
    bound = (a.shape[-1] + 3) * a.dtype.type(roundoff) * (np.abs(a) @ np.abs(b) + np.abs(c))
    overflows = np.isinf(result) & (np.sign(result) == np.sign(exact))
    overflows &= np.abs(exact) + bound > np.finfo(result.dtype).max
    same = (result == exact) | (np.isnan(result) & np.isnan(exact)) | overflows  # infinity - infinity is no error
    error = np.where(same, 0, np.abs(result - exact))
    return error, np.where(np.isfinite(exact), bound, 0)


def _largest(x) -> float:
    if x.size == 0:
        return 0.0
    return float("inf") if np.isnan(x).any() else float(x.max())
