"""Random operands. They are seeded and never zeros, since multiplying zeros costs less power."""

from __future__ import annotations

import numpy as np

from pysimd import dtypes
from pysimd.microkernel import MicroKernel

_PAGE = 4096


def random_array(name: str, shape: tuple[int, ...], rng):
    """Random values of the dtype of that name: normal floats, integers over their whole range.

    Args:
        name: ``float32``, ``bfloat16``, ``int8``, ...
        shape: of the array.
        rng: a ``numpy.random.Generator`` or a ``cupy.random.Generator``; the array is of the same library.
    """
    dtype = dtypes.dtype_of(name)
    if dtype.kind in "iu" and name != "bfloat16":
        limits = np.iinfo(dtype)
        return rng.integers(int(limits.min), int(limits.max), size=shape, dtype=dtype, endpoint=True)
    values = rng.standard_normal(size=shape, dtype=np.float64 if name == "float64" else np.float32)
    if name == "bfloat16":
        return dtypes.bits_of_float32(values).view(dtype)
    return values.astype(dtype, copy=False)


def random_operands(kernel: MicroKernel, batch: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """NumPy arrays A (batch, mr, k) and B (batch, k, nr) for a kernel. The B of an inner-product kernel has contiguous
    columns, which the kernel reads in place."""
    family, rng = dtypes.FAMILIES[kernel.types], np.random.default_rng(seed)
    a = random_array(family.a, (batch, kernel.mr, k), rng)
    if kernel.form == "inner":
        return a, random_array(family.b, (batch, kernel.nr, k), rng).swapaxes(-1, -2)
    return a, random_array(family.b, (batch, k, kernel.nr), rng)


def page_aligned(nbytes: int) -> np.ndarray:
    """New bytes that start on a page."""
    room = np.empty(nbytes + _PAGE, np.uint8)
    start = -room.ctypes.data % _PAGE
    return room[start : start + nbytes]


def random_bytes(nbytes: int) -> np.ndarray:
    """Bytes that start on a page; a random piece of at most 1 MiB is repeated in them."""
    found = page_aligned(nbytes)
    piece = random_array("uint8", (min(nbytes, 1 << 20),), np.random.default_rng(0))
    for at in range(0, nbytes, len(piece)):
        found[at : at + len(piece)] = piece[: nbytes - at]
    return found
