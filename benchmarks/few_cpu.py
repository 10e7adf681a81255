"""Products with up to eight rows or columns: the time of each kernel, and the rows of cpu_kernels/few.inc.

It times batches in cache, on one thread, by the kernel that matmul takes and by each that can run here. The sizes are
random, one in each cell of a grid: FEW by MANY by K for each types, orders of A and B, and side. A product is recorded
as types, orders, m, k, n, nanoseconds, and those of each kernel.

``--rows`` reads the records of two processors, one that executes AVX-512 in halves and one that does not, and prints
rows for few.inc: ranges of sizes in which a kernel takes at most MEAN as long as what was taken, and few sizes are
slower (SLOWER). Of one types, orders and side the ranges are found one after the other, each the one that saves most.

To find the rows anew, empty few.inc first, build, and measure on both:

``taskset -c 1 python benchmarks/few_cpu.py --out halves.json``
``python benchmarks/few_cpu.py --rows halves.json whole.json``
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.bench.data import random_array

TYPES = ("f32", "f64", "f16f32", "bf16f32", "i8i32", "u8i8i32")
TARGETS = ("avx2", "avx512", "avx512vnni", "avx512bf16", "amx")
ORDERS = {"r": "ROWS", "c": "COLUMNS"}
SIDES = ("COLUMNS", "ROWS")  # which are few

# The last size of each cell; the first is one more than the last of the cell before.
FEW = (1, 2, 3, 4, 5, 6, 7, 8)
MANY = (2, 3, 4, 5, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 160, 256)
K = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
MOST_K = 64  # of more than one row or column
GRID = (len(FEW), len(MANY), len(K))

LEAST_BATCH, MOST_BATCH, CACHE = 8, 60, 300 << 10

MEAN = 0.95
SLOWER = {"HALVES": ((1.10, 0.05), (1.25, 0.008)), "WHOLE": ((1.17, 0.05), (1.43, 0.008))}
"""Ratios that at most such a part of the sizes in a range may exceed. Wider for the second, whose times were taken on a
machine that others shared."""
LEAST_SAVED, LEAST_SAVED_OF_ONE, ONE_PROCESSOR, MOST_RANGES = 14.0, 5.0, 3.0, 7
"""Least sum of logarithms of ratios of a range, that of one row or column, of which there are fewer sizes, what a range
is worth less that counts on one of the processors alone, and the most ranges of one types, orders and side."""

# --- measuring ---


def nanoseconds(call: Callable[[], object], seconds: float) -> float:
    call()
    best, start, end = math.inf, perf_counter(), perf_counter() + seconds
    while start < end or best == math.inf:
        call()
        now = perf_counter()
        best, start = min(best, now - start), now
    return best * 1e9


def matrices(name: str, batch: int, rows: int, columns: int, order: str, rng: np.random.Generator) -> np.ndarray:
    if order == "r":
        return random_array(name, (batch, rows, columns), rng)
    return random_array(name, (batch, columns, rows), rng).swapaxes(1, 2)


def size_in(cells: tuple[int, ...], i: int, rng: np.random.Generator) -> int:
    return int(rng.integers(cells[i - 1] + 1 if i else 2, cells[i] + 1))


def sizes(orders: tuple[str, ...], rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Of one row or column, which has no order, those with operands of the same order."""
    for few, i, j, side in product(FEW, range(len(MANY)), range(len(K)), SIDES):
        many, k = size_in(MANY, i, rng), size_in(K, j, rng)
        counts = len(set(orders)) == 1 if few == 1 else k <= MOST_K
        if counts and (many > few or (many == few and side == "COLUMNS")):
            yield (many, k, few) if side == "COLUMNS" else (few, k, many)


