"""The rungs of the GEMM ladder (gpu_kernels/ladder_table.py) on CuPy arrays on CUDA devices."""

from __future__ import annotations

import sys
from functools import cache, partial
from typing import NamedTuple

from ..gpu_kernels import ladder_table, table
from ..ladder import Rung
from ..ratio import Ratio
from . import cuda, cupy_arrays, gemm_launches, nvrtc
from .gpu import current_device


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
        threads=row.threads,
        ratio=Ratio(macs=row.macs, loads=row.loads, load_bytes=4 * row.loads),
        requires=(row.requires,),
        available=not reason,
        unavailable_reason=reason,
        source_path=f"gpu_kernels/ladder/{row.source}",
        _implementation=sys.modules[__name__],
    )


def best(types: str, m: int, n: int, k: int) -> Rung | None:
    """The rung that ``gemm`` takes; None where ``matmul`` is faster or the only one."""
    small = max(m, n) <= table.BATCHED_MOST_MN and k <= table.BATCHED_MOST_K
    name = None if small else ladder_table.best(types, m, n, k)
    return next((rung for rung in rungs() if rung.name == name), None)


@cache
def _function(name: str, layout_a: str, layout_b: str, device: int):
    """The compiled kernel of a template instance; ``device`` is the current one."""
    import cupy

    row = ladder_table.BY_NAME[name]
    entry = ladder_table.entry(row, layout_a, layout_b)
    code = nvrtc.source(row.source, "ladder")
    return cupy.RawModule(code=code, options=nvrtc.OPTIONS, name_expressions=(entry,)).get_function(entry)


def resources(rung: Rung) -> Resources:
    """Of the instance for row-major, aligned operands, compiled for the current device."""
    layouts = ladder_table.row_major(ladder_table.BY_NAME[rung.name])
    function = _function(rung.name, *layouts, current_device())
    return Resources(function.num_regs, function.shared_size_bytes, function.local_size_bytes)


def into(rung: Rung, operands, options, out):
    """The result of checked operands (``gemm.Operands``, ``gemm.Options``) in ``out``, or in a new array if that is
    None, as if nothing overlapped."""
    import cupy

    a, b, c, shape, dtype = operands
    in_place = out is not None and cupy_arrays.storable(out) and _has_adjacent(out)
    in_place = in_place and not any(cupy_arrays.overlap(out, x) for x in (a, b))
    if in_place and c is not None and not cupy_arrays.same_memory(c, out):
        in_place = not cupy_arrays.overlap(out, c)
    target = out if in_place else cupy.empty(shape, dtype)
    for launch in _launches(rung, operands, options, target):
        launch()
    if out is not None and not in_place:
        cupy_arrays.copy(out, target)
    return target if out is None else out


def prepared(rung: Rung, a, b, out):
    """A function that launches ``out = a @ b`` without any checks, for measuring: matrices of CuPy that fit."""
    from ..dtypes import FAMILIES
    from ..gemm import Options, check

    options = Options(1.0, 0.0, False, False)
    (launch,) = _launches(rung, check(FAMILIES[rung.types], a, b, None, out, options), options, out)
    return launch


def _launches(rung: Rung, operands, options, c):
    """Functions that launch what gives ``c``."""
    row = ladder_table.BY_NAME[rung.name]
    a, b, c0 = (None if x is None else cupy_arrays.readable(x) for x in operands[:3])
    if not gemm_launches.row_major(c):  # the swapped call: C^T = B^T A^T
        a, b, c0, c = (None if x is None else x.swapaxes(-1, -2) for x in (b, a, c0, c))
    a, b = (x if _has_adjacent(x) else x.copy(order="C") for x in (a, b))
    for *layouts, grid, block, call in gemm_launches.launches(row, a, b, c0, c, options.alpha, options.beta):
        function = _function(rung.name, *layouts, current_device())
        yield partial(function, grid, block, (call.view(gemm_launches.GEMM),))


def _has_adjacent(x) -> bool:
    """Whether one of the two dimensions of the matrices is adjacent in memory."""
    return x.size == 0 or any(n == 1 or s == x.itemsize for n, s in zip(x.shape[-2:], x.strides[-2:], strict=True))
