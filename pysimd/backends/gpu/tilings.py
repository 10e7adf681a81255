"""The tile of a thread and the products of a block in gpu_kernels/micro/batched.cu, chosen from the shape.

Up to 32 x 32 by rules that were found by measuring on an H200; beyond by a model of the cycles of a multiprocessor. It
counts bytes of global memory, multiply-adds of whole warps, and loads from shared memory with their bank conflicts. A
quarter of each does not overlap with the others, or more where few warps are resident.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from functools import cache

from pysimd import dtypes
from pysimd.gpu_kernels import table

TM, TN, PRODUCTS = range(2, 13), range(2, 11), (1, 2, 4)
"""What the model chooses from."""

ACCUMULATOR_WORDS, LANES = range(12, 73), range(8, 321)
"""32-bit words of a thread's accumulators, and threads of a block that compute."""

WARP, BANKS, BYTES_PER_CYCLE, SHARED_BYTES, BLOCK_BYTES = 32, 32, 18, 227 << 10, 1 << 10
"""Of a multiprocessor of an H200: lanes of a warp, banks of shared memory, bytes of global memory in a cycle, bytes of
shared memory, and what it takes for a block of its own."""

ENOUGH_WARPS = 12
"""Resident warps that hide latency."""


MMA_SIDE, MMA_WARPS, MMA_BYTES = 16, 4, 40 << 10
"""Of the tensor cores: rows and columns of a fragment; warps of a block of several products, and their bytes."""

MMA_TILES, MMA_MANY, MMA_MANY_UNALIGNED = 9, 36, 49
"""Fragments of C that a warp has at most, eight accumulators each; with more of them in a product, twice as many, so
that the registers hold the C of several blocks. Rows that are no multiple of 4 bytes are copied through registers, for
which larger products need more warps: f16 of 113, 113, 113 took an H200 1.23 times as long with 64 x 64 a warp as with
64 x 32, int8 of 127, 127, 127 1.17 times, and 1.33 times with 32 x 64."""


@cache
def tiling(types: str, m: int, n: int, k: int) -> tuple[int, int, int]:
    """Rows and columns of C for a thread, and products for a block."""
    if max(m, n) <= table.BATCHED_MOST_MN and k <= table.BATCHED_MOST_K:
        return _small(types, m, n, k)
    size = dtypes.dtype_of(dtypes.FAMILIES[types].c).itemsize
    return min(_candidates(m, n, k, size), key=lambda tile: _cycles(m, n, k, size, *tile))


@cache
def mma_tiling(m: int, n: int, k: int, size: int) -> tuple[int, int, int]:
    """Rows and columns of C for a warp, and products for a block, in gpu_kernels/micro/batched_mma.cu; an element of A
    and B has ``size`` bytes.

    The tile takes the fewest cycles of shared memory and tensor cores together; up to four warps share a block.
    """
    down, across = -(-m // MMA_SIDE), -(-n // MMA_SIDE)
    many = down * across > MMA_MANY
    unaligned = down * across > MMA_MANY_UNALIGNED and (n * size % 4 != 0 or k * size % 4 != 0)
    most = 2 * MMA_TILES if many and not unaligned else MMA_TILES
    tiles = [(i, j) for i in range(1, down + 1) for j in range(1, across + 1) if i * j <= most]

    def warps(tile: tuple[int, int]) -> int:
        return -(-down // tile[0]) * -(-across // tile[1])

    def cost(tile: tuple[int, int]) -> tuple[int, int]:
        return warps(tile) * (4 * sum(tile) + 7 * math.prod(tile)), tile[1] if unaligned else -tile[1]

    tm, tn = min(tiles, key=cost)
    bytes_each = max(2 * (m * k + k * n), 4 * m * n)  # of any types: a block's products are few where they are large
    products = min(MMA_WARPS // warps((tm, tn)), MMA_BYTES // max(1, bytes_each))
    return MMA_SIDE * tm, MMA_SIDE * tn, max(1, products)


def _small(types: str, m: int, n: int, k: int) -> tuple[int, int, int]:
    family = dtypes.FAMILIES[types]
    size, size_c = dtypes.dtype_of(family.a).itemsize, dtypes.dtype_of(family.c).itemsize
    vector = 16 // size_c
    small = m * n <= 256
    if n % max(4, vector) == 0:  # rows of C go out in whole pieces
        tn = max(4, vector)
        tm = (2 if m * n <= 64 else 8) if types == "f16" else (1 if m * n <= 16 else 2 if small else 4)
    elif m * n <= 25:
        tm, tn = m, n
    else:
        widest, most = (3, 9) if size == 8 else (6, 24 if small else 48)
        tn = -(-n // -(-n // widest))
        tm = -(-m // -(-m // max(1, most // tn)))
    tm = min(tm, m)
    lanes = -(-m // tm) * -(-n // tn)
    whole = math.lcm(*(16 // math.gcd(16, e * s) for e, s in ((m * k, size), (k * n, size), (m * n, size_c))))
    bytes_each = max((m * k + k * n) * size, m * n * size_c)
    products = max(1, min(128 // lanes, 24_000 // bytes_each))
    aligned = -(-products // whole) * whole
    return tm, tn, aligned if aligned * bytes_each + 64 <= table.BATCHED_SHARED_BYTES else products


def _candidates(m: int, n: int, k: int, size: int) -> Iterator[tuple[int, int, int]]:
    for tm, tn, products in itertools.product(TM, TN, PRODUCTS):
        words, lanes = tm * tn * size // 4, products * -(-m // tm) * -(-n // tn)
        fits = products == 1 or products * max(m * k + k * n, m * n) * size <= table.BATCHED_SHARED_BYTES
        if fits and words in ACCUMULATOR_WORDS and lanes in LANES:
            yield tm, tn, products


def _cycles(m: int, n: int, k: int, size: int, tm: int, tn: int, products: int) -> float:
    """Estimated cycles of a product."""
    across, most = -(-n // tn), 16 // size
    tiles = across * -(-m // tm)
    warps = -(-products * tiles // WARP)
    width_a, width_b = math.gcd(k, most), 1 if n % tn else math.gcd(tn, most)
    lanes = [(lane // tiles % products, lane % tiles) for lane in range(WARP)]
    rows = {q * m * k + tile // across * tm * k for q, tile in lanes}
    columns = {q * k * n + tile % across * tn for q, tile in lanes}
    memory = (m * k + k * n + m * n) * size / BYTES_PER_CYCLE
    multiply_adds = warps * k * tm * tn * size / 16 / products
    wavefronts_a = tm / width_a * _wavefronts(rows, width_a, size)
    wavefronts_b = tn / width_b * _wavefronts(columns, width_b, size)
    loads = warps * k * (wavefronts_a + wavefronts_b) / products
    edges = (m % tm != 0) + (n % tn != 0)
    resident = warps * (SHARED_BYTES // (products * max(m * k + k * n, m * n) * size + BLOCK_BYTES))
    exposed = (1 + edges / 20) * (1 + max(0, 1 - resident / ENOUGH_WARPS)) / 4
    return max(memory, multiply_adds, loads) + (memory + multiply_adds + loads) * exposed


def _wavefronts(first: set[int], width: int, size: int) -> int:
    """Wavefronts of a load from shared memory: the different words that a warp reads in one bank, at most. ``first``
    has the indices of the lanes' first elements; each lane reads ``width`` elements of ``size`` bytes."""
    words = {(x * size) // 4 + word for x in first for word in range(width * size // 4)}
    return max(Counter(word % BANKS for word in words).values())