def measured(types: str, orders: str, m: int, k: int, n: int, seconds: float, rng: np.random.Generator) -> list:
    family = dtypes.FAMILIES[types]
    size = (m * k + k * n) * dtypes.dtype_of(family.a).itemsize + m * n * dtypes.dtype_of(family.c).itemsize
    batch = max(LEAST_BATCH, min(MOST_BATCH, CACHE // size))
    a, b = matrices(family.a, batch, m, k, orders[0], rng), matrices(family.b, batch, k, n, orders[1], rng)
    out = np.zeros((batch, m, n), dtypes.dtype_of(family.c))

    def time_of(kernel: str | None) -> float:
        return round(nanoseconds(lambda: pysimd.matmul(a, b, out=out, threads=1, kernel=kernel), seconds) / batch, 2)

    taken, times = time_of(None), {}
    for kernel in pysimd.kernels("cpu"):
        if kernel.types == types and kernel.available and kernel.target in TARGETS and kernel.form != "inner":
            times[kernel.name] = time_of(kernel.name)
    return [types, orders, m, k, n, min(taken, time_of(None)), times]


def measure(types: Sequence[str], passes: int, seconds: float) -> list[list]:
    found = []
    for i, name, orders in product(range(passes), types, product(ORDERS, ORDERS)):
        record.progress(f"pass {i + 1} of {passes}: {name}, A and B by {' and '.join(orders)}")
        rng = np.random.default_rng([i, TYPES.index(name), *map(ord, orders)])
        found += [measured(name, "".join(orders), m, k, n, seconds, rng) for m, k, n in sizes(orders, rng)]
    return found


# --- ranges ---


class Key(NamedTuple):
    types: str
    orders: str
    side: str
    of_one: bool  # one row or column


class Product(NamedTuple):
    cell: tuple[int, int, int]
    taken: float
    times: dict[str, float]


def cell_of(m: int, k: int, n: int) -> tuple[int, int, int]:
    return bisect_left(FEW, min(m, n)), bisect_left(MANY, max(m, n)), bisect_left(K, k)


def is_of_tile_registers(types: str, orders: str, m: int, k: int, n: int, taken: float, times: dict) -> bool:
    """Whether AMX's kernel computes a product, whatever few.inc has (of_tiles_of_few and pysimd_of_batch)."""
    if any(abs(times[name] / taken - 1) < 0.08 for name in times if name.startswith("amx")):
        return min(times, key=times.__getitem__).startswith("amx")
    if not (orders[0] == "r" and 2 < n < m and m * k * n >= 4096):
        return False
    return (types == "bf16f32" and k % 2 == 0 and 4 <= k < 12) or (
        types in ("i8i32", "u8i8i32") and k % 4 == 0 and k >= 8
    )


def products(path: Path) -> dict[Key, list[Product]]:
    found: dict[Key, list[Product]] = defaultdict(list)
    for types, orders, m, k, n, taken, times in json.loads(path.read_text())["rows"]:
        if not is_of_tile_registers(types, orders, m, k, n, taken, times):
            key = Key(types, orders, "ROWS" if m < n else "COLUMNS", min(m, n) == 1)
            found[key].append(Product(cell_of(m, k, n), taken, times))
    return found


ENDS = [list(combinations(range(size + 1), 2)) for size in GRID]
RANGES = np.array([f + m + k for f, m, k in product(*ENDS)])  # of cells: first and one after the last


def in_ranges(cells: np.ndarray) -> np.ndarray:
    """The sums over all RANGES."""
    s = np.zeros([size + 1 for size in GRID])
    s[1:, 1:, 1:] = cells.cumsum(0).cumsum(1).cumsum(2)
    f, m, k = RANGES[:, :2], RANGES[:, 2:4], RANGES[:, 4:]
    return sum((-1) ** (x + y + z + 1) * s[f[:, x], m[:, y], k[:, z]] for x, y, z in product((0, 1), repeat=3))


class Gains:
    """What kernels gain in each cell, in the products of one processor."""

    def __init__(self, found: list[Product], slower: tuple, kernels: list[str]) -> None:
        self.counts, self.slower = np.zeros(GRID), slower
        self.logs = {name: np.zeros(GRID) for name in kernels}
        self.over = {name: [np.zeros(GRID) for _ in slower] for name in kernels}
        for cell, taken, times in found:
            self.counts[cell] += 1
            for name in kernels:
                gain = math.log(taken / times[name]) if name in times else -3.0  # a kernel that cannot run
                self.logs[name][cell] += gain
                for over, (ratio, _) in zip(self.over[name], slower, strict=True):
                    over[cell] += gain < -math.log(ratio)

    def of(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """What the kernel gains in all RANGES, and in which of them it may be taken."""
        left = self.counts > 0
        counts, gained = in_ranges(self.counts), in_ranges(self.logs[name] * left)
        allowed = gained >= -math.log(MEAN) * counts
        for over, (_, part) in zip(self.over[name], self.slower, strict=True):
            allowed &= in_ranges(over * left) <= part * counts
        return gained, allowed

    def mean(self, name: str, cells: tuple[slice, ...]) -> str:
        count = self.counts[cells].sum()
        return f"{math.exp(-(self.logs[name] * (self.counts > 0))[cells].sum() / count):.2f}" if count else "-"


OF_ONE = (RANGES[:, 0] == 0) & (RANGES[:, 1] == 1)
OF_MORE = (RANGES[:, 0] > 0) & (RANGES[:, 5] <= K.index(MOST_K) + 1)


def best_range(gains: dict[str, Gains], kernels: list[str], of_one: bool) -> tuple[str, str, np.ndarray] | None:
    """Where a range counts (ANY, HALVES or WHOLE), its kernel, and its cells."""
    most, found = (LEAST_SAVED_OF_ONE if of_one else LEAST_SAVED), None
    for name in kernels:
        each = {where: of.of(name) for where, of in gains.items()}
        for where in ("ANY", *gains):
            some = list(each) if where == "ANY" else [where]
            saved = sum(each[w][0] for w in some) - (0 if where == "ANY" else ONE_PROCESSOR)
            saved = np.where(np.all([each[w][1] for w in some], axis=0) & (OF_ONE if of_one else OF_MORE), saved, -1)
            if saved.max() > most:
                most, found = saved.max(), (where, name, RANGES[int(saved.argmax())])
    return found


def bounds(cells: tuple[int, ...], first: int, end: int) -> str:
    return f"{cells[first - 1] + 1 if first else cells[0]}, {cells[end - 1]}"


def print_rows(halves: Path, whole: Path) -> None:
    both = {"HALVES": products(halves), "WHOLE": products(whole)}
    for key in sorted(set().union(*both.values()), key=lambda key: (TYPES.index(key.types), key[1:3], not key.of_one)):
        found = {where: of.get(key, []) for where, of in both.items()}
        kernels = sorted({name for of in found.values() for p in of for name in p.times if not name.startswith("amx")})
        gains = {where: Gains(of, SLOWER[where], kernels) for where, of in found.items()}
        for _ in range(MOST_RANGES):
            best = best_range(gains, kernels, key.of_one)
            if best is None:
                break
            where, name, ends = best
            cells = tuple(slice(first, end) for first, end in ends.reshape(3, 2))
            counts = [w for w in gains if where in ("ANY", w)]
            means = ", ".join(gains[w].mean(name, cells) if w in counts else "-" for w in gains)
            sizes_of = ", ".join(bounds(c, *e) for c, e in zip((FEW, MANY, K), ends.reshape(3, 2), strict=True))
            a, b = (ORDERS[order] for order in key.orders)
            print(f"FEW({key.types.upper()}, {a}, {b}, {key.side}, {sizes_of}, {where}, {name}) /* {means} */")
            for w in counts:
                gains[w].counts[cells] = 0


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--passes", type=int, default=2, help="sizes in each cell of the grid (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1e-3, help="for each kernel and product (%(default)s)")
    parser.add_argument("--rows", nargs=2, type=Path, metavar="FILE.json", help="print rows for few.inc")
    options = parser.parse_args()
    if options.rows:
        print_rows(*options.rows)
    else:
        record.write(record.cpu(), options.out, rows=measure(options.types, options.passes, options.seconds))


if __name__ == "__main__":
    main()
