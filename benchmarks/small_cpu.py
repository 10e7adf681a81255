"""Small products on the CPU, by type and layout: ``python benchmarks/small_cpu.py [--out FILE.json] [--quick]``.

Sections:
    squares   batches whose A, B and C would fill 64 KiB as float32, of every type and layout, beside NumPy and beside
              pysimd's float32 product of plain arrays of the same shape and batch
    cliffs    larger batches, shared operands and vectors, beside NumPy

One thread of pysimd; NumPy uses one for products of these sizes. Arrays, their layouts and float32 copies of narrow
types for NumPy are those of cliffs.py; an ``out`` exists. Samples of what is compared are interleaved, and the best
of each is its time: nanoseconds a product.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from functools import partial

import cliffs
import numpy as np
import record
from cliffs import Case

import pysimd
from pysimd import dtypes
from pysimd.bench import blas

SIZES = (4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 48, 64)
KINDS = (
    ("f32", "plain"),
    ("f32", "A.mT"),
    ("f32", "B.mT"),
    ("bf16f32", "plain"),
    ("f16f32", "plain"),
    ("i8i32", "plain"),
    ("u8i8i32", "plain"),
    ("bf16f32", "B.mT"),
    ("f16f32", "B.mT"),
    ("i8i32", "B.mT"),
    ("f64", "plain"),
    ("f64", "B.mT"),
)
IN_CACHE, MEMORY = 64 << 10, 16 << 20
SAMPLES, SAMPLE_NS = 25, 400_000


def square(types: str, layout: str, size: int, batch: int) -> Case:
    columns = 1 if layout == "A @ column" else size
    return Case(types, layout, batch, size, size, columns)


def squares(sizes: tuple[int, ...]) -> list[Case]:
    return [square(*kind, n, max(2, IN_CACHE // (12 * n * n))) for n in sizes for kind in KINDS]


def beyond(types: str, size: int, part: float) -> Case:
    """A batch whose operands have ``part`` of 16 MiB each."""
    itemsize = dtypes.dtype_of(dtypes.FAMILIES[types].a).itemsize
    return square(types, "plain", size, int(part * MEMORY) // (size * size * itemsize))


CLIFFS = (
    *(beyond("f32", 24, part) for part in (0.98, 1.02)),
    *(beyond(*kind, 1.1) for kind in (("f32", 20), ("f64", 10), ("f64", 12))),
    *(square("f32", "A @ column", size, 2000) for size in (8, 16, 32, 64)),
    *(square("f32", "B.mT", size, 2000) for size in (8, 16, 32)),
    *(square("f32", "shared B", size, 2000) for size in (4, 16, 32, 64)),
    *(square("f16f32", "plain", size, batch) for size, batch in ((4, 1000), (64, 100))),
)


def calls_of(case: Case, beside_float32: bool) -> tuple[dict, int]:
    """What is compared, and the number of products of a call."""
    a, b = cliffs.operands(cliffs.values, case)
    x, y = cliffs.operands(cliffs.float32_values, case)
    ours = cliffs.result(a, b, dtypes.dtype_of(dtypes.FAMILIES[case.types].c), 0, 0)
    theirs = cliffs.result(x, y, x.dtype, 0, 1)
    found = {
        "pysimd": partial(pysimd.matmul, a, b, out=ours, threads=1),
        "numpy": partial(np.matmul, x, y, out=theirs),
    }
    if beside_float32 and (case.types, case.layout) != ("f32", "plain"):
        of_float32 = square("f32", "plain", case.m, case.batch)
        p, q = cliffs.operands(cliffs.values, of_float32)
        found["float32"] = partial(pysimd.matmul, p, q, out=cliffs.result(p, q, p.dtype, 0, 1), threads=1)
    return found, ours.size // (case.m * case.n)


def measured(case: Case, beside_float32: bool, samples: int) -> dict:
    calls, products = calls_of(case, beside_float32)
    estimates = {name: min(cliffs.once(call, 1) for _ in range(3)) for name, call in calls.items()}
    repeats = {name: max(1, int(SAMPLE_NS / ns)) for name, ns in estimates.items()}
    best = dict.fromkeys(calls, math.inf)
    for _ in range(samples if max(estimates.values()) < 3e6 else 5):
        for name, call in calls.items():
            best[name] = min(best[name], cliffs.once(call, repeats[name]))
    ns = {name: round(found / products, 2) for name, found in best.items()}
    row = {**asdict(case), "products": products, "ns": ns, "ratio": best["numpy"] / best["pysimd"]}
    if "float32" in best:
        row["float32_ratio"] = best["float32"] / best["pysimd"]
    record.progress(words(row))
    return row


def words(row: dict) -> str:
    """A row in one line."""
    beside = f", {row['float32_ratio']:.2f} float32" if "float32_ratio" in row else ""
    return (
        f"{row['types']:8} {row['layout']:10} {row['m']}x{row['k']}x{row['n']}, {row['products']} products: "
        f"{row['ns']['pysimd']} ns; {row['ratio']:.2f} NumPy{beside}"
    )


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of the sizes, and fewer samples")
    options = parser.parse_args()
    if blas.numpy_blas().forced is not None:
        sys.exit("OPENBLAS_CORETYPE is set: NumPy may run another machine's kernels; unset it")
    samples = 5 if options.quick else SAMPLES
    sections = {
        "squares": [measured(case, True, samples) for case in squares(SIZES[::4] if options.quick else SIZES)],
        "cliffs": [measured(case, False, samples) for case in CLIFFS],
    }
    record.write(record.cpu(), options.out, **sections)


if __name__ == "__main__":
    main()
