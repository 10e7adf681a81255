"""Whole products of random shapes against cuBLAS: ``python benchmarks/gemm_shapes.py [--out FILE.json]``.

m, n and k are log-uniform from 1 to 16384, by a seed, and every shape is multiplied in float32, float16 and bfloat16
(into a C of the operands' type). At each the best rung of the types, cuBLAS, and what ``pysimd.matmul`` chooses between
them are timed in shuffled, interleaved samples on the same random operands, several sets of them where one would fit
L2. Figures are medians of GPU times: calls are queued before they are timed, so the host's time is not in them. Results
are checked against cuBLAS in float64 on 16 rows.
"""

from __future__ import annotations

import json
import math
import random
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda import device, dispatch, estimates, library
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.backends.gpu.plans import addresses_of
from pysimd.bench import cuda_ladder as ladder
from pysimd.bench import timing
from pysimd.bench.data import random_array
from pysimd.operands import Product

SEED, COUNT, MOST = 20261122, 200, 16384

RUNGS = {"f32": "f32_best", "f16": "f16_best", "bf16f32": "bf16_best"}
"""Types families as matmul names them, and the rung that is compared."""

MOST_SETS = 64


def shapes(count: int, multiple: int = 1, seed: int = SEED) -> list[tuple[int, int, int]]:
    """(m, n, k)."""
    rng = random.Random(seed)
    sizes = (round(MOST ** rng.random()) for _ in range(3 * count))
    rounded = [-(-x // multiple) * multiple for x in sizes]
    return list(zip(rounded[::3], rounded[1::3], rounded[2::3], strict=True))


def row(types: str, m: int, n: int, k: int, seconds: float) -> dict[str, Any]:
    family = dtypes.FAMILIES[types]
    size = dtypes.dtype_of(family.a).itemsize
    sets = min(MOST_SETS, ladder.operand_sets(size * (m * k + k * n + m * n)))
    rng = cupy.random.default_rng(0)
    a, b = (random_array(family.a, (sets, *shape), rng) for shape in ((m, k), (k, n)))
    out = cupy.empty((sets, m, n), a.dtype)
    rung = pysimd.rung(RUNGS[types])
    ours = [gpu_rungs.prepared(rung, a[i], b[i], out[i]) for i in range(sets)]
    cublas = [_cublas(types, a[i], b[i], out[i]) for i in range(sets)]
    out[0].view(np.uint8).fill(0xFF)  # NaN
    ours[0]()
    runs = {rung.name: timing.cycled(ours), "cublas": timing.cycled(cublas)}
    holds = _holds(types, a[0], b[0], out[0])
    ns = {name: x.median_ns for name, x in timing.times(runs, timing.QueuedCudaEvents(), seconds=seconds).items()}
    return {
        "types": types,
        "m": m,
        "n": n,
        "k": k,
        "us": {name: x / 1000 for name, x in ns.items()},
        "within_bound": holds,
    }


def with_choice(row: dict[str, Any]) -> dict[str, Any]:
    """The row with what ``matmul`` chooses, its speed against cuBLAS (None for a batch of small products, which is
    another benchmark), and measured over estimated times where the estimates hold."""
    types, m, n, k, us = (row[name] for name in ("types", "m", "n", "k", "us"))
    choice = dispatch.choose(types, m, n, k, 1)
    taken = "cublas" if choice.way is dispatch.Way.LIBRARY else choice.name or choice.way.name.lower()
    found = {**row, "taken": taken, "times_cublas": us["cublas"] / us[taken] if taken in us else None}
    if min(m, n) < estimates.LEAST_MN or m * n * k < estimates.LEAST_MACS[types]:
        return found
    if types == "f32":
        of_rung, of_cublas = estimates.f32_us(m, n, k), estimates.CUBLAS_F32.us(m, n, k)
    elif n % 8 or k % 8:
        of_rung, of_cublas = estimates.unaligned_us(m, n, k), estimates.cublas_unaligned_us(m, n, k)
    else:
        return found
    return {**found, "over_estimate": {"rung": us[RUNGS[types]] / of_rung, "cublas": us["cublas"] / of_cublas}}


def errors(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Measured over estimated times, for each types family and for the rung and cuBLAS: the least, the quartiles, the
    most."""
    found: dict[str, dict[str, list[float]]] = {}
    for types in RUNGS:
        given = [x["over_estimate"] for x in rows if x["types"] == types and "over_estimate" in x]
        if given:
            quantiles = {side: np.quantile([x[side] for x in given], [0, 0.25, 0.5, 0.75, 1]) for side in given[0]}
            found[types] = {side: x.round(3).tolist() for side, x in quantiles.items()}
    return found


def _cublas(types: str, a, b, out):
    made = library.work(Product(types, a, b, None, out, out.shape, out.shape, out.dtype))
    return partial(made.plan.run, addresses_of(made.arrays))


def _holds(types: str, a, b, result) -> bool:
    x, y = (dtypes.widened(part, np.float64) for part in (a[-16:], b))
    expected, magnitude = x @ y, abs(x) @ abs(y)
    rounding = {"f32": 0.0, "f16": 2.0**-11, "bf16f32": 2.0**-8}[types]
    bound = (a.shape[-1] + 3) * 2.0**-24 * magnitude + rounding * abs(expected) + 2.0**-25
    return bool((abs(dtypes.widened(result[-16:], np.float64) - expected) <= bound).all())


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Worst and geometric mean against cuBLAS, and how many products a rung computes, for each types family."""
    found = {}
    for types in sorted({x["types"] for x in rows}):
        ratios = [x["times_cublas"] for x in rows if x["types"] == types and x["times_cublas"]]
        taken = sum(x["taken"] == RUNGS[types] for x in rows if x["types"] == types)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        found[types] = {"worst": min(ratios), "geometric_mean": mean, "products": len(ratios), "by_rung": taken}
    return found


def chosen(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What is recorded of rows: what matmul chooses is added."""
    made = [with_choice(x) for x in rows]
    return {"summary": summary(made), "errors": errors(made), "rows": made}


def choose_again(recorded: Path, out: Path) -> None:
    """Recorded times with the choice of today, for the device that they were measured on."""
    device.why_not = lambda row, where=None: ""  # an H200 runs all of them
    document = json.loads(recorded.read_text())
    settings = {"seed": document["seed"], "multiple": document.get("multiple", 1)}
    record.write(document["machine"], out, **settings, **chosen(document["rows"]))


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.02, help="for each side at each shape (%(default)s)")
    parser.add_argument("--count", type=int, default=COUNT, help="of random shapes (%(default)s)")
    parser.add_argument("--types", nargs="+", default=list(RUNGS), help=f"of {', '.join(RUNGS)}")
    parser.add_argument("--choose-again", type=Path, metavar="FILE.json", help="for recorded times; needs no GPU")
    parser.add_argument("--multiple", type=int, default=1, help="round sizes up to multiples of this (%(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the shapes (%(default)s)")
    options = parser.parse_args()
    if options.choose_again:
        choose_again(options.choose_again, options.out or options.choose_again)
        return
    record.need_cuda(parser)
    ladder.check_available()
    rows = []
    for i, shape in enumerate(shapes(options.count, options.multiple, options.seed)):
        for types in options.types:
            rows.append(row(types, *shape, options.seconds))
        if i % 20 == 0:
            record.progress(f"{i} of {options.count}")
    settings = {"seed": options.seed, "multiple": options.multiple}
    record.write(record.gpu(), options.out, **settings, **chosen(rows))


if __name__ == "__main__":
    main()
