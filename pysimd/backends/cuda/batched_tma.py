"""Batches of float32 products by gpu_kernels/micro/batched_tma.cu and batched_tma_mn.cu: which they take, their tiles
and launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np

from pysimd.backends.cuda import nvrtc, tensor_maps
from pysimd.backends.cuda.device import multiprocessors
from pysimd.backends.gpu import cupy_arrays
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import A, Argument, B, C, KernelLaunch, KernelPlan, Slot, Work, current_device
from pysimd.gpu_kernels import table
from pysimd.operands import Product

_MOST_PRODUCTS = 1 << 27
"""Of a launch, whose tiles are counted in 32 bits."""

_SWIZZLE = 128
"""Bytes of a row of a panel of a row-major A."""

_FILL_LARGER, _LEAST_TILE_LARGER = 15 / 16, 96
"""Above ``table.TMA_SMALLER`` a side: the part of its tiles that C fills at least, and their least rows. With a K-major
B tiles of 80 a side are slower there than cuBLAS: 0.42 TB/s at 400, 400, 400 on an H200, where it had 0.48."""

_FILL_K_MAJOR = 5 / 6
"""The part of its tile that C fills at least, where B is K-major."""

_ROW_MAJOR = (True, False)
"""Whether A and B are K-major where both are row-major: then batched_tma.cu computes the product, else
batched_tma_mn.cu."""


@lru_cache(4096)
def tile(m: int, n: int, k: int, fill: float) -> table.TmaTile | None:
    """The tile for products of this shape, or None: ``fill`` is the part of its tiles that C must fill."""
    sizes_fit = min(m, n) >= table.TMA_LEAST and max(m, n) <= table.TMA_MOST and k >= table.TMA_LEAST_K
    if not sizes_fit or m % 4 or n % 4 or k % 4:
        return None
    best = min(reversed(table.TMA_TILES), key=lambda x: _padded(x, m, n))
    if max(m, n) > table.TMA_SMALLER:
        fill = _FILL_LARGER
        if best.bm < _LEAST_TILE_LARGER:
            return None
    return best if m * n >= fill * _padded(best, m, n) else None


def tiles(x: table.TmaTile, m: int, n: int, count: int) -> int:
    """How many tiles a batch has."""
    return -(-count // x.products) * -(-m // x.bm) * -(-n // x.bn)


def _padded(x: table.TmaTile, m: int, n: int) -> int:
    return -(-m // x.bm) * -(-n // x.bn) * x.bm * x.bn


def reads(product: Product) -> bool:
    """Whether no operand and no result has to be copied: elements of A and B are adjacent along one axis, those of C
    along n, all at multiples of 16 bytes. A K-major B is read where C fills one tile of 80, 96 or 112 a side: with
    several tiles, or those of 64 and 128 a side, it measured 0.57 to 1.3 times cuBLAS on an H200."""
    operands = CallOperands(product.a, product.b, None, product.out)
    a_k_major, b_k_major = (_k_major(operands, which) for which in (A, B))
    if a_k_major is None or b_k_major is None or not _mn_major(operands, C):
        return False
    if not b_k_major:
        return True
    m, n = operands.m, operands.n
    x = _mn_tile(m, n, (a_k_major, True))
    return 80 <= x.bm <= 112 and max(m, n) <= x.bm and m * n >= _FILL_K_MAJOR * x.bm * x.bn


def work(product: Product, chosen: table.TmaTile) -> Work:
    """A product of a batch that ``reads`` takes, into its ``out``. ``chosen`` is the tile for row-major operands."""
    arrays = tuple(cupy_arrays.readable(x) for x in (product.a, product.b, product.out))
    operands = CallOperands(*arrays[:2], None, arrays[2])
    layout = tuple(_k_major(operands, which) for which in (A, B))
    if layout != _ROW_MAJOR:
        chosen = _mn_tile(operands.m, operands.n, layout)
    return Work(KernelPlan(list(_launches(operands, chosen, layout))), (*arrays[:2], None, arrays[2]))


@lru_cache(4096)
def _mn_tile(m: int, n: int, layout: tuple[bool, bool]) -> table.MnTile:
    """The tile for operands that are not both row-major."""
    best = min(reversed(table.MN_TILES), key=lambda x: _padded(x, m, n))
    return replace(best, a_k_major=layout[0], b_k_major=layout[1])


def _k_major(operands: CallOperands, which: int) -> bool | None:
    """Whether the kernel reads A or B as adjacent along k; False: along m or n; None: not as it lies."""
    if _adjacent(operands, which, 1 - which, operands.k):
        return True
    return False if _mn_major(operands, which) else None


def _mn_major(operands: CallOperands, which: int) -> bool:
    """The same of elements that are adjacent along m or n; C along n."""
    return _adjacent(operands, which, int(which != A), operands.m if which == A else operands.n)


def _adjacent(operands: CallOperands, which: int, axis: int, length: int) -> bool:
    """Whether ``length`` elements are adjacent along an axis, and the next ones and products start at multiples of 16
    bytes and do not overlap."""
    strides, size = operands.strides[which], operands.sizes[which]
    steps = [step[which] for _, step in operands.dims]
    return (
        strides[axis] == 1
        and strides[1 - axis] >= length
        and all(step >= 0 for step in steps)
        and all(x * size % tensor_maps.ALIGNMENT == 0 for x in (strides[1 - axis], *steps))
        and operands.arrays[which].data.ptr % tensor_maps.ALIGNMENT == 0
    )


def _launches(
    operands: CallOperands, x: table.TmaTile | table.MnTile, layout: tuple[bool, bool]
) -> Iterator[KernelLaunch]:
    """One for every index of the batch but its longest dimension; ``layout`` says of A and B whether it is K-major."""
    m, n, k, device = operands.m, operands.n, operands.k, current_device()
    dims = sorted(operands.dims, key=lambda dim: dim[0]) or [(1, (0, 0, 0, 0))]
    steps = dims[-1][1]
    lda, ldb = operands.strides[A][1 - layout[A]], operands.strides[B][layout[B]]
    across, in_product = -(-n // x.bn), -(-m // x.bm) * -(-n // x.bn)
    one = int(np.array([1, 0], np.float32).view(np.int64)[0])
    for pointers, count in operands.walk(dims[:-1], dims[-1], _MOST_PRODUCTS):
        slots = {i: Slot(0, i, pointers[i] - operands.arrays[i].data.ptr) for i in (A, B, C)}
        in_all = tiles(x, m, n, count)
        fields = [pointers[C], count, m, n, k, operands.strides[C][0], steps[C], across, in_product, in_all]
        fields += [int(steps[A] != 0), int(steps[B] != 0), one]
        arguments = [Argument(np.array(fields, np.int64), (slots[C],))]
        for which, size, tile, ld in ((A, m, x.bm, lda), (B, n, x.bn, ldb)):
            products, step = (count, 4 * steps[which]) if steps[which] else (1, 0)
            if not layout[which]:
                described = (size, k, products), (4 * ld, step), (tile, x.bk, x.products)
            elif layout == _ROW_MAJOR:
                described = (k, size, products), (4 * ld, step), (x.bk, tile, x.products)
            else:  # row 4 g + i at g, i
                described = (k, size // 4, 4, products), (16 * ld, 4 * ld, step), (x.bk, tile // 4, 4, 1)
            swizzle = _SWIZZLE if which == A and layout == _ROW_MAJOR else 0
            made = tensor_maps.tensor_map(pointers[which], 4, *described, swizzle)
            arguments.append(Argument(made.view(np.int64), (slots[which],), tensor_maps.replace_address))
        grid = min(multiprocessors(device), -(-in_all // x.groups))
        yield KernelLaunch(_function(x, device), (grid,), (x.threads,), tuple(arguments), x.dynamic_shared_bytes)


@cache
def _function(x: table.TmaTile | table.MnTile, device: int):
    """The compiled instance; ``device`` is the current one."""
    kernel = nvrtc.function(x.source, x.entry, arch="sm_90a")
    kernel.max_dynamic_shared_size_bytes = x.dynamic_shared_bytes
    return kernel.kernel
