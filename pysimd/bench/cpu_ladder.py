"""The rungs of the CPU ladder, listed or timed: compared with NumPy and with the peak of the multiply-adds, in
interleaved rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pysimd import inspection, registry
from pysimd._cpu import lib
from pysimd.backends.cpu import ladder
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import blas, cpu_peaks, timing
from pysimd.bench.data import random_array
from pysimd.errors import UnavailableError
from pysimd.microkernel import Rung

NUMPY = "NumPy"
SIZES = (128, 256, 512, 1024, 2048)
THREADS = (1, 2)

_LONGEST_NS = 1e9
"""A rung is left out at sizes where a call is expected to take longer."""

_PEAK, _PEAK_NS = "peak", 5e5


@dataclass(frozen=True)
class Row:
    """One rung, or NumPy, at one size. What only a rung has is None for NumPy; what is measured is None in a list
    without measurement; counts are None where the machine code cannot be read.

    Attributes:
        tile: rows and columns of C that are accumulated in registers; of a rung with cache blocks mc, nc and kc too.
        ratio: multiply-adds per element loaded, of the tile.
        target: instruction set that the hot loop was compiled for.
        multiply_adds, loads, stores, spills: instructions of an iteration of the hot loop.
        macs: multiply-adds of elements that it does, all lanes.
        threads: threads that the call was given.
        size: m = n = k.
        ms, median_ms: milliseconds of a call, the shortest sample and the median. The shortest counts, as for the peak:
            what else runs on the machine only lengthens a sample.
        gflops: 10^9 floating-point operations per second, two per multiply-add.
        percent_of_peak: 100 * gflops / those of independent multiply-adds in registers on as many threads in the same
            run.
        over_numpy: gflops / gflops of NumPy with as many threads in the same run.
        gain: gflops / gflops of the rung before, on as many of these threads as it takes.
        within_bound: whether the result kept ``(K + 3) u |A||B|`` against float64.
    """

    number: str | None
    name: str
    new: str | None = None
    tile: str | None = None
    ratio: float | None = None
    target: str | None = None
    multiply_adds: int | None = None
    macs: int | None = None
    loads: int | None = None
    stores: int | None = None
    spills: int | None = None
    types: str = "f32"
    threads: int | None = None
    size: int | None = None
    ms: float | None = None
    median_ms: float | None = None
    gflops: float | None = None
    percent_of_peak: float | None = None
    over_numpy: float | None = None
    gain: float | None = None
    within_bound: bool | None = None


def _row(rung: Rung) -> Row:
    tile = f"{rung.tm}x{rung.tn}" + (f"; {rung.bm}, {rung.bn}, {rung.bk}" if rung.bk else "")
    row = Row(rung.number, rung.name, rung.new, tile, rung.ratio.value)
    try:
        seen = inspection.inspect(rung)
    except UnavailableError:
        return row
    return replace(
        row,
        target=seen.target,
        multiply_adds=seen.multiply_adds,
        macs=seen.macs,
        loads=sum(seen.load_instructions.values()),
        stores=seen.stores,
        spills=seen.spills,
    )


def listed() -> list[Row]:
    """The rungs without measurement."""
    return [_row(rung) for rung in registry.rungs("cpu")]


def measure(
    sizes: Sequence[int], seconds: float, say: Callable[[str], Any], threads: Sequence[int] = THREADS
) -> tuple[list[Row], dict[int, float]]:
    """Rows of every rung and of NumPy at every size and number of threads, and the peak of as many threads in GFLOP/s.

    On more than one thread those rungs are timed that take them.

    Args:
        sizes: m = n = k.
        seconds: time given to each rung and to NumPy at each size; three calls at least.
        say: called with lines of progress.
        threads: numbers of threads.

    Raises:
        UnavailableError: threadpoolctl, which bounds the threads of NumPy, is not installed.
    """
    if blas.missing():
        raise UnavailableError(blas.missing())
    rungs = {row.name: row for row in listed()}
    rows: list[Row] = []
    peaks: dict[int, float] = {}
    for size in sorted(sizes):
        for count in sorted(threads):
            say(f"{size} x {size} x {size}, {count} thread{'s' * (count != 1)} ...")
            taken = [name for name in rungs if _is_timed(name, size, count, rows)]
            times, peak, holds = _at_size(taken, size, count, seconds)
            peaks[count] = max(peak, peaks.get(count, 0.0))
            for name in (*taken, NUMPY):
                gflops = 2 * size**3 / times[name].best_ns
                row = replace(
                    rungs.get(name, Row(None, NUMPY)),
                    threads=count,
                    size=size,
                    ms=times[name].best_ns / 1e6,
                    median_ms=times[name].median_ns / 1e6,
                    gflops=gflops,
                    over_numpy=times[NUMPY].best_ns / times[name].best_ns,
                    gain=_gain(gflops, name, size, count, list(rungs), rows),
                    within_bound=holds[name],
                )
                rows.append(row)
    return [replace(row, percent_of_peak=100 * row.gflops / peaks[row.threads]) for row in rows], peaks


def _is_timed(name: str, size: int, threads: int, rows: Sequence[Row]) -> bool:
    """Whether the rung takes so many threads, and is not expected to take too long, by the last smaller size."""
    if threads > 1 and registry.rung(name).threads == 1:
        return False
    smaller = [row for row in rows if (row.name, row.threads) == (name, threads)]
    return not smaller or smaller[-1].ms * 1e6 * (size / smaller[-1].size) ** 3 <= _LONGEST_NS


def _gain(gflops: float, name: str, size: int, threads: int, names: list[str], rows: Sequence[Row]) -> float | None:
    """Against the rung before, on the most of these threads that it was timed on."""
    if name not in names[1:]:
        return None
    before = names[names.index(name) - 1]
    found = [row for row in rows if (row.name, row.size) == (before, size) and row.threads <= threads]
    return gflops / max(found, key=lambda row: row.threads).gflops if found else None


def _at_size(
    names: Sequence[str], size: int, threads: int, seconds: float
) -> tuple[dict[str, timing.Times], float, dict[str, bool]]:
    """Times of the rungs and of NumPy, the peak in GFLOP/s, and whose result is within the bound."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    a, b = (random_array("float32", (size, size), rng) for _ in range(2))
    out = np.empty((size, size), np.float32)
    calls = {name: ladder.prepared(registry.rung(name), a, b, out, threads) for name in names}
    calls[NUMPY] = partial(np.matmul, a, b, out=out)
    peak_run, macs = _peak(threads)
    with threadpool_limits(threads, user_api="blas"):
        holds = _within_bound(calls, a, b, out)
        runs = {name: timing.repeated(call) for name, call in calls.items()} | {_PEAK: peak_run}
        times = timing.times(runs, timing.HostClock(), seconds=seconds)
    return times, 2 * macs / times[_PEAK].best_ns, holds


def _peak(threads: int) -> tuple[timing.Run, int]:
    """A run of independent multiply-adds on so many threads, and how many a call does on all of them."""
    kernel = CPU.chosen("f32", 1 << 20)
    row = cpu_peaks.index(kernel.target, kernel.types)
    steps = max(1, int(_PEAK_NS / lib.pysimd_time_peak(row, 1000, 2)))
    pool = ThreadPoolExecutor(threads)

    def run(calls: int) -> None:
        list(pool.map(lambda _: lib.pysimd_time_peak(row, steps * calls, 1), range(threads)))

    return run, threads * steps * lib.pysimd_peaks[row].macs


def _within_bound(calls: dict[str, Callable[[], Any]], a, b, out) -> dict[str, bool]:
    a, b = a.astype(np.float64), b.astype(np.float64)
    expected, bound = a @ b, (a.shape[-1] + 3) * 2.0**-24 * (abs(a) @ abs(b))
    holds = {}
    for name, call in calls.items():
        out.fill(np.nan)
        call()
        holds[name] = bool((abs(out - expected) <= bound).all())
    return holds
