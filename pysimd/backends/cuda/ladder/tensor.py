"""Launches of the rungs on tensor cores: copies of operands, and for those that the tensor memory accelerator feeds
operands that it can read, tensor maps, grids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pysimd.backends.cuda import tensor_maps
from pysimd.backends.cuda.ladder import schedule as gemm_blocks
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import COUNTER, SCRATCH, Argument, Slot
from pysimd.gpu_kernels.ladder_table import Rung, TensorBlock

SWIZZLE = 128
"""Bytes of a row of a box, as wgmma.cuh reads them."""

LINE = 128
"""Bytes of a line of the L2."""

_PADDED = 8 * LINE
"""Bytes of a row from which on its copy begins with a line; that of a shorter one would be too much longer."""


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


LAUNCH_US, STORE_US, REDUCTION_US, REDUCTION_COLUMNS_US, WORKSPACE_US = 1.4, 0.63, 0.3, 1.35, 1.5
"""Of an H200, in microseconds: a launch after another one, without its multiply-adds; 64 columns of the epilogue of a
tile; the addition of partial tiles within a cluster, without and of 64 columns; that of several clusters."""

BYTES_PER_US, SLICE_BYTES_PER_US, OVERLAP = 3.3e6, 1.1e5, 1.6
"""Bytes of operands that the device moves in a microsecond, and of partial slices that a multiprocessor receives.
Memory and tensor cores are busy at the same time, but not all the time: both times are added as a norm of this order.
"""

_CYCLES_PER_US, _LINE_CYCLES, _TWO_LINES_CYCLES = 1755, 2.05, 4.37
"""A multiprocessor receives a row of a panel, 128 bytes, in 2 cycles, and in 4.4 where it lies in two lines of L2."""

CLUSTERS = {1: 132, 2: 66, 4: 30, 8: 15}
"""Clusters of so many blocks that an H200 runs at a time (cuOccupancyMaxActiveClusters): a cluster stays within a
graphics processing cluster, not all of whose multiprocessors are there."""

LEAST = 4
"""Panels of a part of a split tile, at least."""


class Choice(NamedTuple):
    """How a product is launched.

    Attributes:
        block: tile and cluster.
        tiles: of C, of a cluster each, those of the whole batch.
        panels: along k, of a tile.
        parts: along k, of a tile.
        grid: blocks that are launched.
        us: estimated time.
    """

    block: TensorBlock
    tiles: int
    panels: int
    parts: int
    grid: int
    us: float

    @property
    def clusters(self) -> int:
        """Clusters that a tile is split among."""
        return self.parts // self.block.split


def choose(row: Rung, m: int, n: int, k: int, products: int, processors: int) -> Choice:
    """The choice of the shortest time among the blocks of a rung; of equal ones that with most blocks. Products of a
    batch are not split, so that all of them have the same bits."""
    panels = -(-k // row.bk)
    if row.splits_operands:
        panels = 2 * max(1, -(-panels // 2))  # tf32x3.cu takes two at a time
    moved = products * (m * k + k * n + m * n) * row.panel_bytes / BYTES_PER_US
    choices = []
    for block in row.tensor_blocks:
        if m * n * k * products < block.least:
            continue
        tiles = products * -(-m // (block.bm * block.cluster)) * -(-n // block.bn)
        units = CLUSTERS[block.cluster] * processors // CLUSTERS[1]
        panel, columns = _panel_us(row, block, n, k, processors), block.bn / 64
        if block.split == 1:
            waves = -(-tiles // units)
            time = LAUNCH_US + STORE_US * columns * waves + _overlapped(waves * panels * panel, moved)
            grid = (min(tiles, units) if block.persistent else tiles) * block.cluster
            choices.append(Choice(block, tiles, panels, 1, grid, time))
        elif products == 1:
            added = REDUCTION_US + (STORE_US + REDUCTION_COLUMNS_US) * columns
            for parts in _parts(block, tiles, panels, processors):
                time = LAUNCH_US + added + _overlapped(-(-panels // parts) * panel, moved)
                if parts > block.split:
                    time += WORKSPACE_US + 4 * block.bm * block.bn / block.split**2 * parts / SLICE_BYTES_PER_US
                choices.append(Choice(block, tiles, panels, parts, tiles * parts, time))
    return min(choices, key=lambda choice: (choice.us, -choice.grid))


def _overlapped(us: float, other_us: float) -> float:
    return (us**OVERLAP + other_us**OVERLAP) ** (1 / OVERLAP)


def _panel_us(row: Rung, block: TensorBlock, n: int, k: int, processors: int) -> float:
    """How long a block takes for a panel of row-major operands: its multiply-adds, or its rows of A and of its part of
    B, whichever is longer."""
    multiplied = 2e-6 * block.bm * block.bn * row.bk * processors / (block.rate or 1.0)
    lines = row.bk * row.panel_bytes / LINE
    rows = block.bm * _row_cycles(row, k) + block.bn / block.cluster * _row_cycles(row, n)
    return max(multiplied, lines * rows / _CYCLES_PER_US)


def _row_cycles(row: Rung, length: int) -> float:
    """Of rows of an operand of this length: copies have whole lines."""
    copied = row.copies_k_major or length * row.panel_bytes % tensor_maps.ALIGNMENT
    return _LINE_CYCLES if copied or length * row.panel_bytes % LINE == 0 else _TWO_LINES_CYCLES


def _parts(block: TensorBlock, tiles: int, panels: int, processors: int) -> Iterator[int]:
    """In how many parts a tile may be split: all of them run at the same time."""
    clusters = CLUSTERS[block.split] * processors // CLUSTERS[1]
    most = min(clusters // tiles * block.split, panels // LEAST)
    yield from range(block.split, most + 1, block.split)


def workspace_bytes(choice: Choice) -> int:
    """Of the partial tiles of clusters."""
    if choice.clusters == 1:
        return 0
    return 4 * choice.tiles * choice.clusters * choice.block.bm * choice.block.bn


def fields(gemm: Argument) -> dict[str, int]:
    """The fields of a Gemm by name."""
    return dict(zip(gemm_launches.FIELDS, gemm.words.tolist(), strict=True))


def _map(
    p: dict[str, int], letter: str, layout: str, rows: int, products: int, box: tuple[int, int], row: Rung
) -> np.ndarray:
    """The tensor map of one operand."""
    step, size = p[f"{letter}_batch"], row.panel_bytes
    count, ld, k = products if step else 1, p[f"ld{letter}"], p["k"]
    along_k = layout.startswith("K_MAJOR")
    extents = (k, rows, count) if along_k else (rows, k, count)
    return tensor_maps.tensor_map(p[letter], size, extents, (ld * size, step * size), box, SWIZZLE)


def _box(row: Rung, layout: str, rows: int) -> tuple[int, int]:
    """128 bytes of k by ``rows`` rows (columns) of an operand or, MN-major, 64 rows by k: by half of it where the rows,
    those of each of two blocks, are no whole boxes."""
    return (row.bk, rows) if layout.startswith("K_MAJOR") else (64, row.bk // (2 if rows % 64 else 1))


def _with_map_c(gemm: Argument, maps: tuple, products: int, c_bytes: int) -> tuple[Argument, tuple[Argument, ...]]:
    """The Gemm and the maps, with that of C in boxes of wgmma.cuh, of which the Gemm tells; where C can have none, any
    other map stands in its place. A TMA store writes whole pieces of 16 bytes: where rows of C end within one, it would
    write past them."""
    p = fields(gemm)
    whole = c_bytes * p["n"] % tensor_maps.ALIGNMENT == 0
    apart = (p["m"] == 1 or p["ldc"] >= p["n"]) and (products == 1 or p["c_batch"] > 0)
    if p["c0"] or not p["c_vector"] or not whole or not apart:
        return gemm, (*maps, maps[0])
    words = gemm.words.copy()
    words[gemm_launches.FIELDS.index("c_vector")] = BY_MAP
    extents, steps = (p["n"], p["m"], products), (c_bytes * p["ldc"], c_bytes * p["c_batch"])
    map_c = tensor_maps.tensor_map(p["c"], c_bytes, extents, steps, (SWIZZLE // c_bytes, 64), SWIZZLE)
    return gemm._replace(words=words), (*maps, _map_argument(map_c, gemm.slots[-1]))


class Packed:
    """A copy of an operand in scratch memory: of 16-bit elements in its own layout, with padded rows; else K-major, of
    int8, or the two parts of float32 that tf32x3.cu multiplies.

    Args:
        row: of the rung.
        p: the fields of the Gemm.
        letter, rows: of the operand, ``a`` or ``b``, and how many rows (columns) it has.
        layout: of the operand.
        products: of the launch.
        slot: of the operand in the Gemm.
        offset: of the copy in the scratch memory.
    """

    def __init__(
        self,
        row: Rung,
        p: dict[str, int],
        letter: str,
        rows: int,
        layout: str,
        products: int,
        slot: Slot,
        offset: int,
    ):
        self.row, self.rows, self.k = row, rows, p["k"]
        self.layout = layout if row.pads_operands else "K_MAJOR"
        self.parts = 2 if row.splits_operands else 1
        self.size = row.panel_bytes // self.parts
        step = p[f"{letter}_batch"]
        self.products = products if step else 1
        self.length, self.lines = (self.k, rows) if self.layout.startswith("K_MAJOR") else (rows, self.k)
        piece = (LINE if self.length * self.size >= _PADDED else tensor_maps.ALIGNMENT) // self.size
        self.pitch = -(-self.length // piece) * piece
        self.slot = Slot(0, SCRATCH, offset)
        self.nbytes = _aligned(self.parts * self.size * self.products * self.lines * self.pitch)
        given = [p[letter], 0, rows, self.k, p[f"ld{letter}"], step, self.products, self.pitch]  # a Split, Pack or Pad
        self.argument = Argument(np.array(given, np.int64), (slot._replace(word=0), self.slot._replace(word=1)))

    @property
    def batch(self) -> int:
        """Elements from a product to the next; 0 where all products share the operand."""
        return self.lines * self.pitch if self.products > 1 else 0

    @property
    def tiles(self) -> int:
        """Blocks that have something to do: 32 x 32 elements each, 64 x 64 bytes, or 2048 elements of padded rows."""
        if self.row.pads_operands:
            return -(-self.products * self.lines * self.pitch // 2048)
        edge = 32 if self.parts == 2 else 64
        return self.products * -(-self.rows // edge) * -(-self.k // edge)

    def tensor_map(self, rows: int) -> Argument:
        extents = (self.length, self.lines, self.parts * self.products)
        steps = (self.size * self.pitch, self.size * self.pitch * self.lines)
        box = _box(self.row, self.layout, rows)
        made = tensor_maps.tensor_map(tensor_maps.ANYWHERE, self.size, extents, steps, box, SWIZZLE)
        return _map_argument(made, self.slot)


_ALIGNMENT = 256
"""Bytes of which addresses in scratch memory are multiples."""


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def arguments(
    choice: Choice, row: Rung, layouts: tuple[str, str], products: int, gemm: Argument, c_bytes: int
) -> tuple[list[tuple[str, Packed]], int, tuple[Argument, ...]]:
    """The layouts and the copies of the operands that launches write before, the bytes of scratch memory, and the
    arguments of the launch that multiplies: the Gemm, a Schedule, and the tensor maps of A and B, and of C for a rung
    that stores by one. ``c_bytes`` is the size of an element of C."""
    p, block, packed, maps, offset = fields(gemm), choice.block, [], [], 0
    operands = (("a", layouts[0], p["m"], block.bm), ("b", layouts[1], p["n"], block.bn // block.cluster))
    for slot, (letter, layout, rows, box_rows) in zip(gemm.slots, operands, strict=False):
        if row.splits_operands or not _readable(p, letter, layout, rows, row, products):
            made = Packed(row, p, letter, rows, layout, products, slot, offset)
            offset += made.nbytes
            packed.append((layout, made))
            maps.append(made.tensor_map(box_rows))
        else:
            box = _box(row, layout, box_rows)
            maps.append(_map_argument(_map(p, letter, layout, rows, products, box, row), slot))
    types = "i8i32" if row.remainders else row.types  # of the factors of partial tiles
    schedule = gemm_blocks.fields(types, choice.tiles, choice.panels, 0, choice.grid, GROUP // block.cluster)
    workspace = [Slot(0, SCRATCH, offset), Slot(1, COUNTER, 4)] if choice.clusters > 1 else []
    offset += workspace_bytes(choice)
    gemm, maps = _with_map_c(gemm, tuple(maps), products, c_bytes) if row.stores_by_tma else (gemm, tuple(maps))
    return packed, offset, (gemm, Argument(schedule.view(np.int64), tuple(workspace)), *maps)


def packed(
    row: Rung, layouts: tuple[str, str], products: int, gemm: Argument
) -> tuple[list[tuple[str, Packed]], int, Argument]:
    """For a rung without tensor maps: the layouts and the copies of operands that it does not multiply as they lie, the
    bytes of scratch memory, and the Gemm of the copies."""
    p, copies, offset = fields(gemm), [], 0
    words, slots = gemm.words.copy(), list(gemm.slots)
    for i, (letter, layout, rows) in enumerate((("a", layouts[0], p["m"]), ("b", layouts[1], p["n"]))):
        if _readable(p, letter, layout, rows, row, products) and p["k"] * row.panel_bytes % tensor_maps.ALIGNMENT == 0:
            continue
        made = Packed(row, p, letter, rows, layout, products, slots[i], offset)
        offset += made.nbytes
        copies.append((layout, made))
        words[gemm_launches.FIELDS.index(f"ld{letter}")] = made.pitch
        words[gemm_launches.FIELDS.index(f"{letter}_batch")] = made.batch
        slots[i] = made.slot._replace(word=slots[i].word)
    return copies, offset, gemm._replace(words=words, slots=tuple(slots))


def _readable(p: dict[str, int], letter: str, layout: str, rows: int, row: Rung, products: int) -> bool:
    """Whether an operand can be described as it lies, in a layout that the rung multiplies."""
    ld, step, size = p[f"ld{letter}"], p[f"{letter}_batch"], row.panel_bytes
    along_k = layout.startswith("K_MAJOR")
    length, lines = (p["k"], rows) if along_k else (rows, p["k"])
    return (
        (along_k or not row.packs_operands)
        and p[letter] % tensor_maps.ALIGNMENT == 0
        and (lines == 1 or (ld >= length and ld * size % tensor_maps.ALIGNMENT == 0))
        and (products == 1 or (step >= 0 and step * size % tensor_maps.ALIGNMENT == 0))
    )
