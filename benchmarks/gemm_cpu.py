"""Large products on the CPU, next to NumPy and PyTorch: GFLOP/s (GOP/s) on one thread and on two.

A case is a type and m, k, n: squares, shapes with a short side, and random ones. All sides multiply into a result that
exists, in interleaved rounds of which the best counts. NumPy multiplies f32 and f64, and for narrow types float32
copies of the operands that were made beforehand; PyTorch, where it is installed, bf16 (with a bf16 result) and int8
(``torch._int_mm``). The multiply-adds of a core alone, in registers, are a sample of each round too: the peak.
After the calls of libraries whose idle threads spin there is a pause; whoever comes after it finds a processor that has
slept, so every second round has the reverse order. Two processes that multiply
on one thread each, at the same time, show what two threads can reach on this machine.

``python benchmarks/gemm_cpu.py --out benchmarks/results/gemm_cpu_amd.json``
With ``--types f32 --resume`` a type is measured by itself: the other types of ``--out`` are kept.
``taskset -c 2 python benchmarks/gemm_cpu.py --threads 1 --random 0 --out benchmarks/results/gemm_cpu_intel.json``
measures one core.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.bench import blas, cpu_peaks
from pysimd.bench.data import random_array

TYPES = ("f32", "f64", "bf16f32", "f16f32", "i8i32", "u8i8i32")
SHAPES = (
    *((size, size, size) for size in (64, 128, 256, 512, 1024, 2048)),
    (4096, 64, 4096),
    (64, 4096, 64),
    (8, 4096, 4096),
    (4096, 4096, 8),
    (1, 4096, 4096),
    (4096, 4096, 1),
)
THREADS = (1, 2)
MOST_RANDOM = 1 << 27  # multiply-adds of a random shape
SAMPLE_NS = 4e6
PAUSE_S = 0.12  # the idle threads of OpenBLAS spin for 110 ms
TORCH_LIMIT_NS = 0.3e9  # PyTorch has no fast kernel for every type: slower calls are left out

Run = Callable[[], object]


def shapes(count: int, seed: int) -> Iterator[tuple[int, int, int]]:
    """The listed shapes, then random ones whose sides are spread evenly on a logarithmic scale, 16 to 2048."""
    yield from SHAPES
    rng = np.random.default_rng(seed)
    while count:
        m, k, n = (int(x) for x in np.exp(rng.uniform(math.log(16), math.log(2048), 3)))
        if 64**3 <= m * k * n <= MOST_RANDOM:
            count -= 1
            yield m, k, n


# --- what is compared ---


def pysimd_run(a: np.ndarray, b: np.ndarray, threads: int) -> Run:
    return partial(pysimd.matmul, a, b, out=pysimd.matmul(a, b), threads=threads)


def numpy_run(a: np.ndarray, b: np.ndarray, threads: int) -> Run:
    if a.dtype.itemsize < 4:
        a, b = a.astype(np.float32), b.astype(np.float32)
    out = np.empty((a.shape[0], b.shape[1]), a.dtype)

    def run():
        np.matmul(a, b, out=out)

    def prepare():
        if len(os.sched_getaffinity(0)) > 1:
            blas_threads().limit(limits=threads)

    run.prepare = prepare
    return run


def torch_run(a: np.ndarray, b: np.ndarray, threads: int) -> Run | None:
    """None where PyTorch is not installed, or does not multiply the type."""
    torch = sys.modules.get("torch")
    if torch is None or a.dtype.name not in ("bfloat16", "int8") or b.dtype != a.dtype:
        return None
    bits = (
        (lambda x: torch.from_numpy(x.view(np.int16)).view(torch.bfloat16))
        if a.dtype.itemsize == 2
        else torch.from_numpy
    )
    x, y = bits(a), bits(b)
    multiply = torch.mm if a.dtype.itemsize == 2 else torch._int_mm
    out = multiply(x, y)
    run = partial(multiply, x, y, out=out)
    run.prepare = partial(torch.set_num_threads, threads)
    return run


SIDES = {"pysimd": pysimd_run, "torch": torch_run, "numpy": numpy_run}


def blas_threads():
    """Limits the threads of NumPy's BLAS."""
    global _controller
    if _controller is None:
        import threadpoolctl

        _controller = threadpoolctl.ThreadpoolController()
    return _controller


_controller = None


# --- times ---


@cache
def peak_of(types: str) -> cpu_peaks.MultiplyAdds:
    """The fastest multiply-adds that this processor has for a type, of all targets."""
    targets = {k.target for k in pysimd.kernels("cpu", types=types, available=True)}
    rows = [row for target in sorted(targets) if (row := cpu_peaks.index(target, types)) is not None]
    found = [cpu_peaks.MultiplyAdds(row, SAMPLE_NS / 4) for row in rows]
    return max(found, key=lambda x: x.rates(x.ns())["gflops"])


