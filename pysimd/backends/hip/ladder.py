"""The portable rungs of the GPU GEMM ladder (gpu_kernels/ladder_table.py) on HIP devices: the same files after
hip_kernels/amd.h. ``hip_smem_dbuf`` is the rung ``smem_dbuf``."""

from __future__ import annotations

from functools import cache, partial

from pysimd import sources
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.backends.gpu.plans import ArrayWork, KernelLaunch, KernelPlan, Work, current_device, operands_argument
from pysimd.backends.hip import device as hip
from pysimd.backends.hip.tiles import MOST_THREADS, OPTIONS
from pysimd.gpu_kernels import ladder_table
from pysimd.hip_kernels import table
from pysimd.microkernel import Implementation, Resources, Rung
from pysimd.operands import Product

REQUIRES = "gfx900"
"""Of every portable rung."""

ROWS = {f"hip_{row.name}": row for row in ladder_table.PORTABLE}
"""The rows by the names of the rungs."""

LARGE, SMALL = "hip_smem_dbuf", "hip_reg4x4_At"
"""For products of at least LEAST rows and columns, which fill block tiles of 128 x 128, and for others. Not measured on
AMD GPUs."""

LEAST = 128


def rungs(implementation: Implementation) -> tuple[Rung, ...]:
    """The portable rows as what users get."""
    reason = hip.backend().reason
    return tuple(gpu_rungs.rung(row, implementation, name, REQUIRES, reason) for name, row in ROWS.items())


def choose(m: int, n: int) -> str:
    """The rung for a float32 product: by its shape alone, so that the same products have the same bits."""
    return LARGE if min(m, n) >= LEAST else SMALL


def instance(row: ladder_table.Rung, layout_a: str, layout_b: str) -> tuple[str, str]:
    """Source text whose one kernel is the template instance of a rung for these layouts, and the kernel's symbol."""
    entry = ladder_table.entry(row, layout_a, layout_b)
    text = sources.joined("hip_kernels/amd.h") + sources.joined(f"gpu_kernels/ladder/{row.source}")
    return f"{text}template __global__ void {entry}(const Gemm);\n", table.symbol(entry, "Gemm")


def work(rung: Rung, product: Product) -> Work | ArrayWork:
    """A product into its ``out``."""
    return gpu_rungs.work(partial(_work, ROWS[rung.name]), product)


def _work(row: ladder_table.Rung, product: Product) -> Work:
    arrays, order = gpu_rungs.arranged(product)
    _, _, _, c = arrays
    tiles = gemm_launches.tiles(row, *c.shape[-2:])
    steps = [
        KernelLaunch(
            _compiled(row, layout_a, layout_b, current_device()).kernel,
            (products * tiles,),
            (row.threads,),
            (operands_argument(fields, arrays, order),),
        )
        for layout_a, layout_b, products, fields in launches(row, *arrays, product.alpha, product.beta)
    ]
    return gpu_rungs.work_of(KernelPlan(steps), arrays, order)


def launches(row: ladder_table.Rung, *given):
    """``gemm_launches.launches`` for as many blocks as HIP launches."""
    return gemm_launches.launches(row, *given, MOST_THREADS // row.threads)


@cache
def _compiled(row: ladder_table.Rung, layout_a: str, layout_b: str, device: int):
    """The compiled template instance, a ``cupy.RawKernel`` of the current device."""
    import cupy

    text, symbol = instance(row, layout_a, layout_b)
    return cupy.RawModule(code=text, options=OPTIONS).get_function(symbol)


def resources(rung: Rung) -> Resources:
    """Of the instance for row-major, aligned operands, compiled for the current device."""
    row = ROWS[rung.name]
    kernel = _compiled(row, *ladder_table.row_major(row), current_device())
    return Resources(kernel.num_regs, kernel.shared_size_bytes, kernel.local_size_bytes)
