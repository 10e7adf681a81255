"""``matmul``: products of any shape, on the backend whose arrays they are."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from pysimd import operands as arrays
from pysimd import registry
from pysimd.errors import DTypeError, OptionError, UnavailableError

#: dtype of A to dtype of the result, for results that the short way may get a new array for.
_RESULTS = {np.dtype(a): np.dtype(c) for a, c in (("f4", "f4"), ("f8", "f8"), ("i1", "i4"), ("u1", "i4"))}


def _not_started(a: int, b: int, out: int) -> int:
    return 0


_short_way = _not_started


def matmul(a, b, *, out=None, kernel=None, threads=None):
    """Matrix product with the shapes and broadcasting of ``numpy.matmul``, made for batches of small products.

    Args:
        a: (..., m, k) or (k,). float32, float64, int8, uint8 or bfloat16 (``ml_dtypes.bfloat16``; uint16 arrays holding
            bfloat16 bits are taken where ``kernel`` names a bf16 kernel). A NumPy array, or a CPU exporter of DLPack or
            the buffer protocol; any strides, any alignment.
        b: (..., k, n) or (k,), of the same dtype; int8 also for uint8 ``a``.
        out: array of the result's shape and dtype to write into; it may overlap ``a`` and ``b``.
        kernel: name of a kernel, or a ``MicroKernel``, that does all tiles; by default the narrowest tile of the best
            instruction set that covers n columns.
        threads: number of threads. By default one for small work, else PYSIMD_NUM_THREADS or all cores.

    Returns:
        ``out``, or a new array: float32 for float32 and bfloat16, float64 for float64, int32 for int8 (exact; int32
        wraps around). The same inputs give the same bits at any place in a batch and for any number of threads.

    float32 and float64 products of 2**21 multiply-adds or more each (128 x 128 x 128) go to NumPy's BLAS, which then
    decides on threads and rounding itself, unless ``kernel`` or PYSIMD_ISA is set.

    Raises:
        ShapeError, DTypeError: the operands do not fit; nothing was written.
        OptionError: ``threads`` is no whole number from 1 up.
        UnknownKernelError, UnavailableError: ``kernel`` does not exist, or not on this machine.

    >>> import numpy as np, pysimd
    >>> pysimd.matmul(np.ones((1000, 4, 4), np.float32), np.ones((4, 4), np.float32)).shape
    (1000, 4, 4)
    """
    if kernel is None and threads is None:
        result = out
        if out is None and type(a) is np.ndarray and type(b) is np.ndarray:
            dtype = _RESULTS.get(a.dtype)
            if dtype is not None:  # a guess: the short way checks it against a and b, and the long way starts anew
                try:
                    result = np.empty(a.shape[:-1] + b.shape[-1:], dtype)
                except MemoryError:  # a product that large, or shapes that do not agree: not for the short way
                    result = None
        if _short_way(id(a), id(b), id(result)):
            return result
    return _matmul(a, b, out, kernel, threads)


def _matmul(a, b, out, kernel, threads):
    global _short_way
    if threads is not None and (not isinstance(threads, Integral) or threads < 1):
        raise OptionError(f"threads must be a whole number from 1 up, or None, got {threads!r}")
    if isinstance(kernel, str):
        kernel = registry.kernel(kernel)
    device = arrays.backend_for({"a": a, "b": b, "out": out})
    if kernel is not None:
        kernel._check_available()
        if kernel.backend != device:
            raise DTypeError(f"{kernel.name} is a {kernel.backend} kernel, the arrays are on {device}")
    if device == "cuda":
        from pysimd.backends.cuda import implementation as cuda

        return cuda.matmul(a, b, out, kernel, threads)
    if device == "hip":
        from pysimd.backends.hip import implementation as hip

        return hip.matmul(a, b, out, kernel, threads)
    if device != "cpu":
        raise UnavailableError(f"no backend for arrays on {device}")
    from pysimd.backends.cpu import implementation as cpu

    _short_way = cpu.fast_matmul()
    return cpu.matmul(a, b, out, kernel, threads)
