"""Where is pysimd slower than NumPy? Products of every shape, type, batch and layout on the CPU.

A case is a type, a layout, a batch and m, k, n. Squares of every listed size and random shapes are sampled for each
type and layout. Both sides multiply the same arrays into an ``out`` that exists, in interleaved samples, of which the
best counts; narrow types are compared with NumPy on float32 copies of the same values that were made beforehand.
Batches "L2", "L3" and "memory" have as many products as fill half of L2, half of L3 and twice L3. The headline is the
worst of numpy / pysimd among calls that take NumPy 1 microsecond or longer. Cases in which pysimd is slower are
measured AGAIN times more at the end, and the median of the ratios counts.

In turn with NumPy, pysimd's threads run beside those of NumPy's OpenBLAS, which spin for some 100 milliseconds after a
large product. With ``--apart`` a side is measured when the other's threads sleep, as in a program that multiplies by
one of the two. With OPENBLAS_THREAD_TIMEOUT=20 in the environment they sleep after a millisecond, and the grid takes
minutes instead of an hour.

With ``--control`` NumPy is on both sides: how far such ratios, each measured once, are from 1 is what one can say.

``python benchmarks/cliffs.py --out benchmarks/results/cliffs.json --plot benchmarks/results/cliffs.png``
With ``--seconds 75 --resume`` the grid is measured in slices: each run adds cases, in a seeded random order.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from operator import itemgetter
from pathlib import Path

import numpy as np
import record
from pysimd._cpu import lib

import pysimd
from pysimd import dtypes
from pysimd.bench import blas
from pysimd.bench.data import page_aligned, random_array

TYPES = ("f32", "f64", "bf16f32", "f16f32", "i8i32", "u8i8i32")
LAYOUTS = (
    "plain",
    "A.mT",
    "B.mT",
    "shared A",
    "shared B",
    "A @ v",
    "A @ column",
    "v @ B",
    "row @ B",
    "every other element",
    "16-byte offset",
)
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 17, 20, 24, 28, 31, 32, 33, 40, 48, 56, 63, 64, 96, 128, 200)
BATCHES = (1, 10, 1000, "L2", "L3", "memory")
MOST_BYTES = 96 << 20  # of one operand
SAMPLE_NS = 150_000

LONG_NS = 3e6
"""Of a call, from which on it is sampled less often."""

STEADY, MOST_SAMPLES = (8, 3), (60, 9)
"""Of each side, a sample of either after the other, until so many in a row were not the shortest by GAIN; at most so
many; of short calls, and of long ones. Five samples of each, whatever they were, let one busy millisecond of a shared
host decide: of 1062 calls the ratio of 4031 x 2 x 359 float was 0.66 once, and 1.05 where it was measured again."""

GAIN = 0.01

BURST = {False: 4, True: 1}
"""Samples of a side in a row where the sides are measured apart; of short calls, and of long ones."""

AGAIN = 4
"""Of a case in which pysimd was slower. On a shared host the speed of memory differs by a factor of two from second to
second: of 3,960 cases a few are always disturbed, and the best times of each side are those of other seconds."""


@dataclass(frozen=True)
class Case:
    """A product: types family, layout, batch (a number, or what its arrays fill), sizes."""

    types: str
    layout: str
    batch: int | str
    m: int
    k: int
    n: int


# --- cases ---


def cases(types: tuple[str, ...], squares: tuple[int, ...], shapes: int, seed: int) -> Iterator[Case]:
    """Squares with a batch each, drawn so that every batch is equally frequent, and ``shapes`` random shapes, for each
    type and layout."""
    rng = np.random.default_rng(seed)
    for family in types:
        for layout in LAYOUTS:
            batches = rng.permutation(np.resize(np.arange(len(BATCHES)), len(squares) + shapes))
            sizes = [(s, s, s) for s in squares]
            sizes += [tuple(int(x) for x in rng.integers(1, 65, 3)) for _ in range(shapes)]
            for (m, k, n), batch in zip(sizes, batches, strict=True):
                m = 1 if layout in ("v @ B", "row @ B") else m
                n = 1 if layout in ("A @ v", "A @ column") else n
                yield Case(family, layout, BATCHES[batch], m, k, n)


@cache
def cache_bytes() -> dict[str, int]:
    """Bytes that the arrays of a batch have in all, by its name."""
    found = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        size = (index / "size").read_text().strip()
        found[(index / "level").read_text().strip()] = int(size[:-1]) << (10 if size.endswith("K") else 20)
    l2, l3 = found.get("2", 1 << 20), found.get("3", 32 << 20)
    return {"L2": l2 // 2, "L3": l3 // 2, "memory": min(2 * l3, MOST_BYTES)}


def products(case: Case) -> int:
    """The number of products of the batch."""
    if isinstance(case.batch, int):
        return case.batch
    family = dtypes.FAMILIES[case.types]
    of_a, of_b, of_c = (dtypes.dtype_of(name).itemsize for name in (family.a, family.b, family.c))
    each = case.m * case.k * of_a + case.k * case.n * of_b + case.m * case.n * of_c
    return max(1, cache_bytes()[case.batch] // each)


# --- arrays ---


@cache
def values(name: str, operand: int) -> np.ndarray:
    """Random values that fill ``MOST_BYTES`` as float32: operands are views of them."""
    dtype = dtypes.dtype_of(name)
    room = page_aligned(MOST_BYTES // 4 * dtype.itemsize + 4096).view(dtype)
    piece = random_array(name, (1 << 18,), np.random.default_rng(operand))
    room[:] = np.resize(piece, room.size)
    return room


@cache
def float32_values(name: str, operand: int) -> np.ndarray:
    """The same values as float32."""
    if name in ("float32", "float64"):
        return values(name, operand)
    found = page_aligned(MOST_BYTES + 4096 * 4).view(np.float32)[: values(name, operand).size]
    found[:] = values(name, operand)
    return found


def view(flat: np.ndarray, case: Case, operand: int) -> np.ndarray:
    """Operand 0 or 1 of a case, in its layout."""
    rows, columns = (case.m, case.k) if operand == 0 else (case.k, case.n)
    layout = case.layout
    count = products(case)
    if layout == ("shared A", "shared B")[operand]:
        return flat[: rows * columns].reshape(rows, columns)
    if layout == ("v @ B", "A @ v")[operand]:
        return flat[: rows * columns]
    step = 2 if layout == "every other element" else 1
    start = 16 // flat.itemsize if layout == "16-byte offset" else 0
    count = min(count, (flat.size - start) // (rows * columns * step))
    found = flat[start : start + count * rows * columns * step]
    if layout == ("A.mT", "B.mT")[operand]:
        return found.reshape(count, columns, rows).swapaxes(-1, -2)
    return found.reshape(count, rows, columns * step)[:, :, ::step]


def operands(source: Callable, case: Case) -> tuple[np.ndarray, np.ndarray]:
    """A and B of a case, with the same number of products, as views of the arrays of ``source``."""
    family = dtypes.FAMILIES[case.types]
    a, b = (view(source(name, i), case, i) for i, name in enumerate((family.a, family.b)))
    if a.ndim == b.ndim == 3:
        count = min(len(a), len(b))
        return a[:count], b[:count]
    return a, b


@cache
def result_room(operand: int) -> np.ndarray:
    room = page_aligned(4 * MOST_BYTES)
    room[:] = 0
    return room


def result(a: np.ndarray, b: np.ndarray, dtype: np.dtype, offset: int, side: int) -> np.ndarray:
    """An ``out`` for the product, in memory that was used before."""
    batch = a.shape[:-2] if a.ndim > 2 else b.shape[:-2]
    rows = () if a.ndim == 1 else a.shape[-2:-1]
    columns = () if b.ndim == 1 else b.shape[-1:]
    shape = (*batch, *rows, *columns)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes + offset > result_room(side).size:
        return np.empty(shape, dtype)
    return result_room(side)[offset : offset + nbytes].view(dtype).reshape(shape)


# --- times ---


def limit_threads(count: int) -> None:
    """Of NumPy's BLAS."""
    import threadpoolctl

    threadpoolctl.threadpool_limits(limits=count, user_api="blas")


