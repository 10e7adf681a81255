"""The HIP backend: the table of ``hip_kernels`` and the portable rungs of the GPU ladder through CuPy's ROCm build.

Parameters, layouts and grids are those of the CUDA backend (``gpu.launches``). hiprtc compiles the kernels when they
are first asked for, and CuPy keeps them.
"""

from __future__ import annotations

from pysimd.backends.gpu import batched
from pysimd.backends.gpu.implementation import Gpu, library_work, tile_work
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import ArrayWork, Work, current_device
from pysimd.backends.hip import device, ladder, rocblas, simulation, tiles
from pysimd.errors import UnavailableError
from pysimd.gpu_kernels.table import BATCHED_TYPES
from pysimd.hip_kernels import table
from pysimd.microkernel import Backend, MicroKernel, Resources, Rung
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

    @once
    def rungs(self) -> tuple[Rung, ...]:
        """The portable rows of gpu_kernels/ladder_table.py."""
        return ladder.rungs(self)

    def tile_launches(self, kernel: MicroKernel, a, b, c0, c):
        """Launches of a microkernel."""
        return tiles.tile_launches(kernel, a, b, c0, c)

    def product_work(self, product: Product, kernel: MicroKernel | Rung | None) -> Work | ArrayWork:
        """A whole product."""
        kernel = kernel or self._chosen(product)
        if isinstance(kernel, Rung):
            return ladder.work(kernel, product)
        if isinstance(kernel, MicroKernel):
            return self._tile_work(kernel, product)
        if batched.takes(*product.sizes):
            return _batched_work(product)
        self._check_rocblas(product.types)
        return library_work(product)

    def _chosen(self, product: Product) -> MicroKernel | Rung | None:
        """The one place that chooses a kernel on HIP devices; None for a batch of small products, or for rocBLAS."""
        if batched.takes(*product.sizes):
            return None
        if product.types == "i8i32":
            return next(k for k in self.kernels() if k.name == "hip_i8i32_outer_8x8")
        if product.types == "f32" and rocblas.reason():
            name = ladder.choose(*product.sizes[:2])
            return next(rung for rung in self.rungs() if rung.name == name)
        return None

    def _check_rocblas(self, types: str) -> None:
        if rocblas.reason():
            able = [k.name for k in self.kernels() if k.types == types and k.form == "outer"]
            named = f"name a kernel, {' or '.join(able)}, or " if able else ""
            raise UnavailableError(
                f"rocBLAS does not start here ({rocblas.reason()}), and rungs multiply float32 only: {named}use a ROCm "
                "whose rocBLAS supports this GPU"
            )

    def applies_factors(self, product: Product, kernel: MicroKernel | Rung | None) -> bool:
        """Rungs alone apply alpha, beta and C."""
        return isinstance(kernel or self._chosen(product), Rung)

    def resources(self, rung: Rung) -> Resources:
        """Of the instance for row-major, aligned operands, compiled for the current device."""
        return ladder.resources(rung)

    def simulate(self, kernel: MicroKernel, a, b, c, target: str):
        """``MicroKernel.simulate``."""
        return simulation.simulate(kernel, a, b, c, target)


def _batched_work(product: Product) -> Work:
    arrays = product.a, product.b, None, product.out
    call_operands = CallOperands(*arrays)
    made = batched.instance(product.types, call_operands)
    function = tiles.function(table.BATCHED, made.entry, current_device())
    return tile_work(batched.launches(call_operands, made, function, tiles.MOST_THREADS), arrays)


HIP = Hip()
