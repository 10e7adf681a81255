"""Whole products of random shapes against cuBLAS: ``python benchmarks/gemm_shapes.py [--out FILE.json]``.

m, n and k are log-uniform from 1 to 16384, by a seed, and every shape is multiplied in float32, float16 and bfloat16
(into a C of the operands' type). cuBLAS and what ``pysimd.matmul`` may take instead, narrow.cu where C is narrow enough
for it, else the best rung of the types, are timed in shuffled, interleaved samples on the same random operands, several
sets of them where one would fit L2. Figures are medians of GPU times: calls are queued before they are timed, so the
host's time is not in them. Results are checked in float64 on 16 rows. Products that are taken as a batch of small ones
are left out: they have a benchmark of their own (cuda_micro.py). With ``--short MOST`` one of m and n is log-uniform
from 1 to MOST. With ``--limit SECONDS`` no shape is begun after that time; ``count`` says how many were. With
``--taken`` products that are left to cuBLAS are not timed: they have no ``us``, and the ratio 1.
"""

from __future__ import annotations

import json
import math
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda import device, dispatch, estimates, library, narrow, narrow_estimates
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.backends.gpu.plans import addresses_of
from pysimd.bench import cuda_ladder as ladder
from pysimd.bench import timing
from pysimd.bench.data import random_array
from pysimd.operands import Product

SEED, COUNT, MOST = 20261122, 200, 16384

LEVEL = 0.95
"""Times the speed of cuBLAS that no product should be below."""

RUNGS = {"f32": "f32_best", "f16": "f16_best", "bf16f32": "bf16_best"}
"""Types families as matmul names them, and the rung that is compared."""

MOST_SETS = 64


