"""The rungs of the GEMM ladder (gpu_kernels/ladder_table.py) on CUDA devices: compiled instances, and the launches of a
product."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from pysimd.backends.cuda import device as cuda
from pysimd.backends.cuda import nvrtc
from pysimd.backends.cuda.dependent_launch import DependentKernel
from pysimd.backends.cuda.device import current_device, has_setmaxnreg, multiprocessors
from pysimd.backends.cuda.dispatch import MOST_K
from pysimd.backends.cuda.ladder import remainders, schedule, tensor
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import (
    COUNTER,
    SCRATCH,
    Argument,
    ArrayWork,
    KernelLaunch,
    KernelPlan,
    Slot,
    Work,
    operands_argument,
)
from pysimd.errors import ShapeError
from pysimd.gpu_kernels import ladder_table
from pysimd.microkernel import Implementation, Resources, Rung
from pysimd.operands import Product


def rungs(implementation: Implementation) -> tuple[Rung, ...]:
    """The rows of the table as what users get."""
    return tuple(
        gpu_rungs.rung(row, implementation, row.name, row.requires, cuda.why_not(row)) for row in ladder_table.RUNGS
    )


@cache
def _function(
    name: str,
    layout_a: str,
    layout_b: str,
    device: int,
    block: ladder_table.Block | ladder_table.TensorBlock | None = None,
    fused_fixup: bool = False,
    narrow: bool = False,
):
    """The compiled kernel of a template instance, as CuPy launches it; ``device`` is the current one."""
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.entry(row, layout_a, layout_b, block, fused_fixup, narrow)
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b, block)
    kernel = _kernel(row.source, entry, shared, device).kernel
    waits = isinstance(block, ladder_table.TensorBlock) and (block.persistent or block.skinny)
    return DependentKernel(kernel) if waits else kernel


@cache
def _kernel(source: str, entry: str, shared_bytes: int, device: int):
    """A compiled instance that may have so much dynamic shared memory."""
    kernel = _compiled(source, entry, device)
    if shared_bytes:
        kernel.max_dynamic_shared_size_bytes = shared_bytes
    return kernel


@cache
def _fixup_function(name: str, block: ladder_table.Block, device: int):
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.fixup_entry(row, block)
    return _compiled(row.source, entry, device).kernel


@cache
def _pack_function(name: str, layout: str, device: int):
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.pack_entry(row, layout)
    kernel = _compiled(row.source, entry, device).kernel
    return DependentKernel(kernel) if row.pads_operands else kernel  # pad_rows.cuh waits


@cache
def _remainder_functions(name: str, layout: str, device: int) -> tuple:
    row = ladder_table.BY_NAME[name]
    return tuple(_compiled(row.source, x, device).kernel for x in ladder_table.remainder_entries(row, layout))


def _compiled(source: str, entry: str, device: int):
    arch = "sm_90a" if has_setmaxnreg(device) else ""  # CuPy itself would ask for sm_90, which has no setmaxnreg
    return nvrtc.function(source, entry, "ladder", arch=arch)


def _blocks(row: ladder_table.Rung, device: int) -> list[ladder_table.Block]:
    """Those of a rung that a device can run."""
    return [block for block in row.blocks if has_setmaxnreg(device) or not block.setmaxnreg]


def resources(rung: Rung) -> Resources:
    """Of the instance for row-major, aligned operands, compiled for the current device."""
    row, device = ladder_table.BY_NAME[rung.name], current_device()
    layouts, block = ladder_table.row_major(row), next(iter(_blocks(row, device)), None)
    shared = ladder_table.dynamic_shared_bytes(row, *layouts, block)
    kernel = _kernel(row.source, ladder_table.entry(row, *layouts, block), shared, device)
    return Resources(kernel.num_regs, kernel.shared_size_bytes + shared, kernel.local_size_bytes)


def work(rung: Rung, product: Product) -> Work | ArrayWork:
    """A product into its ``out``."""
    return gpu_rungs.work(partial(_work, ladder_table.BY_NAME[rung.name]), product)


class _Gemm(NamedTuple):
    """Products of one shape, with operands in one layout, that a rung computes by the same launches.

    Attributes:
        row: the rung.
        m, n, k: of each product.
        layouts: of A and B (gemm.cuh).
        products: how many.
        argument: the Gemm that kernels read.
    """

    row: ladder_table.Rung
    m: int
    n: int
    k: int
    layouts: tuple[str, str]
    products: int
    argument: Argument


class _Part(NamedTuple):
    """The launches of one ``_Gemm``, and the scratch memory and the counter that they need."""

    launches: list[KernelLaunch]
    scratch_bytes: int = 0
    counts: bool = False


def _work(row: ladder_table.Rung, product: Product) -> Work:
    (a, b, c0, c), order = gpu_rungs.arranged(product)
    if row.stages or row.blocks or row.tensor_blocks:
        a, b = _loadable(row, a, b, c0, c)
    launch = _packed if row.packs_operands else _plain
    if row.remainders:
        launch = partial(_by_remainders, product.alpha, product.beta)
    elif row.tensor_blocks:
        launch = partial(_tensor, c.itemsize)
    elif row.blocks:
        launch = _persistent
    shape, arrays = (c.shape[-2], c.shape[-1], a.shape[-1]), (a, b, c0, c)
    parts = []
    for layout_a, layout_b, count, fields in gemm_launches.launches(row, *arrays, product.alpha, product.beta):
        layouts = ladder_table.row_major(row) if row.loads_by_tma else (layout_a, layout_b)
        parts.append(launch(_Gemm(row, *shape, layouts, count, operands_argument(fields, arrays, order))))
    plan = KernelPlan(
        [launch for part in parts for launch in part.launches],
        max((part.scratch_bytes for part in parts), default=0),
        any(part.counts for part in parts),
    )
    return gpu_rungs.work_of(plan, arrays, order)


def _loadable(row: ladder_table.Rung, a, b, c0, c):
    """A and B, or copies in a layout that the rung's producers can load."""
    if a.shape[-1] >= MOST_K:
        raise ShapeError(f"{row.name} adds fewer than 2**31 products, k is {a.shape[-1]}: take smem_dbuf")
    call_operands = CallOperands(a, b, c0, c)
    fits, copied = gemm_launches.copied_by_feeds, _other_major
    if row.loads_by_tma:
        fits, copied = tensor.along_rows, tensor.mn_major
    elif row.splits_operands or row.packs_operands or row.pads_operands or row.remainders:
        fits, copied = tensor.packable, tensor.padded
    elif row.tensor_blocks:
        fits, copied = tensor.mappable, tensor.padded
    return tuple(
        x if call_operands.empty or fits(call_operands, which) else copied(x, which) for which, x in enumerate((a, b))
    )


