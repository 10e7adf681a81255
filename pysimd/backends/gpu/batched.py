"""Batches of small products: the instance of gpu_kernels/micro/batched.cu or batched_mma.cu for operands, and its
launches; those of batched_any.cu, which takes any shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pysimd import dtypes
from pysimd.backends.gpu import tilings
from pysimd.backends.gpu.launches import BATCH, MOST_TILES, CallOperands
from pysimd.backends.gpu.plans import Argument, KernelLaunch, KernelPlan, Work, operands_argument
from pysimd.gpu_kernels import table
from pysimd.operands import Product


def takes(m: int, n: int, k: int) -> bool:
    """Whether products are of a size that every GPU and every types family has this kernel for."""
    return max(m, n) <= table.BATCHED_MOST_MN and k <= table.BATCHED_MOST_K


def takes_larger(types: str, m: int, n: int, k: int) -> bool:
    """Whether products are of a size above that, which was measured on an NVIDIA GPU only."""
    sizes = table.BATCHED_LARGER.get(types)
    if sizes is None or min(m, n) < sizes.least or max(m, n, k) > sizes.most or m * n > sizes.elements:
        return False
    return _product_bytes(types, m, n, k) <= sizes.shared_bytes


def takes_mma(types: str, m: int, n: int, k: int) -> bool:
    """Whether batched_mma.cu is for these products, where the device has its instructions."""
    if types not in table.MMA_FROM or max(m, n, k) > table.MMA_MOST:
        return False
    large = min(m, n) >= table.MMA_LEAST and m * n * k >= table.MMA_FROM[types]
    return large or not takes(m, n, k)


def fits_static(types: str, m: int, n: int, k: int) -> bool:
    """Whether a product fits static shared memory, which every device has, in batched.cu and in batched_any.cu."""
    size = dtypes.dtype_of(dtypes.FAMILIES[types].a).itemsize
    return max(_product_bytes(types, m, n, k), _any_bytes(m, n, k, size)) <= table.BATCHED_SHARED_BYTES


def _any_bytes(m: int, n: int, k: int, size: int) -> int:
    """Shared memory of a product in batched_any.cu: A and B, each of an odd number of elements."""
    return ((m * k | 1) + (k * n | 1)) * size


def _product_bytes(types: str, m: int, n: int, k: int) -> int:
    """Shared memory that a block of one product takes at most."""
    family = dtypes.FAMILIES[types]
    size, size_c = dtypes.dtype_of(family.a).itemsize, dtypes.dtype_of(family.c).itemsize
    return max(_range_bytes(m * k, size) + _range_bytes(k * n, size), _range_bytes(m * n, size_c))


def instance(types: str, operands: CallOperands, *, mma: bool = False) -> table.Batched:
    """What is compiled for these operands: of batched_mma.cu if ``mma``, else of batched.cu."""
    m, n, k = operands.m, operands.n, operands.k
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
            sources.append("CONTIGUOUS" if dense else "STRIDED")
    natural = tuple(s if length > 1 else 0 for s, length in ((n, m), (1, n)))
    whole = operands.strides[3] == natural and operands.contiguous(3) and operands.arrays[3].data.ptr % 16 == 0
    narrow = narrows(types, operands.sizes[3])
    tile = (
        tilings.mma_tiling(m, n, k, operands.sizes[0]) if mma else tilings.tiling("f16" if narrow else types, m, n, k)
    )
    made = table.BatchedMma if mma else table.Batched
    return made(types, m, n, k, *tile, sources[0], turned[0], sources[1], turned[1], whole, narrow)


def narrows(types: str, c_bytes: int) -> bool:
    """Whether a result of so many bytes has 16 bits in a family whose results have 32."""
    return types in table.BATCHED_NARROW and c_bytes == 2


def _sizes(made: table.Batched) -> tuple[int, int]:
    """Bytes of an element of A and B, and of one of C."""
    family = dtypes.FAMILIES[made.types]
    size = dtypes.dtype_of(family.a).itemsize
    return size, size if made.narrow else dtypes.dtype_of(family.c).itemsize


def dynamic_shared_bytes(made: table.Batched) -> int:
    """Dynamic shared memory of a block of an instance: 0 where it is static, up to ``table.BATCHED_SHARED_BYTES``."""
    size, size_c = _sizes(made)
    if isinstance(made, table.BatchedMma):
        return _dynamic(max(mma_operand_bytes(made), mma_staged_bytes(made)))
    counts = (made.m * max(1, made.k), made.a), (max(1, made.k) * made.n, made.b)
    taken = sum(_range_bytes(x if source == "BROADCAST" else made.products * x, size) for x, source in counts)
    if made.whole and (made.n % made.tn or made.n * size_c % 16 or made.tn * size_c % 16):  # C is staged
        taken = max(taken, _range_bytes(made.products * made.m * made.n, size_c))
    return _dynamic(taken)


def _dynamic(taken: int) -> int:
    return taken if taken > table.BATCHED_SHARED_BYTES else 0


def mma_operand_bytes(made: table.BatchedMma) -> int:
    """Shared memory of A and B in batched_mma.cu, and 16 bytes of zeros."""
    taken, k = 16, max(1, made.k)
    vector = 16 // _sizes(made)[0]
    for rows, source, k_major in ((made.m, made.a, not made.a_transposed), (made.n, made.b, made.b_transposed)):
        lines, length = (rows, k) if k_major else (k, rows)
        stored = 1 if source == "BROADCAST" else made.products
        taken += stored * lines * _row_bytes(length, vector)
    return taken


def mma_staged_bytes(made: table.BatchedMma) -> int:
    """Shared memory of a staged C there."""
    size_c = _sizes(made)[1]
    if not made.whole or (size_c == 4 and made.n % 8 == 0):
        return 0
    return made.products * made.m * (_row_bytes(made.n, 8) if size_c == 2 else ((made.n + 7) // 16 * 16 + 8) * 4)


def _row_bytes(length: int, vector: int) -> int:
    """Of a row in shared memory: whole 16-byte chunks, an odd number of them if they are not full."""
    chunks = -(-length // vector)
    return 16 * (chunks | 1 if length % vector else chunks)


def _range_bytes(count: int, size: int) -> int:
    """Shared memory of a Range (batched.cu) of ``count`` elements."""
    vector = 16 // size
    return (count // vector + 2 * (count % vector != 0)) * 16


def launches(operands: CallOperands, made: table.Batched, compiled, most_threads: int | None = None):
    """Function, grid, block and Call of each launch that does ``c = a @ b`` with a compiled instance."""
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
    bytes_each = _any_bytes(m, n, k, operands.sizes[0])
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
