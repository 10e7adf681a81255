"""The CPU backend: kernels of ``cpu_kernels`` on NumPy arrays.

Everything that depends on shapes and strides is worked out once per call; the batch is walked in C.
"""

from __future__ import annotations

import functools
from functools import cache

import numpy as np

from pysimd import dtypes, operands
from pysimd._cpu import ffi, lib
from pysimd.backends.cpu import dispatch, numpy_arrays, table
from pysimd.errors import DTypeError, ShapeError, UnavailableError
from pysimd.microkernel import Backend, MicroKernel, Resources, Rung
from pysimd.operands import GemmOptions, Product

STREAM_BYTES = 16 << 20
"""From this many bytes of result on, C is written by non-temporal stores: it would only evict A and B from the caches.
Measured on a Xeon with 2 MiB of L2: at 0.5 MiB per array they lose (3.3 against 2.4 ns per 64 bytes), at 64 MiB they
gain (9.3 against 11.9); 16 MiB is even."""

FAST_PATH_MACS, FAST_PATH_BYTES = 1 << 22, 4 << 20
"""Calls within these limits, of C-contiguous arrays, may take the fast path into C: one thread, ordinary stores."""


class Cpu:
    """The implementation of the ``cpu`` backend."""

    name = "cpu"
    offered = tuple(table.TYPES)

    @cache  # noqa: B019 (there is one Cpu, and it lives as long as the process)
    def backend(self) -> Backend:
        """This processor."""
        return Backend("cpu", True, "", table.device(), table.features())

    @cache  # noqa: B019
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of kernels.inc."""
        bound = table.start()
        return tuple(self._kernel(row, bound) for row in table.rows())

    def rungs(self) -> tuple[Rung, ...]:
        """None yet."""
        return ()

    def _kernel(self, row, bound: str) -> MicroKernel:
        target = table.TARGETS[row.target]
        name = table.text(row.name)
        needs = table.names(lib.pysimd_targets[row.target].needs)
        missing = [feature for feature in needs if feature not in table.features()]
        reason = ""
        if missing:
            reason = f"this CPU has no {', '.join(missing)} ({target} kernels need {', '.join(needs)})"
        elif not lib.pysimd_can_run(row):
            reason = f"PYSIMD_ISA={bound} bounds dispatch below {target}: unset it, or set it to {target} or higher"
        return MicroKernel(
            name=name,
            backend="cpu",
            target=target,
            types=table.FAMILIES[row.types],
            form="outer" if row.form == lib.OUTER else "inner",
            mr=row.mr,
            nr=row.nr,
            k_group=row.k_group,
            requires=needs,
            available=not reason,
            unavailable_reason=reason,
            source_path=f"cpu_kernels/{table.text(lib.pysimd_targets[row.target].folder)}/{name}.c",
            _implementation=self,
        )

    def chosen(self, types: str, n: int) -> MicroKernel:
        """The kernel that ``matmul`` takes for products with n columns."""
        name = table.text(dispatch.row_for(types, n).name)
        return next(k for k in self.kernels() if k.name == name)

    def call(self, kernel: MicroKernel, a, b, c, out):
        """``MicroKernel.__call__`` on CPU arrays."""
        self._check_device(kernel, {"a": a, "b": b, "c": c, "out": out})
        product = operands.check_tile_call(kernel, *_views(a=a, b=b, c=c, out=out))
        result = self._multiply(product, table.row(kernel.name), None)
        return result if out is None else out

    def bind(self, kernel: MicroKernel, a, b, c):
        """``MicroKernel.bind`` on CPU arrays."""
        given = (a, b, c)
        if c is None:
            raise DTypeError("bind needs an array c to add to, got None")
        self._check_device(kernel, {"a": a, "b": b, "c": c})
        a, b, c = _views(a=a, b=b, c=c)
        operands.check_tile_call(kernel, a, b, None, c, out_name="c")
        if not numpy_arrays.storable(c):
            raise ShapeError(f"bind needs a c with adjacent columns and no repeated element, got strides {c.strides}")
        for name, x in (("a", a), ("b", b)):
            if numpy_arrays.overlap(c, x):
                raise ShapeError(f"bind needs a c apart from {name}: their memory overlaps")
            if numpy_arrays.readable(x) is not x:
                raise ShapeError(f"bind needs an {name} whose strides are whole elements, got {x.strides}")
        bound = ffi.new("pysimd_bound *")
        bound.kernel = table.row(kernel.name)
        numpy_arrays.fill(bound.product, a, b, c, 0, 1)
        if lib.pysimd_is_one_tile(bound):
            run = functools.partial(lib.pysimd_run_bound, bound)
        else:
            run = functools.partial(_run_product, bound.kernel, ffi.addressof(bound, "product"), bound)
        run.operands = given  # kept alive with the function
        return run

    def matmul(self, a, b, out, kernel: MicroKernel | None, threads: int | None):
        """``pysimd.matmul`` on CPU arrays."""
        product = operands.check_matmul(kernel, *_views(a=a, b=b, out=out), self.offered)
        result = self._multiply(product, self._row(product, kernel), threads)
        return result.reshape(product.shape) if out is None else out

    def gemm(self, a, b, c, options: GemmOptions, out, kernel: MicroKernel | None, threads: int | None):
        """``pysimd.gemm`` on CPU arrays."""
        product = operands.check_gemm(kernel, *_views(a=a, b=b, c=c, out=out), options, self.offered)
        row = self._row(product, kernel)
        if product.alpha == 1 and product.c is None:
            result = self._multiply(product, row, threads)
        else:
            batch = operands.broadcast_batch({"a": product.a.shape, "b": product.b.shape})
            plain = product._replace(c=None, out=None, alpha=1.0, beta=0.0, full=(*batch, *product.full[-2:]))
            result = operands.scaled(self._multiply(plain, row, threads), product, lambda x: x)
            result = np.broadcast_to(result, product.full)
            if out is not None:
                numpy_arrays.copy(product.out, result)
            elif not result.flags.writeable:
                result = result.copy()
        return result if out is None else out

    def simulate(self, kernel: MicroKernel, a, b, c, target: str):
        """Only HIP kernels can be simulated."""
        raise UnavailableError(
            f"{kernel.name} is no HIP kernel: the simulator runs machine code of AMD GPUs only; "
            "pysimd.kernels('hip') lists what it can run"
        )

    def resources(self, rung: Rung) -> Resources:
        """A CPU has no ladder."""
        raise UnavailableError("cpu has no ladder")

    @cache  # noqa: B019
    def fast_matmul(self):
        """``f(id(a), id(b), id(out)) -> done``: the C function, or one that never does anything."""
        table.start()
        if not numpy_arrays.knows_array_layout():
            return lambda a, b, out: 0
        for name, number in table.TYPES.items():
            family = dtypes.FAMILIES[name]
            if family.a == "bfloat16" and dtypes.dtype_of("bfloat16").name != "bfloat16":
                continue  # uint16 stands for bfloat16 only where a kernel is named
            of = (id(dtypes.dtype_of(x)) for x in (family.a, family.b, family.c))
            lib.pysimd_fast_types(id(np.ndarray), number, *of)
        lib.pysimd_fast_limits(dispatch.BLAS_MACS - 1, FAST_PATH_MACS, FAST_PATH_BYTES)
        return lib.pysimd_fast_matmul

    @staticmethod
    def _check_device(kernel: MicroKernel, given: dict[str, object]) -> None:
        device = operands.backend_for(given)
        if device != "cpu":
            raise DTypeError(f"{kernel.name} is a CPU kernel, the arrays are on {device}: copy them to the host first")

    @staticmethod
    def _row(product: Product, kernel: MicroKernel | None):
        """The row of the C table that computes a product; None for NumPy's BLAS."""
        if kernel is not None:
            return table.row(kernel.name)
        if dispatch.left_to_blas(product.types, *product.sizes):
            return None
        return dispatch.row_for(product.types, product.full[-1])

    @staticmethod
    def _multiply(product: Product, row, threads: int | None) -> np.ndarray:
        """``a @ b``, or ``c + a @ b``, of a checked product, as if nothing overlapped."""
        if row is None:
            with np.errstate(all="ignore"):  # NaN and infinity are values like others
                out = np.empty(product.full, product.dtype) if product.out is None else product.out
                return np.matmul(product.a, product.b, out=out)

        def compute(target: np.ndarray) -> None:
            if product.c is not None and not numpy_arrays.same_memory(product.c, target):
                numpy_arrays.copy(target, product.c)
            _accumulate(row, product, target, threads)

        return operands.write(product, numpy_arrays, compute)


def _views(**given):
    """The operands as NumPy arrays on the same memory; None stays None."""
    return tuple(None if x is None else operands.as_numpy(name, x) for name, x in given.items())


def _accumulate(row, product: Product, c: np.ndarray, threads: int | None) -> None:
    """``c = a @ b``, or ``c += a @ b`` where a C is added; c overlaps neither of them, and kernels can store to it."""
    m, n, k = product.sizes
    a, b = numpy_arrays.readable(product.a), numpy_arrays.readable(product.b)  # copies live until the product is done
    threads = dispatch.threads_for(product.count * m * n * k, a.nbytes + b.nbytes + c.nbytes, threads)
    flags = 0 if product.c is not None else lib.PYSIMD_ZERO
    if product.c is None and numpy_arrays.streamable(c, STREAM_BYTES):
        flags |= lib.PYSIMD_STREAM
    _run_product(row, numpy_arrays.product(a, b, c, flags, threads), None)


def _run_product(row, product, _owner) -> None:
    if lib.pysimd_multiply(row, product):
        raise MemoryError("no memory for the packed operands")


CPU = Cpu()
