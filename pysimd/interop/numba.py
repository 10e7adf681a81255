"""CPU kernels inside functions that Numba compiles: called by their address, without Python."""

from __future__ import annotations

import ctypes

from pysimd import registry
from pysimd.backends.cpu import table
from pysimd.errors import OptionError
from pysimd.interop import extras
from pysimd.microkernel import MicroKernel

numba = extras.module("numba", "numba")

_RUN = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64),
    *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64),
)
"""``MicroKernel.c_signature``."""


def tile(kernel: MicroKernel | str):
    """A function for ``@njit`` code: ``tile(a, b, c)`` is ``c += a @ b`` by one call of the kernel.

    Of its arguments shapes are checked at each call (ValueError), dtypes when Numba compiles the call (TypingError):
    a (mr, K) with any strides, b (K, nr) and c (mr, nr) with adjacent columns. c overlaps neither a nor b: that is not
    checked. The address of the kernel is compiled in, so that Numba cannot cache the caller on disk.

    Args:
        kernel: a kernel of the CPU, or its name, that reads arrays as they are: an outer product of f32 or f64, or
            ``generic_i8i32_outer_4x4`` and ``generic_u8i8i32_outer_4x4``.

    Raises:
        OptionError: the kernel reads packed panels only, or float16, which Numba does not have on the CPU.
        UnknownKernelError, UnavailableError: it does not exist, or not on this machine.
    """
    if not isinstance(kernel, MicroKernel):
        kernel = registry.kernel(kernel)
    run, mr, nr = _RUN(kernel.address), kernel.mr, kernel.nr
    if kernel.form != "outer" or kernel.k_group != 1 or table.row(kernel.name).panel != table.lib.PLAIN:
        raise OptionError(f"{kernel.name} reads packed panels: take an outer product of f32 or f64")
    if kernel.types == "f16":
        raise OptionError(f"{kernel.name}: Numba has no float16 on the CPU; take an outer product of f32 or f64")
    size_a, size_b, size_c = (dtype.itemsize for dtype in (kernel.a_dtype, kernel.b_dtype, kernel.c_dtype))

    def call(a, b, c):
        k = a.shape[1]
        if a.shape[0] != mr or b.shape[0] != k or b.shape[1] != nr or c.shape[0] != mr or c.shape[1] != nr:
            raise ValueError("the shapes are not those of the kernel: a (mr, K), b (K, nr), c (mr, nr)")
        if (nr > 1 and c.strides[1] != size_c) or (k > 0 and b.strides[1] != size_b):
            raise ValueError("the columns of b and of c must be adjacent")
        run(
            k,
            a.ctypes,
            a.strides[0] // size_a,
            a.strides[1] // size_a,
            b.ctypes,
            b.strides[0] // size_b,
            c.ctypes,
            c.strides[0] // size_c,
        )

    read_a, read_b = (_matrix(dtype, readonly=True) for dtype in (kernel.a_dtype, kernel.b_dtype))
    return numba.njit(numba.void(read_a, read_b, _matrix(kernel.c_dtype, readonly=False)))(call)


def _matrix(dtype, readonly: bool):
    """Numba's type of a matrix with any strides."""
    return numba.types.Array(numba.from_dtype(dtype), 2, "A", readonly=readonly)
