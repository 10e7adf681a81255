"""Batches of products of random shapes against cuBLAS: ``python benchmarks/gemm_batches.py [--out FILE.json]``.

m, n and k are log-uniform from 1 (``--least``) to 4096 (``--most``) and the batch from 2 to 4096, by a seed, where A, B
and C have 0.1 to 600 MB together; with ``--multiple`` sizes are rounded up. Types and layouts (row-major, A, B or both
transposed) take turns; a 16-bit C and a float32 C of bfloat16 operands count as two types. ``pysimd.matmul`` and cuBLAS
(through CuPy, strided batches, transposed operands as they are) compute the same operands in shuffled, interleaved
samples; figures are medians of GPU times, of calls that are queued before they are timed. An instance for the shape is
compiled before that. Results are checked in float64 on the first and the last product. Where the product is left to
cuBLAS it is not timed, and the ratio is 1.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import cupy
import gemm_shapes
import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda import dispatch, library
from pysimd.backends.cuda.implementation import CUDA, INSTANCES
from pysimd.bench import timing
from pysimd.bench.data import random_array
from pysimd.operands import Product

SEED, COUNT, MOST, MOST_BATCH = 20261123, 240, 4096, 4096

BYTES, MOST_MACS = (100_000, 600_000_000), 1 << 38
"""Of A, B and C together; multiply-adds of a batch."""

TYPES = {"f32": ("f32", 4), "f64": ("f64", 8), "f16": ("f16", 2), "bf16": ("bf16f32", 2), "bf16f32": ("bf16f32", 4)}
"""The types family, and the bytes of an element of C."""

LAYOUTS = {"row-major": (False, False), "A.mT": (True, False), "B.mT": (False, True), "both": (True, True)}


def cases(
    count: int, seed: int = SEED, least: int = 1, most: int = MOST, multiple: int = 1
) -> Iterator[tuple[str, str, int, int, int, int]]:
    """(types, layout, batch, m, n, k)."""
    rng = random.Random(seed)
    while count:
        batch = round(2 * (MOST_BATCH / 2) ** rng.random())
        sizes = (round(least * (most / least) ** rng.random()) for _ in range(3))
        m, n, k = (-(-x // multiple) * multiple for x in sizes)
        types = list(TYPES)[count % len(TYPES)]
        size = dtypes.dtype_of(dtypes.FAMILIES[TYPES[types][0]].a).itemsize
        nbytes = batch * ((m * k + k * n) * size + m * n * TYPES[types][1])
        if BYTES[0] <= nbytes <= BYTES[1] and batch * m * n * k <= MOST_MACS:
            yield types, list(LAYOUTS)[count // len(TYPES) % len(LAYOUTS)], batch, m, n, k
            count -= 1


def row(types: str, layout: str, batch: int, m: int, n: int, k: int, seconds: float) -> dict[str, Any]:
    """The case, what computes it, both times in microseconds and the ratio to cuBLAS."""
    family, size = dtypes.FAMILIES[TYPES[types][0]], TYPES[types][1]
    rng = cupy.random.default_rng(0)
    shapes = (batch, m, k), (batch, k, n)
    a, b = (
        _turned(random_array(family.a, shape, rng), turned)
        for shape, turned in zip(shapes, LAYOUTS[layout], strict=True)
    )
    out = cupy.empty((batch, m, n), a.dtype if size == a.itemsize else np.float32)
    product = Product(family.name, a, b, None, out, out.shape, out.shape, out.dtype)
    choice = CUDA.choice(product)
    taken = "cublas" if choice.way is dispatch.Way.LIBRARY else choice.name or choice.way.name.lower()
    found = {"types": types, "layout": layout, "batch": batch, "m": m, "n": n, "k": k, "taken": taken}
    if taken == "cublas":
        return found | {"times_cublas": 1.0}
    for _ in range(2):
        pysimd.matmul(a, b, out=out)
    INSTANCES.wait()
    out.view(np.uint8).fill(0xFF)  # NaN
    pysimd.matmul(a, b, out=out)
    holds = all(_holds(family.roundoff if types != "f16" else 2.0**-24, a[i], b[i], out[i]) for i in (0, -1))
    functions = {"pysimd": partial(pysimd.matmul, a, b, out=out), "cublas": library.work(product).run}
    runs = {name: timing.repeated(function) for name, function in functions.items()}
    found_times = timing.times(runs, timing.QueuedCudaEvents(), seconds=seconds)
    us = {name: x.median_ns / 1000 for name, x in found_times.items()}
    return found | {"us": us, "within_bound": holds, "times_cublas": us["cublas"] / us["pysimd"]}


def _turned(x, whether: bool):
    """The same values, with the last two dimensions swapped in memory."""
    return x.swapaxes(-1, -2).copy().swapaxes(-1, -2) if whether else x


def _holds(roundoff: float, a, b, result) -> bool:
    """With float32 or float64 accumulators, and one rounding where C has 16 bits."""
    x, y = (dtypes.widened(part, np.float64) for part in (a, b))
    expected, magnitude = x @ y, abs(x) @ abs(y)
    rounding = {"float16": 2.0**-11, "float32": 0.0, "float64": 0.0}.get(result.dtype.name, 2.0**-8)
    bound = (a.shape[-1] + 3) * roundoff * magnitude + rounding * abs(expected) + 2.0**-25
    return bool((abs(dtypes.widened(result, np.float64) - expected) <= bound).all())


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each types: products, how many are taken, the worst and the geometric mean against cuBLAS."""
    found = {}
    for types in TYPES:
        ratios = [x["times_cublas"] for x in rows if x["types"] == types]
        if ratios:
            found[types] = {
                "products": len(ratios),
                "taken": sum("us" in x for x in rows if x["types"] == types),
                "worst": min(ratios),
                "below_0.95": sum(x < gemm_shapes.LEVEL for x in ratios),
                "geometric_mean": math.exp(sum(map(math.log, ratios)) / len(ratios)),
            }
    return found


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.02, help="for each side at each shape (%(default)s)")
    parser.add_argument("--count", type=int, default=COUNT, help="of random products (%(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the products (%(default)s)")
    parser.add_argument("--least", type=int, default=1, metavar="SIDE", help="of m, n and k (%(default)s)")
    parser.add_argument("--most", type=int, default=MOST, metavar="SIDE", help="likewise (%(default)s)")
    parser.add_argument(
        "--multiple", type=int, default=1, help="round m, n and k up to multiples of this (%(default)s)"
    )
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES), metavar="TYPES")
    parser.add_argument("--limit", type=float, default=math.inf, metavar="SECONDS", help="begin no product after this")
    options = parser.parse_args()
    record.need_cuda(parser)
    rows, start = [], time.monotonic()
    for case in cases(options.count, options.seed, options.least, options.most, options.multiple):
        if time.monotonic() - start > options.limit:
            break
        if case[0] not in options.types:
            continue
        rows.append(row(*case, options.seconds))
        cupy.get_default_memory_pool().free_all_blocks()
        if "us" in rows[-1]:
            shown = " ".join(str(x) for x in case)
            record.progress(f"{shown} by {rows[-1]['taken']}: {rows[-1]['times_cublas']:.2f}")
    settings = {x: getattr(options, x) for x in ("seed", "least", "most", "multiple")}
    record.write(record.gpu(), options.out, **settings, summary=summary(rows), rows=rows)


if __name__ == "__main__":
    main()
