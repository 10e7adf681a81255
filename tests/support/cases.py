"""Shapes and lengths that the tests walk through, as data: each with the reason why it is here."""

import os
from dataclasses import dataclass

QUICK = os.environ.get("PYSIMD_TEST_QUICK") == "1"
"""Fewer cases, for emulators and sanitizers that make everything some 20 times slower."""

SEED = 20251

K_LENGTHS = (0, 1, 2, 3, 5, 17, 64, 255)
"""Nothing; one; every remainder of the groups of 2 and 4; past one vector; whole vectors; one short of a power of 2."""

K_FEW = (0, 1, 5, 17)


def k_lengths():
    return K_FEW if QUICK else K_LENGTHS


def few(values, count: int = 2):
    """All of ``values``, or in a quick run ``count`` of them, the ends included."""
    values = list(values)
    return [values[i * (len(values) - 1) // (count - 1)] for i in range(count)] if QUICK else values


@dataclass(frozen=True)
class Batch:
    """Batch dimensions of A and B that broadcast to ``result``."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    result: tuple[int, ...]
    why: str


BATCHES = (
    Batch((), (), (), "a single tile"),
    Batch((3,), (3,), (3,), "one to one"),
    Batch((3,), (), (3,), "B shared"),
    Batch((), (3,), (3,), "A shared"),
    Batch((2, 1), (1, 3), (2, 3), "both shared along one dimension"),
    Batch((2, 3), (3,), (2, 3), "B with fewer dimensions"),
    Batch((2, 1, 3), (5, 1), (2, 5, 3), "three dimensions that do not merge"),
    Batch((0,), (), (0,), "no products at all"),
    Batch((2, 0), (1, 1), (2, 0), "none in the inner dimension"),
    Batch((1,), (4,), (4,), "a length 1 that broadcasts"),
)


@dataclass(frozen=True)
class Product:
    """A matmul of (batch, m, k) by (batch, k, n)."""

    batch: tuple[int, ...]
    m: int
    k: int
    n: int
    why: str


PRODUCTS = (
    *(Product((7,), s, s, s, "square and small") for s in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33)),
    *(Product((5,), 4, k, 4, "the 4x4 path at another K") for k in (0, 1, 2, 3, 5, 6, 7, 8, 13, 64)),
    *(Product((5,), 8, k, 8, "the 8x8 path at another K") for k in (0, 1, 2, 3, 7, 9, 15, 64)),
    *(Product((5,), 16, k, 16, "the 16x16 path at another K") for k in (0, 1, 3, 15, 17, 64)),
    Product((3,), 1, 64, 1, "a dot product"),
    Product((3,), 1, 5, 70, "one row, several tiles wide"),
    Product((3,), 70, 5, 1, "one column, several tiles high"),
    Product((2, 3), 6, 10, 16, "two batch dimensions"),
    Product((2,), 0, 5, 4, "no rows"),
    Product((2,), 4, 5, 0, "no columns"),
    Product((0,), 4, 4, 4, "no products"),
    Product((), 4, 0, 4, "no terms: zeros"),
    Product((), 67, 35, 129, "odd everything, one product"),
    Product((2,), 45, 19, 65, "one column past two wide tiles"),
)


def edge_sizes(tile: int) -> tuple[int, ...]:
    """Sizes around a tile: one; inside; one short, exact, one over; the same around two tiles."""
    sizes = {1, tile // 2, tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile, 2 * tile + 1}
    if QUICK:
        sizes = {1, tile - 1, tile, 2 * tile + 1}
    return tuple(sorted(sizes - {0}))


LARGE_BATCH = 10_000
"""Enough small products that a batch is worth two threads."""

INT8_EXTREMES = (-128, 127)
UINT8_EXTREMES = (0, 255)
