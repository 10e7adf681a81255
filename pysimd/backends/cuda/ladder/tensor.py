"""Launches of the rungs that the tensor memory accelerator feeds: operands that it can read, tensor maps, grids."""

from __future__ import annotations

import numpy as np

from pysimd.backends.cuda import tensor_maps
from pysimd.backends.cuda.ladder import launches as gemm_launches
from pysimd.backends.cuda.ladder import schedule as gemm_blocks
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import SCRATCH, Argument, Slot
from pysimd.gpu_kernels.ladder_table import Rung, TensorBlock

SWIZZLE = 128
"""Bytes of a row of a box, as wgmma.cuh reads them."""


GROUP = 16
"""Rows of tiles, of 128 rows, taken together (grouped raster order)."""

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


def splittable(operands: CallOperands, which: int) -> bool:
    """Whether A (0) or B (1) can be split where it lies."""
    return operands.k > 0


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


def maps_along_rows(block, bk: int, products: int, gemm: Argument) -> tuple[Argument, Argument]:
    """The tensor maps of A and B of floats that lie along their rows."""
    p = fields(gemm)
    found = []
    for slot, letter, rows, box in ((0, "a", p["m"], block.bm), (1, "b", p["n"], block.bn)):
        step = p[f"{letter}_batch"]
        extents = (rows, p["k"], products if step else 1)
        steps = 4 * p[f"ld{letter}"], 4 * step
        made = tensor_maps.tensor_map(p[letter], 4, extents, steps, (box, bk), 0)
        found.append(_map_argument(made, gemm.slots[slot]))
    return tuple(found)


def _map_argument(made: np.ndarray, slot: Slot) -> Argument:
    return Argument(made.view(np.int64), (slot,), tensor_maps.replace_address)


def choose(blocks, m: int, n: int, k: int, products: int, processors: int) -> TensorBlock:
    """The block whose waves of tiles take the shortest time at its rate."""

    def time(block: TensorBlock) -> float:
        tiles = products * -(-m // (block.bm * block.cluster)) * -(-n // block.bn)
        rounds = -(-tiles * block.cluster // processors)
        return rounds * block.bm * block.bn / (block.rate or 1.0)

    able = [block for block in blocks if m * n * k * products >= block.least]
    return min(able, key=time)


def arguments(
    block: TensorBlock, row: Rung, layout_a: str, layout_b: str, products: int, gemm: Argument, processors: int
) -> tuple[int, tuple[Argument, ...]]:
    """Grid and arguments of a launch: the Gemm, a Schedule, and the tensor maps of A and B, and of C for a rung that
    stores by one."""
    bk, p = row.bk, fields(gemm)
    map_a = _map(p["a"], layout_a, p["m"], p["k"], p["lda"], products, p["a_batch"], block.bm, bk)
    map_b = _map(p["b"], layout_b, p["n"], p["k"], p["ldb"], products, p["b_batch"], block.bn // block.cluster, bk)
    grid, schedule = _schedule(block, -(-p["k"] // bk), products, p["m"], p["n"], processors)
    maps = _map_argument(map_a, gemm.slots[0]), _map_argument(map_b, gemm.slots[1])
    gemm, maps = _with_map_c(gemm, maps, products) if row.stores_by_tma else (gemm, maps)
    return grid, (gemm, Argument(schedule.view(np.int64)), *maps)


def fields(gemm: Argument) -> dict[str, int]:
    """The fields of a Gemm by name."""
    return dict(zip(gemm_launches.FIELDS, gemm.words.tolist(), strict=True))


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


def _with_map_c(gemm: Argument, maps: tuple, products: int) -> tuple[Argument, tuple[Argument, ...]]:
    """The Gemm and the maps, with that of C in boxes of wgmma.cuh, of which the Gemm tells; where C can have none, any
    other map stands in its place."""
    p = fields(gemm)
    if p["c0"] or not p["c_vector"] or (p["m"] > 1 and p["ldc"] < p["n"]) or (products > 1 and p["c_batch"] <= 0):
        return gemm, (*maps, maps[0])
    words = gemm.words.copy()
    words[gemm_launches.FIELDS.index("c_vector")] = BY_MAP
    extents, steps = (p["n"], p["m"], products), (4 * p["ldc"], 4 * p["c_batch"])
    map_c = tensor_maps.tensor_map(p["c"], 4, extents, steps, (32, 64), SWIZZLE)
    return gemm._replace(words=words), (*maps, _map_argument(map_c, gemm.slots[-1]))


class Parts:
    """The two parts of one operand of tf32x3.cu, along k, in scratch memory.

    Args:
        pointer, rows, k, ld, products, step: of the operand; ``step`` from product to product, 0 where all are one.
        slot: of the operand in the Gemm.
        offset: of the parts in the scratch memory.
    """

    def __init__(self, pointer: int, rows: int, k: int, ld: int, products: int, step: int, slot: Slot, offset: int):
        self.rows, self.k, self.products = rows, k, products if step else 1
        self.pitch = -(-k // 4) * 4
        self.slot = Slot(0, SCRATCH, offset)
        self.nbytes = -(-8 * self.products * rows * self.pitch // _ALIGNMENT) * _ALIGNMENT
        given = [pointer, 0, rows, k, ld, step, self.products, self.pitch]  # the fields of a Split
        self.argument = Argument(np.array(given, np.int64), (slot._replace(word=0), self.slot._replace(word=1)))

    @property
    def tiles(self) -> int:
        """Blocks that have something to do, 32 x 32 elements each."""
        return self.products * -(-self.rows // 32) * -(-self.k // 32)

    def tensor_map(self, box_rows: int, bk: int) -> Argument:
        extents = (self.k, self.rows, 2 * self.products)
        steps = (4 * self.pitch, 4 * self.pitch * self.rows)
        made = tensor_maps.tensor_map(tensor_maps.ANYWHERE, 4, extents, steps, (bk, box_rows), SWIZZLE)
        return _map_argument(made, self.slot)


_ALIGNMENT = 256
"""Bytes of which the address of the parts of an operand is a multiple."""


def split_arguments(block: TensorBlock, row: Rung, products: int, gemm: Argument, processors: int):
    """The parts of A and B, and grid and arguments of the launch that multiplies them."""
    p = fields(gemm)
    a = Parts(p["a"], p["m"], p["k"], p["lda"], products, p["a_batch"], gemm.slots[0], 0)
    b = Parts(p["b"], p["n"], p["k"], p["ldb"], products, p["b_batch"], gemm.slots[1], a.nbytes)
    panels = 2 * max(1, -(-p["k"] // (2 * row.bk)))  # tf32x3.cu takes two at a time
    grid, schedule = _schedule(block, panels, products, p["m"], p["n"], processors)
    maps = a.tensor_map(block.bm, row.bk), b.tensor_map(block.bn // block.cluster, row.bk)
    gemm, maps = _with_map_c(gemm, maps, products)
    return (a, b), grid, (gemm, Argument(schedule.view(np.int64)), *maps)
