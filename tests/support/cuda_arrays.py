"""NumPy arrays copied to the GPU with their strides, their alignment and the bytes between their elements."""

import ctypes

import numpy as np

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