def _plain(gemm: _Gemm) -> _Part:
    """One block a tile."""
    row = gemm.row
    function = _function(row.name, *gemm.layouts, current_device())
    grid = (gemm.products * gemm_launches.tiles(row, gemm.m, gemm.n),)
    shared = ladder_table.dynamic_shared_bytes(row, *gemm.layouts)
    return _Part([KernelLaunch(function, grid, (row.threads,), (gemm.argument,), shared)])


def _packed(gemm: _Gemm) -> _Part:
    """The same of K-major operands; launches before that one pack others."""
    copies, scratch, argument = tensor.packed(gemm.row, gemm.layouts, gemm.products, gemm.argument)
    part = _plain(gemm._replace(argument=argument))
    return _Part([*_copy_launches(gemm.row, copies), *part.launches], scratch)


def _copy_launches(row: ladder_table.Rung, copies: list[tuple[str, tensor.Packed]]) -> list[KernelLaunch]:
    """Those that write the parts or copies of operands, of which the layouts are given."""
    device = current_device()
    most = 16 * multiprocessors(device)
    return [
        KernelLaunch(_pack_function(row.name, layout, device), (min(copy.tiles, most),), (256,), (copy.argument,))
        for layout, copy in copies
    ]


_PRODUCERS = 128
"""Producer threads of a block of warp_specialized.cuh."""


