"""The CUDA backend: the tables of ``gpu_kernels`` through CuPy.

Everything that depends on shapes and strides is worked out once per call (``matmul``, ``gemm``: once per layout of the
operands) and passed to the kernel as one struct. Kernels are compiled when they are first asked for, and CuPy keeps
them in memory and on disk.
"""

from __future__ import annotations

from functools import cache

from pysimd.backends.cuda import device, tiles
from pysimd.backends.cuda.dispatch import Choice, Way, choose
from pysimd.backends.cuda.ladder import rungs as ladder
from pysimd.backends.gpu import batched
from pysimd.backends.gpu.implementation import Gpu, library, tile_calls
from pysimd.gpu_kernels import table
from pysimd.microkernel import Backend, MicroKernel, Resources, Rung
from pysimd.operands import Product


class Cuda(Gpu):
    """The implementation of the ``cuda`` backend."""

    name = "cuda"
    offered = tuple(table.BATCHED_TYPES)

    def backend(self) -> Backend:
        """The current device when first asked."""
        return device.backend()

    @cache  # noqa: B019 (there is one Cuda, and it lives as long as the process)
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of gpu_kernels/table.py."""
        return tuple(
            self.row_kernel(row, f"gpu_kernels/micro/{row.source}", device.why_not(row)) for row in table.KERNELS
        )

    @cache  # noqa: B019
    def rungs(self) -> tuple[Rung, ...]:
        """The rows of gpu_kernels/ladder_table.py."""
        return ladder.rungs(self)

    def tile_launches(self, kernel: MicroKernel, a, b, c0, c):
        """Launches of a microkernel."""
        return tiles.tile_launches(kernel, a, b, c0, c)

    def product_launches(self, product: Product, target, kernel: MicroKernel | Rung | None):
        """Launches of a whole product."""
        if isinstance(kernel, MicroKernel):
            return tile_calls(tiles.tile_launches(kernel, product.a, product.b, None, target))
        if isinstance(kernel, Rung):
            return ladder.launches(kernel, product, target)
        choice = self._chosen(product)
        if choice.way is Way.BATCHED:
            return tile_calls(batched.launches(product.types, product.a, product.b, target, _batched_function))
        if choice.way is Way.RUNG:
            return ladder.launches(self._named(self.rungs(), choice), product, target)
        if choice.way is Way.TILES:
            kernel = self._named(self.kernels(), choice)
            return tile_calls(tiles.tile_launches(kernel, product.a, product.b, None, target))
        return (library(product.types),)

    def applies_factors(self, product: Product, kernel: MicroKernel | Rung | None) -> bool:
        """Rungs apply alpha, beta and C; nothing else does."""
        return isinstance(kernel, Rung) or (kernel is None and self._chosen(product).way is Way.RUNG)

    def resources(self, rung: Rung) -> Resources:
        """Of the instance for row-major, aligned operands, compiled for the current device."""
        return ladder.resources(rung)

    @staticmethod
    def _chosen(product: Product) -> Choice:
        return choose(product.types, *product.sizes, product.count)

    @staticmethod
    def _named(things, choice: Choice):
        return next(thing for thing in things if thing.name == choice.name)


def _batched_function(entry: str):
    return tiles.function(table.BATCHED, entry, device.current_device())


CUDA = Cuda()
