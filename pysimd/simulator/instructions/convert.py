"""Conversions between number formats, as the hardware does them: to nearest, towards zero for integers, saturating."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def int_to_float(x):
    """32-bit integers to float32."""
    return x.astype(np.float32)


def float_to_int(dtype) -> Callable:
    """Truncated; out of range gives the nearest there is, NaN gives 0."""
    limits = np.iinfo(dtype)

    def convert(x):
        wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=limits.max, neginf=limits.min))
        return np.clip(wide, limits.min, limits.max).astype(np.int64).astype(dtype)

    return convert


def float16_towards_zero(x):
    """float32 to float16, rounded towards zero."""
    near = x.astype(np.float16)
    over = np.abs(near.astype(np.float32)) > np.abs(x)
    return np.where(over & np.isfinite(x), np.nextafter(near, np.float16(0)), near)
