"""What the CUDA and the HIP backend do alike with CuPy arrays: calls, bound calls, ``matmul``, ``gemm``, replays.

A backend adds its tables, and two functions that turn a checked product into launches. Launches go to the current
stream and wait for nothing.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import numpy as np

from pysimd import operands
from pysimd.backends.gpu import cupy_arrays, plans
from pysimd.backends.gpu.launches import CALL
from pysimd.errors import DTypeError, OptionError, ShapeError, UnavailableError
from pysimd.microkernel import Backend, MicroKernel, Resources, Rung
from pysimd.operands import GemmOptions, Product


class Gpu(ABC):
    """The implementation of a backend on CuPy arrays; ``offered`` are the types families that ``matmul`` multiplies."""

    name: str
    offered: tuple[str, ...]

    def __init__(self):
        self.plans = plans.Plans()
        """Of ``matmul`` and ``gemm``."""

    @abstractmethod
    def backend(self) -> Backend:
        """What there is on this machine."""

    @abstractmethod
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of the backend's table."""

    def rungs(self) -> tuple[Rung, ...]:
        """None, unless the backend has a ladder."""
        return ()

    @abstractmethod
    def tile_launches(self, kernel: MicroKernel, a, b, c0, c) -> Iterable[tuple]:
        """Function, grid, block and Call of each launch that does ``c = c0 + a @ b`` with a kernel of the table."""

    @abstractmethod
    def product_launches(self, product: Product, target, kernel: MicroKernel | Rung | None) -> Iterable[plans.Launch]:
        """Launches of a whole product, by the kernel that was named or by the one that the backend chooses. Where these
        apply neither alpha and beta nor C, ``applies_factors`` says so."""

    def applies_factors(self, product: Product, kernel: MicroKernel | Rung | None) -> bool:
        """Whether ``product_launches`` apply alpha, beta and C."""
        return False

    def row_kernel(self, row, source_path: str, reason: str) -> MicroKernel:
        """A row of the backend's table as what users get; ``reason``: why it cannot run here, empty if it can."""
        return MicroKernel(
            name=row.name,
            backend=self.name,
            target=self.name,
            types=row.types,
            form=row.form,
            mr=row.mr,
            nr=row.nr,
            k_group=row.k_group,
            requires=(row.requires,),
            available=not reason,
            unavailable_reason=reason,
            source_path=source_path,
            _implementation=self,
        )

    # --- calls of a kernel ---

    def call(self, kernel: MicroKernel, a, b, c, out):
        """``MicroKernel.__call__`` on arrays of this backend's GPUs."""
        self._check_device(kernel, {"a": a, "b": b, "c": c, "out": out})
        with cupy_arrays.device_guard(a, b, c, out):
            product = operands.check_tile_call(kernel, *_views(a=a, b=b, c=c, out=out))
            result = operands.write(product, cupy_arrays, functools.partial(self._run_tiles, kernel, product))
            return cupy_arrays.like(result, a) if out is None else out

    def _run_tiles(self, kernel: MicroKernel, product: Product, target) -> None:
        a, b, c0 = _readable(product)
        for launch in tile_calls(self.tile_launches(kernel, a, b, c0, target)):
            launch.run(a, b, target)

    def bind(self, kernel: MicroKernel, a, b, c) -> Callable[[], None]:
        """``MicroKernel.bind``; the returned function launches on the stream that is current when called."""
        if c is None:
            raise DTypeError("bind needs an array c to add to, got None")
        self._check_device(kernel, {"a": a, "b": b, "c": c})
        given = (a, b, c)
        with cupy_arrays.device_guard(a, b, c):
            a, b, c = _views(a=a, b=b, c=c)
            operands.check_tile_call(kernel, a, b, None, c, out_name="c")
            if not cupy_arrays.storable(c):
                raise ShapeError(
                    f"bind needs a c with whole, aligned elements and none repeated, got strides {c.strides}"
                )
            for name, x in (("a", a), ("b", b)):
                if cupy_arrays.overlap(c, x):
                    raise ShapeError(f"bind needs a c apart from {name}: their memory overlaps")
                if not cupy_arrays.aligned(x):
                    raise ShapeError(f"bind needs an {name} of whole, aligned elements, got strides {x.strides}")
            launches = list(self.tile_launches(kernel, a, b, c, c))
        prepared = [functools.partial(f, grid, block, (call.view(CALL),)) for f, grid, block, call in launches]
        run = prepared[0] if len(prepared) == 1 else functools.partial(_run_all, prepared)
        run.operands = given  # kept alive with the function
        return run

    def _check_device(self, kernel: MicroKernel, given: dict[str, object]) -> None:
        device = operands.backend_for(given)
        if device != self.name:
            family = self.name.upper()
            raise DTypeError(
                f"{kernel.name} is a {family} kernel, the arrays are on {device}: copy them with cupy.asarray()"
            )

    # --- products ---

    def matmul(self, a, b, out, kernel: MicroKernel | None, threads: int | None):
        """``pysimd.matmul`` on arrays of this backend's GPUs."""
        self._check_call(threads)
        key, result = self._replayed(a, b, out, kernel is None)
        if result is not None:
            return result
        with cupy_arrays.device_guard(a, b, out):
            product = operands.check_matmul(kernel, *_views(a=a, b=b, out=out), self.offered)
            vectors = len(product.shape) != len(product.full)
            result = self._multiply(product, kernel, None if vectors else key)
            return cupy_arrays.like(result.reshape(product.shape), a) if out is None else out

    def gemm(self, a, b, c, options: GemmOptions, out, kernel: MicroKernel | Rung | None, threads: int | None):
        """``pysimd.gemm`` on arrays of this backend's GPUs."""
        self._check_call(threads)
        key = None
        if _plannable(options, c, out, kernel):
            x, y = (
                x.swapaxes(-1, -2) if transposed and getattr(x, "ndim", 0) > 1 else x
                for x, transposed in ((a, options.trans_a), (b, options.trans_b))
            )
            plain = options.alpha == 1 and options.beta == 0 and kernel is None
            more = () if plain else (options.alpha, options.beta, None if kernel is None else kernel.name)
            key, result = self._replayed(x, y, out, True, *more)
            if result is not None:
                return result
        with cupy_arrays.device_guard(a, b, c, out):
            product = operands.check_gemm(kernel, *_views(a=a, b=b, c=c, out=out), options, self.offered)
            result = self._multiply(product, kernel, key)
            return cupy_arrays.like(result, a) if out is None else out

    def simulate(self, kernel: MicroKernel, a, b, c, target: str):
        """Only HIP kernels can be simulated."""
        raise UnavailableError(
            f"{kernel.name} is no HIP kernel: the simulator runs machine code of AMD GPUs only; "
            "pysimd.kernels('hip') lists what it can run"
        )

    def resources(self, rung: Rung) -> Resources:
        """Of a rung's compiled code; a backend without a ladder has no rung to ask for."""
        raise UnavailableError(f"{self.name} has no ladder")

    def _check_call(self, threads: int | None) -> None:
        if not self.backend().available:
            raise UnavailableError(self.backend().reason)
        if threads is not None:
            raise OptionError(f"threads={threads} is for arrays on the CPU: leave it out for arrays on a GPU")

    def _replayed(self, a, b, out, plannable: bool, *more):
        """The key of the call's plan, and the result; None for each that there is not."""
        one_type = type(a) is type(b) and (out is None or type(out) is type(a))
        if not (plannable and one_type and type(a).__module__ == "cupy"):
            return None, None
        key = plans.key(a, b, out, *more)
        return key, self.plans.replay(key, a, b, out)

    def _multiply(self, product: Product, kernel: MicroKernel | Rung | None, key: tuple | None):
        """The result of a checked product, as if nothing overlapped; keeps the plan of a single launch by ``key``."""
        plain = product.alpha == 1 and product.c is None
        direct = plain or self.applies_factors(product, kernel)

        def compute(target) -> None:
            if not direct:
                cupy_arrays.copy(target, self._scaled(product, kernel))
            elif target.size:
                self._launch(product, kernel, key, target)

        return operands.write(product, cupy_arrays, compute)

    def _launch(self, product: Product, kernel, key: tuple | None, target) -> None:
        a, b, c0 = _readable(product)
        launches = list(self.product_launches(product._replace(a=a, b=b, c=c0), target, kernel))
        for launch in launches:
            launch.run(a, b, target)
        in_place = a is product.a and b is product.b and (product.out is None or target is product.out)
        own_c = product.c is None or (target is product.out and cupy_arrays.same_memory(product.c, target))
        if key is not None and len(launches) == 1 and in_place and own_c:
            self.plans.keep(key, launches[0], a, b, target, c_is_target=product.c is not None)

    def _scaled(self, product: Product, kernel):
        """The product without factors, then alpha, beta and C element by element."""
        import cupy

        batch = operands.broadcast_batch({"a": product.a.shape, "b": product.b.shape})
        result = cupy.empty((*batch, *product.full[-2:]), product.dtype)
        if result.size:
            self._launch(product._replace(c=None, alpha=1.0, beta=0.0, full=result.shape), kernel, None, result)
        result = operands.scaled(result, product, cupy_arrays.readable)
        return cupy.broadcast_to(result, product.full)


