"""Launches of the rungs that the tensor memory accelerator feeds: operands that it can read, tensor maps, grids."""

from __future__ import annotations

import numpy as np

from pysimd.backends.cuda import tensor_maps
from pysimd.backends.cuda.ladder import launches as gemm_launches
from pysimd.backends.cuda.ladder import schedule as gemm_blocks
from pysimd.backends.gpu.launches import CallOperands
from pysimd.gpu_kernels.ladder_table import Rung, TensorBlock

SWIZZLE = 128
"""Bytes of memory of a row of a box: as wgmma.cuh wants them."""


GROUP = 16
"""Rows of tiles, of 128 rows, that are walked together."""

BY_MAP = 2
"""What c_vector of a Gemm is where the accelerator can store C."""


def mappable(operands: CallOperands, which: int) -> bool:
    """Whether A (0) or B (1) can be described as it lies: rows start at multiples of 16 bytes and do not overlap."""
    name, ld = gemm_launches.layout(operands, which)
    size, rows = operands.sizes[which], (operands.m, operands.n)[which]
    inner, outer = (operands.k, rows) if name == "K_MAJOR" else (rows, operands.k)
    steps = [step[which] for _, step in operands.dims]
    return (
        operands.k > 0
        and operands.arrays[which].data.ptr % tensor_maps.ALIGNMENT == 0
        and (outer == 1 or (ld >= inner and ld * size % tensor_maps.ALIGNMENT == 0))
        and all(step >= 0 and step * size % tensor_maps.ALIGNMENT == 0 for step in steps)
    )


def padded(x, _which: int = 0):
    """A copy whose rows, or columns where those are adjacent, start at multiples of 16 bytes; one step of k, of zeros,
    where there is none."""
    by_columns = x.strides[-1] != x.itemsize and x.strides[-2] == x.itemsize
    return _by_columns(x) if by_columns else _by_rows(x)


