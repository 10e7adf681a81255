"""The rungs of the GEMM ladder (gpu_kernels/ladder_table.py) on CuPy arrays on CUDA devices."""

from __future__ import annotations

import sys
import threading
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from pysimd import dtypes
from pysimd.backends.cuda import implementation as cuda
from pysimd.backends.cuda import nvrtc
from pysimd.backends.cuda.ladder import launches as gemm_launches
from pysimd.backends.cuda.ladder import schedule as gemm_blocks
from pysimd.backends.cuda.ladder import tensor as gemm_tensor
from pysimd.backends.cuda.ladder.launches import GEMM
from pysimd.backends.gpu import batched, cupy_arrays, plans
from pysimd.backends.gpu.implementation import current_device
from pysimd.backends.gpu.launches import Arranged
from pysimd.backends.gpu.plans import Launch
from pysimd.errors import ShapeError
from pysimd.gpu_kernels import ladder_table
from pysimd.ladder import Rung
from pysimd.ratio import Ratio


class Resources(NamedTuple):
    """What compiled code takes: registers of a thread, shared memory of a block, local memory of a thread."""

    registers: int
    shared_bytes: int
    local_bytes: int


@cache
def rungs() -> tuple[Rung, ...]:
    return tuple(_rung(row) for row in ladder_table.RUNGS)


def _rung(row: ladder_table.Rung) -> Rung:
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
        _implementation=sys.modules[__name__],
    )


def _element_bytes(row: ladder_table.Rung) -> int:
    return dtypes.dtype_of(dtypes.FAMILIES[row.types].a).itemsize


def best(types: str, m: int, n: int, k: int, products: int) -> Rung | None:
    """The rung that ``gemm`` and ``matmul`` take; None where another way is faster, or the only one."""
    name = None if batched.takes(m, n, k) or k >= _MOST_K else ladder_table.best(types, m, n, k, products)
    return next((rung for rung in rungs() if rung.name == name and rung.available), None)


_MOST_K = 1 << 31
"""Panels are counted in 32 bits."""


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
    function = _module(row.source, entry, device, fused_fixup).get_function(entry)
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b, block)
    if shared:
        function.max_dynamic_shared_size_bytes = shared
    return function


@cache
def _fixup_function(name: str, block: ladder_table.Block, device: int):
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.fixup_entry(row, block)
    return _module(row.source, entry, device).get_function(entry)


@cache
def _split_function(name: str, layout: str, device: int):
    row = ladder_table.BY_NAME[name]
    entry = ladder_table.split_entry(row, layout)
    return _module(row.source, entry, device).get_function(entry)


def _module(source: str, entry: str, device: int, fused_fixup: bool = False):
    """``fused_fixup``: the launch is cooperative, since its blocks wait for each other at a grid-wide barrier."""
    import cupy

    options = nvrtc.OPTIONS
    if _has_setmaxnreg():
        options += ("-arch=sm_90a",)  # CuPy itself would ask for sm_90, which has no setmaxnreg
    return cupy.RawModule(
        code=nvrtc.source(source, "ladder"),
        options=options,
        name_expressions=(entry,),
        enable_cooperative_groups=fused_fixup,
    )


def _has_setmaxnreg() -> bool:
    """Whether the device is one on which warps can hand registers over: exactly sm_90."""
    return cuda.backend().features == ("sm_90",)


def _blocks(row: ladder_table.Rung) -> list[ladder_table.Block]:
    """Those of a rung that this device can run."""
    return [block for block in row.blocks if _has_setmaxnreg() or not block.setmaxnreg]


def resources(rung: Rung) -> Resources:
    """Of the instance for row-major, aligned operands, compiled for the current device."""
    row = ladder_table.BY_NAME[rung.name]
    layouts, block = ladder_table.row_major(row), next(iter(_blocks(row)), None)
    function = _function(rung.name, *layouts, current_device(), *([block] if block else []))
    shared = function.shared_size_bytes + ladder_table.dynamic_shared_bytes(row, *layouts, block)
    return Resources(function.num_regs, shared, function.local_size_bytes)


