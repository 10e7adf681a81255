"""The best float32 rung beside cuBLAS away from squares: ``python benchmarks/gemm_shapes.py [--out FILE.json]``.

Odd and skinny shapes, small ones, and the largest square. ``f32_best`` is called as itself; ``pysimd.gemm`` takes it or
cuBLAS by ``taken``. Both take turns on the same random operands, several sets of them where they would fit the L2;
figures are medians of times between two events on the GPU. Results are checked against float64 on 16 rows.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import cupy
import numpy as np
from gpu_record import deliver, machine

import pysimd
from pysimd.backends.cuda import dispatch
from pysimd.backends.cuda.ladder import rungs as cuda_ladder
from pysimd.bench import ladder_times
from pysimd.bench.verify import verify

SHAPES = (
    (1000, 1000, 1000),  # m, n, k
    (4097, 4093, 4095),
    (4096, 4096, 64),
    (64, 64, 4096),
    (128, 128, 16384),
    (256, 256, 4096),
    (16, 4096, 4096),
    (8192, 16, 8192),
    (16, 8192, 8192),
    (512, 512, 512),
    (3000, 3000, 3000),
    (16384, 16384, 16384),
)


def row(m: int, n: int, k: int, seconds: float) -> dict[str, object]:
    l2 = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
    sets = min(64, 1 + 3 * l2 // (4 * (m * k + k * n + m * n)))
    rng = cupy.random.default_rng(0)
    a = rng.standard_normal((sets, m, k), dtype=np.float32)
    b = rng.standard_normal((sets, k, n), dtype=np.float32)
    out = cupy.empty((sets, m, n), np.float32)
    rung = pysimd.rung("f32_best")
    runs = {
        "f32_best": [cuda_ladder.prepared(rung, a[i], b[i], out[i]) for i in range(sets)],
        "cublas": [partial(cupy.matmul, a[i], b[i], out=out[i]) for i in range(sets)],
    }
    out.fill(np.nan)
    runs["f32_best"][0]()
    some = [cupy.asnumpy(x) for x in (a[0, -16:], b[0], out[0, -16:])]
    holds = verify("f32", some[0], some[1], None, some[2]).holds
    times = ladder_times.medians(runs, seconds)
    taken = dispatch.choose("f32", m, n, k, 1).name
    tflops = {name: 2e-12 * m * n * k / time for name, time in times.items()}
    print(f"{m} x {n} x {k}: " + ", ".join(f"{x} {t:.2f}" for x, t in tflops.items()), file=sys.stderr, flush=True)
    return {
        "m": m,
        "n": n,
        "k": k,
        "us": {name: 1e6 * time for name, time in times.items()},
        "tflops": tflops,
        "times_cublas": tflops["f32_best"] / tflops["cublas"],
        "taken": taken or "cuBLAS",
        "within_bound": holds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each contender at each shape (%(default)s)")
    options = parser.parse_args()
    ladder_times.check_available()
    document = {"machine": machine(), "rows": [row(*shape, options.seconds) for shape in SHAPES]}
    deliver(document, options.out)


if __name__ == "__main__":
    main()