def _plannable(options: GemmOptions, c, out, kernel) -> bool:
    """Whether a plan may be looked for: at most two arrays are read, ordinary factors, no microkernel."""
    return (
        (c is None or c is out)
        and type(options.alpha) in (int, float)
        and type(options.beta) in (int, float)
        and options.alpha != 0
        and not isinstance(kernel, MicroKernel)
    )


def _views(**given):
    """The operands as CuPy arrays on the same memory; None stays None."""
    return tuple(None if x is None else cupy_arrays.as_cupy(name, x) for name, x in given.items())


def _readable(product: Product):
    """A, B and C in memory that kernels can read."""
    return tuple(None if x is None else cupy_arrays.readable(x) for x in (product.a, product.b, product.c))


def _run_all(prepared) -> None:
    for launch in prepared:
        launch()


def tile_calls(launches: Iterable[tuple]) -> Iterable[plans.Launch]:
    """Launches of kernels that take a Call, given as (function, grid, block, call)."""
    return (plans.KernelLaunch(functools.partial(_prepare, f, grid, block), call) for f, grid, block, call in launches)


def _prepare(function, grid, block, call):
    return functools.partial(function, grid, block, (call.view(CALL),))


# --- products too large for the project's kernels ---


def library(types: str) -> plans.Launch:
    """Products by CuPy: cuBLAS or rocBLAS. bfloat16 is widened to float32, exactly."""
    return plans.LibraryCall(functools.partial(_library_matmul, types))


def _library_matmul(types: str, a, b, c) -> None:
    import cupy

    if a.shape[-1] == 0:
        c[...] = 0
        return
    if types == "bf16f32":
        a, b = _float32(a), _float32(b)
    if c.flags.c_contiguous:
        cupy.matmul(a, b, out=c)
    else:
        c[...] = cupy.matmul(a, b)


def _float32(x):
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
