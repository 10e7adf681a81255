"""Descriptions of matrices for the tensor memory accelerator of CUDA devices, sm_90 (gpu_kernels/ladder/tma.cuh).

The driver makes them (``cuTensorMapEncodeTiled``); CuPy has no call for that, so ctypes asks its library.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from pysimd.backends.cuda import driver
from pysimd.errors import ShapeError

TENSOR_MAP = np.dtype("V128")
"""The bytes of one CUtensorMap: CuPy passes an array of one such element by value."""

ALIGNMENT = 16
"""Bytes of which addresses and steps between rows and products are multiples."""

MOST = 1 << 31
"""Extents are smaller: coordinates are signed and have 32 bits."""

ANYWHERE = 1 << 20
"""The address in a map that is made before its matrix has one."""

_UNSIGNED = {1: 0, 2: 1, 4: 2}
"""CUtensorMapDataType of an element by its size: bits are moved, nothing is computed."""

_SWIZZLES = {0: 0, 128: 3}
"""CUtensorMapSwizzle by the bytes within which pieces of 16 change places."""

_PROMOTION_256 = 3


@cache
def _replace_address():
    function = driver.function("cuTensorMapReplaceAddress")
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return function


def replace_address(tensor_map: int, address: int) -> None:
    """Lets the CUtensorMap at this host address describe the same matrix at another address of the device."""
    status = _replace_address()(tensor_map, address)
    if status:
        raise RuntimeError(f"cuTensorMapReplaceAddress returned {status} for {address:#x}")


def tensor_map(
    pointer: int,
    itemsize: int,
    extents: tuple[int, ...],
    steps: tuple[int, ...],
    box: tuple[int, ...],
    swizzle: int,
) -> np.ndarray:
    """A CUtensorMap of matrices, one a product; raises ``ShapeError`` where coordinates of 32 bits do not suffice.

    Args:
        pointer: address of the first element, a multiple of ``ALIGNMENT``.
        itemsize: bytes of an element.
        extents: elements along memory, across it in one dimension or two, and products.
        steps: bytes between neighbours in the dimensions across memory and between products, multiples of
            ``ALIGNMENT``; where an extent is 1, any.
        box: elements along memory and across it, and products (by default one), that one copy brings, at most 256 each.
        swizzle: bytes of a row of the box within which pieces of 16 are stored in an order that depends on the row;
            0: as they lie.
    """
    if max(extents) >= MOST:
        raise ShapeError(
            f"the tensor memory accelerator reads matrices of fewer than {MOST} rows, columns and products, "
            f"got {extents}: take a kernel that does not need it"
        )
    rank = len(extents)
    row = -(-extents[0] * itemsize // ALIGNMENT) * ALIGNMENT
    steps = tuple(step if n > 1 else row for n, step in zip(extents[1:], steps, strict=True))
    storage = np.zeros(128 + 64, np.uint8)
    start = -storage.ctypes.data % 64  # where the driver demands it
    result = storage[start : start + 128]
    status = driver.function("cuTensorMapEncodeTiled")(
        ctypes.c_void_p(result.ctypes.data),
        ctypes.c_int(_UNSIGNED[itemsize]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(pointer),
        (ctypes.c_uint64 * rank)(*extents),
        (ctypes.c_uint64 * (rank - 1))(*steps),
        (ctypes.c_uint32 * rank)(*(*box, 1)[:rank]),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(0),
        ctypes.c_int(_SWIZZLES[swizzle]),
        ctypes.c_int(_PROMOTION_256),
        ctypes.c_int(0),  # elements outside are 0
    )
    if status:
        raise RuntimeError(
            f"cuTensorMapEncodeTiled returned {status} for {extents} elements of {itemsize} bytes at {pointer:#x}, "
            f"steps {steps}, box {box}, swizzle {swizzle}"
        )
    return result.view(TENSOR_MAP)
