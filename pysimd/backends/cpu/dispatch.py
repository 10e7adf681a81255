"""Which kernel computes a product on the CPU, and the sizes from which on threads, BLAS and other stores are used.

``pysimd_choose`` in C chooses the kernel, by the rows of kernels.inc, and core/cost.c estimates the time and the number
of threads. This module gives them their limits, once per process; no product calls it on its way to a kernel.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from pysimd._cpu import lib
from pysimd.backends.cpu import table


class Limits(NamedTuple):
    """The limits by which the C code decides from the size of a product.

    Attributes:
        threads: threads of large work, unless the call says how many.
        thread_ns: nanoseconds of work that are worth a thread: starting and joining one takes some 20 microseconds.
        gil_ns: the GIL is released for longer work. Next to a busy Python thread, a call that releases it
            waits up to 5 milliseconds to acquire it again, so short calls do not release it.
        stream_bytes: larger results are written by non-temporal stores: in the caches they would evict A and B.
            Measured on a Xeon with 2 MiB of L2: at 0.5 MiB per array these lose (3.3 against 2.4 ns per 64 bytes), at
            64 MiB they gain (9.3 against 11.9); 16 MiB is even.
        blas_macs: single f32 and f64 products of so many multiply-adds go to NumPy's BLAS.
    """

    threads: int
    thread_ns: float = 75_000
    gil_ns: float = 20_000
    stream_bytes: float = 16 << 20
    blas_macs: float = 1 << 21


def limits() -> Limits:
    """The limits of this process. Where PYSIMD_ISA is set no product goes to NumPy's BLAS, which ignores that bound."""
    found = Limits(table.default_threads())
    return found._replace(blas_macs=float("inf")) if "PYSIMD_ISA" in os.environ else found


def row_for(types: str, n: int):
    """The row (``pysimd_kernel *``) that ``matmul`` takes for products of these types with n columns."""
    table.start()
    return lib.pysimd_choose(table.TYPES[types], n)


def left_to_blas(types: str, m: int, n: int, k: int) -> bool:
    """Whether ``matmul`` passes an m x n x k product to NumPy's BLAS when no kernel is named."""
    return types in ("f32", "f64") and m * n * k >= limits().blas_macs