def _by_rows(x):
    import cupy

    if x.size == 0:
        x = cupy.zeros(tuple(max(1, n) for n in x.shape), x.dtype)
    piece = tensor_maps.ALIGNMENT // x.itemsize
    pitch = -(-x.shape[-1] // piece) * piece
    result = cupy.empty((*x.shape[:-1], pitch), x.dtype)[..., : x.shape[-1]]
    result[...] = x
    return result


def _by_columns(x):
    return _by_rows(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def along_rows(operands: CallOperands, which: int) -> bool:
    """Whether A (0) or B (1) lies along its rows and can be described as it lies."""
    return gemm_launches.layout(operands, which)[0] == "MN_MAJOR" and mappable(operands, which)


def mn_major(x, which: int):
    """A copy of A (0) or B (1) along its rows, as ``padded`` makes one."""
    return _by_rows(x) if which else _by_columns(x)


def maps_along_rows(block, bk: int, products: int, call) -> tuple:
    """The tensor maps of A and B of floats that lie along their rows."""
    p = fields(call)
    found = []
    for letter, rows, box in (("a", p["m"], block.bm), ("b", p["n"], block.bn)):
        step = p[f"{letter}_batch"]
        extents = (rows, p["k"], products if step else 1)
        steps = 4 * p[f"ld{letter}"], 4 * step
        found.append(tensor_maps.tensor_map(p[letter], 4, extents, steps, (box, bk), 0))
    return tuple(found)


def choose(blocks, m: int, n: int, k: int, products: int, processors: int) -> TensorBlock:
    """The block whose rounds of tiles take the shortest time at its rate."""

    def time(block: TensorBlock) -> float:
        tiles = products * -(-m // (block.bm * block.cluster)) * -(-n // block.bn)
        rounds = -(-tiles * block.cluster // processors)
        return rounds * block.bm * block.bn / (block.rate or 1.0)

    able = [block for block in blocks if m * n * k * products >= block.least]
    return min(able, key=time)


def arguments(block: TensorBlock, row: Rung, layout_a: str, layout_b: str, products: int, call, processors: int):
    """Grid and arguments of a launch: the Gemm, a Schedule, and the tensor maps of A and B, and of C for a rung that
    stores by one."""
    bk = row.bk
    p = fields(call)
    map_a = _map(p["a"], layout_a, p["m"], p["k"], p["lda"], products, p["a_batch"], block.bm, bk)
    map_b = _map(p["b"], layout_b, p["n"], p["k"], p["ldb"], products, p["b_batch"], block.bn // block.cluster, bk)
    grid, schedule = _schedule(block, -(-p["k"] // bk), products, p["m"], p["n"], processors)
    maps = _with_map_c(call, (map_a, map_b), p, products) if row.stores_by_tma else (map_a, map_b)
    return grid, (call.view(gemm_launches.GEMM), schedule, *maps)


def fields(call) -> dict[str, int]:
    """The fields of a Gemm by name."""
    return dict(zip(gemm_launches.FIELDS, call.view(np.int64).tolist(), strict=True))


def _schedule(block: TensorBlock, panels: int, products: int, m: int, n: int, processors: int):
    """The grid, and the Schedule of whole tiles."""
    tiles = products * -(-m // (block.bm * block.cluster)) * -(-n // block.bn)
    blocks = min(tiles, processors // block.cluster) if block.persistent else tiles
    return blocks * block.cluster, gemm_blocks.fields("f32", tiles, panels, 0, blocks, GROUP // block.cluster)


def _map(pointer: int, layout: str, rows: int, k: int, ld: int, products: int, step: int, box_rows: int, bk: int):
    """The tensor map of one operand of 16-bit elements, whose boxes are ``bk`` of k and 64 rows or, where they lie
    along k, ``box_rows``."""
    size, count = 2, products if step else 1
    along_k = layout.startswith("K_MAJOR")
    extents = (k, rows, count) if along_k else (rows, k, count)
    box = (bk, box_rows) if along_k else (64, bk)
    return tensor_maps.tensor_map(pointer, size, extents, (ld * size, step * size), box, SWIZZLE)


def _with_map_c(call, maps: tuple, p: dict[str, int], products: int) -> tuple:
    """The maps, and that of C in boxes of wgmma.cuh, with which the Gemm is marked; any other where C can have none."""
    if p["c0"] or not p["c_vector"] or (p["m"] > 1 and p["ldc"] < p["n"]) or (products > 1 and p["c_batch"] <= 0):
        return (*maps, maps[0])
    call.view(np.int64)[gemm_launches.FIELDS.index("c_vector")] = BY_MAP
    extents, steps = (p["n"], p["m"], products), (4 * p["ldc"], 4 * p["c_batch"])
    return (*maps, tensor_maps.tensor_map(p["c"], 4, extents, steps, (32, 64), SWIZZLE))


SPLIT = np.dtype(f"V{8 * 8}")
"""The bytes of one Split (tf32x3.cu)."""


class Parts:
    """The two parts of one operand of tf32x3.cu, along k, in memory of their own.

    Args:
        pointer, rows, k, ld, products, step: of the operand; ``step`` from product to product, 0 where all are one.
    """

    def __init__(self, pointer: int, rows: int, k: int, ld: int, products: int, step: int):
        import cupy

        self.rows, self.k, self.products = rows, max(1, k), products if step else 1
        self.pitch = -(-self.k // 4) * 4
        make = cupy.empty if k else cupy.zeros  # without k the operand counts as one step of zeros
        self.memory = make(2 * self.products * rows * self.pitch, np.float32)
        given = [pointer, self.memory.data.ptr, rows, k, ld, step, self.products, self.pitch]
        self.split = np.array(given, np.int64).view(SPLIT)

    @property
    def tiles(self) -> int:
        """Blocks that have something to do, 32 x 32 elements each."""
        return self.products * -(-self.rows // 32) * -(-self.k // 32)

    def tensor_map(self, box_rows: int, bk: int) -> np.ndarray:
        extents = (self.k, self.rows, 2 * self.products)
        steps = (4 * self.pitch, 4 * self.pitch * self.rows)
        return tensor_maps.tensor_map(self.memory.data.ptr, 4, extents, steps, (bk, box_rows), SWIZZLE)


def split_arguments(block: TensorBlock, row: Rung, products: int, call, processors: int):
    """The parts of A and B, and grid and arguments of the launch that multiplies them."""
    p = fields(call)
    a = Parts(p["a"], p["m"], p["k"], p["lda"], products, p["a_batch"])
    b = Parts(p["b"], p["n"], p["k"], p["ldb"], products, p["b_batch"])
    panels = 2 * max(1, -(-p["k"] // (2 * row.bk)))  # tf32x3.cu takes two at a time
    grid, schedule = _schedule(block, panels, products, p["m"], p["n"], processors)
    maps = a.tensor_map(block.bm, row.bk), b.tensor_map(block.bn // block.cluster, row.bk)
    maps = _with_map_c(call, maps, p, products)
    return (a, b), grid, (call.view(gemm_launches.GEMM), schedule, *maps)
