"""Launches of the rungs that the tensor memory accelerator feeds: operands that it can read, tensor maps, grids."""

from __future__ import annotations

import numpy as np

from ..gpu_kernels.ladder_table import TensorBlock
from . import gemm_blocks, gemm_launches, tensor_maps
from .launches import Arranged

SWIZZLE = 128
"""Bytes of memory of a row of a box: as wgmma.cuh wants them."""


def mappable(arranged: Arranged, which: int) -> bool:
    """Whether A (0) or B (1) can be described as it lies: rows start at multiples of 16 bytes and do not overlap."""
    name, ld = gemm_launches.layout(arranged, which)
    size, rows = arranged.sizes[which], (arranged.m, arranged.n)[which]
    inner, outer = (arranged.k, rows) if name == "ALONG_K" else (rows, arranged.k)
    steps = [step[which] for _, step in arranged.dims]
    return (
        arranged.k > 0
        and arranged.operands[which].data.ptr % tensor_maps.ALIGNMENT == 0
        and (outer == 1 or (ld >= inner and ld * size % tensor_maps.ALIGNMENT == 0))
        and all(step >= 0 and step * size % tensor_maps.ALIGNMENT == 0 for step in steps)
    )


def padded(x):
    """A copy whose rows, or columns where those are adjacent, start at multiples of 16 bytes; one step of k, of zeros,
    where there is none."""
    import cupy

    if x.size == 0:
        x = cupy.zeros(tuple(max(1, n) for n in x.shape), x.dtype)
    by_columns = x.strides[-1] != x.itemsize and x.strides[-2] == x.itemsize
    turned = x.swapaxes(-1, -2) if by_columns else x
    piece = tensor_maps.ALIGNMENT // x.itemsize
    pitch = -(-turned.shape[-1] // piece) * piece
    result = cupy.empty((*turned.shape[:-1], pitch), x.dtype)[..., : turned.shape[-1]]
    result[...] = turned
    return result.swapaxes(-1, -2) if by_columns else result


def choose(blocks, m: int, n: int, k: int, products: int, processors: int) -> TensorBlock:
    """The block whose rounds of tiles take the shortest time at its rate."""

    def time(block: TensorBlock) -> float:
        tiles = products * -(-m // (block.bm * block.cluster)) * -(-n // block.bn)
        rounds = -(-tiles * block.cluster // processors)
        return rounds * block.bm * block.bn / (block.rate or 1.0)

    return min(blocks, key=time)


def arguments(block: TensorBlock, bk: int, layout_a: str, layout_b: str, products: int, call, processors: int):
    """Grid and arguments of a launch: the Gemm, a Schedule, and the tensor maps of A and B."""
    p = dict(zip(gemm_launches.FIELDS, call.view(np.int64).tolist(), strict=True))
    m, n, k = p["m"], p["n"], p["k"]
    map_a = _map(p["a"], layout_a, m, k, p["lda"], products, p["a_batch"], block.bm, bk)
    map_b = _map(p["b"], layout_b, n, k, p["ldb"], products, p["b_batch"], block.bn // block.cluster, bk)
    tiles = products * -(-m // (block.bm * block.cluster)) * -(-n // block.bn)
    blocks = min(tiles, processors // block.cluster) if block.stays else tiles
    one = int(np.array([1, 0], np.float32).view(np.int64)[0])
    fields = [0, tiles, -(-k // bk), 0, blocks, gemm_blocks.GROUP // block.cluster, one]
    schedule = np.array(fields, np.int64).view(gemm_blocks.SCHEDULE)
    return blocks * block.cluster, (call, schedule, map_a, map_b)


def _map(pointer: int, layout: str, rows: int, k: int, ld: int, products: int, step: int, box_rows: int, bk: int):
    """The tensor map of one operand of 16-bit elements, whose boxes are ``bk`` of k and 64 rows or, where they lie
    along k, ``box_rows``."""
    size, count = 2, products if step else 1
    along_k = layout.startswith("ALONG_K")
    extents = (k, rows, count) if along_k else (rows, k, count)
    box = (bk, box_rows) if along_k else (64, bk)
    return tensor_maps.tensor_map(pointer, size, extents, (ld * size, step * size), box, SWIZZLE)
