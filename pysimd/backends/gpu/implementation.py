"""What the CUDA and the HIP backend do alike with arrays on a GPU: calls, bound calls, ``matmul``, ``gemm``, replays.

A backend adds its tables, and two functions that turn a checked product into a plan. Launches go to the current stream
of the library of the arrays and wait for nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

import numpy as np

from pysimd import dtypes, operands
from pysimd.backends.gpu import cupy_arrays, memory, replay
from pysimd.backends.gpu.plans import ArrayWork, KernelLaunch, KernelPlan, Plan, Work, addresses_of, operands_argument
from pysimd.errors import DTypeError, OptionError, ShapeError, UnavailableError
from pysimd.microkernel import Backend, MicroKernel, Resources, Rung
from pysimd.operands import GemmOptions, Product


class Gpu(ABC):
    """The implementation of a backend on CuPy arrays; ``offered`` are the types families that ``matmul`` multiplies."""

    name: str
    offered: tuple[str, ...]

    @abstractmethod
    def backend(self) -> Backend:
        """What there is on this machine."""

    @abstractmethod
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of the backend's table."""

    @abstractmethod
    def rungs(self) -> tuple[Rung, ...]:
        """The backend's ladder."""

    @abstractmethod
    def tile_launches(self, kernel: MicroKernel, a, b, c0, c) -> Iterable[tuple]:
        """Function, grid, block and Call of each launch that does ``c = c0 + a @ b`` with a kernel of the table."""

    @abstractmethod
    def product_work(self, product: Product, kernel: MicroKernel | Rung | None) -> Work | ArrayWork:
        """A whole product into its ``out``, by the kernel that was named or by the one that the backend chooses. Where
        that applies neither alpha and beta nor C, ``applies_factors`` says so."""

    @abstractmethod
    def applies_factors(self, product: Product, kernel: MicroKernel | Rung | None) -> bool:
        """Whether ``product_work`` applies alpha, beta and C."""

    @abstractmethod
    def resources(self, rung: Rung) -> Resources:
        """Of the instance for row-major, aligned operands, compiled for the current device."""

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
        result = replay.replayed(a, b, c, out, (kernel,))
        if result is not None:
            return result
        self._check_device(kernel, {"a": a, "b": b, "c": c, "out": out})
        check = partial(operands.check_tile_call, kernel)
        return self._computed(a, b, c, out, (kernel,), check, partial(self._tile_work, kernel))

    def _tile_work(self, kernel: MicroKernel, product: Product) -> Work:
        arrays = product.a, product.b, product.c, product.out
        return tile_work(self.tile_launches(kernel, *arrays), arrays)

    def bind(self, kernel: MicroKernel, a, b, c) -> Callable[[], None]:
        """``MicroKernel.bind``; the returned function launches on the stream that is current when called."""
        if c is None:
            raise DTypeError("bind needs an array c to add to, got None")
        self._check_device(kernel, {"a": a, "b": b, "c": c})
        with cupy_arrays.device_guard(a, b, c) as device:
            x, y, z = _views(a=a, b=b, c=c)
            operands.check_tile_call(kernel, x, y, None, z, out_name="c")
            if not cupy_arrays.storable(z):
                raise ShapeError(
                    f"bind needs a c with whole, aligned elements and none repeated, got strides {z.strides}"
                )
            for name, operand in (("a", x), ("b", y)):
                if cupy_arrays.overlap(z, operand):
                    raise ShapeError(f"bind needs a c apart from {name}: their memory overlaps")
                if not cupy_arrays.aligned(operand):
                    raise ShapeError(f"bind needs an {name} of whole, aligned elements, got strides {operand.strides}")
            arrays = x, y, z, z
            plan = tile_work(self.tile_launches(kernel, *arrays), arrays).plan
        return _Bound(kernel.name, plan, arrays, device, replay.of(a))

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

        def check(a, b, _, out) -> Product:
            return operands.check_matmul(kernel, a, b, out, self.offered, narrow=self.narrows(kernel))

        return self._computed(a, b, None, out, replay.matmul_call(kernel), check, partial(self._product_work, kernel))

    def narrow_matmul(self, a, b):
        """``matmul`` of 16-bit operands whose new result has their dtype: their float32 product, rounded once."""
        self._check_call(None)

        def check(a, b, _, out) -> Product:
            return operands.check_matmul(None, a, b, out, self.offered)._replace(dtype=a.dtype)

        call = replay.NARROW_MATMUL
        return self._computed(a, b, None, None, call, check, partial(self._product_work, None))

    def gemm(self, a, b, c, options: GemmOptions, out, kernel: MicroKernel | Rung | None, threads: int | None):
        """``pysimd.gemm`` on arrays of this backend's GPUs."""
        self._check_call(threads)
        call = replay.gemm_call(options.alpha, options.beta, options.trans_a, options.trans_b, kernel)
        result = replay.replayed(a, b, c, out, call)  # of a rung's own call: pysimd.gemm has looked before
        if result is not None:
            return result

        def check(a, b, c, out) -> Product:
            narrow = self.narrows(kernel)
            return operands.check_gemm(kernel, a, b, c, out, options, self.offered, narrow=narrow)

        return self._computed(a, b, c, out, call, check, partial(self._product_work, kernel))

    def simulate(self, kernel: MicroKernel, a, b, c, target: str):
        """Only HIP kernels can be simulated."""
        raise UnavailableError(
            f"{kernel.name} is no HIP kernel: the simulator runs machine code of AMD GPUs only; "
            "pysimd.kernels('hip') lists what it can run"
        )

    def address(self, kernel: MicroKernel) -> int:
        """Raises ``UnavailableError``: the code is on the device."""
        raise UnavailableError(f"{kernel.name} runs on a GPU and has no address on the host: CPU kernels have one")

    def _check_call(self, threads: int | None) -> None:
        if not self.backend().available:
            raise UnavailableError(self.backend().reason)
        if threads is not None:
            raise OptionError(f"threads={threads} is for arrays on the CPU: leave it out for arrays on a GPU")

    def _computed(self, a, b, c, out, call: Hashable | None, check, work_of: Callable[[Product], Work | ArrayWork]):
        """The result of a call, as if nothing overlapped.

        Args:
            a, b, c, out: as the user passed them.
            call: what is asked for, as it stands in the key of a plan; None for a call that has no plan.
            check: gives the product of the four as arrays of CuPy.
            work_of: what computes a product whose operands can be read, into its ``out``.
        """
        with cupy_arrays.device_guard(a, b, c, out):
            product = check(*_views(a=a, b=b, c=c, out=out))
            known = replay.of(a)
            if out is not None:
                result = out
            elif known is not None:
                result, _ = known.new(a, product.shape, known.dtype(product.dtype))
            else:
                result = cupy_arrays.empty(product.shape, product.dtype)
            if out is None:
                product = product._replace(out=cupy_arrays.as_cupy("out", result).reshape(product.full))

            def compute(target) -> None:
                work = work_of(_readable(product, target))
                work.run()
                if known is not None and work.plan is not None and target is product.out:
                    _keep(known, known.key(a, b, c, out, call), work, product)

            with memory.temporaries():
                operands.write(product, cupy_arrays, compute)
            return result if known is not None or out is not None else cupy_arrays.like(result, a)

    def _product_work(self, kernel: MicroKernel | Rung | None, product: Product) -> Work | ArrayWork:
        if not product.out.size:
            return Work(KernelPlan(()), (product.a, product.b, product.c, product.out))
        if _rounds(product) and not self.rounds(product, kernel):
            return ArrayWork(partial(self._multiply_and_round, product, kernel))
        plain = product.alpha == 1 and product.c is None
        if plain or self.applies_factors(product, kernel):
            return self.product_work(product, kernel)
        return ArrayWork(partial(self._multiply_and_scale, product, kernel))

    def narrows(self, kernel: MicroKernel | Rung | None) -> bool:
        """Whether ``out`` may have the 16-bit dtype of operands whose product is float32."""
        return kernel is None

    def rounds(self, product: Product, kernel: MicroKernel | Rung | None) -> bool:
        """Whether what computes this product rounds it to 16 bits itself, of those that ``narrows`` allows."""
        return False

    def _multiply_and_round(self, product: Product, kernel) -> None:
        """The product in float32, then rounded once."""
        result = cupy_arrays.empty(product.full, np.float32)
        c = None if product.c is None else dtypes.widened(cupy_arrays.readable(product.c), np.float32)
        self._product_work(kernel, product._replace(c=c, out=result, dtype=result.dtype)).run()
        cupy_arrays.copy(product.out, _rounded(result, product.dtype))

    def _multiply_and_scale(self, product: Product, kernel) -> None:
        """The product without factors, then alpha, beta and C element by element."""
        batch = operands.broadcast_batch({"a": product.a.shape, "b": product.b.shape})
        result = cupy_arrays.empty((*batch, *product.full[-2:]), product.dtype)
        if result.size:
            plain = product._replace(c=None, alpha=1.0, beta=0.0, out=result, full=result.shape)
            self.product_work(plain, kernel).run()
        cupy_arrays.copy(product.out, operands.scaled(result, product, cupy_arrays.readable))