def once(call: Callable[[], object], calls: int) -> float:
    """Nanoseconds of a call, the mean of ``calls`` in a row."""
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / calls


def runs(task: Path) -> bool:
    """Whether a thread of this process has a processor or wants one."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:  # it has ended
        return False


def until_idle() -> None:
    """Wait until the other threads of this process sleep, half a second at most. (The time that the process has run,
    which was looked at before, grows with the ticks of the system: of a thread that spins it often said nothing for a
    millisecond, and --apart measured beside it.)"""
    own, tasks = str(threading.get_native_id()), Path("/proc/self/task")
    end = time.perf_counter_ns() + 500_000_000
    if not tasks.exists():
        time.sleep(0.2)
        return
    while time.perf_counter_ns() < end and any(runs(task) for task in tasks.iterdir() if task.name != own):
        time.sleep(0.001)


def from_idle(take: Callable[[], float], burst: int) -> float:
    """The shortest of ``burst`` samples, which begin when other threads sleep, and pysimd does not know of any."""
    until_idle()
    lib.pysimd_waits.shared_until = 0
    return min(take() for _ in range(burst))


def shortest(sample: dict[str, Callable[[], float]], longest_ns: float) -> dict[str, float]:
    """The shortest sample of each side, taken in turn until none has got shorter for a while."""
    long = longest_ns > LONG_NS
    ns, since = dict.fromkeys(sample, math.inf), 0
    for _ in range(MOST_SAMPLES[long]):
        found = {name: min(ns[name], take()) for name, take in sample.items()}
        since = 0 if any(found[name] < (1 - GAIN) * ns[name] for name in ns) else since + 1
        ns = found
        if since == STEADY[long]:
            break
    return ns


def compared(calls: dict[str, Callable[[], object]], alone: bool = False) -> dict[str, float]:
    """The microseconds of a call of ``pysimd`` and of ``numpy``, taken in turn, or apart if ``alone``; and their
    ratio."""
    estimates = {name: (once(call, 1), once(call, 1))[1] for name, call in calls.items()}
    repeats = {name: max(1, min(200, int(SAMPLE_NS / ns))) for name, ns in estimates.items()}
    longest = max(estimates.values())
    samples = {name: partial(once, call, repeats[name]) for name, call in calls.items()}
    if alone:
        samples = {name: partial(from_idle, take, BURST[longest > LONG_NS]) for name, take in samples.items()}
    ns = shortest(samples, longest)
    us = {f"{name}_us": round(found / 1000, 3) for name, found in ns.items()}
    return {**us, "ratio": ns["numpy"] / ns["pysimd"]}


def measured(case: Case, threads: int | None = None, alone: bool = False, control: bool = False) -> dict:
    """A row: the case, the microseconds of both sides, and numpy / pysimd. The sides are measured in turn, or apart if
    ``alone``; with ``control`` NumPy computes pysimd's side too."""
    a, b = operands(values, case)
    x, y = operands(float32_values, case)
    offset = 16 if case.layout == "16-byte offset" else 0
    family = dtypes.FAMILIES[case.types]
    ours = result(a, b, x.dtype if control else dtypes.dtype_of(family.c), offset, 0)
    theirs = result(x, y, x.dtype, offset, 1)
    calls = {
        "pysimd": partial(np.matmul, x, y, out=ours)
        if control
        else partial(pysimd.matmul, a, b, out=ours, threads=threads),
        "numpy": partial(np.matmul, x, y, out=theirs),
    }
    return {**asdict(case), "products": ours.size // (case.m * case.n), **compared(calls, alone)}


def case_of(row: dict) -> Case:
    return Case(*(row[field.name] for field in fields(Case)))


def settled(rows: list[dict], measure: Callable, case_of: Callable = case_of) -> list[dict]:
    """The rows, of cases that ``case_of`` finds. One in which pysimd is slower is measured AGAIN times more and becomes
    that of the median ratio, with all ``ratios``."""
    found = []
    for row in rows:
        if row["ratio"] < 1 and "ratios" not in row:
            times = sorted([row, *(measure(case_of(row)) for _ in range(AGAIN))], key=itemgetter("ratio"))
            row = {**times[len(times) // 2], "ratios": [round(x["ratio"], 3) for x in times]}
        found.append(row)
    return found


# --- what the rows say ---


def mean(rows: list[dict]) -> float:
    """The geometric mean of numpy / pysimd."""
    return math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def words(row: dict) -> str:
    """A row in one line."""
    return (
        f"{row['ratio']:6.2f}  {row['types']:8} {row['layout']:20} {row['m']}x{row['k']}x{row['n']}, {row['products']} "
        f"products: {row['pysimd_us']} us, NumPy {row['numpy_us']} us"
    )


def summary(rows: list[dict]) -> dict:
    """The worst calls, and for each type and layout the worst ratio and the geometric mean."""
    counted = [row for row in rows if row["numpy_us"] >= 1]
    small = [row for row in counted if max(row["m"], row["k"], row["n"]) <= 32 and row["products"] >= 10]
    cells = {}
    for row in counted:
        cells.setdefault((row["types"], row["layout"]), []).append(row)
    return {
        "worst": sorted(counted, key=lambda row: row["ratio"])[:20],
        "geometric_mean": mean(counted),
        "geometric_mean_of_batches_to_32": mean(small) if small else None,
        "slower_percent": 100 * sum(row["ratio"] < 1 for row in counted) / len(counted),
        "cells": [
            {"types": t, "layout": x, "worst": min(r["ratio"] for r in found), "geometric_mean": mean(found)}
            for (t, x), found in cells.items()
        ],
    }


def table(found: dict) -> list[str]:
    """For each layout the worst ratio and, in parentheses, the geometric mean of each type."""
    types = list(dict.fromkeys(cell["types"] for cell in found["cells"]))
    cells = {(c["layout"], c["types"]): f"{c['worst']:.2f} ({c['geometric_mean']:.1f})" for c in found["cells"]}
    return record.table(["layout", *types], [[x, *(cells.get((x, t), "") for t in types)] for x in LAYOUTS])


def plot(rows: list[dict], path: Path) -> None:
    """A heat map: the worst ratio of each type and layout by the largest of m, k, n."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.colors import TwoSlopeNorm

    edges = (1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 128, 200)
    lines = list(dict.fromkeys((row["types"], row["layout"]) for row in rows))
    image = np.full((len(lines), len(edges)), np.nan)
    for row in rows:
        at = lines.index((row["types"], row["layout"])), np.searchsorted(edges, max(row["m"], row["k"], row["n"]))
        image[at] = np.fmin(image[at], math.log2(row["ratio"]))
    figure, axes = plt.subplots(figsize=(9, 0.19 * len(lines) + 1.5))
    shown = axes.imshow(image, aspect="auto", cmap="RdYlGn", norm=TwoSlopeNorm(0, -3, 3))
    axes.set_xticks(range(len(edges)), edges)
    axes.set_yticks(range(len(lines)), [f"{t}  {x}" for t, x in lines], fontsize=7)
    axes.set_xlabel("largest of m, k, n, up to")
    figure.colorbar(shown, label="worst of log2(numpy / pysimd)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the sizes, in under 90 seconds")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--shapes", type=int, default=None, metavar="N", help="random shapes per type and layout")
    parser.add_argument("--threads", type=int, default=None, help="of both sides; default: their own choice")
    parser.add_argument("--apart", action="store_true", help="each side while the other's threads sleep")
    parser.add_argument("--control", action="store_true", help="NumPy on both sides: what differs is the machine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after so long")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --out and measure other cases")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the heat map (needs matplotlib)")
    options = parser.parse_args()
    if blas.numpy_blas().forced is not None:
        sys.exit("OPENBLAS_CORETYPE is set: NumPy may run another machine's kernels; unset it")
    if options.threads:
        limit_threads(options.threads)
    offered = {kernel.types for kernel in pysimd.kernels("cpu")}
    types = tuple(t for t in options.types if t in offered)
    squares = SIZES[::3] if options.quick else SIZES
    shapes = options.shapes if options.shapes is not None else (6 if options.quick else 31)
    todo = list(cases(types, squares, shapes, options.seed))
    if options.seconds < math.inf:  # so that what is left out is not one type
        np.random.default_rng(options.seed).shuffle(todo)
    measure = partial(measured, threads=options.threads, alone=options.apart, control=options.control)
    start, rows = time.monotonic(), []
    if options.resume and options.out and options.out.exists():
        rows = json.loads(options.out.read_text())["rows"]
    known = set(map(case_of, rows))
    for case in todo:
        if time.monotonic() - start > options.seconds:
            break
        if case not in known:
            rows.append(measure(case))
    if not options.control and time.monotonic() - start < options.seconds:
        rows = settled(rows, measure)
    rows.sort(key=lambda row: (TYPES.index(row["types"]), LAYOUTS.index(row["layout"])))
    found = summary(rows)
    record.progress(f"{len(rows)} of {len(todo)} cases in {time.monotonic() - start:.0f} s")
    for line in table(found):
        record.progress(line)
    for row in found["worst"]:
        record.progress(words(row))
    record.progress(
        f"worst {found['worst'][0]['ratio']:.2f}, geometric mean {found['geometric_mean']:.2f} (batches up to 32: "
        f"{found['geometric_mean_of_batches_to_32']:.2f}), slower than NumPy in {found['slower_percent']:.0f} %"
    )
    if options.plot:
        plot(rows, options.plot)
    record.write(
        record.cpu(),
        options.out,
        threads=options.threads,
        apart=options.apart,
        control=options.control,
        summary=found,
        rows=rows,
    )


if __name__ == "__main__":
    main()
