"""The HIP backend: the tables of ``hip_kernels`` through CuPy's ROCm build.

Parameters, layouts and grids are those of the CUDA backend (``gpu.launches``). hiprtc compiles the kernels when they
are first asked for, and CuPy keeps them.
"""

from __future__ import annotations

from pysimd.backends.gpu import batched
from pysimd.backends.gpu.implementation import Gpu, library_work, tile_work
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import ArrayWork, Work, current_device
from pysimd.backends.hip import device, simulation, tiles
from pysimd.gpu_kernels.table import BATCHED_TYPES
from pysimd.hip_kernels import table
from pysimd.microkernel import Backend, MicroKernel
from pysimd.once import once
from pysimd.operands import Product


class Hip(Gpu):
    """The implementation of the ``hip`` backend."""

    name = "hip"
    offered = tuple(BATCHED_TYPES)

    def __reduce__(self) -> str:
        return "HIP"

    def backend(self) -> Backend:
        """The current device when first asked."""
        return device.backend()

    @once
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of hip_kernels/table.py."""
        return tuple(self.row_kernel(row, f"hip_kernels/{row.source}", device.why_not(row)) for row in table.KERNELS)

    def tile_launches(self, kernel: MicroKernel, a, b, c0, c):
        """Launches of a microkernel."""
        return tiles.tile_launches(kernel, a, b, c0, c)

    def product_work(self, product: Product, kernel: MicroKernel | None) -> Work | ArrayWork:
        """A whole product: the one place that chooses the kernel on HIP devices."""
        if kernel is None and batched.takes(*product.sizes):
            arrays = product.a, product.b, None, product.out
            call_operands = CallOperands(*arrays)
            made = batched.instance(product.types, call_operands)
            function = tiles.function(table.BATCHED, made.entry, current_device())
            return tile_work(batched.launches(call_operands, made, function, tiles.MOST_THREADS), arrays)
        if kernel is None and product.types == "i8i32":
            kernel = next(k for k in self.kernels() if k.name == "hip_i8i32_outer_8x8")
        return library_work(product) if kernel is None else self._tile_work(kernel, product)

    def simulate(self, kernel: MicroKernel, a, b, c, target: str):
        """``MicroKernel.simulate``."""
        return simulation.simulate(kernel, a, b, c, target)


HIP = Hip()