class _Bound:
    """A launch on fixed arrays."""

    def __init__(self, name: str, plan: Plan, arrays: tuple, device: int, known: replay.Replays | None):
        import cupy

        self.operands = arrays  # kept alive
        self._name = name
        self._plan, self._addresses, self._device = plan, addresses_of(arrays), device
        self._known = known
        self._current_device, self._guard = cupy.cuda.runtime.getDevice, cupy.cuda.Device

    def __repr__(self) -> str:
        a, _, c, _ = self.operands
        (m, n), k = c.shape[-2:], a.shape[-1]
        return f"<bound {self._name}: c += a @ b, products of {m} x {n} x {k} (m, n, k)>"

    def __call__(self) -> None:
        stream = None if self._known is None else self._known.stream(self._device)
        if self._device == self._current_device():
            self._plan.run(self._addresses, stream)
        else:
            with self._guard(self._device):
                self._plan.run(self._addresses, stream)


def _keep(known: replay.Replays, key: Hashable | None, work: Work, product: Product) -> None:
    """Keep a plan, unless it is for copies of the operands."""
    given = product.a, product.b, product.c, product.out
    if key is not None and all(x is None or x.data.ptr == y.data.ptr for x, y in zip(given, work.arrays, strict=True)):
        known.keep(key, work.plan, given, product.shape, product.dtype)


