"""Launches of the microkernels of hip_kernels/table.py. ``plan`` and ``instance`` need no GPU: the simulator uses
them."""

from __future__ import annotations

from functools import cache

from pysimd import sources
from pysimd.backends.gpu import compilation
from pysimd.backends.gpu.launches import CallOperands, c_vector, grids, tile_layouts
from pysimd.backends.gpu.plans import current_device
from pysimd.hip_kernels import table
from pysimd.microkernel import MicroKernel

OPTIONS = ("-std=c++17",)

_NEEDS = "the hiprtc of CuPy's own ROCm version and a driver that is not older: pip install 'pysimd[rocm]'"

MOST_THREADS = (1 << 32) - 1024
"""Threads of a launch: HIP counts them in 32 bits."""


@cache
def function(source: str, entry: str, device: int):
    """The compiled kernel of a template instance, as CuPy launches it; ``device`` is the current one. Raises
    UnavailableError if hiprtc does not take the source."""
    import cupy

    with compilation.explained(entry, source, _NEEDS):
        return cupy.RawModule(code=instance(source, entry), options=OPTIONS).get_function(table.symbol(entry)).kernel


def instance(source: str, entry: str) -> str:
    """Source text whose one kernel is a template instance of a file in ``hip_kernels``."""
    return f"{sources.joined(f'hip_kernels/{source}')}template __global__ void {entry}(const Call);\n"


def plan(row: table.Kernel, operands: CallOperands):
    """The template instance that does ``c = c0 + a @ b``, and grid, block and Call of each launch."""
    layout_a, layout_b, edge = tile_layouts(row, operands)
    vector = not edge and c_vector(operands, row.nr * operands.sizes[3])
    return table.entry(row, layout_a, layout_b, edge), grids(row, operands, vector, most_threads=MOST_THREADS)


def tile_launches(kernel: MicroKernel, a, b, c0, c):
    """Functions and arguments that do ``c = c0 + a @ b`` with a kernel of the table."""
    row, operands = table.BY_NAME[kernel.name], CallOperands(a, b, c0, c)
    if operands.empty:
        return ()
    entry, launches = plan(row, operands)
    compiled = function(row.source, entry, current_device())
    return ((compiled, *launch) for launch in launches)