def _persistent(gemm: _Gemm) -> _Part:
    """A grid of as many persistent blocks as the device runs at a time. Where tiles are split along k, a second launch
    adds the partial tiles, or the blocks do."""
    row, m, n, k, layouts, products, argument = gemm
    device = current_device()
    group = {"f32": 1, "f16": 2, "i8i32": 4}[row.types]
    blocks = _blocks(row, device)
    rates = ladder_table.rates(row, blocks, *layouts)
    choice = schedule.choose(row, blocks, products, m, n, k, group, multiprocessors(device), rates)
    block, area = choice.block, choice.block.bm * choice.block.bn
    function = _function(row.name, *layouts, device, block, choice.fused_fixup)
    shared = ladder_table.dynamic_shared_bytes(row, *layouts, block)
    maps = tensor.maps_along_rows(block, row.bk, products, argument) if row.loads_by_tma else ()
    slots = (*([Slot(0, SCRATCH)] if choice.split_tiles else []), *([Slot(1, COUNTER)] if choice.fused_fixup else []))
    fields = Argument(schedule.schedule(row.types, choice).view(np.int64), slots)
    threads = (row.threads + _PRODUCERS,)
    launches = [KernelLaunch(function, (choice.grid,), threads, (argument, fields, *maps), shared, choice.fused_fixup)]
    if not choice.split_tiles:
        return _Part(launches)
    if not choice.fused_fixup:
        add = _fixup_function(row.name, block, device)
        launches.append(KernelLaunch(add, (choice.split_tiles * area // 1024,), (256,), (argument, fields)))
    return _Part(launches, 4 * (choice.split_tiles + choice.grid) * area, choice.fused_fixup)


def _tensor(c_bytes: int, gemm: _Gemm) -> _Part:
    """Blocks, or clusters of them, whose panels the tensor memory accelerator loads. Where a rung splits, packs or pads
    its operands, launches before that one write their parts or copies. ``c_bytes`` is the size of an element of C."""
    row, m, n, k, layouts, products, argument = gemm
    device = current_device()
    choice = tensor.choose(row, m, n, k, products, multiprocessors(device), layouts)
    block, narrow = choice.block, c_bytes == 2
    function = _function(row.name, *layouts, device, block, False, narrow)
    shared = ladder_table.dynamic_shared_bytes(row, *layouts, block)
    packed, scratch, arguments = tensor.arguments(choice, row, layouts, products, argument, c_bytes)
    launches = _copy_launches(row, packed)
    launches.append(KernelLaunch(function, (choice.grid,), (block.threads,), arguments, shared))
    return _Part(launches, scratch, choice.clusters > 1)


def _by_remainders(alpha: float, beta: float, gemm: _Gemm) -> _Part:
    """For each product, and each part of a long k: exponents and remainders of both operands, the int8
    products as one batch, and C from their sums."""
    row, m, n, k = gemm[:4]
    device, launches = current_device(), []
    most = 16 * multiprocessors(device)
    numbers = Argument(remainders.moduli(row.remainders).view(np.int64))
    for part in remainders.parts(row, gemm.layouts, gemm.products, gemm.argument, alpha, beta):
        for x in part.operands:
            exponents, split, _ = _remainder_functions(row.name, x.layout, device)
            rows = x.rows if x.layout == "K_MAJOR" else -(-x.rows // 32)
            launches.append(KernelLaunch(exponents, (min(rows, most),), (256,), (x.argument, numbers)))
            launches.append(KernelLaunch(split, (min(x.tiles, most),), (256,), (x.argument, numbers)))
        launches += _tensor(4, _Gemm(row, m, n, part.k, ("K_MAJOR", "K_MAJOR"), row.remainders, part.gemm)).launches
        join = _remainder_functions(row.name, "K_MAJOR", device)[2]
        launches.append(KernelLaunch(join, (min(m * -(-n // 256), most),), (256,), (part.joined, numbers)))
    return _Part(launches, remainders.Scratch(row.remainders, m, n, min(k, remainders.MOST_K)).nbytes)


def _other_major(x, _which: int):
    """A copy in which the other dimension of the matrices is adjacent."""
    order = "F" if x.strides[-1] == x.itemsize and x.shape[-1] > 1 else "C"
    return x.swapaxes(-1, -2).copy(order="C").swapaxes(-1, -2) if order == "F" else x.copy(order="C")
