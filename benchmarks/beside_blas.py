"""Single products by all threads: of pysimd and of NumPy alone, and in turn with one another.

The idle threads of NumPy's OpenBLAS spin for some 100 milliseconds on the processors on which pysimd's threads would
run. A first pass calls pysimd alone, by several numbers of threads. Then NumPy is called alone, and in the end both in
turn, two calls of each at a time. The shortest and the median of SAMPLES count, in microseconds.

``python benchmarks/beside_blas.py --out benchmarks/results/beside_blas_intel_16.json``
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.bench.data import random_array

PRODUCTS = (
    ("f32", 200, 200, 200),
    ("f32", 512, 512, 512),
    ("f32", 1024, 1024, 1024),
    ("f32", 2488, 1101, 40),
    ("f16f32", 663, 42, 3179),
    ("f32", 4096, 4096, 1),
    ("f64", 4096, 4096, 1),
    ("f64", 16, 4096, 4096),
)
"""Types, m, k, n."""

SAMPLES, CALLS = 12, 2


def microseconds(call: Callable[[], object]) -> float:
    """Of one of CALLS calls."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) * 1e6 / CALLS


def summary(samples: list[float]) -> dict[str, float]:
    return {"best_us": min(samples), "median_us": statistics.median(samples)}


class Product:
    """Both sides of a product, into arrays that exist; NumPy multiplies float32 copies of narrow types."""

    def __init__(self, types: str, m: int, k: int, n: int):
        family = dtypes.FAMILIES[types]
        rng = np.random.default_rng(0)
        self.a = random_array(family.a, (m, k), rng)
        self.b = random_array(family.b, (k, n), rng)
        self.out = pysimd.matmul(self.a, self.b)
        wide = self.out.dtype
        self.wide = self.a.astype(wide), self.b.astype(wide), np.empty((m, n), wide)

    def ours(self, threads: int | None = None) -> float:
        return microseconds(lambda: pysimd.matmul(self.a, self.b, out=self.out, threads=threads))

    def numpys(self) -> float:
        a, b, out = self.wide
        return microseconds(lambda: np.matmul(a, b, out=out))


def main() -> None:
    options = record.parser(__doc__).parse_args()
    cores = len(os.sched_getaffinity(0))
    products = [Product(*product) for product in PRODUCTS]
    rows = []
    for product, (types, m, k, n) in zip(products, PRODUCTS, strict=True):
        alone = {
            str(threads or "own choice"): summary([product.ours(threads) for _ in range(SAMPLES)])
            for threads in dict.fromkeys((None, 1, max(cores // 2, 1), cores))
        }
        rows.append({"types": types, "m": m, "k": k, "n": n, "pysimd_alone": alone})
        record.progress(types, m, k, n)
    for product, row in zip(products, rows, strict=True):
        row["numpy_alone"] = summary([product.numpys() for _ in range(SAMPLES)])
        pairs = [(product.ours(), product.numpys()) for _ in range(SAMPLES)]
        row["pysimd_in_turn"], row["numpy_in_turn"] = (summary(list(side)) for side in zip(*pairs, strict=True))
    record.write(record.cpu(), options.out, rows=rows)


if __name__ == "__main__":
    main()
