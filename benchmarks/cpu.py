"""CPU speed against peers in the same run: ``python benchmarks/cpu.py [--out FILE.json] [--seconds S]``.

Sections:
    batched   C[i] = A[i] B[i], 4x4, 8x8, 16x16, in cache and in memory, one thread, ns per product;
              "pysimd" is called from Python, "pysimd in C" repeats it in C, as the compiled peers do
    one       a single product from Python, with out=, new, and bound: ns per call
    tiles     every kernel on packed panels in cache (K = 256), compared with the peak of its target and types
    threads   the large batches with one and two threads

Samples of what is compared are interleaved, because the clock of a shared machine moves; medians and bests are
recorded. OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are removed from the environment before NumPy starts.
"""

from __future__ import annotations

import os
import sys

if os.environ.pop("OPENBLAS_CORETYPE", None) or os.environ.pop("OPENBLAS_L2_SIZE", None):
    os.execv(sys.executable, [sys.executable, *sys.argv])

from functools import partial
from typing import Any

import numpy as np
import record
from peers import peers
from pysimd._cpu import ffi, lib

import pysimd
from pysimd.backends.cpu import dispatch, numpy_arrays
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import timing
from pysimd.bench.data import random_array
from pysimd.bench.tiles import tile_speed

#: (size, batch): in cache, and in memory.
BATCHES = ((4, 64), (4, 1000), (4, 1_000_000), (8, 64), (8, 1000), (8, 1_000_000), (16, 64), (16, 1000), (16, 200_000))
ROUNDS = 25


def operands(size: int, batch: int | None = None) -> list[np.ndarray]:
    """Random A and B, and C."""
    rng, shape = np.random.default_rng(0), (size, size) if batch is None else (batch, size, size)
    return [random_array("float32", shape, rng), random_array("float32", shape, rng), np.empty(shape, np.float32)]


def traffic_ns(a, b, c) -> float:
    """ns for reading A and B and writing C with almost no arithmetic: the lower bound of a product in memory."""
    pointers = [ffi.from_buffer(x) for x in (a, b, c)]
    nbytes = a.nbytes // 64 * 64
    rounds = 9 if nbytes > 1 << 20 else 2000
    return min(lib.pysimd_time_traffic(*pointers, nbytes, streaming, rounds) for streaming in (0, 1))


def batched(seconds: float) -> list[dict[str, Any]]:
    rows, others, peak = [], peers(), tile_speed(CPU.chosen("f32", 64)).peak_gflops
    for size, batch in BATCHES:
        record.progress(f"batched {size}x{size}, batch {batch}")
        a, b, out = operands(size, batch)
        in_memory = batch > 9999
        threads = 1 if in_memory else None
        runs = {"pysimd": timing.repeated(partial(pysimd.matmul, a, b, out=out, threads=threads))}
        if not in_memory:
            row = dispatch.row_for("f32", size)
            product = numpy_arrays.product(a, b, out, lib.PYSIMD_ZERO, 1)
            runs["pysimd in C"] = partial(lib.pysimd_time_multiply, row, product)
        runs |= {name: peer(a, b, out) for name, peer in others.items()}
        check(runs, a, b, out)
        times = timing.times(runs, timing.HostClock(), seconds=seconds, rounds=ROUNDS)
        rows.append(
            {
                "size": size,
                "batch": batch,
                "bytes": 3 * a.nbytes,
                "best_ns": {name: x.best_ns / batch for name, x in times.items()},
                "median_ns": {name: x.median_ns / batch for name, x in times.items()},
                "fma_limit_ns": 2 * size**3 / peak,
                "memory_limit_ns": traffic_ns(a, b, out) / batch,
            }
        )
        limits = "limits: fma {fma_limit_ns:.2f}, memory {memory_limit_ns:.2f}".format(**rows[-1])
        shown = "  ".join(f"{name} {ns:.2f}" for name, ns in rows[-1]["median_ns"].items())
        record.progress(f"{size}x{size} batch {batch}: {shown}", limits)
    return rows


def check(runs: dict[str, timing.Run], a, b, out) -> None:
    """Stop if a run gives another product than NumPy's."""
    want = np.matmul(a[:100], b[:100])
    for name, run in runs.items():
        out.fill(np.nan)
        run(1)
        assert np.allclose(out[:100], want, atol=1e-4), name


def one(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for size in (4, 8, 16):
        a, b, out = operands(size)
        kernel = CPU.chosen("f32", size, size)
        calls = {
            "numpy.matmul(out=)": partial(np.matmul, a, b, out=out),
            "pysimd.matmul(out=)": partial(pysimd.matmul, a, b, out=out),
            "numpy.matmul": partial(np.matmul, a, b),
            "pysimd.matmul": partial(pysimd.matmul, a, b),
        }
        if (kernel.mr, kernel.nr) == (size, size):
            calls["pysimd bound"] = kernel.bind(a, b, out)
        runs = {name: timing.repeated(call) for name, call in calls.items()}
        times = timing.times(runs, timing.HostClock(), seconds=seconds, rounds=15)
        rows.append({"size": size, "median_ns": {name: x.median_ns for name, x in times.items()}})
        shown = "  ".join(f"{name} {ns:.0f} ns" for name, ns in rows[-1]["median_ns"].items())
        record.progress(f"one {size}x{size}: {shown}")
    return rows


def tiles(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for kernel in pysimd.kernels("cpu", available=True):
        speed = tile_speed(kernel, rounds=5000, seconds=seconds)  # samples of 0.1 ms: tile and peak run at one clock
        rows.append(
            {
                "kernel": kernel.name,
                "gflops": speed.gflops,
                "peak_gflops": speed.peak_gflops,
                "percent_of_peak": speed.percent_of_peak,
            }
        )
        shown = f"{speed.gflops:7.1f} of {speed.peak_gflops:7.1f} = {speed.percent_of_peak:5.1f} %"
        record.progress(f"{kernel.name:34s} {shown}")
    return rows


def threads(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for size, batch in ((4, 1_000_000), (8, 1_000_000), (16, 200_000)):
        a, b, out = operands(size, batch)
        runs = {n: timing.repeated(partial(pysimd.matmul, a, b, out=out, threads=n)) for n in (1, 2)}
        times = timing.times(runs, timing.HostClock(), seconds=seconds)
        ns = {str(n): x.median_ns / batch for n, x in times.items()}
        rows.append({"size": size, "batch": batch, "median_ns_by_threads": ns})
        record.progress(f"threads {size}x{size} batch {batch}: {ns}")
    return rows


SECTIONS = {"batched": batched, "one": one, "tiles": tiles, "threads": threads}


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.6, help="for each function measured (%(default)s)")
    parser.add_argument("--only", choices=SECTIONS, help="one section only")
    options = parser.parse_args()
    machine = record.cpu()
    record.progress(f"{machine['device']}, NumPy {machine['numpy']} with {', '.join(machine['numpy_blas'])}")
    chosen = [name for name in SECTIONS if options.only in (None, name)]
    record.write(machine, options.out, **{name: SECTIONS[name](options.seconds) for name in chosen})


if __name__ == "__main__":
    main()
