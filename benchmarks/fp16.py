"""float16 on the CPU: half accumulators (AVX512-FP16) next to float32 accumulators, PyTorch and NumPy, in one run.

GFLOP/s of the tile in cache and of its multiply-adds on registers alone; and of n x n x n products into a float16
result that exists, except for ``float32``, whose result is float32. PyTorch and NumPy multiply float16 by float16 as
they choose to; NumPy has no kernel for it and is measured up to 256. Rounds are interleaved, and the best counts.

``taskset -c 3 python benchmarks/fp16.py --out benchmarks/results/fp16_intel.json``
"""

from __future__ import annotations

import sys

import numpy as np
import record
from amx import SAMPLE_S, SIZES, best

import pysimd
from pysimd.bench.data import random_array
from pysimd.bench.tiles import tile_speed

KERNEL = "avx512fp16_f16_outer_16x32"
MOST_OF_NUMPY = 256
ROUNDS = 8


def torch_product(a, b):
    """None where PyTorch is not installed."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    torch.set_num_threads(1)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    out = torch.mm(x, y)
    return lambda: torch.mm(x, y, out=out)


def square(size: int) -> dict:
    rng = np.random.default_rng(0)
    a, b = (random_array("float16", (size, size), rng) for _ in range(2))
    half, single = np.empty((size, size), np.float16), np.empty((size, size), np.float32)
    runs = {
        "f16": lambda: pysimd.matmul(a, b, out=half, kernel=KERNEL, threads=1),
        "f16f32": lambda: pysimd.matmul(a, b, out=half, threads=1),
        "float32": lambda: pysimd.matmul(a, b, out=single, threads=1),
    }
    if run := torch_product(a, b):
        runs["torch"] = run
    times = best(runs, ROUNDS, SAMPLE_S)
    if size <= MOST_OF_NUMPY:
        times |= best({"numpy": lambda: np.matmul(a, b, out=half)}, 2, 0)
    return {"size": size, "gflops": {side: round(2 * size**3 / s / 1e9, 2) for side, s in times.items()}}


def main() -> None:
    options = record.parser(__doc__).parse_args()
    machine = record.cpu()
    try:
        import torch

        machine["torch"] = torch.__version__
    except ImportError:
        record.progress("PyTorch is not installed: it is not measured")
    speed = tile_speed(pysimd.kernel(KERNEL))
    tile = {"kernel": KERNEL, "gflops": round(speed.gflops, 1), "peak": round(speed.peak_gflops, 1)}
    record.progress(tile)
    rows = []
    for size in SIZES:
        rows.append(square(size))
        record.progress(rows[-1])
    record.write(machine, options.out, tile=tile, squares=rows)


if __name__ == "__main__":
    main()
