"""The tile registers of AMX: the tile, whole products and small ones next to AVX-512 and PyTorch, in one run.

GFLOP/s (GOP/s) of a tile on panels of several lengths and of its multiply-adds on registers alone; of n x n x n
products by AMX, by the AVX-512 kernel of the same types, and by PyTorch, whose result has the same size or half of it
(bf16), and by AMX and PyTorch on several threads; and nanoseconds of small products, one and 64 in a call, by both
kernels, with the one that matmul takes. All sides multiply into a result that exists. Rounds are interleaved.
Neighbours of a virtual machine share the unit, so of a product the medians, the best, and the median over the rounds of
the ratio to each peer are recorded; of small products the best.

``OMP_NUM_THREADS=1 taskset -c 3 python benchmarks/amx.py --out benchmarks/results/amx_intel.json``
and after it ``taskset -c 0-11 python benchmarks/amx.py --threads 12 --out benchmarks/results/amx_threads_intel.json``
"""

from __future__ import annotations

import itertools
import sys
import time
from statistics import median

import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench.data import random_array
from pysimd.bench.tiles import tile_speed

AVX512 = {
    "bf16f32": "avx512bf16_bf16f32_outer_14x32",
    "i8i32": "avx512vnni_i8i32_outer_14x32",
    "u8i8i32": "avx512vnni_u8i8i32_outer_14x32",
}
SIZES = (256, 512, 1024, 2048)
SIZES_OF_THREADS = (512, 1024, 2048, 4096)
SIDES = (4, 8, 16, 24, 32, 48, 64)
LENGTHS = (256, 512, 1024, 2048, 4096)
NARROW = ((2, 4, 8, 16), (64, 256, 1024), (64, 256, 1024))
SAMPLE_S = 4e-3
PAUSE_S = 0.03
FEWEST, MOST, SECONDS = 9, 61, 0.5
"""Rounds of a product: as many as take so long, within bounds."""


def seconds(run, calls: int) -> float:
    """Of a call, the mean of several."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def samples(runs: dict, rounds: int, sample: float, pause: float = 0) -> dict:
    """Seconds of a call of each run in each round, with a pause before each: idle threads of PyTorch spin."""
    calls = {}
    for name, run in runs.items():
        run()
        calls[name] = max(1, int(sample / seconds(run, 1)))
    found: dict = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(pause)
            found[name].append(seconds(run, calls[name]))
    return found


def best(runs: dict, rounds: int, sample: float, pause: float = 0) -> dict:
    """Of the samples of each run the least."""
    return {name: min(times) for name, times in samples(runs, rounds, sample, pause).items()}


def operands(types: str, m: int, n: int, k: int, batch: tuple[int, ...] = ()):
    family, rng = dtypes.FAMILIES[types], np.random.default_rng(0)
    return random_array(family.a, (*batch, m, k), rng), random_array(family.b, (*batch, k, n), rng)


def torch_product(types: str, a, b, threads: int):
    """None where PyTorch is not installed, or does not multiply the types."""
    torch = sys.modules.get("torch")
    if torch is None or types == "u8i8i32":
        return None
    narrow = types == "bf16f32"
    x, y = (torch.from_numpy(v.view(np.int16)).view(torch.bfloat16) if narrow else torch.from_numpy(v) for v in (a, b))
    multiply = torch.mm if narrow else torch._int_mm
    out = multiply(x, y)

    def run():
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        multiply(x, y, out=out)

    return run


def square(types: str, size: int, threads: int) -> dict:
    a, b = operands(types, size, size, size)
    out = pysimd.matmul(a, b)
    names = {"amx": f"amx_{types}_outer_32x32"} | ({} if threads > 1 else {"avx512": AVX512[types]})
    runs = {
        side: (lambda name=name: pysimd.matmul(a, b, out=out, kernel=name, threads=threads))
        for side, name in names.items()
    }
    if run := torch_product(types, a, b, threads):
        runs["torch"] = run
    pause = PAUSE_S if threads > 1 else 0
    a_round = sum(max(seconds(run, 2), SAMPLE_S) + pause for run in runs.values())
    times = samples(runs, min(max(int(SECONDS / a_round), FEWEST), MOST), SAMPLE_S, pause)
    return {
        "types": types,
        "size": size,
        "threads": threads,
        "rounds": len(times["amx"]),
        "gflops": {side: round(2 * size**3 / median(s) / 1e9, 1) for side, s in times.items()},
        "best": {side: round(2 * size**3 / min(s) / 1e9, 1) for side, s in times.items()},
        "ratio": {
            side: round(median(x / y for x, y in zip(s, times["amx"], strict=True)), 2)
            for side, s in times.items()
            if side != "amx"
        },
    }


def tile(types: str, k: int) -> dict:
    speed = tile_speed(pysimd.kernel(f"amx_{types}_outer_32x32"), k=k, rounds=101, seconds=0.05)
    return {
        "types": types,
        "k": k,
        "gflops": round(speed.gflops, 1),
        "peak": round(speed.peak_gflops, 1),
        "percent": round(speed.percent_of_peak, 1),
    }


def small(types: str, m: int, n: int, k: int, batch: int) -> dict:
    a, b = operands(types, m, n, k, (batch,))
    out = pysimd.matmul(a, b)
    runs = {
        side: (lambda name=name: pysimd.matmul(a, b, out=out, kernel=name, threads=1))
        for side, name in (("amx", f"amx_{types}_outer_32x32"), ("avx512", AVX512[types]))
    }
    times = best(runs, 5, 1e-4)
    taken = CPU.chosen(types, n, m, k).target
    return {
        "types": types, "m": m, "n": n, "k": k, "batch": batch, "taken": taken,
        **{side: round(s / batch * 1e9, 1) for side, s in times.items()},
    }  # fmt: skip


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--threads", type=int, default=1, help="if more than one: large products alone")
    options = parser.parse_args()
    machine = record.cpu()
    try:
        import torch

        machine["torch"] = torch.__version__
    except ImportError:
        record.progress("PyTorch is not installed: it is not measured")
    threads, found = options.threads, {"squares": []}
    for types, size in itertools.product(AVX512, SIZES if threads == 1 else SIZES_OF_THREADS):
        if threads == 1 or types != "u8i8i32":
            found["squares"].append(square(types, size, threads))
            record.progress(found["squares"][-1])
    if threads == 1:
        found["tiles"] = [tile(types, k) for types in AVX512 for k in LENGTHS]
        record.progress(*found["tiles"])
        shapes = [*itertools.product(SIDES, repeat=3), *itertools.product(*NARROW)]
        found["small"] = [
            small(types, m, n, k, batch)
            for types, (m, n, k) in itertools.product(AVX512, shapes)
            for batch in ((1, 64) if m * n * k <= 64**3 else (1,))
        ]
    record.write(machine, options.out, **found)


if __name__ == "__main__":
    main()
