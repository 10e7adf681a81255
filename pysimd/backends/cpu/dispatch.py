"""Which kernel computes a product on the CPU, and the sizes from which on threads and other stores are used.

``pysimd_choose`` in C chooses the kernel, by the rows of kernels.inc, and core/cost.c estimates the time and the number
of threads. This module gives them their limits, once per process; no product calls it on its way to a kernel.
"""

from __future__ import annotations

from typing import NamedTuple

from pysimd._cpu import lib
from pysimd.backends.cpu import table

FEW_THREADS = 3
THREAD_NS_OF_MANY = 6_000


class Limits(NamedTuple):
    """The limits by which the C code decides from the size of a product.

    Attributes:
        threads: threads of large work, unless the call says how many.
        thread_ns: nanoseconds of work that are worth each of two threads that are awake, as after a call less than 2
            milliseconds ago; half of what they are worth on up to three cores. Measured on a Zen 3, a virtual machine:
            two threads took as long as one for 30 microseconds of work, and 1.3 to 1.6 times less for 45. On a Zen 4
            calls of 8 to 16 microseconds took 0.6 to 0.7 times as long on two, and none of 44 calls of 3 to 20 more
            than 1.09 times; with 5 microseconds some did, as 10 products of 200 x 200 float16 and a vector. On 16 cores
            of a Xeon, of 400 single products and 400 batches those of 20 to 40 microseconds took 0.8 times as long with
            6 microseconds, where half of the cores share the work, as with 16, those of 40 to 100 0.55 to 0.7 times,
            of 10 to 20 0.95, of less 1.0 (with 4 microseconds 0.8, 0.5 to 0.7, 0.9 and up to 1.2).
        wake_ns: nanoseconds of work that are worth waking a thread, which there takes up to 100 microseconds: after 2
            milliseconds of sleep, two threads took 1.5 times as long as one for 110 microseconds of work, and 1.2
            times less for 340. On 16 cores of a Xeon, 16 woken threads took 1.2 to 2.1 times less than one or two for
            300 to 700 microseconds of work, of which 4 threads that are awake reach most.
            After a call less than 2 milliseconds ago all are woken. Beside NumPy's spinning threads they sleep between
            calls; there work of 64 microseconds is worth waking them (``worth_ns`` in core/threads.c).
        given_ns: nanoseconds of work that are worth each of the threads that a call asks for: two threads took 1.2 to 2
            times as long as one for 2 to 4 microseconds of work, as long for 5 to 9, and 0.8 times for 10 (Xeon).
        gil_ns: the GIL is released for longer work. Next to a busy Python thread, a call that releases it
            waits up to 5 milliseconds to acquire it again, so short calls do not release it.
        stream_bytes: larger results are written by non-temporal stores, where their rows are as wide as the kernel's
            tile: in the caches they would evict A and B. Half of the last level. Measured on a Zen 3 with 32 MiB of
            L3, one thread, 16x16 float32: 117 to 122 ns a product with these stores at 2 MiB, level at 8 and 16 MiB,
            183 against 220 at 32 MiB. On a Xeon with 2 MiB of L2 16 MiB was level.
    """

    threads: int
    thread_ns: float = 8_000
    wake_ns: float = 100_000
    given_ns: float = 4_000
    gil_ns: float = 20_000
    stream_bytes: float = 16 << 20


def limits_of(threads: int) -> Limits:
    """The limits where large work takes so many threads."""
    found = Limits(threads, stream_bytes=max(lib.pysimd_caches().l3 / 2, 4 << 20))
    return found._replace(thread_ns=THREAD_NS_OF_MANY) if threads > FEW_THREADS else found


def limits() -> Limits:
    """The limits of this process."""
    return limits_of(table.default_threads())


def row_for(types: str, n: int, m: int = 2, k: int = 1):
    """The row (``pysimd_kernel *``) that ``matmul`` takes for products of these types, m x n x k."""
    table.start()
    return lib.pysimd_choose(table.TYPES[types], m, n, k)
