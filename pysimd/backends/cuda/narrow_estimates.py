"""How long a product whose C has few rows or few columns takes an H200 by narrow.cu and by cuBLAS.

The constants are those of fitted.py, which benchmarks/fit_estimates.py fitted to recorded times; the times of cuBLAS
themselves are in recorded.py.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import nsmallest
from math import exp, log, log2
from typing import NamedTuple

from pysimd.backends.cuda import fitted, narrow, recorded
from pysimd.gpu_kernels import table

PROCESSORS = 132
"""Multiprocessors of the device that the model is of."""

NORM = 2.5
"""Memory and panels are busy at the same time, but not all the time: both times are added as a norm of this order."""

NEIGHBOURS, MOST_APART = 4, 5.0
"""Of a product's case, how many recorded ones it is compared with; the sum over m, n and k of the factors by which the
last of them may differ, as powers of two."""

LEAST_K = 2
"""cuBLAS has a kernel for k = 1."""


MOST_K = 1 << 28


def holds(types: str, m: int, n: int, k: int) -> bool:
    """Whether narrow.cu computes products of this shape in one launch, and its time is estimated."""
    return types in _ESTIMATED and min(m, n) <= table.NARROW_SHORT[types][-1] and k <= MOST_K


_ESTIMATED = ("f32", "f16", "bf16f32")


def takes(types: str, m: int, n: int, k: int) -> bool:
    """Whether narrow.cu is estimated to be clearly faster than cuBLAS for a row-major product."""
    compared = cublas_us(types, m, n, k)
    return k >= LEAST_K and compared is not None and fitted.MARGINS["narrow"] * narrow_us(types, m, n, k) <= compared


# --- narrow.cu ---


_UNALIGNED = 2
"""What ``Launch.rows`` is at least, of rows that are not all at multiples of 16 bytes."""


class Launch(NamedTuple):
    """A launch of narrow.cu for a row-major product.

    Attributes:
        size: bytes of an element.
        short: rows or columns that the short side is padded to.
        many: whether the long side has so many blocks that warps are side by side along it.
        rows: of the long operand: 1 if it is MN-major, and 2 if they are not all at multiples of 16 bytes.
        split: whether tiles are split along k.
        panels: that a multiprocessor loads one after the other.
        filled: the part of the first one that there is.
        nbytes: of operands and C.
        elements: of C.
    """

    size: int
    short: int
    many: bool
    rows: int
    split: bool
    panels: int
    filled: float
    nbytes: int
    elements: int


def launch_of(types: str, m: int, n: int, k: int) -> Launch:
    """That of a product."""
    x, size = narrow.choose(types, m, n, k, PROCESSORS), table.NARROW_BYTES[types]
    unaligned = (k if m >= n else n) * size % 16 != 0
    made = table.Narrow(types, "MN_MAJOR" if n > m else "K_MAJOR", not unaligned, x.short, x.across)
    return Launch(
        size=size,
        short=x.short,
        many=x.across == 4,
        rows=(n > m) + _UNALIGNED * unaligned,
        split=x.split > 1,
        panels=-(-x.tiles * x.split // (made.resident * PROCESSORS)) * -(-x.panels // x.split),
        filled=min(1.0, k * size / made.panel_bytes),
        nbytes=size * (m * k + k * n + m * n),
        elements=m * n,
    )


@lru_cache(4096)
def narrow_us(types: str, m: int, n: int, k: int) -> float:
    """Estimated time of narrow.cu: that of its panels one after the other, and of the bytes."""
    x = launch_of(types, m, n, k)
    panel = fitted.PANEL_US[x.size, x.short][x.many] * fitted.PANEL_FACTOR[x.size][x.rows]
    if x.panels == 1:
        panel *= x.filled ** fitted.PART_OF_PANEL[x.size]
    moved = x.nbytes / fitted.BYTES_PER_US[x.size][x.rows]
    launch = fitted.LAUNCH_US[x.size, x.short][x.many] + fitted.SPLIT_US[x.size] * x.split
    both = moved**NORM + (x.panels * panel) ** NORM
    return launch + fitted.STORE_US[x.size] * x.elements + both ** (1 / NORM)


# --- cuBLAS ---


def case_of(types: str, m: int, n: int, k: int) -> str:
    """What kernels of cuBLAS differ by: one row or column; whether rows start at multiples of 16 bytes, of 4 (those of
    16 bits), or at any; which side of C is the short one."""
    size = table.NARROW_BYTES[types]
    side = "tall" if m > n else "wide"
    if min(m, n) == 1:
        return f"{types} {side} vector"
    rows = "aligned" if not (n * size % 16 or k * size % 16) else "odd" if size == 4 or n % 2 or k % 2 else "even"
    return f"{types} {side} {rows}"


def features(types: str, m: int, n: int, k: int) -> tuple[float, ...]:
    """What the logarithm of the time of cuBLAS is a sum of: bytes, k, the size of C, and whether there is one tile."""
    long = max(m, n)
    nbytes = table.NARROW_BYTES[types] * long * k
    return (
        1.0,
        log(1 + nbytes / 8e6),
        log(1 + nbytes / 1e6),
        log(1 + k / 256),
        log(1 + k / 2048),
        log(1 + m * n / 16384),
        float(k == 1),
        float(long <= 16),
        float(long <= 64),
        log(1 + k / 256) * (long <= 64),
    )


@lru_cache(4096)
def cublas_us(types: str, m: int, n: int, k: int) -> float | None:
    """A time that cuBLAS hardly ever takes less than: nine tenths of the products of a fit took longer than the
    estimate, and none of the nearest recorded ones took less than it says. cuBLAS computes neighbours by kernels whose
    times differ by a factor of eight; so it is None where too few of them were measured."""
    case = case_of(types, m, n, k)
    weights, near = fitted.CUBLAS.get(case), nearest(recorded.CUBLAS_US.get(case, ()), m, n, k)
    if weights is None or near is None:
        return None
    return min(near, exp(sum(x * y for x, y in zip(weights, features(types, m, n, k), strict=True))))


def nearest(products: tuple[tuple[int, int, int, float], ...], m: int, n: int, k: int) -> float | None:
    """The least time of those products (m, n, k, microseconds) that are nearest; None if they are not near."""
    found = nsmallest(
        NEIGHBOURS, ((abs(log2(x / m)) + abs(log2(y / n)) + abs(log2(z / k)), us) for x, y, z, us in products)
    )
    return min(us for _, us in found) if len(found) == NEIGHBOURS and found[-1][0] <= MOST_APART else None
