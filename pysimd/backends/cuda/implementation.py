"""The CUDA backend: the tables of ``gpu_kernels`` through CuPy.

Everything that depends on shapes and strides is worked out once per call (``matmul``, ``gemm``: once per layout of the
operands) and passed to the kernel as one struct. Kernels are compiled when they are first asked for, and CuPy keeps
them in memory and on disk.
"""

from __future__ import annotations

from collections.abc import Callable

from pysimd.backends.cuda import batched_tma, device, library, narrow, tiles
from pysimd.backends.cuda.dispatch import F32_BEST, Choice, Way, choose
from pysimd.backends.cuda.instances import Instances
from pysimd.backends.cuda.ladder import rungs as ladder
from pysimd.backends.gpu import batched, memory
from pysimd.backends.gpu.implementation import Gpu, tile_work
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import ArrayWork, Work, current_device
from pysimd.errors import UnavailableError
from pysimd.gpu_kernels import ladder_table, table
from pysimd.microkernel import Backend, MicroKernel, Resources, Rung
from pysimd.once import once
from pysimd.operands import Product


class Cuda(Gpu):
    """The implementation of the ``cuda`` backend."""

    name = "cuda"
    offered = tuple(table.BATCHED_TYPES)

    def __reduce__(self) -> str:
        return "CUDA"

    def backend(self) -> Backend:
        """The current device when first asked."""
        return device.backend()

    @once
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of gpu_kernels/table.py."""
        return tuple(
            self.row_kernel(row, f"gpu_kernels/micro/{row.source}", device.why_not(row)) for row in table.KERNELS
        )

    @once
    def rungs(self) -> tuple[Rung, ...]:
        """The rows of gpu_kernels/ladder_table.py."""
        return ladder.rungs(self)

    def tile_launches(self, kernel: MicroKernel, a, b, c0, c):
        """Launches of a microkernel."""
        return tiles.tile_launches(_on_this_device(kernel), a, b, c0, c)

    def product_work(self, product: Product, kernel: MicroKernel | Rung | None) -> Work | ArrayWork:
        """A whole product."""
        if isinstance(kernel, MicroKernel):
            return self._tile_work(kernel, product)
        if isinstance(kernel, Rung):
            return ladder.work(_on_this_device(kernel), product)
        choice = self.choice(product)
        if choice.way is Way.LIBRARY and memory.capturing():
            choice = self._chosen(product, read=False, captured=True)
            if choice.way is not Way.LIBRARY:
                return ArrayWork(self._work_by(choice, product).run)  # no plan: the next call need not be captured
        return self._work_by(choice, product)

    def choice(self, product: Product) -> Choice:
        """What computes a whole product, outside a graph."""
        choice = self._chosen(product)
        if choice.way is Way.BATCHED_TMA and not batched_tma.reads(product):
            return self._chosen(product, read=False)
        return choice

    def _work_by(self, choice: Choice, product: Product) -> Work | ArrayWork:
        """A whole product by what was chosen for it."""
        if choice.way in (Way.BATCHED, Way.BATCHED_MMA):
            return self._batched_work(product, mma=choice.way is Way.BATCHED_MMA)
        if choice.way is Way.BATCHED_TMA:
            return batched_tma.work(product, batched_tma.tile(*product.sizes, 0))
        if choice.way is Way.NARROW:
            return narrow.work(product, _instance())
        if choice.way is Way.RUNG:
            return ladder.work(self._named(self.rungs(), choice), product)
        if choice.way is Way.TILES:
            return self._tile_work(self._named(self.kernels(), choice), product)
        return library.work(product)

    def applies_factors(self, product: Product, kernel: MicroKernel | Rung | None) -> bool:
        """All but microkernels apply alpha, beta and C; cuBLAS does it where it computes the product itself."""
        if kernel is not None:
            return isinstance(kernel, Rung)
        way = self._chosen(product).way
        return library.takes(product) if way is Way.LIBRARY else way is not Way.TILES

    def narrows(self, kernel: MicroKernel | Rung | None) -> bool:
        """Of a kernel that was named: rungs that store a 16-bit C."""
        return kernel is None or bool(getattr(ladder_table.BY_NAME.get(kernel.name), "narrow", ""))

    def rounds(self, product: Product, kernel: MicroKernel | Rung | None) -> bool:
        """Rungs that store a 16-bit C do, kernels for batches, and cuBLAS."""
        if kernel is not None:
            return True
        choice = self._chosen(product)
        if choice.way is Way.RUNG:
            return bool(ladder_table.BY_NAME[choice.name].narrow)
        return choice.way is not Way.TILES and (choice.way is not Way.LIBRARY or library.takes(product))

    def resources(self, rung: Rung) -> Resources:
        """Of the instance for row-major, aligned operands, compiled for the current device."""
        return ladder.resources(rung)

    @staticmethod
    def _chosen(product: Product, **options: bool) -> Choice:
        return choose(product.types, *product.sizes, product.count, current_device(), plain=_plain(product), **options)

    def _batched_work(self, product: Product, *, mma: bool) -> Work | ArrayWork:
        """A batch of small products: by the instance for its shape where there is one, and neither alpha, beta nor
        C."""
        device = current_device()
        if not _plain(product):
            return _any_work(product, device)
        arrays = product.a, product.b, None, product.out
        call_operands = CallOperands(*arrays)
        made = batched.instance(product.types, call_operands, mma=mma)
        shared = batched.dynamic_shared_bytes(made)
        function = _instance()(made.source, made.entry, shared, device)
        if function is not None:
            return tile_work(batched.launches(call_operands, made, function), arrays, shared)
        if mma:
            work = tile_work(tiles.wmma_launches(product.types, *arrays), arrays)
        elif batched.fits_static(product.types, *product.sizes):
            work = _any_work(product, device)
        else:
            work = ladder.work(self._named(self.rungs(), F32_BEST), product)
        return ArrayWork(work.run)  # no plan, so that the instance is looked for again

    @staticmethod
    def _named(things, choice: Choice):
        return next(thing for thing in things if thing.name == choice.name)


def _on_this_device(thing: MicroKernel | Rung):
    """The kernel or the rung, which must be able to run on the current device, that of the arrays."""
    row = table.BY_NAME.get(thing.name) or ladder_table.BY_NAME[thing.name]
    reason = device.why_not(row, current_device())
    if reason:
        raise UnavailableError(f"{thing.name} cannot run where the arrays are: {reason}")
    return thing


INSTANCES = Instances(tiles.function_with_shared_memory)
"""Of batched.cu, batched_mma.cu and narrow.cu, compiled in the background."""


def _instance() -> Callable:
    """How an instance is asked for: a graph keeps what it is given."""
    return INSTANCES.now if memory.capturing() else INSTANCES.get


def _plain(product: Product) -> bool:
    """Whether C is the product alone."""
    return product.alpha == 1 and product.c is None


def _any_work(product: Product, device: int) -> Work:
    entry = table.batched_any(product.types, batched.narrows(product.types, product.out.itemsize))
    function = tiles.function(table.BATCHED_ANY, entry, device)
    return batched.any_work(product, function)


CUDA = Cuda()
