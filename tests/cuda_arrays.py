"""NumPy arrays brought to the GPU with their strides, their alignment and the bytes between their elements."""

import ctypes

import numpy as np
from reference import random_operand

import pysimd

WHY_NOT = pysimd.backends()[1].reason


def on_gpu(x: np.ndarray):
    """A CuPy array with the strides of ``x``, on a copy of all memory from its first to its last byte."""
    import cupy

    low, high = np.lib.array_utils.byte_bounds(x) if x.size else (0, 0)
    before = low % 256
    buffer = cupy.zeros(before + max(high - low, 1), np.uint8)
    if high > low:
        buffer[before:] = cupy.asarray(np.array((ctypes.c_ubyte * (high - low)).from_address(low)))
    offset = before + (x.__array_interface__["data"][0] - low if x.size else 0)
    return cupy.ndarray(x.shape, x.dtype, buffer.data + offset, strides=x.strides)


def on_host(x) -> np.ndarray:
    """The values of a CuPy array, whatever its alignment."""
    import cupy

    as_bytes = cupy.ndarray((*x.shape, x.itemsize), np.uint8, x.data, strides=(*x.strides, 1))
    return np.ascontiguousarray(cupy.asnumpy(as_bytes)).view(x.dtype).reshape(x.shape)


def moderate(rng, dtype: np.dtype, shape) -> np.ndarray:
    """Random operands of which no product is denormal, in half either: the bound knows nothing of underflow."""
    x = random_operand(rng, dtype, shape)
    if dtype.name in ("float16", "bfloat16", "float32", "float64"):
        wide = x.astype(np.float64)
        x = np.where(np.abs(wide) < 0.125, np.copysign(0.625, wide), wide).astype(dtype)
    return x