def into(rung: Rung, operands, options, out, key=None):
    """The result of checked operands (``gemm.Operands``, ``gemm.Options``) in ``out``, or in a new array if that is
    None, as if nothing overlapped; ``key``: of the plan to keep."""
    import cupy

    a, b, c, shape, dtype = operands
    in_place = out is not None and cupy_arrays.storable(out) and _has_adjacent(out)
    in_place = in_place and not any(cupy_arrays.overlap(out, x) for x in (a, b))
    if in_place and c is not None and not cupy_arrays.same_memory(c, out):
        in_place = not cupy_arrays.overlap(out, c)
    target = out if in_place else cupy.empty(shape, dtype)
    launches = list(_launches(rung, operands, options, target))
    for launch in launches:
        launch.run(a, b, target)
    if out is not None and not in_place:
        cupy_arrays.copy(out, target)
    elif key is not None and len(launches) == 1:
        cuda.plans.keep(key, launches[0], a, b, target, c_is_target=c is not None)
    return target if out is None else out


def product(rung: Rung, a, b, out):
    """Launches that do ``out = a @ b`` for ``matmul``: batch dimensions broadcast, no overlap."""
    from pysimd.gemm import Operands, Options

    operands, options = Operands(a, b, None, out.shape, out.dtype), Options(1.0, 0.0, False, False)
    if _has_adjacent(out):
        return _launches(rung, operands, options, out)
    return (Launch(lambda *_: into(rung, operands, options, out)),)


def prepared(rung: Rung, a, b, out):
    """A function that launches ``out = a @ b`` without any checks, for measuring: matrices of CuPy that fit. Where the
    rung works on copies of them, it makes them."""
    from pysimd.dtypes import FAMILIES
    from pysimd.gemm import Options, check

    options = Options(1.0, 0.0, False, False)
    operands = check(FAMILIES[rung.types], a, b, None, out, options)
    (launch,) = _launches(rung, operands, options, out)
    if {x.data.ptr for x in launch.keeps[:2]} != {a.data.ptr, b.data.ptr}:
        return partial(into, rung, operands, options, out)
    run = launch.begin(launch.fields)
    run.operands = launch.keeps
    return run


def replay(a, b, c, out, options, kernel: str | None):
    """For CuPy arrays, and C none or ``out``: the key of such a call's plan, and what it gives, None where there is no
    plan for it."""
    if options.trans_a or options.trans_b:
        if a.ndim < 2 or b.ndim < 2:
            return None, None
        a = a.swapaxes(-1, -2) if options.trans_a else a
        b = b.swapaxes(-1, -2) if options.trans_b else b
    plain = options.alpha == 1 and options.beta == 0 and kernel is None
    key = plans.key(a, b, out, *(() if plain else (options.alpha, options.beta, kernel)))
    return key, cuda.plans.replay(key, a, b, out)


def _launches(rung: Rung, operands, options, c):
    """What gives ``c``, as ``plans.Launch`` es."""
    row = ladder_table.BY_NAME[rung.name]
    a, b, c0 = (None if x is None else cupy_arrays.readable(x) for x in operands[:3])
    swapped = not gemm_launches.row_major(c)
    if swapped:  # C^T = B^T A^T
        a, b, c0, c = (None if x is None else x.swapaxes(-1, -2) for x in (b, a, c0, c))
    a, b = (x if _has_adjacent(x) else x.copy(order="C") for x in (a, b))
    if row.stages or row.blocks or row.tensor_blocks:
        if a.shape[-1] >= _MOST_K:
            raise ShapeError(f"{rung.name} sums fewer than 2**31 products, k is {a.shape[-1]}: take smem_dbuf")
        arranged = Arranged(a, b, c0, c)
        fits, copied = gemm_launches.copied_by_feeds, _other_way
        if row.loads_by_tma:
            fits, copied = gemm_tensor.along_rows, gemm_tensor.turned
        elif row.tensor_blocks and not row.splits_operands:
            fits, copied = gemm_tensor.mappable, gemm_tensor.padded
        a, b = (x if arranged.empty or fits(arranged, which) else copied(x, which) for which, x in enumerate((a, b)))
    begin = _tensor if row.tensor_blocks else _persistent if row.blocks else _plain
    shape = c.shape[-2], c.shape[-1], a.shape[-1]
    for layout_a, layout_b, products, call in gemm_launches.launches(row, a, b, c0, c, options.alpha, options.beta):
        if row.loads_by_tma:
            layout_a, layout_b = ladder_table.row_major(row)
        yield Launch(begin(row, *shape, layout_a, layout_b, products), call, swapped, (a, b, c0))


def _plain(row: ladder_table.Rung, m: int, n: int, k: int, layout_a: str, layout_b: str, products: int):
    """One block a tile. Given a Gemm, what is returned gives a function that launches; so for the others."""
    function = _function(row.name, layout_a, layout_b, current_device())
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b)
    extra = {"shared_mem": shared} if shared else {}
    grid, block = (products * gemm_launches.tiles(row, m, n),), (row.threads,)
    return lambda call: partial(function, grid, block, (call.view(GEMM),), **extra)


