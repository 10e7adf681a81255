"""Batches of small products: the instance of gpu_kernels/micro/batched.cu for operands, and its launches; those of
batched_any.cu, which takes any shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from pysimd import dtypes
from pysimd.backends.gpu.launches import BATCH, MOST_TILES, CallOperands
from pysimd.backends.gpu.plans import Argument, KernelLaunch, KernelPlan, Work, operands_argument
from pysimd.gpu_kernels import table
from pysimd.operands import Product


def takes(m: int, n: int, k: int) -> bool:
    """Whether products of this size are small enough."""
    return max(m, n) <= table.BATCHED_MOST_MN and k <= table.BATCHED_MOST_K


@cache
def tiling(types: str, m: int, n: int, k: int) -> tuple[int, int, int]:
    """Rows and columns of C for a thread, and products for a block, in batched.cu; found by measuring on an H200."""
    family = dtypes.FAMILIES[types]
    size, size_c = dtypes.dtype_of(family.a).itemsize, dtypes.dtype_of(family.c).itemsize
    vector = 16 // size_c
    small = m * n <= 256
    if n % max(4, vector) == 0:  # rows of C go out in whole pieces
        tn = max(4, vector)
        tm = (2 if m * n <= 64 else 8) if types == "f16" else (1 if m * n <= 16 else 2 if small else 4)
    elif m * n <= 25:
        tm, tn = m, n
    else:
        widest, most = (3, 9) if size == 8 else (6, 24 if small else 48)
        tn = -(-n // -(-n // widest))
        tm = -(-m // -(-m // max(1, most // tn)))
    tm = min(tm, m)
    lanes = -(-m // tm) * -(-n // tn)
    whole = math.lcm(*(16 // math.gcd(16, e * s) for e, s in ((m * k, size), (k * n, size), (m * n, size_c))))
    bytes_each = max((m * k + k * n) * size, m * n * size_c)
    products = max(1, min(128 // lanes, 24_000 // bytes_each))
    return tm, tn, -(-products // whole) * whole


def instance(types: str, operands: CallOperands) -> table.Batched:
    """What is compiled for these operands."""
    tm, tn, products = tiling(types, operands.m, operands.n, operands.k)
    size, size_c = operands.sizes[0], operands.sizes[3]
    m, n, k = operands.m, operands.n, operands.k

    def shared_bytes(count):
        return max(count * (m * k + k * n) * size + 32, count * m * n * size_c)

    fits = shared_bytes(products) <= table.BATCHED_SHARED_BYTES
    while shared_bytes(products) > table.BATCHED_SHARED_BYTES and products > 1:
        products //= 2
    sources, turned = [], []
    for which in (0, 1):
        rows, columns = operands.strides[which]
        shape = operands.arrays[which].shape[-2:]
        turned.append(abs(rows) < abs(columns) if min(shape) > 1 else shape[0] > 1)
        by_rows, by_columns = ((shape[1], 1), (1, shape[0]))
        natural = tuple(s if n > 1 else 0 for s, n in zip(by_columns if turned[-1] else by_rows, shape, strict=True))
        dense = (rows, columns) == natural and operands.contiguous(which) and operands.arrays[which].data.ptr % 16 == 0
        if operands.batch and all(step[which] == 0 for _, step in operands.dims):
            sources.append("BROADCAST")
        else:
            sources.append("CONTIGUOUS" if dense and fits else "STRIDED")
    natural = tuple(s if length > 1 else 0 for s, length in ((n, m), (1, n)))
    whole = fits and operands.strides[3] == natural and operands.contiguous(3) and operands.arrays[3].data.ptr % 16 == 0
    return table.Batched(types, m, n, k, tm, tn, products, sources[0], turned[0], sources[1], turned[1], whole)


def launches(operands: CallOperands, made: table.Batched, compiled, most_threads: int | None = None):
    """Function, grid, block and Call of each launch that does ``c = a @ b`` with a compiled instance of batched.cu."""
    most = MOST_TILES if most_threads is None else min(MOST_TILES, most_threads // made.threads * made.products)
    for call in operands.calls(False, most_tiles=most):
        yield compiled, (-(-int(call[BATCH]) // made.products),), (made.threads,), call


ANY_THREADS, ANY_TILE, ANY_SHARED_BYTES = 128, 4, 16 << 10
"""Threads of a block of batched_any.cu, columns of C that one computes at a time, and shared memory that it takes for
more than one product."""


def any_work(product: Product, function: Callable) -> Work:
    """A product by batched_any.cu, whose compiled instance ``function`` is, with alpha, beta and C."""
    arrays = product.a, product.b, product.c, product.out
    operands = CallOperands(*arrays)
    m, n, k = operands.m, operands.n, operands.k
    bytes_each = ((m * k | 1) + (k * n | 1)) * operands.sizes[0]
    products = max(1, min(ANY_THREADS // (m * -(-n // ANY_TILE)), ANY_SHARED_BYTES // bytes_each))
    columns = [int(abs(rows) < abs(columns)) for rows, columns in operands.strides[:2]]
    words = np.array([*_bits(product.types, product.alpha, product.beta), products, *columns], np.int64)
    launches = [
        KernelLaunch(
            function,
            (-(-int(call[BATCH]) // products),),
            (ANY_THREADS,),
            (operands_argument(call, arrays), Argument(words)),
            products * bytes_each,
        )
        for call in operands.calls(False)
    ]
    return Work(KernelPlan(launches), arrays)


def _bits(types: str, *factors: float) -> list[int]:
    """alpha and beta, rounded to the result's dtype, in the bits of an accumulator."""
    dtype = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    accumulator = np.dtype(np.float32) if dtype == np.float16 else dtype
    words = np.zeros((len(factors), 8 // accumulator.itemsize), accumulator)
    with np.errstate(over="ignore"):  # a factor beyond the dtype is infinity there
        words[:, 0] = [dtype.type(x) for x in factors]
    return words.view(np.int64)[:, 0].tolist()
