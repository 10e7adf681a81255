"""The HIP backend: the tables of ``hip_kernels`` through CuPy's ROCm build.

The arguments, layouts and grids are those of the CUDA backend (``launches``), the kernels are compiled by hiprtc when
they are first asked for and kept by CuPy. ``plan`` says what a call launches, and needs no GPU: the simulator takes it.
"""

from __future__ import annotations

import shutil
from functools import cache

from pysimd import sources
from pysimd.backends.gpu import batched, cupy_probe
from pysimd.backends.gpu.implementation import Gpu, current_device, library, tile_calls
from pysimd.backends.gpu.launches import Arranged, c_vector, grids, tile_layouts
from pysimd.gpu_kernels.table import BATCHED_TYPES
from pysimd.hip_kernels import table
from pysimd.registry import Backend, MicroKernel

OFFERED = tuple(BATCHED_TYPES)

OPTIONS = ("-std=c++17",)

MOST_THREADS = (1 << 32) - 1024
"""Threads of a launch: HIP counts them in 32 bits."""


# --- what there is ---


@cache
def backend() -> Backend:
    """The current device when first asked; availability does not change while a process lives."""
    reason = cupy_probe.reason("rocm", want_hip=True)
    if reason:
        return Backend("hip", False, reason, "", ())
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    name = properties["name"].decode()
    if shutil.which("hipcc") is None:
        reason = "hipcc is not on PATH, and CuPy asks it how to compile: add the bin folder of ROCm, /opt/rocm/bin"
        return Backend("hip", False, reason, name, ())
    target = properties["gcnArchName"].decode().partition(":")[0]
    features = table.features(target)
    if not features:
        return Backend("hip", False, f"{name} is {target}: the kernels need gfx9, gfx10, gfx11 or gfx12", name, ())
    return Backend("hip", True, "", name, (target, *features))


@cache
def kernels() -> tuple[MicroKernel, ...]:
    return tuple(_gpu.kernel(row, f"hip_kernels/{row.source}", _why_not(row)) for row in table.KERNELS)


def _why_not(row: table.Kernel) -> str:
    here = backend()
    if here.reason or row.requires in here.features:
        return here.reason
    return f"{here.device} is {here.features[0]}: {lacks(row, here.features[0])}"


def lacks(row: table.Kernel, target: str) -> str:
    """Why a target cannot run a kernel; empty if it can."""
    if row.requires in table.features(target):
        return ""
    return f"{row.name} needs {row.requires}, which {', '.join(table.FEATURES[row.requires])} have, {target} not"


@cache
def _function(source: str, entry: str, device: int):
    """The compiled kernel of a template instance; ``device`` is the current one."""
    import cupy

    return cupy.RawModule(code=instance(source, entry), options=OPTIONS).get_function(table.symbol(entry))


def instance(source: str, entry: str) -> str:
    """Source text whose one kernel is a template instance of a file in ``hip_kernels``."""
    return f"{sources.joined(f'hip_kernels/{source}')}template __global__ void {entry}(const Call);\n"


# --- launches ---


def plan(row: table.Kernel, arranged: Arranged):
    """The template instance that does ``c = c0 + a @ b``, and grid, block and Call of each launch."""
    layout_a, layout_b, edge = tile_layouts(row, arranged)
    vector = not edge and c_vector(arranged, row.nr * arranged.sizes[3])
    return table.entry(row, layout_a, layout_b, edge), grids(row, arranged, vector, most_threads=MOST_THREADS)


def _tile_launches(kernel: MicroKernel, a, b, c0, c):
    """Functions and arguments that do ``c = c0 + a @ b`` with a kernel of the table."""
    row, arranged = table.BY_NAME[kernel.name], Arranged(a, b, c0, c)
    if arranged.empty:
        return ()
    entry, launches = plan(row, arranged)
    function = _function(row.source, entry, current_device())
    return ((function, *launch) for launch in launches)


def _matmul_launches(types: str, a, b, c):
    """Launches of a product."""
    if batched.takes(a.shape[-2], b.shape[-1], a.shape[-1]):
        device = current_device()
        return tile_calls(batched.launches(types, a, b, c, lambda x: _function(table.BATCHED, x, device), MOST_THREADS))
    if types == "i8i32":
        return tile_calls(_tile_launches(_named("hip_i8i32_outer_8x8"), a, b, None, c))
    return (library(types),)


def _named(name: str) -> MicroKernel:
    return next(k for k in kernels() if k.name == name)


_gpu = Gpu("hip", backend, OFFERED, _tile_launches, _matmul_launches)
matmul = _gpu.matmul
