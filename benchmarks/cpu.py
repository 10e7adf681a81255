"""CPU speed beside the peers of the same run: ``python benchmarks/cpu.py [--out FILE.json] [--seconds S]``.

Sections:
    batched   C[i] = A[i] B[i], 4x4, 8x8, 16x16, in cache and in memory, one thread, ns per product;
              "pysimd" is called from Python, "pysimd in C" repeats it below Python, as the compiled peers are
    one       a single product from Python, with out=, new, and bound: ns per call
    tiles     every kernel on packed panels in cache (K = 256), beside the peak of its target and type
    threads   the large batches with one and two threads

Every figure is taken turn by turn with its peers, because the clock of a shared machine moves; medians and bests are
recorded. OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are removed from the environment before NumPy starts.
"""

from __future__ import annotations

import os
import sys

if os.environ.pop("OPENBLAS_CORETYPE", None) or os.environ.pop("OPENBLAS_L2_SIZE", None):
    os.execv(sys.executable, [sys.executable, *sys.argv])

import argparse
import json
import platform
import subprocess
import time
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from peers import peers, repeated

import pysimd
from pysimd.backends.cpu import numpy_arrays
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import tiles as measure

#: (size, batch): in cache, and in memory.
BATCHES = ((4, 64), (4, 1000), (4, 1_000_000), (8, 64), (8, 1000), (8, 1_000_000), (16, 64), (16, 1000), (16, 200_000))


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def machine() -> dict[str, object]:
    """What a figure needs to be understood later."""
    try:
        from threadpoolctl import threadpool_info

        blas = [f"{x['internal_api']} {x['version']} {x.get('architecture', '')}" for x in threadpool_info()]
    except ImportError:
        blas = ["unknown: threadpoolctl is not installed"]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "device": pysimd.backends()[0].device,
        "features": list(pysimd.backends()[0].features),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numpy_blas": blas,
        "pysimd": pysimd.__version__,
        "commit": commit.stdout.strip(),
        "date": date.today().isoformat(),
    }


def traffic_ns(a, b, c) -> dict[str, float]:
    """ns for reading A and B and writing C with no arithmetic to speak of: the floor of a product in memory."""
    pointers = [cpu_table.ffi.from_buffer(x) for x in (a, b, c)]
    nbytes = a.nbytes // 64 * 64
    rounds = 9 if nbytes > 1 << 20 else 2000
    return {
        name: cpu_table.lib.pysimd_time_traffic(*pointers, nbytes, stream, rounds)
        for name, stream in (("plain stores", 0), ("streaming stores", 1))
    }


def turns(functions: dict[str, object], seconds: float, rounds: int = 25) -> dict[str, list[float]]:
    """ns per call of functions that take a number of calls, turn by turn: ``rounds`` figures each."""
    calls = {}
    for name, function in functions.items():
        function(1)
        start = time.perf_counter()
        function(3)
        calls[name] = max(1, int(seconds / rounds / max((time.perf_counter() - start) / 3, 1e-9)))
    figures = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter_ns()
            function(calls[name])
            figures[name].append((time.perf_counter_ns() - start) / calls[name])
    return figures


def _matmul(threads: int | None, a, b, out) -> None:
    pysimd.matmul(a, b, out=out, threads=threads)


