"""The rungs of the GEMM ladder (gpu_kernels/ladder_table.py) on CUDA devices: compiled instances, and the launches of a
product."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from pysimd import dtypes, operands
from pysimd.backends.cuda import device as cuda
from pysimd.backends.cuda import nvrtc
from pysimd.backends.cuda.device import current_device, has_setmaxnreg, multiprocessors
from pysimd.backends.cuda.dispatch import MOST_K
from pysimd.backends.cuda.ladder import launches as gemm_launches
from pysimd.backends.cuda.ladder import schedule, tensor
from pysimd.backends.cuda.ladder.launches import GEMM
from pysimd.backends.gpu import cupy_arrays
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import KernelLaunch, Launch, LibraryCall
from pysimd.errors import ShapeError
from pysimd.gpu_kernels import ladder_table
from pysimd.microkernel import Implementation, Resources, Rung
from pysimd.operands import Array, Product
from pysimd.ratio import Ratio


def rungs(implementation: Implementation) -> tuple[Rung, ...]:
    """The rows of the table as what users get."""
    return tuple(_rung(row, implementation) for row in ladder_table.RUNGS)


def _rung(row: ladder_table.Rung, implementation: Implementation) -> Rung:
    reason = cuda.why_not(row)
    return Rung(
        number=row.number,
        name=row.name,
        backend="cuda",
        types=row.types,
        new=row.new,
        covers=row.covers,
        bm=row.bm,
        bn=row.bn,
        bk=row.bk,
        tm=row.tm,
        tn=row.tn,
        lanes=row.lanes,
        threads=row.threads,
        ratio=Ratio(macs=row.macs, loads=row.loads, load_bytes=_element_bytes(row) * row.loads),
        roundings=row.roundings,
        requires=(row.requires,),
        available=not reason,
        unavailable_reason=reason,
        source_path=f"gpu_kernels/ladder/{row.source}",
        _implementation=implementation,
    )


def _element_bytes(row: ladder_table.Rung) -> int:
    return dtypes.dtype_of(dtypes.FAMILIES[row.types].a).itemsize


@cache
def _function(
    name: str,
    layout_a: str,
    layout_b: str,
    device: int,
    block: ladder_table.Block | None = None,
    fused_fixup: bool = False,
):
    """The compiled kernel of a template instance; ``device`` is the current one."""
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.entry(row, layout_a, layout_b, block, fused_fixup)
    function = _compiled(row.source, entry, fused_fixup)
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b, block)
    if shared:
        function.max_dynamic_shared_size_bytes = shared
    return function


@cache
def _fixup_function(name: str, block: ladder_table.Block, device: int):
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.fixup_entry(row, block)
    return _compiled(row.source, entry)


@cache
def _split_function(name: str, layout: str, device: int):
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.split_entry(row, layout)
    return _compiled(row.source, entry)


def _compiled(source: str, entry: str, fused_fixup: bool = False):
    """``fused_fixup``: the launch is cooperative, since its blocks wait for each other at a grid-wide barrier."""
    arch = "sm_90a" if has_setmaxnreg() else ""  # CuPy itself would ask for sm_90, which has no setmaxnreg
    return nvrtc.function(source, entry, "ladder", arch=arch, cooperative=fused_fixup)


def _blocks(row: ladder_table.Rung) -> list[ladder_table.Block]:
    """Those of a rung that this device can run."""
    return [block for block in row.blocks if has_setmaxnreg() or not block.setmaxnreg]


def resources(rung: Rung) -> Resources:
    """Of the instance for row-major, aligned operands, compiled for the current device."""
    row = ladder_table.BY_NAME[rung.name]
    layouts, block = ladder_table.row_major(row), next(iter(_blocks(row)), None)
    function = _function(rung.name, *layouts, current_device(), *([block] if block else []))
    shared = function.shared_size_bytes + ladder_table.dynamic_shared_bytes(row, *layouts, block)
    return Resources(function.num_regs, shared, function.local_size_bytes)


def launches(rung: Rung, product: Product, target) -> Iterator[Launch]:
    """Launches of a product into ``target``; where neither of its dimensions is adjacent in memory, it is written by
    way of a row-major copy."""
    if _has_adjacent(target):
        yield from _launches(ladder_table.BY_NAME[rung.name], product, target)
    else:
        yield LibraryCall(partial(_by_copy, rung, product))


def _by_copy(rung: Rung, product: Product, a, b, target) -> None:
    result = cupy_arrays.empty(product.full, product.dtype)
    for launch in _launches(ladder_table.BY_NAME[rung.name], product, result):
        launch.run(a, b, result)
    cupy_arrays.copy(target, result)


def prepared(rung: Rung, a, b, out) -> Callable[[], object]:
    """A function that launches ``out = a @ b`` without any checks, for measuring: matrices of CuPy that fit. Where the
    rung works on copies of them, it makes them."""
    product = operands.check_gemm(rung, a, b, None, out, operands.GemmOptions(), (rung.types,))
    (launch,) = launches(rung, product, out)
    if {x.data.ptr for x in launch.keepalive[:2]} != {a.data.ptr, b.data.ptr}:
        return partial(_run_all, rung, product, out)
    run = launch.prepare(launch.parameters)
    run.operands = launch.keepalive
    return run


def _run_all(rung: Rung, product: Product, out) -> None:
    for launch in launches(rung, product, out):
        launch.run(product.a, product.b, out)


def _launches(row: ladder_table.Rung, product: Product, c) -> Iterator[Launch]:
    a, b, c0 = (None if x is None else cupy_arrays.readable(x) for x in (product.a, product.b, product.c))
    swapped = not gemm_launches.row_major(c)
    if swapped:  # C^T = B^T A^T
        a, b, c0, c = (None if x is None else x.swapaxes(-1, -2) for x in (b, a, c0, c))
    a, b = (x if _has_adjacent(x) else x.copy(order="C") for x in (a, b))
    if row.stages or row.blocks or row.tensor_blocks:
        a, b = _loadable(row, a, b, c0, c)
    begin = _tensor if row.tensor_blocks else _persistent if row.blocks else _plain
    shape = c.shape[-2], c.shape[-1], a.shape[-1]
    for layout_a, layout_b, count, call in gemm_launches.launches(row, a, b, c0, c, product.alpha, product.beta):
        if row.loads_by_tma:
            layout_a, layout_b = ladder_table.row_major(row)
        yield KernelLaunch(begin(row, *shape, layout_a, layout_b, count), call, swapped, (a, b, c0))


def _loadable(row: ladder_table.Rung, a, b, c0, c):
    """A and B, or copies in a layout that the rung's producers can load."""
    if a.shape[-1] >= MOST_K:
        raise ShapeError(f"{row.name} sums fewer than 2**31 products, k is {a.shape[-1]}: take smem_dbuf")
    call_operands = CallOperands(a, b, c0, c)
    fits, copied = gemm_launches.copied_by_feeds, _other_major
    if row.loads_by_tma:
        fits, copied = tensor.along_rows, tensor.mn_major
    elif row.tensor_blocks and not row.splits_operands:
        fits, copied = tensor.mappable, tensor.padded
    return tuple(
        x if call_operands.empty or fits(call_operands, which) else copied(x, which) for which, x in enumerate((a, b))
    )


