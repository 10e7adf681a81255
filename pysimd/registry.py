"""MicroKernel and Backend, and the lists of them: every backend registers its table here, in one form."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pysimd import dtypes
from pysimd.errors import UnavailableError, UnknownKernelError
from pysimd.ratio import Ratio, tile_ratio


@dataclass(frozen=True)
class Backend:
    """Where kernels run.

    Attributes:
        name: ``cpu``, ``cuda`` or ``hip``.
        available: whether its kernels can run here and now.
        reason: why not, and what to do; empty if available.
        device: the processor's or GPU's own name; empty if there is none.
        features: what was detected (instruction sets, compute capability).
    """

    name: str
    available: bool
    reason: str
    device: str
    features: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class MicroKernel:
    """One microkernel: ``C[mr,nr] += A[mr,K] @ B[K,nr]`` for any K, called on arrays.

    Attributes:
        name: ``<target>_<types>_<form>_<mr>x<nr>``.
        backend: ``cpu``, ``cuda`` or ``hip``.
        target: instruction set or GPU family, e.g. ``avx2``.
        types: types family, e.g. ``f32`` or ``i8i32``.
        form: ``outer``, ``inner``, or the matrix unit that does the tile.
        mr, nr: rows and columns of the tile.
        k_group: how many k are multiplied by one instruction (4 for int8 dot products).
        requires: the features the device must have.
        available: whether it can run on this machine.
        unavailable_reason: why not, and what to do; empty if available.
        source_path: the file that holds it, relative to the package's source folders.
    """

    name: str
    backend: str
    target: str
    types: str
    form: str
    mr: int
    nr: int
    k_group: int
    requires: tuple[str, ...]
    available: bool
    unavailable_reason: str
    source_path: str
    _implementation: Any = field(repr=False)

    @property
    def a_dtype(self) -> np.dtype:
        """dtype of A; bfloat16 is ``ml_dtypes.bfloat16`` if that is installed, else uint16."""
        return dtypes.dtype_of(dtypes.FAMILIES[self.types].a)

    @property
    def b_dtype(self) -> np.dtype:
        """dtype of B."""
        return dtypes.dtype_of(dtypes.FAMILIES[self.types].b)

    @property
    def c_dtype(self) -> np.dtype:
        """dtype of C and of the accumulators."""
        return dtypes.dtype_of(dtypes.FAMILIES[self.types].c)

    @cached_property
    def ratio(self) -> Ratio:
        """Analytic math-to-load ratio of one step of k."""
        return tile_ratio(self.form, self.mr, self.nr, self.a_dtype.itemsize, self.b_dtype.itemsize)

    @cached_property
    def source(self) -> str:
        """Text of the source file; its header states contract, tile, registers and ratio."""
        from importlib.resources import files  # not before it is needed: it would make `import pysimd` slower

        folder, _, name = self.source_path.partition("/")
        return files(f"pysimd.{folder}").joinpath(name).read_text()

    def __call__(self, a, b, c=None, *, out=None):
        """Return ``c + a @ b``, each product computed by this kernel.

        Args:
            a: (..., mr, K), dtype ``a_dtype``; any K >= 0, strides and alignment.
            b: (..., K, nr), dtype ``b_dtype``. Batch dimensions broadcast as in ``numpy.matmul``.
            c: (..., mr, nr), dtype ``c_dtype``; zeros if not given. Never written (unless it is ``out``).
            out: array of the result's shape and dtype to write into; it may overlap any input.

        Returns:
            ``out``, or a new array of shape (..., mr, nr).

        Raises:
            ShapeError, DTypeError: the operands do not fit; nothing was written.
            UnavailableError: this machine cannot run the kernel.
        """
        self._check_available()
        return self._implementation.call(self, a, b, c, out)

    def bind(self, a, b, c) -> Callable[[], None]:
        """Check once, then return a function without arguments that does ``c += a @ b`` in place, without any checks.

        The arrays are kept alive, and must not be resized. ``c`` must be writable, have the shape of the result, unit
        stride along its rows, and overlap neither ``a`` nor ``b``.

        Raises:
            ShapeError, DTypeError, UnavailableError: as for a call.
        """
        self._check_available()
        return self._implementation.bind(self, a, b, c)

    def simulate(self, a, b, c=None, *, target: str = "gfx942"):
        """Run the machine code of a HIP kernel in the functional simulator, without a GPU.

        The kernel is compiled for ``target`` (clang, or ``pip install 'pysimd[simulate]'``) and launched as on a GPU;
        every instruction is executed on NumPy arrays, and every access checked. It is thousands of times slower than
        a GPU and says nothing of time; docs/simulator.md tells what it models and what not.

        Args:
            a, b, c: as for a call, on the CPU.
            target: ``gfx900``, ``gfx906``, ``gfx90a``, ``gfx942``, ``gfx1030``, ``gfx1100`` or ``gfx1200``.

        Returns:
            A ``Simulation``: ``result``, executed ``counts``, and the ``ratio`` of multiply-adds to elements loaded.

        Raises:
            ShapeError, DTypeError: as for a call.
            OptionError: the simulator does not know the target.
            UnavailableError: not a HIP kernel, a target without its instructions, or no compiler.
        """
        if self.backend != "hip":
            raise UnavailableError(
                f"{self.name} is no HIP kernel: the simulator runs machine code of AMD GPUs only; "
                "pysimd.kernels('hip') lists what it can run"
            )
        from pysimd.backends.hip import simulation as hip_simulation

        return hip_simulation.simulate(self, a, b, c, target)

    def _check_available(self) -> None:
        if not self.available:
            raise UnavailableError(f"{self.name} cannot run here: {self.unavailable_reason}")


def _implementations():
    from pysimd.backends.cpu import implementation as cpu
    from pysimd.backends.cuda import implementation as cuda
    from pysimd.backends.hip import implementation as hip

    return (cpu, cuda, hip)


def implementation(backend: str):
    """The module of a backend that can run here; raises ``UnavailableError`` with what is missing."""
    found = {module.backend().name: module for module in _implementations()}
    if backend not in found:
        raise UnavailableError(f"no backend for arrays on {backend}: there are {', '.join(found)}")
    if not found[backend].backend().available:
        raise UnavailableError(found[backend].backend().reason)
    return found[backend]


def backends() -> tuple[Backend, ...]:
    """All backends, available or not: ``Backend(name, available, reason, device, features)``."""
    return tuple(module.backend() for module in _implementations())


def kernels(
    backend: str | None = None,
    *,
    target: str | None = None,
    types: str | None = None,
    form: str | None = None,
    available: bool | None = None,
) -> list[MicroKernel]:
    """The kernels that match, in the order of their tables; each argument is exact or None for any.

    >>> [k.name for k in pysimd.kernels(target="avx", form="outer")]
    ['avx_f32_outer_8x8']
    """
    wanted = {"backend": backend, "target": target, "types": types, "form": form, "available": available}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    return [
        kernel
        for module in _implementations()
        for kernel in module.kernels()
        if all(getattr(kernel, key) == value for key, value in wanted.items())
    ]


def kernel(name: str) -> MicroKernel:
    """The kernel of that name, whether or not this machine can run it.

    Raises:
        UnknownKernelError: no such kernel; the message names the closest.
    """
    return named(name, kernels(), "kernel", "pysimd.kernels() lists them all")


def named(name: str, things, what: str, where: str):
    """The one of ``things`` that has this name; raises ``UnknownKernelError`` with the closest, or where to look."""
    everything = {thing.name: thing for thing in things}
    if name in everything:
        return everything[name]
    close = difflib.get_close_matches(str(name), everything, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else where
    raise UnknownKernelError(f"no {what} {name!r}: {hint}")
