"""Products whose C has few rows or few columns by gpu_kernels/micro/narrow.cu: its instance and its launch; by
narrow_any.cu, with the same bits, until the instance is compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np

from pysimd.backends.cuda import tiles
from pysimd.backends.cuda.dependent_launch import DependentKernel
from pysimd.backends.cuda.device import current_device, multiprocessors
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import (
    Argument,
    ArrayWork,
    KernelLaunch,
    KernelPlan,
    Work,
    operands_argument,
)
from pysimd.gpu_kernels import table
from pysimd.operands import Product

SPLITS = (8, 4, 2, 1)
"""Blocks of a cluster."""


class _Gemm:
    """What gemm_launches reads of a row of the ladder: one launch, of one tile."""

    wide, blocks, bm, bn, name = False, (), 1 << 40, 1 << 40, table.Narrow.name

    def __init__(self, types: str):
        self.types = types


class Choice(NamedTuple):
    """How a product is launched.

    Attributes:
        short: rows or columns that the short side is padded to.
        across: warps of a block along the long side.
        tiles: along the long side.
        split: blocks that a tile is split among, along k.
        panels: of all of k.
    """

    short: int
    across: int
    tiles: int
    split: int
    panels: int


@lru_cache(4096)
def choose(types: str, m: int, n: int, k: int, processors: int) -> Choice:
    """The tile, and as many parts of it as a device of so many multiprocessors runs at a time, each with a panel at
    least. Tiles of four warps side by side, which read the short operand less often, must give one for each of them."""
    short = next(x for x in table.NARROW_SHORT[types] if min(m, n) <= x)
    across_ways = table.narrow_across(types, short)
    for across in across_ways:
        made = table.Narrow(types, "K_MAJOR", True, short, across)
        tiles, panels = -(-max(m, n) // made.rows), -(-k * made.element_bytes // made.panel_bytes)
        split = next(x for x in SPLITS if x == 1 or (tiles * x <= made.resident * processors and panels >= x))
        if across == across_ways[-1] or tiles * split >= processors:
            return Choice(short, across, tiles, split, panels)
    raise AssertionError("the last of them is taken")


@cache
def compiled(source: str, entry: str, shared_bytes: int, device: int):
    """The compiled instance; a call waits for the compiler if there is none."""
    return tiles.function_with_shared_memory(source, entry, shared_bytes, device)


def work(product: Product, instance: Callable = compiled) -> Work | ArrayWork:
    """A product into its ``out``; ``instance`` is called as ``compiled`` is, and may give None."""
    return gpu_rungs.work(partial(_work, instance), product)


def _work(instance: Callable, product: Product) -> Work | ArrayWork:
    arrays, order = gpu_rungs.arranged(product)
    launches = [
        _launch(instance, product.types, arrays, (layout_a, layout_b), operands_argument(fields, arrays, order))
        for layout_a, layout_b, _, fields in gemm_launches.launches(
            _Gemm(product.types), *arrays, product.alpha, product.beta
        )
    ]
    made = gpu_rungs.work_of(KernelPlan([launch for launch, _ in launches]), arrays, order)
    # No plan where an instance is missing, so that it is looked for again.
    return made if all(whether for _, whether in launches) else ArrayWork(made.run)


def _launch(
    instance: Callable, types: str, arrays: tuple, layouts: tuple[str, str], gemm: Argument
) -> tuple[KernelLaunch, bool]:
    """A launch, and whether it is one of narrow.cu."""
    operands = CallOperands(*arrays)
    m, n, k = operands.m, operands.n, operands.k
    long, other = int(n > m), int(n <= m)
    device = current_device()
    x = choose(types, m, n, k, multiprocessors(device))
    aligned = _aligned(operands, long, layouts[long])
    made = table.Narrow(types, layouts[long], aligned, x.short, x.across, operands.sizes[3] == 2)
    k_major = layouts[other] == "K_MAJOR" or (min(m, n) == 1 and operands.strides[other][1 - other] == 1)
    vectors = k_major and _aligned(operands, other, "K_MAJOR")
    function = instance(made.source, made.entry, made.dynamic_shared_bytes, device)
    if function is None:
        return _any_launch(made, long, (layouts[long] == "K_MAJOR", k_major), x, (m, n), gemm, device), False
    words = Argument(np.array([long, k_major, vectors, x.split], np.int64))
    grid, shared = (x.tiles * x.split,), made.dynamic_shared_bytes
    return KernelLaunch(DependentKernel(function, x.split), grid, (made.threads,), (gemm, words), shared), True


def _any_launch(
    made: table.Narrow,
    long: int,
    k_major: tuple[bool, bool],
    x: Choice,
    sides: tuple[int, int],
    gemm: Argument,
    device: int,
) -> KernelLaunch:
    """The same by narrow_any.cu; ``k_major`` of the long and of the short operand."""
    function = tiles.function(made.any_source, made.any_entry, device)
    panel = made.panel_bytes // made.element_bytes
    words = Argument(np.array([long, *k_major, x.split, made.along, panel], np.int64))
    rows, columns = made.any_tile
    grid = (-(-max(sides) // rows) * -(-min(sides) // columns),)
    return KernelLaunch(function, grid, (made.threads,), (gemm, words))


def _aligned(operands: CallOperands, which: int, layout: str) -> bool:
    """Whether an operand consists of vectors of 16 bytes at multiples of 16 bytes."""
    along = 1 - which if layout == "K_MAJOR" else which
    x, size = operands.arrays[which], operands.sizes[which]
    ld = operands.strides[which][1 - along] if x.shape[-2:][1 - along] > 1 else 0
    return not (x.data.ptr % 16 or x.shape[-2:][along] * size % 16 or ld * size % 16)
