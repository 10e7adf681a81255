"""``matmul`` and ``gemm``: products of any shape, on the backend whose arrays they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pysimd import arguments, operands, registry
from pysimd.backends.cpu.door import entry
from pysimd.backends.gpu import replay
from pysimd.errors import DTypeError
from pysimd.microkernel import Implementation, MicroKernel, Rung
from pysimd.operands import GemmOptions

_OBJECTS = (MicroKernel, Rung)
"""What ``kernel`` may be but None or a name."""


class ArrayLibrary(Protocol):
    """A library whose arrays have products of their own kind: lazy, with gradients, or immutable.

    The arguments are those of ``matmul`` and ``gemm``, unchecked. NotImplemented: these arrays are taken as those of
    any exporter of DLPack.
    """

    def matmul(self, a, b, out, kernel: MicroKernel | None, threads): ...

    def gemm(self, a, b, c, alpha, beta, trans_a, trans_b, out, kernel: MicroKernel | Rung | None, threads): ...


_libraries: dict[str, Callable[[], ArrayLibrary]] = {}


def register(package: str, load: Callable[[], ArrayLibrary]) -> None:
    """``load()`` multiplies the arrays whose type is defined in ``package``. It is called when such an array is given,
    so that it may import what the user has imported already."""
    _libraries[package] = load


def _library_of(**given) -> ArrayLibrary | None:
    """The library of the operands that have one; raises ``DTypeError`` where they have two."""
    found = None
    for name, x in given.items():
        package = type(x).__module__.partition(".")[0]
        load = _libraries.get(package)
        if load is None:
            continue
        library = load()
        if found is not None and library is not found[0]:
            raise DTypeError(f"{found[1]} is an array of {found[2]}, {name} one of {package}: convert one of them")
        found = found or (library, name, package)
    return None if found is None else found[0]


@entry
def matmul(a, b, *, out=None, kernel=None, threads=None):
    """Matrix product with the shapes and broadcasting of ``numpy.matmul``, made for batches of small products.

    Args:
        a: (..., m, k) or (k,). float32, float64, float16, int8, uint8 or bfloat16 (``ml_dtypes.bfloat16``; uint16
            arrays holding bfloat16 bits are taken where ``kernel`` names a bf16 kernel). A NumPy array, or a CPU
            exporter of DLPack or the buffer protocol; any strides, any alignment. Subclasses of ``numpy.ndarray``
            (``numpy.matrix``, ``numpy.recarray``) are read as plain arrays; a masked array is a DTypeError. Arrays of
            Dask, JAX and torch give results of their own kind: docs/interop.md.
        b: (..., k, n) or (k,), of the same dtype; int8 also for uint8 ``a``.
        out: array of the result's shape and dtype to write into; it may overlap ``a`` and ``b``. On a CPU, and on a
            GPU where no kernel is named, it may have the 16-bit dtype of float16 or bfloat16 operands: the
            float32 result is then rounded once, at the end.
        kernel: name of a kernel, or a ``MicroKernel``, that computes all tiles. By default the types and n choose it:
            on a CPU the narrowest tile of the highest instruction set that covers n columns.
        threads: the most threads on a CPU, of which each has 4 microseconds of estimated work or more. By default as
            many as the estimated time is worth, at most PYSIMD_NUM_THREADS or one per core.

    Returns:
        ``out``, or a new array: float32 for float32, bfloat16 and, on a CPU, float16; float64 for float64; int32 for
        int8 (exact; int32 wraps around). The same inputs give the same bits at any place in a batch and for any number
        of threads.

    KeyboardInterrupt, or any exception of a signal handler, ends a product that takes long; ``out`` is then incomplete.

    Raises:
        ShapeError, DTypeError: the operands do not fit; nothing was written.
        OptionError: ``threads`` is not a positive integer.
        UnknownKernelError, UnavailableError: ``kernel`` does not exist, or not on this machine.
        MemoryError: there is no memory for packed operands; nothing was written.

    >>> import numpy as np, pysimd
    >>> pysimd.matmul(np.ones((1000, 4, 4), np.float32), np.ones((4, 4), np.float32)).shape
    (1000, 4, 4)
    """
    if kernel is not None and not isinstance(kernel, _OBJECTS):
        kernel = registry.kernel(kernel)
    if threads is None:
        result = replay.replayed(a, b, None, out, replay.matmul_call(kernel))
        if result is not None:
            return result
    operands.check_threads(threads)
    library = _library_of(a=a, b=b, out=out)
    if library is not None:
        result = library.matmul(a, b, out, kernel, threads)
        if result is not NotImplemented:
            return result
    chosen = _implementation({"a": a, "b": b, "out": out}, kernel)
    return chosen.matmul(a, b, out, kernel, threads)


@entry
def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, trans_a=False, trans_b=False, out=None, kernel=None, threads=None):
    """``alpha * a @ b + beta * c``, with the broadcasting of ``numpy.matmul``.

    Args:
        a: (..., m, k), with ``trans_a`` (..., k, m). NumPy array, CuPy array, or an exporter of DLPack; dtypes as for
            ``matmul``; any strides, any alignment.
        b: (..., k, n), with ``trans_b`` (..., n, k), on the same device.
        c: (..., m, n), or what broadcasts to it: (n,) or (1, n) is added to each row, (m, 1) to each column; of the
            result's dtype. Never written (unless it is ``out``), and not read if ``beta`` is 0: NaN there does not
            matter then.
        alpha, beta: real numbers, rounded to the result's dtype; int32 values where that is int32.
        trans_a, trans_b: transpose the last two dimensions of ``a``, ``b``.
        out: array of the result's shape and dtype to write into; it may overlap any operand, and may be ``c``. On a
            CPU, and on a GPU where no kernel is named or ``f16_best`` or ``bf16_best``, it may have the 16-bit
            dtype of ``a`` and ``b``, which then is that of ``c`` too.
        kernel: name of a kernel or of a rung of a ladder, or one of these objects, that computes the products. By
            default what is fastest for the shape: on a GPU the last rung for the types where it was measured faster
            than the alternatives, else what ``matmul`` takes. ``tf32x3`` computes float32 products on tensor cores,
            with an error bound of its own (``Rung.roundings``), ``ozaki2_f32`` and ``ozaki2_f64`` with one on the norms
            of rows and columns.
        threads: as for ``matmul``.

    Returns:
        ``out``, or a new array of shape (..., m, n).

    Raises:
        ShapeError, DTypeError: the operands do not fit; nothing was written.
        OptionError: ``alpha`` or ``beta`` does not fit the result's dtype, ``beta`` is not 0 and there is no ``c``, or
            ``trans_a`` or ``trans_b`` is neither True nor False.
        UnknownKernelError, UnavailableError: ``kernel`` does not exist, or not on this machine.
        MemoryError: there is no memory for packed operands; nothing was written, unless ``kernel`` is a rung.

    >>> import numpy as np, pysimd
    >>> a, c = np.ones((3, 4), np.float32), np.full((3, 3), 10, np.float32)
    >>> pysimd.gemm(a, a, c, alpha=2, beta=0.5, trans_b=True)[0]
    array([13., 13., 13.], dtype=float32)
    """
    if kernel is not None and not isinstance(kernel, _OBJECTS):
        kernel = registry.kernel_or_rung(kernel)
    if type(trans_a) is not bool or type(trans_b) is not bool:
        trans_a, trans_b = arguments.flag("trans_a", trans_a), arguments.flag("trans_b", trans_b)
    if threads is None:
        result = replay.replayed(a, b, c, out, replay.gemm_call(alpha, beta, trans_a, trans_b, kernel))
        if result is not None:
            return result
    options = GemmOptions.checked(alpha, beta, trans_a, trans_b, c)
    operands.check_threads(threads)
    library = _library_of(a=a, b=b, c=c, out=out)
    if library is not None:
        result = library.gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads)
        if result is not NotImplemented:
            return result
    chosen = _implementation({"a": a, "b": b, "c": c, "out": out}, kernel)
    return chosen.gemm(a, b, c, options, out, kernel, threads)


def _implementation(given: dict[str, object], kernel: MicroKernel | Rung | None) -> Implementation:
    """The implementation of the backend whose arrays these are, which must be that of the kernel."""
    if kernel is not None:
        kernel._check_available()
    device = operands.backend_for(given)
    if kernel is not None and kernel.backend != device:
        raise DTypeError(f"{kernel.name} is a {kernel.backend} kernel, the arrays are on {device}")
    return registry.implementation(device)