def _plain(row: ladder_table.Rung, m: int, n: int, k: int, layout_a: str, layout_b: str, products: int):
    """One block a tile. Given a Gemm, what is returned gives a function that launches; so for the others."""
    function = _function(row.name, layout_a, layout_b, current_device())
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b)
    extra = {"shared_mem": shared} if shared else {}
    grid, block = (products * gemm_launches.tiles(row, m, n),), (row.threads,)
    return lambda call: partial(function, grid, block, (call.view(GEMM),), **extra)


_PRODUCERS = 128
"""Producer threads of a block of warp_specialized.cuh."""


def _persistent(row: ladder_table.Rung, m: int, n: int, k: int, layout_a: str, layout_b: str, products: int):
    """A grid of as many blocks as the device runs at a time; where tiles are cut, a second launch adds their parts, or
    the blocks do."""
    import cupy

    device = current_device()
    group = {"f32": 1, "f16": 2, "i8i32": 4}[row.types]
    choice = schedule.choose(row, _blocks(row), products, m, n, k, group, multiprocessors(device))
    block = choice.block
    function = _function(row.name, layout_a, layout_b, device, block, choice.fused_fixup)
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b, block)
    grid, threads = (choice.grid,), (row.threads + _PRODUCERS,)

    def maps(call):
        return tensor.maps_along_rows(block, row.bk, products, call) if row.loads_by_tma else ()

    if not choice.cut:
        fields = schedule.schedule(row.types, choice)
        return lambda call: partial(function, grid, threads, (call.view(GEMM), fields, *maps(call)), shared_mem=shared)
    add = None if choice.fused_fixup else _fixup_function(row.name, block, device)
    area = block.bm * block.bn
    part_bytes, sum_grid = 4 * (choice.cut + choice.grid) * area, (choice.cut * area // 1024,)

    def cut(call) -> None:
        parts = cupy.cuda.alloc(part_bytes)
        fields = schedule.schedule(row.types, choice, parts.ptr, _barrier_counter(device) if choice.fused_fixup else 0)
        arguments = call.view(GEMM), fields
        function(grid, threads, (*arguments, *maps(call)), shared_mem=shared)
        if add is not None:
            add(sum_grid, (256,), arguments)

    return lambda call: partial(cut, call)


_COUNTERS: dict[tuple[int, int, int], Array] = {}
_PER_THREAD_STREAM = 2
"""The handle that stands for every thread's own default stream."""


def _barrier_counter(device: int) -> int:
    """Address of the barrier counter of a launch (tile_scheduler.cuh). Each stream has its own, as launches that run at
    the same time must not share one."""
    import cupy

    stream = cupy.cuda.get_current_stream().ptr
    key = device, stream, threading.get_ident() if stream == _PER_THREAD_STREAM else 0
    word = _COUNTERS.get(key)
    if word is None:
        word = _COUNTERS.setdefault(key, cupy.zeros(1, np.uint32))
    return word.data.ptr


def _tensor(row: ladder_table.Rung, m: int, n: int, k: int, layout_a: str, layout_b: str, products: int):
    """Blocks, or clusters of them, for which the tensor memory accelerator brings panels; before, where a rung splits
    its operands, launches that write their parts."""
    device = current_device()
    processors = multiprocessors(device)
    block = tensor.choose(row.tensor_blocks, m, n, k, products, processors)
    function = _function(row.name, layout_a, layout_b, device, block)
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b, block)
    threads = (block.threads,)
    if not row.splits_operands:

        def begin(call):
            grid, arguments = tensor.arguments(block, row, layout_a, layout_b, products, call, processors)
            return partial(function, (grid,), threads, arguments, shared_mem=shared)

        return begin
    splitters = [_split_function(row.name, layout, device) for layout in (layout_a, layout_b)]

    def all_three(call) -> None:
        parts, grid, arguments = tensor.split_arguments(block, row, products, call, processors)
        for splitter, part in zip(splitters, parts, strict=True):
            if k:
                splitter((min(part.tiles, 16 * processors),), (256,), (part.split,))
        function((grid,), threads, arguments, shared_mem=shared)

    return lambda call: partial(all_three, call)


def _other_major(x, _which: int):
    """A copy in which the other dimension of the matrices is adjacent."""
    order = "F" if x.strides[-1] == x.itemsize and x.shape[-1] > 1 else "C"
    return x.swapaxes(-1, -2).copy(order="C").swapaxes(-1, -2) if order == "F" else x.copy(order="C")


def _has_adjacent(x) -> bool:
    """Whether one of the two dimensions of the matrices is adjacent in memory."""
    return x.size == 0 or any(n == 1 or s == x.itemsize for n, s in zip(x.shape[-2:], x.strides[-2:], strict=True))
