"""Which kernel computes a product on the CPU, and on how many threads: the one place that chooses."""

from __future__ import annotations

import os

from pysimd._cpu import lib
from pysimd.backends.cpu import table

BLAS_MACS = 1 << 21
"""Single products from this many multiply-adds on go to NumPy's BLAS (f32 and f64)."""

_NS_WORTH_A_THREAD = 200_000
"""One thread below this many nanoseconds of estimated work; starting a thread takes some 20 microseconds."""

_MACS_PER_NS, _BYTES_PER_NS = 30.0, 24.0


def row_for(types: str, n: int):
    """The row of the C table that ``matmul`` takes for products with n columns."""
    table.start()
    return lib.pysimd_choose(table.TYPES[types], n)


def left_to_blas(types: str, m: int, n: int, k: int) -> bool:
    """Whether ``matmul`` hands a product of these sizes to NumPy's BLAS when no kernel is named."""
    return types in ("f32", "f64") and m * n * k >= BLAS_MACS and "PYSIMD_ISA" not in os.environ


def threads_for(macs: int, nbytes: int, asked: int | None) -> int:
    """Threads for so many multiply-adds and bytes of all operands; ``asked`` is what the caller wants."""
    if asked is not None:
        return min(int(asked), table.MOST_THREADS)
    work = macs / _MACS_PER_NS + nbytes / _BYTES_PER_NS
    return table.default_threads() if work > _NS_WORTH_A_THREAD else 1