_PRODUCERS = 128
"""Threads of a block of producers.cuh beside those that multiply."""


def _persistent(row: ladder_table.Rung, m: int, n: int, k: int, layout_a: str, layout_b: str, products: int):
    """A grid of as many blocks as the device runs at a time; where tiles are cut, a second launch adds their parts, or
    the blocks do."""
    import cupy

    device = current_device()
    group = {"f32": 1, "f16": 2, "i8i32": 4}[row.types]
    choice = gemm_blocks.choose(row, _blocks(row), products, m, n, k, group, _processors(device))
    block = choice.block
    function = _function(row.name, layout_a, layout_b, device, block, choice.fused_fixup)
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b, block)
    grid, threads = (choice.grid,), (row.threads + _PRODUCERS,)

    def maps(call):
        return gemm_tensor.maps_along_rows(block, row.bk, products, call) if row.loads_by_tma else ()

    if not choice.cut:
        schedule = gemm_blocks.schedule(choice)
        return lambda call: partial(
            function, grid, threads, (call.view(GEMM), schedule, *maps(call)), shared_mem=shared
        )
    add = None if choice.fused_fixup else _fixup_function(row.name, block, device)
    area = block.bm * block.bn
    part_bytes, sum_grid = 4 * (choice.cut + choice.grid) * area, (choice.cut * area // 1024,)

    def cut(call) -> None:
        parts = cupy.cuda.alloc(part_bytes)
        schedule = gemm_blocks.schedule(choice, parts.ptr, _barrier_counter(device) if choice.fused_fixup else 0)
        arguments = call.view(GEMM), schedule
        function(grid, threads, (*arguments, *maps(call)), shared_mem=shared)
        if add is not None:
            add(sum_grid, (256,), arguments)

    return lambda call: partial(cut, call)


_WORDS: dict[tuple[int, int, int], Any] = {}
_PER_THREAD_STREAM = 2
"""The handle that stands for every thread's own default stream."""


def _barrier_counter(device: int) -> int:
    """Address of a word by which the blocks of a launch meet (schedule.cuh). Each stream has its own, as launches that
    run at the same time must not share one."""
    import cupy

    stream = cupy.cuda.get_current_stream().ptr
    key = device, stream, threading.get_ident() if stream == _PER_THREAD_STREAM else 0
    word = _WORDS.get(key)
    if word is None:
        word = _WORDS.setdefault(key, cupy.zeros(1, np.uint32))
    return word.data.ptr


def _tensor(row: ladder_table.Rung, m: int, n: int, k: int, layout_a: str, layout_b: str, products: int):
    """Blocks, or clusters of them, for which the tensor memory accelerator brings panels; before, where a rung splits
    its operands, launches that write their parts."""
    device = current_device()
    processors = _processors(device)
    block = gemm_tensor.choose(row.tensor_blocks, m, n, k, products, processors)
    function = _function(row.name, layout_a, layout_b, device, block)
    shared = ladder_table.dynamic_shared_bytes(row, layout_a, layout_b, block)
    threads = (block.threads,)
    if not row.splits_operands:

        def begin(call):
            grid, arguments = gemm_tensor.arguments(block, row, layout_a, layout_b, products, call, processors)
            return partial(function, (grid,), threads, arguments, shared_mem=shared)

        return begin
    splitters = [_split_function(row.name, layout, device) for layout in (layout_a, layout_b)]

    def all_three(call) -> None:
        parts, grid, arguments = gemm_tensor.split_arguments(block, row, products, call, processors)
        for splitter, part in zip(splitters, parts, strict=True):
            if k:
                splitter((min(part.tiles, 16 * processors),), (256,), (part.split,))
        function((grid,), threads, arguments, shared_mem=shared)

    return lambda call: partial(all_three, call)


@cache
def _processors(device: int) -> int:
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"]


def _other_way(x, _which: int):
    """A copy in which the other dimension of the matrices is adjacent."""
    order = "F" if x.strides[-1] == x.itemsize and x.shape[-1] > 1 else "C"
    return x.swapaxes(-1, -2).copy(order="C").swapaxes(-1, -2) if order == "F" else x.copy(order="C")


def _has_adjacent(x) -> bool:
    """Whether one of the two dimensions of the matrices is adjacent in memory."""
    return x.size == 0 or any(n == 1 or s == x.itemsize for n, s in zip(x.shape[-2:], x.strides[-2:], strict=True))