def shapes(count: int, multiple: int = 1, seed: int = SEED, short: int = 0) -> list[tuple[int, int, int]]:
    """(m, n, k)."""
    rng = random.Random(seed)
    sizes = (round(MOST ** rng.random()) for _ in range(3 * count))
    rounded = [-(-x // multiple) * multiple for x in sizes]
    found = list(zip(rounded[::3], rounded[1::3], rounded[2::3], strict=True))
    if not short:
        return found
    sides = [round(short ** rng.random()) for _ in found]
    return [(x, n, k) if i % 2 else (m, x, k) for i, (x, (m, n, k)) in enumerate(zip(sides, found, strict=True))]


def small(types: str, m: int, n: int, k: int) -> bool:
    """Whether matmul takes the product as a batch of small ones."""
    return dispatch.choose(types, m, n, k, 1).way in (dispatch.Way.BATCHED, dispatch.Way.BATCHED_MMA)


def left(types: str, m: int, n: int, k: int) -> bool:
    """Whether matmul leaves the product to cuBLAS."""
    return dispatch.choose(types, m, n, k, 1).way is dispatch.Way.LIBRARY


def row(types: str, m: int, n: int, k: int, seconds: float, only_taken: bool = False) -> dict[str, Any]:
    if only_taken and left(types, m, n, k):
        return {"types": types, "m": m, "n": n, "k": k}
    family = dtypes.FAMILIES[types]
    size = dtypes.dtype_of(family.a).itemsize
    sets = min(MOST_SETS, ladder.operand_sets(size * (m * k + k * n + m * n)))
    rng = cupy.random.default_rng(0)
    a, b = (random_array(family.a, (sets, *shape), rng) for shape in ((m, k), (k, n)))
    out = cupy.empty((sets, m, n), a.dtype)
    rung = pysimd.rung(RUNGS[types])
    functions = {"cublas": [_prepared(library.work, types, a[i], b[i], out[i]) for i in range(sets)]}
    rung_taken = dispatch.choose(types, m, n, k, 1).way is dispatch.Way.RUNG
    if narrow_estimates.holds(types, m, n, k) and not (only_taken and rung_taken):
        functions["narrow"] = [_prepared(narrow.work, types, a[i], b[i], out[i]) for i in range(sets)]
    if "narrow" not in functions or rung_taken:
        functions[rung.name] = [gpu_rungs.prepared(rung, a[i], b[i], out[i]) for i in range(sets)]
    holds = True
    for name in functions.keys() - {"cublas"}:
        out[0].view(np.uint8).fill(0xFF)  # NaN
        functions[name][0]()
        holds = holds and _holds(types, a[0], b[0], out[0])
    runs = {name: timing.cycled(x) for name, x in functions.items()}
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
    types, m, n, k, us = (row.get(name) for name in ("types", "m", "n", "k", "us"))
    choice = dispatch.choose(types, m, n, k, 1)
    taken = "cublas" if choice.way is dispatch.Way.LIBRARY else choice.name or choice.way.name.lower()
    if us is None:  # it was left to cuBLAS, and still is
        return {**row, "taken": taken, "times_cublas": 1.0 if taken == "cublas" else None}
    found = {**row, "taken": taken, "times_cublas": us["cublas"] / us[taken] if taken in us else None}
    if "narrow" in us:
        of_narrow, of_cublas = narrow_estimates.narrow_us(types, m, n, k), narrow_estimates.cublas_us(types, m, n, k)
        if of_cublas is None:
            return found
        return {**found, "over_estimate": {"narrow": us["narrow"] / of_narrow, "cublas": us["cublas"] / of_cublas}}
    if not estimates.holds(types, m, n, k):
        return found
    if types == "f32":
        of_rung, of_cublas = estimates.f32_us(m, n, k), estimates.CUBLAS_F32.us(m, n, k)
    elif n % 8 or k % 8:
        of_rung, of_cublas = estimates.unaligned_us(m, n, k), estimates.cublas_unaligned_us(m, n, k)
    else:
        return found
    return {**found, "over_estimate": {"rung": us[RUNGS[types]] / of_rung, "cublas": us["cublas"] / of_cublas}}


def errors(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Measured over estimated times, for each types family and for what is compared, narrow.cu and cuBLAS or the rung
    and cuBLAS: the least, the quartiles, the most."""
    found: dict[str, dict[str, list[float]]] = {}
    for types in RUNGS:
        for ours in ("narrow", "rung"):
            given = [x["over_estimate"] for x in rows if x["types"] == types and ours in x.get("over_estimate", ())]
            if given:
                quantiles = {side: np.quantile([x[side] for x in given], [0, 0.25, 0.5, 0.75, 1]) for side in given[0]}
                found[f"{types}, {ours}"] = {side: x.round(3).tolist() for side, x in quantiles.items()}
    return found


def _prepared(work, types: str, a, b, out):
    made = work(Product(types, a, b, None, out, out.shape, out.shape, out.dtype))
    return partial(made.plan.run, addresses_of(made.arrays))


def _holds(types: str, a, b, result) -> bool:
    x, y = (dtypes.widened(part, np.float64) for part in (a[-16:], b))
    expected, magnitude = x @ y, abs(x) @ abs(y)
    rounding = {"f32": 0.0, "f16": 2.0**-11, "bf16f32": 2.0**-8}[types]
    bound = (a.shape[-1] + 3) * 2.0**-24 * magnitude + rounding * abs(expected) + 2.0**-25
    return bool((abs(dtypes.widened(result[-16:], np.float64) - expected) <= bound).all())


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Worst and geometric mean against cuBLAS, and how many products a rung and narrow.cu compute, for each types
    family."""
    found = {}
    for types in sorted({x["types"] for x in rows}):
        ratios = [x["times_cublas"] for x in rows if x["types"] == types and x["times_cublas"]]
        taken = [x["taken"] for x in rows if x["types"] == types]
        found[types] = {
            "worst": min(ratios),
            "geometric_mean": math.exp(sum(map(math.log, ratios)) / len(ratios)),
            "products": len(ratios),
            "by_rung": taken.count(RUNGS[types]),
            "by_narrow": taken.count("narrow"),
            "below_0.95": sum(x < LEVEL for x in ratios),
        }
    return found


def below(rows: list[dict[str, Any]]) -> list[str]:
    """The products that what is taken computes at less than ``LEVEL`` times the speed of cuBLAS, the slowest first."""
    found = [x for x in rows if x["times_cublas"] and x["times_cublas"] < LEVEL]
    return [
        f"{x['types']} {x['m']} x {x['n']} x {x['k']} by {x['taken']}: {x['times_cublas']:.3f}"
        for x in sorted(found, key=lambda x: x["times_cublas"])
    ]


def chosen(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What is recorded of rows: what matmul chooses is added."""
    made = [with_choice(x) for x in rows]
    return {"summary": summary(made), "below_0.95": below(made), "errors": errors(made), "rows": made}


def choose_again(recorded: Path, out: Path) -> None:
    """Adds to recorded times what would be chosen today on the device that they were measured on, as ``again``."""
    device.why_not = lambda row, where=None: ""  # an H200 runs all of them
    document = json.loads(recorded.read_text())
    again = chosen(document["rows"])
    document["again"] = {"commit": record.versions()["commit"], **{x: again[x] for x in again if x != "rows"}}
    record.write(document.pop("machine"), out, **{x: y for x, y in document.items() if x != "schema_version"})


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.02, help="for each side at each shape (%(default)s)")
    parser.add_argument("--count", type=int, default=COUNT, help="of random shapes (%(default)s)")
    parser.add_argument("--types", nargs="+", default=list(RUNGS), help=f"of {', '.join(RUNGS)}")
    parser.add_argument("--choose-again", type=Path, metavar="FILE.json", help="for recorded times; needs no GPU")
    parser.add_argument("--multiple", type=int, default=1, help="round sizes up to multiples of this (%(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the shapes (%(default)s)")
    parser.add_argument("--short", type=int, default=0, metavar="MOST", help="one of m and n is at most this")
    parser.add_argument("--taken", action="store_true", help="time only what is not left to cuBLAS")
    parser.add_argument("--limit", type=float, default=math.inf, metavar="SECONDS", help="begin no shape after this")
    options = parser.parse_args()
    if options.choose_again:
        choose_again(options.choose_again, options.out or options.choose_again)
        return
    record.need_cuda(parser)
    ladder.check_available()
    rows, measured, start = [], 0, time.monotonic()
    for shape in shapes(options.count, options.multiple, options.seed, options.short):
        if time.monotonic() - start > options.limit:
            break
        wanted = [types for types in options.types if not small(types, *shape)]
        rows += [row(types, *shape, options.seconds, options.taken) for types in wanted]
        measured += 1
        if measured % 20 == 0:
            record.progress(f"{measured} of {options.count}, {time.monotonic() - start:.0f} s")
    settings = {"seed": options.seed, "multiple": options.multiple, "short": options.short, "count": measured}
    record.write(record.gpu(), options.out, **settings, **chosen(rows))


if __name__ == "__main__":
    main()
