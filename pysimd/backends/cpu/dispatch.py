"""Which kernel computes a product on the CPU, and the sizes from which on threads, BLAS and other stores are used.

``pysimd_choose`` in C chooses the kernel, by the rows of kernels.inc, and core/cost.c estimates the time and the number
of threads. This module gives them their limits, once per process; no product calls it on its way to a kernel.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pysimd._cpu import lib
from pysimd.backends.cpu import table


@cache
def _last_level_cache() -> int:
    """Bytes of L3 as Linux reports them; 32 MiB where it does not."""
    try:
        size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().strip()
    except OSError:
        return 32 << 20
    return int(size[:-1]) << (20 if size.endswith("M") else 10)


class Limits(NamedTuple):
    """The limits by which the C code decides from the size of a product.

    Attributes:
        threads: threads of large work, unless the call says how many.
        thread_ns: nanoseconds of work that are worth a thread. Starting and joining one takes some 20 microseconds, on
            a virtual machine 100: at 75 microseconds a thread, batches of 1x31 by 31x31 double took 289 ns a product
            on two threads and 178 on one.
        gil_ns: the GIL is released for longer work. Next to a busy Python thread, a call that releases it
            waits up to 5 milliseconds to acquire it again, so short calls do not release it.
        stream_bytes: larger results are written by non-temporal stores, where their rows are as wide as the kernel's
            tile: in the caches they would evict A and B. Half of the last level. Measured on a Zen 3 with 32 MiB of
            L3, one thread, 16x16 float32: 117 to 122 ns a product with these stores at 2 MiB, level at 8 and 16 MiB,
            183 against 220 at 32 MiB. On a Xeon with 2 MiB of L2 16 MiB was level.
        blas_macs: single f32 and f64 products of so many multiply-adds go to NumPy's BLAS.
    """

    threads: int
    thread_ns: float = 250_000
    gil_ns: float = 20_000
    stream_bytes: float = 16 << 20
    blas_macs: float = 1 << 21


def limits() -> Limits:
    """The limits of this process. Where PYSIMD_ISA is set no product goes to NumPy's BLAS, which ignores that bound."""
    found = Limits(table.default_threads(), stream_bytes=max(_last_level_cache() / 2, 4 << 20))
    return found._replace(blas_macs=float("inf")) if "PYSIMD_ISA" in os.environ else found


def row_for(types: str, n: int, m: int = 2):
    """The row (``pysimd_kernel *``) that ``matmul`` takes for products of these types with m rows and n columns."""
    table.start()
    return lib.pysimd_choose(table.TYPES[types], m, n)


def left_to_blas(types: str, m: int, n: int, k: int) -> bool:
    """Whether ``matmul`` passes an m x n x k product to NumPy's BLAS when no kernel is named."""
    return types in ("f32", "f64") and m * n * k >= limits().blas_macs
