"""What users hold: a ``Backend``, a ``MicroKernel``, a ``Rung`` of a ladder; and the protocol of what runs them.

A kernel and a rung call their implementation and nothing above it. Lookups by name are in ``registry``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pysimd import dtypes, sources
from pysimd.errors import UnavailableError, UnknownKernelError
from pysimd.operands import Array, GemmOptions
from pysimd.ratio import Ratio, tile_ratio

if TYPE_CHECKING:
    from pysimd.simulator import Simulation


class Resources(NamedTuple):
    """What compiled GPU code uses: registers of a thread, bytes of shared memory of a block, bytes of local memory of a
    thread."""

    registers: int
    shared_bytes: int
    local_bytes: int


class Implementation(Protocol):
    """What a backend does for its kernels and rungs.

    Operands are given as the user passed them (``object``: any exporter of a backend's arrays); an implementation
    checks them once and raises ``ShapeError`` or ``DTypeError`` before anything is written.
    """

    name: str

    def __reduce__(self) -> str:
        """The name of the object in its module: a process has one."""

    def backend(self) -> Backend:
        """The backend as it is on this machine."""

    def kernels(self) -> tuple[MicroKernel, ...]:
        """The rows of the backend's table."""

    def rungs(self) -> tuple[Rung, ...]:
        """The backend's ladder, first rung first."""

    def call(self, kernel: MicroKernel, a: object, b: object, c: object | None, out: object | None) -> Array:
        """``c + a @ b`` by one kernel, as ``MicroKernel.__call__`` documents it."""

    def bind(self, kernel: MicroKernel, a: object, b: object, c: object) -> Callable[[], None]:
        """A prepared ``c += a @ b``, as ``MicroKernel.bind`` documents it."""

    def matmul(
        self, a: object, b: object, out: object | None, kernel: MicroKernel | None, threads: int | None
    ) -> Array:
        """``pysimd.matmul`` on this backend's arrays."""

    def gemm(
        self,
        a: object,
        b: object,
        c: object | None,
        options: GemmOptions,
        out: object | None,
        kernel: MicroKernel | Rung | None,
        threads: int | None,
    ) -> Array:
        """``pysimd.gemm`` on this backend's arrays."""

    def simulate(self, kernel: MicroKernel, a: object, b: object, c: object | None, target: str) -> Simulation:
        """``MicroKernel.simulate``; raises ``UnavailableError`` where the backend has no simulator."""

    def address(self, kernel: MicroKernel) -> int:
        """``MicroKernel.address``; raises ``UnavailableError`` where kernels have none on the host."""

    def resources(self, rung: Rung) -> Resources | None:
        """Registers and memory of a rung's compiled code, None on the CPU."""


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


class _Named:
    """What a process has one object of by its name. It is pickled and copied by that name, so that a copy is the object
    itself; its implementation is no field, so that ``dataclasses.asdict`` gives plain data."""

    name: str
    _implementation: Implementation

    def __post_init__(self, _implementation: Implementation) -> None:
        object.__setattr__(self, "_implementation", _implementation)

    def __reduce__(self):
        return _by_name, (self._implementation, self.name)


def _by_name(implementation: Implementation, name: str) -> MicroKernel | Rung:
    """The kernel or the rung of that name, in the process that unpickles it."""
    for found in (*implementation.kernels(), *implementation.rungs()):
        if found.name == name:
            return found
    raise UnknownKernelError(f"no kernel {name!r} in this version of pysimd, which was pickled by another one")


@dataclass(frozen=True, eq=False)
class MicroKernel(_Named):
    """One microkernel: ``C[mr,nr] += A[mr,K] @ B[K,nr]`` for any K, called on arrays.

    Attributes:
        name: ``<target>_<types>_<form>_<mr>x<nr>``.
        backend: ``cpu``, ``cuda`` or ``hip``.
        target: instruction set or GPU family, e.g. ``avx2``.
        types: types family, e.g. ``f32`` or ``i8i32``.
        form: ``outer``, ``inner``, or the matrix unit that computes the tile.
        mr, nr: rows and columns of the tile. Where they are counted in vectors whose length is the processor's, as it
            is on this machine; 128 bits where this machine has none.
        k_group: adjacent values of k that one instruction multiplies and adds (4 for int8 dot products).
        requires: the features the device must have.
        available: whether it can run on this machine.
        unavailable_reason: why not, and what to do; empty if available.
        source_path: the file that holds it, relative to the package's source folders.
        mr_vl, nr_vl: rows and columns in vectors, as the name has them (``8x2vl``); 0 where they are plain numbers.
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
    _implementation: InitVar[Implementation]
    mr_vl: int = 0
    nr_vl: int = 0

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

    @property
    def address(self) -> int:
        """Address of the kernel's C function in this process, of type ``c_signature``: ``c += a @ b`` for one full
        tile, without any check. docs/kernel_contract.md has the meaning of its arguments, and how narrow types are
        packed.

        Raises:
            UnavailableError: a kernel of a GPU, or one that this machine cannot run.
        """
        self._check_available()
        return self._implementation.address(self)

    @property
    def c_signature(self) -> str:
        """The type of the function at ``address``: that of every CPU kernel. Strides count elements."""
        return (
            "void (int64_t k, const void *a, int64_t rs_a, int64_t cs_a, const void *b, int64_t rs_b, "
            "void *c, int64_t rs_c)"
        )

    def _repr_html_(self) -> str:
        from html import escape

        dtypes_of = f"{self.a_dtype.name} @ {self.b_dtype.name} &rarr; {self.c_dtype.name}"
        state = "can run here" if self.available else escape(self.unavailable_reason)
        return (
            f"<b>{self.name}</b>: {self.mr} x {self.nr} tile, {self.form}, {dtypes_of}<br>"
            f"{self.ratio._repr_html_()}<br>{state}"
        )

    @cached_property
    def ratio(self) -> Ratio:
        """Analytic math-to-load ratio of one step of k."""
        return tile_ratio(self.form, self.mr, self.nr, self.a_dtype.itemsize, self.b_dtype.itemsize)

    @cached_property
    def source(self) -> str:
        """Text of the source file; its header states contract, tile, registers and ratio."""
        return sources.read(self.source_path)

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
        if not self.available:
            self._check_available()
        return self._implementation.call(self, a, b, c, out)

    def bind(self, a, b, c) -> Callable[[], None]:
        """Check once, then return a function without arguments that does ``c += a @ b`` in place, without any checks.

        Args:
            a: (..., mr, K), dtype ``a_dtype``; strides of whole elements.
            b: (..., K, nr), dtype ``b_dtype``; strides of whole elements.
            c: (..., mr, nr) of the result's full shape, dtype ``c_dtype``; writable, with adjacent columns, and apart
                from ``a`` and ``b`` in memory.

        The function holds references to the arrays, which must not be resized.

        Raises:
            ShapeError, DTypeError, UnavailableError: as for a call.
        """
        self._check_available()
        return self._implementation.bind(self, a, b, c)

    def simulate(self, a, b, c=None, *, target: str = "gfx942"):
        """Run the machine code of a HIP kernel in the functional simulator, without a GPU.

        The kernel is compiled for ``target`` (clang, or ``pip install 'pysimd[simulate]'``) and launched as on a GPU;
        every instruction is executed on NumPy arrays, and every access is checked. It is thousands of times slower than
        a GPU and models no time; docs/simulator.md states what it models and what not.

        Args:
            a, b, c: as for a call, on the CPU.
            target: ``gfx900``, ``gfx906``, ``gfx90a``, ``gfx942``, ``gfx1030``, ``gfx1100`` or ``gfx1200``.

        Returns:
            A ``Simulation``: ``result``, executed ``counts``, and the ``ratio`` of multiply-adds to elements loaded.

        Raises:
            ShapeError, DTypeError: as for a call.
            OptionError: the simulator has no such target.
            UnavailableError: not a HIP kernel, a target without its instructions, or no compiler.
        """
        return self._implementation.simulate(self, a, b, c, target)

    def _check_available(self) -> None:
        if not self.available:
            raise UnavailableError(f"{self.name} cannot run here: {self.unavailable_reason}")


@dataclass(frozen=True, eq=False)
class Rung(_Named):
    """One rung, called like ``gemm``.

    Attributes:
        number: position in the ladder: ``C0`` upwards on the CPU, ``S0`` and ``T1`` upwards on GPUs.
        name: of the rung and of its file; on HIP devices ``hip_`` and the name of the file.
        backend: ``cpu``, ``cuda`` or ``hip``.
        types: types family, e.g. ``f32``.
        form: ``inner``, ``outer``, or ``tensor cores``.
        new: what it adds to the rung before.
        covers: the kernels of the ladder's source documents that the rung implements, as (document, kernel).
        bm, bn: on a GPU rows and columns of the block tile of C; on the CPU the rows of a block of A (mc) and the
            columns of a block of B (nc), None for a rung without blocks, or with blocks by the shape.
        bk: steps of k of a panel in shared memory, or of a block (kc); None for a rung that uses none.
        tm, tn: rows and columns of C that ``lanes`` threads compute together, in registers.
        lanes: 1, or the threads of a warp or more on tensor cores.
        threads: threads of a block; on the CPU the most that compute a product unless the call says how many.
        ratio: multiply-adds of a tm x tn tile per element read for it, for one step of k.
        roundings: the error is at most ``(k + roundings) u |A| |B|``, with u the unit round-off of the accumulators;
            None where the bound is one on the norms of a row of A and a column of B, which ``source`` gives.
        requires: the features the device must have.
        available: whether it can run on this machine.
        unavailable_reason: why not, and what to do; empty if available.
        source_path: the file that holds it, relative to the package's source folders.
    """

    number: str
    name: str
    backend: str
    types: str
    form: str
    new: str
    covers: tuple[tuple[str, str], ...]
    bm: int | None
    bn: int | None
    bk: int | None
    tm: int
    tn: int
    lanes: int
    threads: int
    ratio: Ratio
    roundings: int | None
    requires: tuple[str, ...]
    available: bool
    unavailable_reason: str
    source_path: str
    _implementation: InitVar[Implementation]

    @cached_property
    def source(self) -> str:
        """Text of the source file; its header states step, contract, tile, registers and ratio."""
        return sources.read(self.source_path)

    @property
    def registers(self) -> int | None:
        """Registers of a thread in the code compiled for row-major, aligned operands; None without a GPU."""
        return self._resources and self._resources.registers

    @property
    def shared_bytes(self) -> int | None:
        """Bytes of shared memory of a block in that code; None without a GPU."""
        return self._resources and self._resources.shared_bytes

    @property
    def local_bytes(self) -> int | None:
        """Bytes of local memory of a thread (spills) in that code, 0 in every rung; None without a GPU."""
        return self._resources and self._resources.local_bytes

    @property
    def _resources(self) -> Resources | None:
        return self._implementation.resources(self) if self.available else None

    def __call__(self, a, b, c=None, *, alpha=1.0, beta=0.0, trans_a=False, trans_b=False, out=None):
        """Return ``alpha * a @ b + beta * c`` computed by this rung: ``pysimd.gemm(..., kernel=self)``.

        On a GPU row-major and transposed operands are read in place with any leading dimension; for a column-major
        ``out`` the operands are swapped. An operand with unit stride along neither of its last two dimensions is copied
        first. On the CPU operands of any strides are read in place, but for a ``b`` without adjacent columns where the
        rung's file says that it is copied.

        Args:
            a: (..., m, k), with ``trans_a`` (..., k, m), as for ``gemm``: an array on the rung's backend, or an
                exporter of DLPack.
            b: (..., k, n), with ``trans_b`` (..., n, k).
            c: (..., m, n), or what broadcasts to it, as for ``gemm``; read only if ``beta`` is not 0.
            alpha, beta, trans_a, trans_b, out: as for ``gemm``.

        Returns:
            ``out``, or a new array of shape (..., m, n).

        Raises:
            ShapeError, DTypeError, OptionError: the operands do not fit; nothing was written.
            UnavailableError: this machine cannot run the rung.
        """
        self._check_available()
        options = GemmOptions.checked(alpha, beta, trans_a, trans_b, c)
        return self._implementation.gemm(a, b, c, options, out, self, None)

    def _check_available(self) -> None:
        if not self.available:
            raise UnavailableError(f"{self.name} cannot run here: {self.unavailable_reason}")