def _views(**given):
    """The operands as CuPy arrays on the same memory; None stays None."""
    return tuple(None if x is None else cupy_arrays.as_cupy(name, x) for name, x in given.items())


def _readable(product: Product, target) -> Product:
    """The product into ``target``, of operands in memory that kernels can read."""
    a, b, c = (None if x is None else cupy_arrays.readable(x) for x in (product.a, product.b, product.c))
    return product._replace(a=a, b=b, c=c, out=target)


def tile_work(launches: Iterable[tuple], arrays: Sequence, dynamic_shared_bytes: int = 0) -> Work:
    """Launches of kernels that take a Call, given as (function, grid, block, call), for A, B, C0 or None, and C."""
    steps = [
        KernelLaunch(f, grid, block, (operands_argument(call, arrays),), dynamic_shared_bytes)
        for f, grid, block, call in launches
    ]
    return Work(KernelPlan(steps), tuple(arrays))


def _rounds(product: Product) -> bool:
    """Whether the result is float32 rounded to the 16 bits of the operands."""
    return product.dtype.itemsize == 2 and dtypes.FAMILIES[product.types].c == "float32"


def _rounded(x, dtype: np.dtype):
    """A float32 array rounded to 16 bits, to nearest even."""
    import cupy

    if dtype == np.float16:
        return x.astype(dtype)
    bits = x.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)
    return (cupy.where(cupy.isnan(x), np.uint32(0x7FFF0000), nearest) >> 16).astype(np.uint16).view(dtype)


# --- products too large for the project's kernels ---


def library_work(product: Product) -> ArrayWork:
    """A product by CuPy: cuBLAS or rocBLAS. bfloat16 is widened to float32, exactly."""
    return ArrayWork(partial(_library_matmul, product))


def _library_matmul(product: Product) -> None:
    import cupy

    a, b, c = product.a, product.b, product.out
    if a.shape[-1] == 0:
        c[...] = 0
        return
    if product.types == "bf16f32":
        a, b = _float32(a), _float32(b)
    if c.flags.c_contiguous:
        cupy.matmul(a, b, out=c)
    else:
        c[...] = cupy.matmul(a, b)


def _float32(x):
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
