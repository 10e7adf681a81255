"""The HIP backend: the tables of ``hip_kernels`` through CuPy's ROCm build.

Parameters, layouts and grids are those of the CUDA backend (``gpu.launches``). hiprtc compiles the kernels when they
are first asked for, and CuPy keeps them.
"""

from __future__ import annotations

from functools import cache

from pysimd.backends.gpu import batched
from pysimd.backends.gpu.implementation import Gpu, library, tile_calls
from pysimd.backends.gpu.plans import current_device
from pysimd.backends.hip import device, simulation, tiles
from pysimd.gpu_kernels.table import BATCHED_TYPES
from pysimd.hip_kernels import table
from pysimd.microkernel import Backend, MicroKernel
from pysimd.operands import Product


class Hip(Gpu):
    """The implementation of the ``hip`` backend."""

    name = "hip"
    offered = tuple(BATCHED_TYPES)

    def backend(self) -> Backend:
        """The current device when first asked."""
        return device.backend()

    @cache  # noqa: B019 (there is one Hip, and it lives as long as the process)
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of hip_kernels/table.py."""
        return tuple(self.row_kernel(row, f"hip_kernels/{row.source}", device.why_not(row)) for row in table.KERNELS)

    def tile_launches(self, kernel: MicroKernel, a, b, c0, c):
        """Launches of a microkernel."""
        return tiles.tile_launches(kernel, a, b, c0, c)

    def product_launches(self, product: Product, target, kernel: MicroKernel | None):
        """Launches of a whole product: the one place that chooses the kernel on HIP devices."""
        if kernel is None and batched.takes(*product.sizes):
            launches = batched.launches(
                product.types, product.a, product.b, target, _batched_function, tiles.MOST_THREADS
            )
            return tile_calls(launches)
        if kernel is None and product.types == "i8i32":
            kernel = next(k for k in self.kernels() if k.name == "hip_i8i32_outer_8x8")
        if kernel is None:
            return (library(product.types),)
        return tile_calls(tiles.tile_launches(kernel, product.a, product.b, None, target))

    def simulate(self, kernel: MicroKernel, a, b, c, target: str):
        """``MicroKernel.simulate``."""
        return simulation.simulate(kernel, a, b, c, target)


def _batched_function(entry: str):
    return tiles.function(table.BATCHED, entry, current_device())


HIP = Hip()
