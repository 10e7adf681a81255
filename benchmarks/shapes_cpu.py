"""Single products of every shape on the CPU, next to NumPy: where one side is short and another long.

m, k and n are log-uniform from 1 to 4096, by a seed, with at most MOST_MACS multiply-adds; types and the layouts plain,
A.mT and B.mT take turns. SHAPES are the extreme ones, of every type and layout. Cases are measured as in cliffs.py: on
the same arrays, into an ``out`` that exists, in interleaved samples of which the best counts (``--apart``: each side
while the other's threads sleep), slower ones again at the end, narrow types beside NumPy on float32 copies. The
headline is the worst and the geometric mean of numpy / pysimd among the random shapes that take NumPy 1 microsecond or
longer. ``reads`` is what one core, and all, read from memory in the same run.

``python benchmarks/shapes_cpu.py --out benchmarks/results/shapes_cpu_amd.json`` (``--plot FILE.png``)
``--threads 1`` compares one thread of both (needs threadpoolctl). With ``--seconds 60 --resume`` the cases are measured
in slices: each run adds those that are missing, in their order.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import cliffs
import numpy as np
import record
from cliffs import Case

import pysimd
from pysimd.bench import blas, cpu_peaks

LAYOUTS = ("plain", "A.mT", "B.mT")
SHAPES = (
    (1, 4096, 4096),
    (2, 4096, 4096),
    (8, 4096, 4096),
    (16, 4096, 4096),
    (4096, 4096, 1),
    (4096, 4096, 8),
    (4096, 1, 4096),
    (4096, 64, 4096),
    (64, 4096, 64),
)
MOST, MOST_MACS = 4096, 1 << 29  # of a side; of a product


def random_cases(types: tuple[str, ...], count: int, seed: int) -> Iterator[Case]:
    """``count`` shapes, each of one type and one layout."""
    rng = np.random.default_rng(seed)
    while count:
        m, k, n = (round(MOST**x) for x in rng.random(3))
        if m * k * n <= MOST_MACS:
            yield Case(types[count % len(types)], LAYOUTS[count // len(types) % len(LAYOUTS)], 1, m, k, n)
            count -= 1


def extreme_cases(types: tuple[str, ...]) -> Iterator[Case]:
    """SHAPES: the plain layout of every type first."""
    for layout in LAYOUTS:
        for family in types:
            for m, k, n in SHAPES:
                yield Case(family, layout, 1, m, k, n)


def reads() -> dict[str, float]:
    """10^9 bytes a second that one thread, and one on each core at the same time, load from memory."""
    best = max((k for k in pysimd.kernels("cpu", available=True) if k.types == "f32"), key=lambda k: k.nr * k.mr)
    row = cpu_peaks.index(best.target, "f32")
    cores = len(os.sched_getaffinity(0))
    buffers = [cpu_peaks.Buffer(cpu_peaks.windows()["memory"]) for _ in range(min(cores, 4))]
    loads = [cpu_peaks.Loads(row, "memory", buffers[i % len(buffers)], 0) for i in range(cores)]
    alone = min(loads[0].ns() for _ in range(8))
    with ThreadPoolExecutor(cores) as pool:
        together = min(max(pool.map(lambda load: min(load.ns(), load.ns()), loads)) for _ in range(4))
    return {
        "one_core_gbytes_per_s": round(cpu_peaks.step_bytes(row) / alone, 1),
        "all_cores_gbytes_per_s": round(cores * cpu_peaks.step_bytes(row) / together, 1),
    }


def plot(rows: list[dict], path: Path) -> None:
    """numpy / pysimd of every case by its multiply-adds, a colour for each type."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5))
    for family in dict.fromkeys(row["types"] for row in rows):
        own = [row for row in rows if row["types"] == family]
        axes.scatter([r["numpy_us"] for r in own], [r["ratio"] for r in own], s=9, label=family)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="NumPy, microseconds a call", ylabel="numpy / pysimd")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def summary(rows: list[dict], extreme: set[Case]) -> dict:
    """The worst cases and the geometric mean: of the random shapes, and of the extreme ones."""
    counted = [row for row in rows if row["numpy_us"] >= 1]
    found = {}
    for name, inside in (("random", False), ("extreme", True)):
        own = [row for row in counted if (cliffs.case_of(row) in extreme) == inside]
        if own:
            found[name] = {
                "cases": len(own),
                "worst": sorted(own, key=lambda row: row["ratio"])[:20],
                "geometric_mean": cliffs.mean(own),
                "slower_percent": 100 * sum(row["ratio"] < 1 for row in own) / len(own),
            }
    return found


def show(found: dict) -> None:
    for name, part in found.items():
        for row in part["worst"]:
            record.progress(cliffs.words(row))
        record.progress(
            f"{part['cases']} {name} shapes: worst {part['worst'][0]['ratio']:.2f}, geometric mean "
            f"{part['geometric_mean']:.2f}, slower than NumPy in {part['slower_percent']:.1f} %"
        )


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--types", nargs="+", choices=cliffs.TYPES, default=cliffs.TYPES)
    parser.add_argument("--count", type=int, default=900, help="of random shapes (%(default)s)")
    parser.add_argument("--threads", type=int, default=None, help="of both sides; default: their own choice")
    parser.add_argument("--apart", action="store_true", help="each side while the other's threads sleep")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after so long")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --out and measure other cases")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the ratios (needs matplotlib)")
    options = parser.parse_args()
    if blas.numpy_blas().forced is not None:
        sys.exit("OPENBLAS_CORETYPE is set: NumPy may run another machine's kernels; unset it")
    if options.threads:
        cliffs.limit_threads(options.threads)
    measure = partial(cliffs.measured, threads=options.threads, alone=options.apart)
    start, rows, found_reads = time.monotonic(), [], reads()
    record.progress(found_reads)
    offered = {kernel.types for kernel in pysimd.kernels("cpu")}
    types = tuple(t for t in options.types if t in offered)
    extreme = list(extreme_cases(types))
    drawn = list(random_cases(types, options.count, options.seed))
    todo = extreme[: len(extreme) // len(LAYOUTS)] + drawn + extreme[len(extreme) // len(LAYOUTS) :]
    if options.resume and options.out and options.out.exists():
        rows = json.loads(options.out.read_text())["rows"]
    known = {cliffs.case_of(row) for row in rows}
    for case in todo:
        if time.monotonic() - start > options.seconds:
            break
        if case not in known:
            rows.append(measure(case))
    if time.monotonic() - start < options.seconds:
        rows = cliffs.settled(rows, measure)
    record.progress(f"{len(rows)} of {len(todo)} cases in {time.monotonic() - start:.0f} s")
    found = summary(rows, set(extreme))
    show(found)
    if options.plot:
        plot(rows, options.plot)
    record.write(
        record.cpu(),
        options.out,
        reads=found_reads,
        threads=options.threads,
        apart=options.apart,
        summary=found,
        rows=rows,
    )


if __name__ == "__main__":
    main()
