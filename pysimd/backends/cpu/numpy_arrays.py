"""NumPy arrays for the CPU backend: the functions of ``operands.ArrayModule``, and arrays as a ``pysimd_product``."""

from __future__ import annotations

import numpy as np

from pysimd._cpu import ffi
from pysimd.operands import batch_strides, merged


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A new array in C order."""
    return np.empty(shape, dtype)


def copy(to: np.ndarray, x: np.ndarray) -> None:
    """``to[...] = x``."""
    np.copyto(to, x)


def overlap(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the address ranges that the two span have a byte in common."""
    return np.may_share_memory(x, y)


def same_memory(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the two are the same elements in the same order."""
    return x is y or (x.__array_interface__["data"], x.shape, x.strides) == (
        y.__array_interface__["data"],
        y.shape,
        y.strides,
    )


def readable(x: np.ndarray) -> np.ndarray:
    """``x``, or a copy if a stride is not a multiple of the element size."""
    size = x.itemsize
    return x if all(stride % size == 0 for stride in x.strides) else x.copy()


def storable(c: np.ndarray) -> bool:
    """Whether kernels can store to ``c``: adjacent columns, strides of whole elements, no element at two indices."""
    size = c.itemsize
    if c.shape[-1] > 1 and c.strides[-1] != size:
        return False
    return all(stride % size == 0 and (stride != 0 or n <= 1) for stride, n in zip(c.strides, c.shape, strict=True))


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, flags: int, threads: int):
    """A ``pysimd_product`` (driver.h) of a (..., m, k), b (..., k, n) and c (..., m, n), for ``pysimd_multiply``.

    The batch dimensions of a and b broadcast to those of c. ``flags`` are those of pysimd.h.
    """
    product = ffi.new("pysimd_product *")
    fill(product, a, b, c, flags, threads)
    return product


def fill(p, a, b, c, flags, threads) -> None:
    """Write the addresses, sizes and strides (in elements) of a product into the struct ``p``."""
    p.m, p.n, p.k = a.shape[-2], b.shape[-1], a.shape[-1]
    p.a, p.b, p.c = (ffi.cast("void *", x.__array_interface__["data"][0]) for x in (a, b, c))
    size_a, size_b, size_c = a.itemsize, b.itemsize, c.itemsize
    p.rs_a, p.cs_a = (s // size_a for s in a.strides[-2:])
    p.rs_b, p.cs_b = (s // size_b for s in b.strides[-2:])
    p.rs_c = c.strides[-2] // size_c
    p.cs_c = 1
    # A stride along a dimension of length 1 is never used: 1 lets a kernel read the operand in place.
    if p.k == 1:
        p.cs_a = 1
    if p.n == 1:
        p.cs_b = 1
    if c.ndim == 2:
        dims = ()
    else:
        batch = c.shape[:-2]
        steps = [batch_strides(x, batch) for x in (a, b, c)]
        dims = merged(batch, *steps)
    p.ndim = len(dims)
    for d, (n, (step_a, step_b, step_c)) in enumerate(dims):
        p.shape[d] = n
        p.batch_a[d], p.batch_b[d], p.batch_c[d] = step_a // size_a, step_b // size_b, step_c // size_c
    p.flags, p.threads = flags, threads
