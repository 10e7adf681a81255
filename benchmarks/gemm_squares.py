"""Tensor-core products against cuBLAS: ``python benchmarks/gemm_squares.py [--out FILE.json] [--into FILE.json]``.

bf16_best, f16_best and i8_wgmma by their names, at m = n = k and at shapes with a small C; 16-bit operands with a C of
their own type (torch is measured there too) and of float32, int8 with a row-major and with a column-major B for both
sides. Samples are shuffled and interleaved, on random operands that exceed L2 in all. Figures are medians of GPU times:
calls are queued before they are timed, so the host's time is not in them. With --into, the shapes that are measured
replace those of an earlier record.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.bench import cuda_ladder as ladder
from pysimd.bench import timing
from pysimd.bench.data import random_array

SIZES = (1024, 2048, 4096, 8192, 16384)

SMALL_C = (
    (64, 64, 16384),  # m, n, k
    (256, 256, 4096),
    (256, 256, 16384),
    (128, 128, 65536),
    (512, 512, 8192),
    (16, 4096, 4096),
    (64, 4096, 4096),
    (3000, 3000, 3000),
)

RUNGS = {"bf16f32": "bf16_best", "f16f32": "f16_best", "i8i32": "i8_wgmma"}
MOST_SETS = 32

KEYS = {"rows": ["types", "m", "n", "k", "c"]}


def row(types: str, m: int, n: int, k: int, narrow: bool, seconds: float) -> dict[str, Any]:
    family = dtypes.FAMILIES[types]
    size = dtypes.dtype_of(family.a).itemsize
    sets = min(MOST_SETS, ladder.operand_sets(size * (m * k + k * n + m * n)))
    rng = cupy.random.default_rng(0)
    a, b = (random_array(family.a, (sets, *shape), rng) for shape in ((m, k), (k, n)))
    out = cupy.empty((sets, m, n), a.dtype if narrow else family.c)
    rung = pysimd.rung(RUNGS[types])

    def calls(function, *arrays):
        return timing.cycled([function(*(x[i] for x in arrays)) for i in range(sets)])

    runs = {"pysimd": calls(partial(gpu_rungs.prepared, rung), a, b, out)}
    if types == "i8i32":
        columns = cupy.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
        runs["pysimd, column-major B"] = calls(partial(gpu_rungs.prepared, rung), a, columns, out)
        runs["cublas, column-major B"] = calls(ladder.gemm_ex, a, columns, out)
    runs["cublas"] = calls(ladder.gemm_ex, a, b, out)
    if narrow:
        runs["torch"] = calls(torch_mm, a, b, out)
    ns = {name: x.median_ns for name, x in timing.times(runs, timing.QueuedCudaEvents(), seconds=seconds).items()}
    found = {"types": types, "m": m, "n": n, "k": k, "c": out.dtype.name, "us": {x: y / 1000 for x, y in ns.items()}}
    found["tflops"] = 2e-3 * m * n * k / ns["pysimd"]
    found["times_cublas"] = ns["cublas"] / ns["pysimd"]
    if types == "i8i32":
        found["times_cublas_column_major"] = ns["cublas, column-major B"] / ns["pysimd, column-major B"]
    words = ", ".join(f"{name} {x / 1000:.1f}" for name, x in ns.items())
    record.progress(f"{types} {m} x {n} x {k}, C of {out.dtype.name}: {words} us")
    return found


def torch_mm(a, b, out):
    import torch

    def tensor(x):
        if x.dtype == np.float16:
            return torch.from_dlpack(x)
        return torch.from_dlpack(x.view(np.uint16)).view(torch.bfloat16)

    return partial(torch.mm, tensor(a), tensor(b), out=tensor(out))


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.1, help="for each side at each shape (%(default)s)")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, metavar="SIZE", help="m = n = k (%(default)s)")
    parser.add_argument("--into", type=Path, metavar="FILE.json", help="an earlier record, whose other shapes stay")
    options = parser.parse_args()
    record.need_cuda(parser)
    ladder.check_available()
    rows = []
    for size in options.sizes:
        for types in RUNGS:
            for narrow in (False,) if types == "i8i32" else (True, False):
                rows.append(row(types, size, size, size, narrow, options.seconds))
    rows += [row(types, *shape, True, options.seconds) for shape in SMALL_C for types in ("bf16f32", "f16f32")]
    found = {"machine": record.gpu(), "rows": rows}
    if options.into:
        found = record.merged(json.loads(options.into.read_text()), found, KEYS)
    record.write(found["machine"], options.out, rows=found["rows"])


if __name__ == "__main__":
    main()