def batched(seconds: float) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    others = peers()
    rows = []
    peak = measure.tile_speed(CPU.chosen("f32", 64)).peak_gflops
    for size, batch in BATCHES:
        progress(f"batched {size}x{size}, batch {batch}")
        a, b = (rng.standard_normal((batch, size, size), np.float32) for _ in range(2))
        out = np.empty_like(a)
        threads = 1 if batch > 9999 else None
        functions = {"pysimd": partial(repeated(partial(_matmul, threads)), a, b, out)}
        if batch <= 9999:
            row = cpu_table.lib.pysimd_choose(cpu_table.lib.F32, size)
            product = numpy_arrays.product(a, b, out, cpu_table.lib.PYSIMD_ZERO, 1)
            functions["pysimd in C"] = partial(cpu_table.lib.pysimd_time_multiply, row, product)
        functions.update({name: partial(peer, a, b, out) for name, peer in others.items()})
        want = np.matmul(a[:100], b[:100])
        for name, function in functions.items():
            out.fill(np.nan)
            function(1)
            assert np.allclose(out[:100], want, atol=1e-4), name
        figures = turns(functions, seconds)
        row = {
            "size": size,
            "batch": batch,
            "bytes": 3 * a.nbytes,
            "best_ns": {name: min(ns) / batch for name, ns in figures.items()},
            "median_ns": {name: median(ns) / batch for name, ns in figures.items()},
            "fma_limit_ns": 2 * size**3 / peak,
            "memory_limit_ns": min(traffic_ns(a, b, out).values()) / batch,
        }
        rows.append(row)
        limits = f"limits: fma {row['fma_limit_ns']:.2f}, memory {row['memory_limit_ns']:.2f}"
        print(f"{size}x{size} batch {batch}: " + "  ".join(f"{n} {v:.2f}" for n, v in row["median_ns"].items()), limits)
    return rows


def one(seconds: float) -> list[dict[str, object]]:
    rows = []
    rng = np.random.default_rng(0)
    for size in (4, 8, 16):
        a, b = (rng.standard_normal((size, size), np.float32) for _ in range(2))
        out = np.empty_like(a)
        kernel = CPU.chosen("f32", size)
        calls = {
            "numpy.matmul(out=)": partial(np.matmul, a, b, out=out),
            "pysimd.matmul(out=)": partial(pysimd.matmul, a, b, out=out),
            "numpy.matmul": partial(np.matmul, a, b),
            "pysimd.matmul": partial(pysimd.matmul, a, b),
        }
        if (kernel.mr, kernel.nr) == (size, size):
            calls["pysimd bound"] = kernel.bind(a, b, out)
        times = measure.interleaved(list(calls.values()), seconds=seconds, rounds=15)
        rows.append({"size": size, "median_ns": {n: t.median_ns for n, t in zip(calls, times, strict=True)}})
        print(f"one {size}x{size}: " + "  ".join(f"{n} {v:.0f} ns" for n, v in rows[-1]["median_ns"].items()))
    return rows


def tiles(seconds: float) -> list[dict[str, object]]:
    rows = []
    for kernel in pysimd.kernels("cpu", available=True):
        speed = measure.tile_speed(kernel, rounds=5000, seconds=seconds)  # turns of 0.1 ms: both run at one clock
        rows.append(
            {
                "kernel": kernel.name,
                "gflops": speed.gflops,
                "peak_gflops": speed.peak_gflops,
                "percent_of_peak": speed.percent_of_peak,
            }
        )
        print(f"{kernel.name:34s} {speed.gflops:7.1f} of {speed.peak_gflops:7.1f} = {speed.percent_of_peak:5.1f} %")
    return rows


def threads(seconds: float) -> list[dict[str, object]]:
    rows = []
    rng = np.random.default_rng(0)
    for size, batch in ((4, 1_000_000), (8, 1_000_000), (16, 200_000)):
        a, b = (rng.standard_normal((batch, size, size), np.float32) for _ in range(2))
        out = np.empty_like(a)
        times = measure.interleaved([partial(pysimd.matmul, a, b, out=out, threads=n) for n in (1, 2)], seconds=seconds)
        ns = {str(n): t.median_ns / batch for n, t in zip((1, 2), times, strict=True)}
        rows.append({"size": size, "batch": batch, "median_ns_by_threads": ns})
        print(f"threads {size}x{size} batch {batch}: {ns}")
    return rows


SECTIONS = {"batched": batched, "one": one, "tiles": tiles, "threads": threads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    parser.add_argument("--seconds", type=float, default=0.6, help="for each function measured (default 0.6)")
    parser.add_argument("--only", choices=SECTIONS, help="one section only")
    options = parser.parse_args()
    about = machine()
    print(f"{about['device']}, NumPy {about['numpy']} with {', '.join(about['numpy_blas'])}")
    document = {"schema_version": 1, "machine": about}
    for name, section in SECTIONS.items():
        if options.only in (None, name):
            document[name] = section(options.seconds)
    if options.out:
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
