"""Batches of float32 products by gpu_kernels/micro/batched_tma.cu: which it takes, its tile, its launch."""

from __future__ import annotations

from functools import cache, lru_cache, partial

import numpy as np

from pysimd.backends.cuda import nvrtc, tensor_maps
from pysimd.backends.cuda.device import multiprocessors
from pysimd.backends.gpu import cupy_arrays
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import A, Argument, ArrayWork, B, C, KernelLaunch, KernelPlan, Slot, Work, current_device
from pysimd.gpu_kernels import table
from pysimd.operands import Product


@lru_cache(4096)
def tile(m: int, n: int, k: int, fill: float) -> table.TmaTile | None:
    """The tile for products of this shape, or None: ``fill`` is the part of its tiles that C must fill."""
    sizes_fit = min(m, n) >= table.TMA_LEAST and max(m, n) <= table.TMA_MOST and k >= table.TMA_LEAST_K
    if not sizes_fit or m % 4 or n % 4 or k % 4:
        return None
    best = min(reversed(table.TMA_TILES), key=lambda x: _padded(x, m, n))
    return best if m * n >= fill * _padded(best, m, n) else None


def _padded(x: table.TmaTile, m: int, n: int) -> int:
    return -(-m // x.bm) * -(-n // x.bn) * x.bm * x.bn


def work(product: Product, chosen: table.TmaTile) -> Work | ArrayWork:
    """A product of a batch into its ``out``, by way of a copy of C where the kernel cannot store to it."""
    a, b, c = (cupy_arrays.readable(x) for x in (product.a, product.b, product.out))
    operands = CallOperands(a, b, None, c)
    if len(operands.dims) > 1 or not _row_major(operands, 3, c.strides):
        if not c.flags.c_contiguous:
            return ArrayWork(partial(_by_copy, product, chosen))
        a, b = (_dense(x, operands.batch) for x in (a, b))  # one dimension of the batch
        operands = CallOperands(a, b, None, c)
    a, b = (x if _row_major(operands, which, x.strides) else _dense(x) for which, x in enumerate((a, b)))
    arrays = a, b, None, c
    return Work(KernelPlan([_launch(CallOperands(*arrays), chosen)]), arrays)


def _by_copy(product: Product, chosen: table.TmaTile) -> None:
    result = cupy_arrays.empty(product.full, product.dtype)
    work(product._replace(out=result), chosen).run()
    cupy_arrays.copy(product.out, result)


def _dense(x, batch: tuple[int, ...] | None = None):
    """A row-major copy, for every product of ``batch`` where that is given."""
    result = cupy_arrays.empty(x.shape if batch is None else (*batch, *x.shape[-2:]), x.dtype)
    cupy_arrays.copy(result, x)
    return result


def _row_major(operands: CallOperands, which: int, strides: tuple[int, ...]) -> bool:
    """Whether columns are adjacent, and rows and products start at multiples of 16 bytes and do not overlap."""
    (rows, columns), size = operands.strides[which], operands.sizes[which]
    steps = [step[which] for _, step in operands.dims]
    return (
        columns == 1
        and rows >= (operands.k if which == 0 else operands.n)
        and all(step >= 0 for step in steps)
        and all(x * size % tensor_maps.ALIGNMENT == 0 for x in (rows, *steps))
        and operands.arrays[which].data.ptr % tensor_maps.ALIGNMENT == 0
    )


def _launch(operands: CallOperands, x: table.TmaTile) -> KernelLaunch:
    m, n, k = operands.m, operands.n, operands.k
    (count, steps), device = operands.dims[0] if operands.dims else (1, (0, 0, 0, 0)), current_device()
    across, in_product = -(-n // x.bn), -(-m // x.bm) * -(-n // x.bn)
    launched = -(-count // x.products) * in_product
    rows, pointers = [x for x, _ in operands.strides], [y.data.ptr if y is not None else 0 for y in operands.arrays]
    own = [int(step != 0) for step in steps[:2]]
    one = int(np.array([1, 0], np.float32).view(np.int64)[0])
    fields = [pointers[3], count, m, n, k, rows[3], steps[3], across, in_product, launched, *own, one]
    maps = []
    for which, extents, box in ((A, (k, m), (x.bk, x.bm)), (B, (n, k), (x.bn, x.bk))):
        products = count if steps[which] else 1
        made = tensor_maps.tensor_map(
            pointers[which], 4, (*extents, products), (4 * rows[which], 4 * steps[which]), (*box, x.products), 0
        )
        maps.append(Argument(made.view(np.int64), (Slot(0, which),), tensor_maps.replace_address))
    grid = min(multiprocessors(device), -(-launched // x.groups))
    arguments = (Argument(np.array(fields, np.int64), (Slot(0, C),)), *maps)
    return KernelLaunch(_function(x, device), (grid,), (x.threads,), arguments, x.dynamic_shared_bytes)


@cache
def _function(x: table.TmaTile, device: int):
    """The compiled instance; ``device`` is the current one."""
    kernel = nvrtc.function(x.source, x.entry, arch="sm_90a")
    kernel.max_dynamic_shared_size_bytes = x.dynamic_shared_bytes
    return kernel.kernel
