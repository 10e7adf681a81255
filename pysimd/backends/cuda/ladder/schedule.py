"""Which block of gpu_kernels/ladder/warp_specialized.cuh computes a product, and which tiles are split along k.

A model of the time, in cycles of a multiprocessor, decides. It counts waves of whole tiles at the block's rate; with
split tiles (stream-K) equal shares of panels, the traffic of the partial tiles and their fix-up. Its constants were
fitted to an H200; only the order of the choices matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pysimd.backends.gpu.gemm_launches import pair
from pysimd.gpu_kernels.ladder_table import Block, Rung

PANEL = 8
"""Words of k in a panel."""

FMA = 128
"""Multiply-adds of a multiprocessor in a cycle."""

LAUNCH, FIXUP_LAUNCH, GRID_BARRIER, BYTES_PER_CYCLE = 11_000, 12_000, 5_000, 2048
"""Cycles of a launch without its multiply-adds, of a second launch for the fix-up, and of a grid-wide barrier before a
fused fix-up; bytes of partial tiles that the device moves in a cycle."""

LEAST = 8
"""Panels of a share, at least."""

GROUP = 8
"""Rows of tiles taken together (grouped raster order)."""

SCHEDULE = np.dtype(f"V{8 * 9}")
"""The bytes of one Schedule (tile_scheduler.cuh)."""


class Choice(NamedTuple):
    """How a product is launched.

    Attributes:
        block: tile and warps of a block.
        tiles: of C, those of the whole batch.
        panels: along k, of a tile.
        split_tiles: tiles that are split along k.
        grid: blocks that are launched.
        fused_fixup: whether these blocks add the partial tiles, after a grid-wide barrier; else a second launch does.
        cycles: estimated time.
    """

    block: Block
    tiles: int
    panels: int
    split_tiles: int
    grid: int
    fused_fixup: bool
    cycles: float


def choose(
    row: Rung,
    blocks: Sequence[Block],
    batch: int,
    m: int,
    n: int,
    k: int,
    group: int,
    processors: int,
    rates: Sequence[float] | None = None,
) -> Choice:
    """The choice of the shortest time among ``blocks`` of a rung, for ``group`` elements of k to a word; ``rates`` in
    place of those of the blocks. Products of a batch are not split, so that all of them have the same bits. The fix-up
    is fused where each thread then adds at most 16 bytes of C: a launch that fills the device is faster at more than
    that."""
    panels = max(1, -(-k // (PANEL * group)))
    choices = []
    for block, rate in zip(blocks, rates or [block.rate for block in blocks], strict=True):
        tiles = batch * -(-m // block.bm) * -(-n // block.bn)
        panel = block.bm * block.bn * PANEL / FMA / rate
        waves = -(-tiles // processors)
        time = LAUNCH + waves * panels * panel
        choices.append(Choice(block, tiles, panels, 0, min(tiles, processors), False, time))
        last = tiles % processors
        if not row.split_k or batch > 1 or last == 0:
            continue
        split_tiles = tiles if tiles < processors else last + processors
        grid = processors if tiles > processors else max(tiles, min(processors, tiles * panels // LEAST))
        if grid == tiles:
            continue  # every block would have one whole tile
        fused_fixup = row.fused_fixup and tiles * block.bm * block.bn <= grid * row.threads * 4
        moved = 2 * (split_tiles + grid) * block.bm * block.bn * 4
        fixup = (GRID_BARRIER if fused_fixup else FIXUP_LAUNCH) + moved / BYTES_PER_CYCLE
        time = LAUNCH + tiles * panels * panel / grid + fixup
        choices.append(Choice(block, tiles, panels, split_tiles, grid, fused_fixup, time))
    return min(choices, key=lambda choice: choice.cycles)


def schedule(types: str, choice: Choice, workspace: int = 0, barrier_counter: int = 0) -> np.ndarray:
    """The Schedule of a choice; ``workspace`` and ``barrier_counter`` are addresses, needed where tiles are split."""
    return fields(
        types, choice.tiles, choice.panels, choice.split_tiles, choice.grid, GROUP, workspace, barrier_counter
    )


def fields(
    types: str,
    tiles: int,
    panels: int,
    split_tiles: int,
    grid: int,
    group: int,
    workspace: int = 0,
    barrier_counter: int = 0,
) -> np.ndarray:
    """A Schedule (tile_scheduler.cuh) for ``grid`` blocks: its fields in their order."""
    share, longer = divmod(split_tiles * panels, grid)
    one_zero = pair(types, 1, 0)
    found = [workspace, barrier_counter, tiles, panels, split_tiles, share, longer, group, one_zero]
    return np.array(found, np.int64).view(SCHEDULE)