def ns_of(run: Run, calls: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(calls):
        run()
    return (time.perf_counter_ns() - start) / calls


def measured(types: str, shape: tuple[int, int, int], threads_of: tuple[int, ...], rounds: int, slow: set) -> dict:
    """A row: GFLOP/s of the peak, and of each side on each number of threads. Sides that turn out to be slow are added
    to ``slow``."""
    m, k, n = shape
    family, rng = dtypes.FAMILIES[types], np.random.default_rng(0)
    a, b = random_array(family.a, (m, k), rng), random_array(family.b, (k, n), rng)
    runs = {}
    for side, make in SIDES.items():
        for threads in threads_of:
            if (side, types) not in slow and (run := make(a, b, threads)) is not None:
                runs[side, threads] = run
    best, calls, peak = dict.fromkeys(runs, math.inf), {}, peak_of(types)
    peak_ns = math.inf
    for turn in range(rounds):
        peak_ns = min(peak_ns, peak.ns())
        for key, run in list(runs.items())[:: -1 if turn % 2 else 1]:
            getattr(run, "prepare", int)()
            if key not in calls:
                run()
                calls[key] = max(1, int(SAMPLE_NS / ns_of(run, 1)))
            for _ in range(2 if calls[key] > 1 else 1):
                best[key] = min(best[key], ns_of(run, calls[key]))
            if key[0] != "pysimd":
                time.sleep(PAUSE_S if key[1] > 1 else 0)
    flops = 2 * m * k * n
    slow |= {(side, types) for (side, _), ns in best.items() if side == "torch" and ns * 8 > TORCH_LIMIT_NS}
    return {
        "types": types,
        "m": m,
        "k": k,
        "n": n,
        "peak": round(peak.rates(peak_ns)["gflops"], 2),
        "gflops": {f"{side}/{threads}": round(flops / ns, 2) for (side, threads), ns in best.items()},
    }


def _process(size: int, seconds: float, barrier, results) -> None:
    a = np.random.default_rng(0).standard_normal((size, size), np.float32)
    run = pysimd_run(a, a.copy(), 1)
    calls = max(1, int(SAMPLE_NS / ns_of(run, 1)))
    barrier.wait()
    end, samples = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        samples.append(ns_of(run, calls))
    results.put(2 * size**3 / min(samples))


def processes(size: int, count: int, seconds: float) -> float:
    """GFLOP/s of ``count`` processes at the same time, each on one thread: the sum of their best samples."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(count), context.Queue()
    started = [context.Process(target=_process, args=(size, seconds, barrier, results)) for _ in range(count)]
    for process in started:
        process.start()
    found = sum(results.get() for _ in started)
    for process in started:
        process.join()
    return round(found, 2)


# --- what the rows say ---


def threads_in(rows: list[dict]) -> list[int]:
    """The numbers of threads that rows have."""
    return [t for t in THREADS if all(f"pysimd/{t}" in row["gflops"] for row in rows)]


def ratios(row: dict) -> dict[int, float]:
    """pysimd over the fastest of the others, by threads."""
    speeds, counts = row["gflops"], threads_in([row])
    others = {t: [x for key, x in speeds.items() if key in (f"numpy/{t}", f"torch/{t}")] for t in counts}
    return {t: speeds[f"pysimd/{t}"] / max(others[t]) for t in counts}


def worst_first(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: min(ratios(row).values()))


def table(rows: list[dict]) -> list[str]:
    """Lines of a Markdown table: a row for each case."""
    counts = threads_in(rows)
    sides = [side for side in SIDES if any(f"{side}/1" in row["gflops"] for row in rows)]
    headers = ["types", "m, k, n", "peak"]
    headers += [f"{side}, {t} thread{'s' * (t > 1)}" for t in counts for side in sides]
    headers += [f"ratio, {t} thread{'s' * (t > 1)}" for t in counts] + ["2 threads / 1"] * (2 in counts)
    lines = []
    for row in rows:
        speeds, ratio = row["gflops"], ratios(row)
        cells = [f"{speeds[key]:.0f}" if (key := f"{side}/{t}") in speeds else "-" for t in counts for side in sides]
        cells += [f"{ratio[t]:.2f}" for t in counts]
        if 2 in counts:
            cells.append(f"{speeds['pysimd/2'] / speeds['pysimd/1']:.2f}")
        lines.append([row["types"], f"{row['m']}, {row['k']}, {row['n']}", f"{row.get('peak', 0):.0f}", *cells])
    return record.table(headers, lines)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--random", type=int, default=2, metavar="N", help="random shapes of each type (2)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", nargs="+", type=int, choices=THREADS, default=THREADS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="keep the other types of --out")
    options = parser.parse_args()
    if blas.numpy_blas().forced is not None:
        sys.exit("OPENBLAS_CORETYPE is set: NumPy may run another machine's kernels; unset it")
    machine = record.cpu()
    try:
        import torch

        machine["torch"] = torch.__version__
    except ImportError:
        record.progress("PyTorch is not installed: it is not measured")
    limit = []
    if 2 in options.threads:
        limit = [{"size": n, "processes": [processes(n, count, 0.5) for count in (1, 2)]} for n in (256, 512, 1024)]
        record.progress(limit)
    rows, slow = [], set()
    if options.resume and options.out and options.out.exists():
        rows = [row for row in json.loads(options.out.read_text())["rows"] if row["types"] not in options.types]
    for types in options.types:
        for shape in shapes(options.random, options.seed):
            rows.append(
                {"commit": machine["commit"]} | measured(types, shape, tuple(options.threads), options.rounds, slow)
            )
            record.progress(types, *shape, rows[-1]["gflops"])
        rows.sort(key=lambda row: TYPES.index(row["types"]))
        if options.out:  # what is there, if the time does not suffice for all types
            record.write(machine, options.out, **({"two_processes": limit} if limit else {}), rows=rows)
    for line in table(worst_first(rows)):
        record.progress(line)
    if not options.out:
        record.write(machine, None, **({"two_processes": limit} if limit else {}), rows=rows)


if __name__ == "__main__":
    main()
