"""The CPU backend: kernels of ``cpu_kernels`` on NumPy arrays.

Every call is passed to the door (cpu_kernels/core/door.c) first. What it does not take is checked here; the product
described by the checks then goes through the door again.
"""

from __future__ import annotations

import functools
from functools import cache, cached_property

import numpy as np

from pysimd import operands
from pysimd._cpu import ffi, lib
from pysimd.backends.cpu import dispatch, ladder, numpy_arrays, table
from pysimd.backends.cpu.door import door
from pysimd.errors import DTypeError, ShapeError, UnavailableError
from pysimd.microkernel import Backend, MicroKernel, Resources, Rung
from pysimd.once import once
from pysimd.operands import GemmOptions, Product


class Cpu:
    """The implementation of the ``cpu`` backend."""

    name = "cpu"
    offered = table.OFFERED

    def __reduce__(self) -> str:
        return "CPU"

    @cache  # noqa: B019 (there is one Cpu, and it lives as long as the process)
    def backend(self) -> Backend:
        """This processor."""
        return Backend("cpu", True, "", table.device(), table.features())

    @once
    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of kernels.inc."""
        bound = table.start()
        return tuple(self._kernel(row, bound) for row in table.rows())

    @once
    def rungs(self) -> tuple[Rung, ...]:
        """The rows of ladder.inc."""
        self.kernels()  # detects the CPU
        return ladder.rungs(self)

    def _kernel(self, row, bound: str) -> MicroKernel:
        target = table.TARGETS[row.target]
        name = table.text(row.name)
        needs = table.names(lib.pysimd_targets[row.target].needs)
        missing = [feature for feature in needs if feature not in table.features()]
        reason = ""
        if row.run == ffi.NULL:
            reason = self._why_not_built(target, table.FOLDERS[row.target])
        elif missing:
            reason = f"this CPU has no {', '.join(missing)} ({target} kernels need {', '.join(needs)})"
        elif not lib.pysimd_can_run(row) and row.target <= table.TARGETS.index(bound):
            reason = "the operating system does not permit this process to use the tile registers of AMX"
        elif not lib.pysimd_can_run(row):
            reason = f"PYSIMD_ISA={bound} bounds dispatch below {target}: unset it, or set it to {target} or higher"
        return MicroKernel(
            name=name,
            backend="cpu",
            target=target,
            types=table.FAMILIES[row.types],
            form=table.FORMS[row.form],
            mr=row.mr,
            nr=row.nr,
            k_group=row.k_group,
            requires=needs,
            available=not reason,
            unavailable_reason=reason,
            source_path=f"cpu_kernels/{table.FOLDERS[row.target]}/{name}.c",
            _implementation=self,
            mr_vl=row.mr_vl,
            nr_vl=row.nr_vl,
        )

    @staticmethod
    def _why_not_built(target: str, folder: str) -> str:
        if folder == table.FOLDER:
            return f"the compiler of this build does not know {target}: build with gcc 12, clang 14 or later"
        return f"this processor is {table.ARCHITECTURE} ({target} kernels need {table.ARCHITECTURES[folder]})"

    def chosen(self, types: str, n: int, m: int = 2, k: int = 1) -> MicroKernel:
        """The kernel that ``matmul`` takes for products of m x n x k; by default for the smallest with n columns."""
        name = table.text(dispatch.row_for(types, n, m, k).name)
        return next(k for k in self.kernels() if k.name == name)

    def threads(self, kernel: MicroKernel, m: int, n: int, k: int, batch: int) -> int:
        """The default number of threads for ``batch`` products of m x n x k."""
        return self.door.threads(kernel, m, n, k, batch)

    @cached_property
    def door(self):
        """``pysimd._door``, by which every call enters C."""
        return door(self.kernels())

    def call(self, kernel: MicroKernel, a, b, c, out):
        """``MicroKernel.__call__`` on CPU arrays."""
        result = self.door.call(kernel, a, b, c, out)
        if result is not NotImplemented:
            return result
        self._check_device(kernel, {"a": a, "b": b, "c": c, "out": out})
        result = self._multiply(operands.check_tile_call(kernel, *_views(a=a, b=b, c=c, out=out)), kernel, None)
        return result if out is None else out

    def bind(self, kernel: MicroKernel, a, b, c):
        """``MicroKernel.bind`` on CPU arrays."""
        given = (a, b, c)
        bound = self.door.bind(kernel, a, b, c, given)
        if bound is not NotImplemented:
            return bound
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
        return self.door.bind(kernel, a, b, c, given)

    def matmul(self, a, b, out, kernel: MicroKernel | None, threads: int | None):
        """``pysimd.matmul`` on CPU arrays that the door did not take."""
        product = operands.check_matmul(kernel, *_views(a=a, b=b, out=out), self.offered, narrow=True)
        result = self._multiply(product, kernel, threads)
        return result.reshape(product.shape) if out is None else out

    def gemm(self, a, b, c, options: GemmOptions, out, kernel: MicroKernel | Rung | None, threads: int | None):
        """``pysimd.gemm`` on CPU arrays that the door did not take."""
        product = operands.check_gemm(kernel, *_views(a=a, b=b, c=c, out=out), options, self.offered, narrow=True)
        result = self._multiply(product, kernel, threads)
        return result if out is None else out

    def simulate(self, kernel: MicroKernel, a, b, c, target: str):
        """Raises ``UnavailableError``: only HIP kernels can be simulated."""
        raise UnavailableError(
            f"{kernel.name} is no HIP kernel: the simulator runs machine code of AMD GPUs only; "
            "pysimd.kernels('hip') lists what it can run"
        )

    def address(self, kernel: MicroKernel) -> int:
        """Where the kernel's C function is in this process."""
        return int(ffi.cast("uintptr_t", table.row(kernel.name).run))

    def resources(self, rung: Rung) -> Resources | None:
        """None: ``pysimd.inspect`` counts what a rung's loop uses."""
        return None

    @staticmethod
    def _check_device(kernel: MicroKernel, given: dict[str, object]) -> None:
        device = operands.backend_for(given)
        if device != "cpu":
            raise DTypeError(f"{kernel.name} is a CPU kernel, the arrays are on {device}: copy them to the host first")

    def _multiply(self, product: Product, kernel: MicroKernel | Rung | None, threads: int | None) -> np.ndarray:
        """The result of a checked product, as if nothing overlapped."""
        return operands.write(product, numpy_arrays, functools.partial(self._into, product, kernel, threads))

    def _into(
        self, product: Product, kernel: MicroKernel | Rung | None, threads: int | None, target: np.ndarray
    ) -> None:
        """Compute the product into ``target``, which kernels can store to and which overlaps no operand but C."""
        a, b = numpy_arrays.readable(product.a), numpy_arrays.readable(product.b)
        c = None if product.c is None else numpy_arrays.readable(product.c)
        # A C that is not read (beta is 0) may have batch dimensions of its own.
        a = np.broadcast_to(a, (*product.full[:-2], *a.shape[-2:]))
        threads = None if threads is None else int(threads)
        if isinstance(kernel, Rung):
            if not ladder.is_product(kernel):
                return self._by_rung(kernel, product, a, b, c, target, threads)
            kernel = None
        alpha, beta = (int(x) if product.dtype.kind == "i" else float(x) for x in (product.alpha, product.beta))
        result = self.door.gemm(a, b, c, alpha, beta, False, False, target, kernel, threads)
        assert result is target, "the door takes every checked product"

    def _by_rung(self, rung: Rung, product: Product, a, b, c, target: np.ndarray, threads: int | None) -> None:
        """As ``_into``, of operands that can be read."""
        if c is not None and not numpy_arrays.same_memory(c, target):
            numpy_arrays.copy(target, c)
        if threads is None:
            threads = self.threads(self.chosen(rung.types, target.shape[-1]), *product.sizes, product.count)
        beta = 0.0 if c is None else float(product.beta)
        ladder.multiply(rung, a, b, target, float(product.alpha), beta, min(threads, table.MOST_THREADS))


def _views(**given):
    """The operands as NumPy views of the same memory; None where one is not given."""
    return tuple(None if x is None else operands.as_numpy(name, x) for name, x in given.items())


CPU = Cpu()
