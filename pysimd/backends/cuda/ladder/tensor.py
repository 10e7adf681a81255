"""Launches of the rungs that the tensor memory accelerator feeds: operands that it can read, tensor maps, grids."""

from __future__ import annotations

import numpy as np

from pysimd.backends.cuda import tensor_maps
from pysimd.backends.cuda.ladder import schedule as gemm_blocks
from pysimd.backends.gpu import gemm_launches
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


def packable(operands: CallOperands, which: int) -> bool:
    """Whether A (0) or B (1) can be split or packed where it lies."""
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


def fields(gemm: Argument) -> dict[str, int]:
    """The fields of a Gemm by name."""
    return dict(zip(gemm_launches.FIELDS, gemm.words.tolist(), strict=True))


def _schedule(block: TensorBlock, panels: int, products: int, m: int, n: int, processors: int):
    """The grid, and the Schedule of whole tiles."""
    tiles = products * -(-m // (block.bm * block.cluster)) * -(-n // block.bn)
    blocks = min(tiles, processors // block.cluster) if block.persistent else tiles
    return blocks * block.cluster, gemm_blocks.fields("f32", tiles, panels, 0, blocks, GROUP // block.cluster)


def _map(p: dict[str, int], letter: str, layout: str, rows: int, products: int, box_rows: int, row: Rung):
    """The tensor map of one operand, whose boxes are 128 bytes of k and ``box_rows`` rows or, MN-major, 64 rows and
    ``row.bk`` of k."""
    step, size = p[f"{letter}_batch"], row.panel_bytes
    count, ld, k = products if step else 1, p[f"ld{letter}"], p["k"]
    along_k = layout.startswith("K_MAJOR")
    extents = (k, rows, count) if along_k else (rows, k, count)
    box = (row.bk, box_rows) if along_k else (64, row.bk)
    return tensor_maps.tensor_map(p[letter], size, extents, (ld * size, step * size), box, SWIZZLE)


def _with_map_c(gemm: Argument, maps: tuple, products: int) -> tuple[Argument, tuple[Argument, ...]]:
    """The Gemm and the maps, with that of C in boxes of wgmma.cuh, of which the Gemm tells; where C can have none, any
    other map stands in its place. A TMA store writes whole pieces of 16 bytes: where rows of C end within one, it would
    write past them."""
    p = fields(gemm)
    whole = 4 * p["n"] % tensor_maps.ALIGNMENT == 0
    apart = (p["m"] == 1 or p["ldc"] >= p["n"]) and (products == 1 or p["c_batch"] > 0)
    if p["c0"] or not p["c_vector"] or not whole or not apart:
        return gemm, (*maps, maps[0])
    words = gemm.words.copy()
    words[gemm_launches.FIELDS.index("c_vector")] = BY_MAP
    extents, steps = (p["n"], p["m"], products), (4 * p["ldc"], 4 * p["c_batch"])
    map_c = tensor_maps.tensor_map(p["c"], 4, extents, steps, (32, 64), SWIZZLE)
    return gemm._replace(words=words), (*maps, _map_argument(map_c, gemm.slots[-1]))


class Packed:
    """A K-major copy of an operand in scratch memory: one of int8, or the two parts of float32 that tf32x3.cu
    multiplies.

    Args:
        row: of the rung.
        p: the fields of the Gemm.
        letter, rows: of the operand, ``a`` or ``b``, and how many rows (columns) it has.
        products: of the launch.
        slot: of the operand in the Gemm.
        offset: of the copy in the scratch memory.
    """

    def __init__(self, row: Rung, p: dict[str, int], letter: str, rows: int, products: int, slot: Slot, offset: int):
        self.parts = 2 if row.splits_operands else 1
        self.size, self.rows, self.k = row.panel_bytes // self.parts, rows, p["k"]
        step = p[f"{letter}_batch"]
        self.products = products if step else 1
        piece = tensor_maps.ALIGNMENT // self.size
        self.pitch = -(-self.k // piece) * piece
        self.slot = Slot(0, SCRATCH, offset)
        copy_bytes = self.parts * self.size * self.products * rows * self.pitch
        self.nbytes = -(-copy_bytes // _ALIGNMENT) * _ALIGNMENT
        given = [p[letter], 0, rows, self.k, p[f"ld{letter}"], step, self.products, self.pitch]  # a Split or a Pack
        self.argument = Argument(np.array(given, np.int64), (slot._replace(word=0), self.slot._replace(word=1)))

    @property
    def tiles(self) -> int:
        """Blocks that have something to do: 32 x 32 elements each, or 64 x 64 bytes."""
        edge = 32 if self.parts == 2 else 64
        return self.products * -(-self.rows // edge) * -(-self.k // edge)

    def tensor_map(self, box_rows: int, bk: int) -> Argument:
        extents = (self.k, self.rows, self.parts * self.products)
        steps = (self.size * self.pitch, self.size * self.pitch * self.rows)
        made = tensor_maps.tensor_map(tensor_maps.ANYWHERE, self.size, extents, steps, (bk, box_rows), SWIZZLE)
        return _map_argument(made, self.slot)


_ALIGNMENT = 256
"""Bytes of which the address of the copy of an operand is a multiple."""


def arguments(
    block: TensorBlock, row: Rung, layouts: tuple[str, str], products: int, gemm: Argument, processors: int
) -> tuple[list[tuple[str, Packed]], int, tuple[Argument, ...]]:
    """The layouts and the copies of the operands that launches pack before, and grid and arguments of the launch that
    multiplies: the Gemm, a Schedule, and the tensor maps of A and B, and of C for a rung that stores by one."""
    p, packed, maps, offset = fields(gemm), [], [], 0
    operands = (("a", layouts[0], p["m"], block.bm), ("b", layouts[1], p["n"], block.bn // block.cluster))
    for slot, (letter, layout, rows, box_rows) in zip(gemm.slots, operands, strict=False):
        if row.splits_operands or (row.packs_operands and not _k_major(p, letter, layout, rows, row, products)):
            made = Packed(row, p, letter, rows, products, slot, offset)
            offset += made.nbytes
            packed.append((layout, made))
            maps.append(made.tensor_map(box_rows, row.bk))
        else:
            maps.append(_map_argument(_map(p, letter, layout, rows, products, box_rows, row), slot))
    panels = -(-p["k"] // row.bk)
    if row.splits_operands:
        panels = 2 * max(1, -(-panels // 2))  # tf32x3.cu takes two at a time
    grid, schedule = _schedule(block, panels, products, p["m"], p["n"], processors)
    gemm, maps = _with_map_c(gemm, tuple(maps), products) if row.stores_by_tma else (gemm, tuple(maps))
    return packed, grid, (gemm, Argument(schedule.view(np.int64)), *maps)


def _k_major(p: dict[str, int], letter: str, layout: str, rows: int, row: Rung, products: int) -> bool:
    """Whether a K-major operand can be described as it lies."""
    ld, step, size = p[f"ld{letter}"], p[f"{letter}_batch"], row.panel_bytes
    return (
        layout.startswith("K_MAJOR")
        and p[letter] % tensor_maps.ALIGNMENT == 0
        and (rows == 1 or (ld >= p["k"] and ld * size % tensor_maps.ALIGNMENT == 0))
        and (products == 1 or (step >= 0 and step * size % tensor_maps.ALIGNMENT == 0))
    )
