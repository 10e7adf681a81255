"""The best float32 rung against cuBLAS away from squares: ``python benchmarks/gemm_shapes.py [--out FILE.json]``.

Odd and skinny shapes, small ones, and the largest square. ``f32_best`` is called by its name; ``taken`` is what
``pysimd.gemm`` calls. Samples of both are interleaved on the same random operands, several sets of them where one would
fit L2; figures are medians of times between two events on the GPU. Results are checked against float64 on 16 rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import cupy
import numpy as np
import record

import pysimd
from pysimd.backends.cuda import dispatch
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.bench import cuda_ladder as ladder
from pysimd.bench import timing
from pysimd.bench.data import random_array
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
MOST_SETS = 64


def row(m: int, n: int, k: int, seconds: float) -> dict[str, Any]:
    sets = min(MOST_SETS, ladder.operand_sets(4 * (m * k + k * n + m * n)))
    rng = cupy.random.default_rng(0)
    a, b = (random_array("float32", (sets, *shape), rng) for shape in ((m, k), (k, n)))
    out = cupy.empty((sets, m, n), np.float32)
    rung = pysimd.rung("f32_best")
    ours = [gpu_rungs.prepared(rung, a[i], b[i], out[i]) for i in range(sets)]
    cublas = [partial(cupy.matmul, a[i], b[i], out=out[i]) for i in range(sets)]
    out.fill(np.nan)
    ours[0]()
    some = [cupy.asnumpy(x) for x in (a[0, -16:], b[0], out[0, -16:])]
    holds = verify("f32", some[0], some[1], None, some[2]).holds
    runs = {"f32_best": timing.cycled(ours), "cublas": timing.cycled(cublas)}
    ns = {name: x.median_ns for name, x in timing.times(runs, timing.CudaEvents(), seconds=seconds).items()}
    tflops = {name: 2e-3 * m * n * k / x for name, x in ns.items()}
    record.progress(f"{m} x {n} x {k}: " + ", ".join(f"{name} {x:.2f}" for name, x in tflops.items()))
    return {
        "m": m,
        "n": n,
        "k": k,
        "us": {name: x / 1000 for name, x in ns.items()},
        "tflops": tflops,
        "times_cublas": tflops["f32_best"] / tflops["cublas"],
        "taken": dispatch.choose("f32", m, n, k, 1).name or "cuBLAS",
        "within_bound": holds,
    }


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each side at each shape (%(default)s)")
    options = parser.parse_args()
    record.need_cuda(parser)
    ladder.check_available()
    record.write(record.gpu(), options.out, rows=[row(*shape, options.seconds) for shape in SHAPES])


if __name__ == "__main__":
    main()
