"""Which block of gpu_kernels/ladder/warp_specialized.cuh a product gets, and whether its tiles are cut along k.

A model of the time in cycles of a multiprocessor decides: rounds of tiles at the block's rate, or equal shares where
tiles are cut, then the parts written and added again. Its constants were fitted to an H200; only the order of the
choices matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pysimd.backends.cuda.ladder.launches import pair
from pysimd.gpu_kernels.ladder_table import Block, Rung

PANEL = 8
"""Words of k in a panel."""

FMA = 128
"""Multiply-adds of a multiprocessor in a cycle."""

START, SUM, MEET, PER_CYCLE = 11_000, 12_000, 5_000, 2048
"""Cycles that a launch takes besides multiplying, that the second launch of a cut product takes, that blocks take which
meet instead, and bytes of parts that the device moves in one."""

LEAST = 8
"""Panels of a share, at least."""

GROUP = 8
"""Rows of tiles that are walked together."""

SCHEDULE = np.dtype(f"V{8 * 9}")
"""The bytes of one Schedule (tile_scheduler.cuh)."""


class Choice(NamedTuple):
    """A block, how many of the tiles are cut, how many blocks are launched, and whether they add what was cut."""

    block: Block
    tiles: int
    panels: int
    cut: int
    grid: int
    fused_fixup: bool
    cycles: float


def choose(
    row: Rung, blocks: Sequence[Block], batch: int, m: int, n: int, k: int, group: int, processors: int
) -> Choice:
    """The choice of the shortest time among ``blocks`` of a rung, for ``group`` elements of k to a word. Products of a
    batch are not cut, so that all of them have the same bits. Blocks meet where each of their threads then has 16 bytes
    of C to add, at most: more are added faster by a launch that fills the device."""
    panels = max(1, -(-k // (PANEL * group)))
    choices = []
    for block in blocks:
        tiles = batch * -(-m // block.bm) * -(-n // block.bn)
        panel = block.bm * block.bn * PANEL / FMA / block.rate
        rounds = -(-tiles // processors)
        time = START + rounds * panels * panel
        choices.append(Choice(block, tiles, panels, 0, min(tiles, processors), False, time))
        last = tiles % processors
        if not row.split_k or batch > 1 or last == 0:
            continue
        cut = tiles if tiles < processors else last + processors
        grid = processors if tiles > processors else max(tiles, min(processors, tiles * panels // LEAST))
        if grid == tiles:
            continue  # every block would have one whole tile
        fused_fixup = row.fused_fixup and tiles * block.bm * block.bn <= grid * row.threads * 4
        moved = 2 * (cut + grid) * block.bm * block.bn * 4
        time = START + (MEET if fused_fixup else SUM) + tiles * panels * panel / grid + moved / PER_CYCLE
        choices.append(Choice(block, tiles, panels, cut, grid, fused_fixup, time))
    return min(choices, key=lambda choice: choice.cycles)


def schedule(types: str, choice: Choice, work: int = 0, word: int = 0) -> np.ndarray:
    """The Schedule of a choice; ``work`` is the address of the parts, ``word`` where blocks meet."""
    return fields(types, choice.tiles, choice.panels, choice.cut, choice.grid, GROUP, work, word)


def fields(
    types: str, tiles: int, panels: int, cut: int, grid: int, group: int, work: int = 0, word: int = 0
) -> np.ndarray:
    """The fields of a Schedule (tile_scheduler.cuh), the share of each of ``grid`` blocks worked out."""
    one = pair(types, 1, 0)
    share, longer = divmod(cut * panels, grid)
    return np.array([work, word, tiles, panels, cut, share, longer, group, one], np.int64).view(SCHEDULE)
