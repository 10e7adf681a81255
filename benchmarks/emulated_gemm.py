"""float32 and float64 products by several products of narrower types on tensor cores:
``python benchmarks/emulated_gemm.py [--out FILE.json] [--quick]``.

The rungs ozaki2_f32, ozaki2_f64 and tf32x3, and what is no rung: three bf16 parts of each float32, whose six products
are one by bf16_best with k six times as long. Splitting is not timed there: the speed is a bound from above.

The peers, in interleaved samples of one run: for float32 f32_best and cuBLAS, for float64 cuBLAS. Operands are normal;
they are row-major, and, where it is said, both K-major. An error counts in units of ``u |A||B|``, the largest and the
root mean square of the elements of C; ``graded`` is that of operands whose columns differ by factors up to 2^20, which
one scale for a row serves badly.
"""

from __future__ import annotations

from functools import partial

import cupy
import numpy as np
import record

import pysimd
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.bench import timing

RUNGS = {"float32": ("ozaki2_f32", "tf32x3", "f32_best"), "float64": ("ozaki2_f64",)}
SIZES = (2048, 4096, 8192, 16384)
ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}


def operands(dtype: str, m: int, n: int, k: int, graded: bool = False):
    rng = cupy.random.default_rng(0)
    a, b = (rng.standard_normal((rows, k), dtype=np.float64) for rows in (m, n))
    if graded:
        grades = 2.0 ** rng.uniform(-10, 10, k)
        a, b = a * grades, b / grades
    return a.astype(dtype), b.astype(dtype)


def error(dtype: str, make, graded: bool) -> dict[str, float]:
    """Against float64, or for float64 against exact products of integers of 64 bits on the host."""
    m, n, k = (256, 256, 4096) if dtype == "float32" else (16, 16, 1024)
    a, b = operands(dtype, m, n, k, graded)
    c = cupy.empty((m, n), dtype)
    make(a, b, c)()
    found, magnitude = cupy.asnumpy(c), cupy.asnumpy(abs(a).astype(float) @ abs(b).astype(float).T)
    x, y = cupy.asnumpy(a).astype(np.longdouble), cupy.asnumpy(b).astype(np.longdouble)
    exact = x.astype(float) @ y.astype(float).T if dtype == "float32" else (x[:, None] * y[None]).sum(-1)
    scaled = np.abs(found - exact).astype(float) / magnitude / ROUNDOFF[dtype]
    return {"max": float(scaled.max()), "rms": float(np.sqrt((scaled**2).mean()))}


def rung_on(name: str, a, b, c):
    return gpu_rungs.prepared(pysimd.rung(name), a, b.T, c)


def cublas_on(a, b, c):
    return partial(cupy.matmul, a, b.T, out=c)


def methods(dtype: str) -> dict:
    return {name: partial(rung_on, name) for name in RUNGS[dtype]} | {"cuBLAS": cublas_on}


def speeds(dtype: str, size: int, seconds: float) -> dict[str, float]:
    """TFLOP/s of products of m = n = k = size."""
    a, b = operands(dtype, size, size, size)
    c = cupy.empty((size, size), dtype)
    calls = {name: make(a, b, c) for name, make in methods(dtype).items()}
    row_major = cupy.ascontiguousarray(b.T).T
    calls |= {f"{name}, row-major B": make(a, row_major, c) for name, make in methods(dtype).items()}
    if dtype == "float32":
        wide = [cupy.random.randint(0x3F00, 0x4000, (size, 6 * size), np.uint16) for _ in range(2)]
        calls["bf16, six products alone"] = rung_on("bf16_best", *wide, c)
    runs = {name: timing.repeated(call) for name, call in calls.items()}
    times = timing.times(runs, timing.CudaEvents(), seconds=seconds)
    found = {name: 2e-3 * size**3 / x.median_ns for name, x in times.items()}
    record.progress(dtype, size, {name: round(x, 1) for name, x in found.items()})
    return found


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="two sizes, 0.1 seconds each")
    options = parser.parse_args()
    record.need_cuda(parser)
    errors = {
        f"{dtype}, {name}": {kind: error(dtype, make, kind == "graded") for kind in ("normal", "graded")}
        for dtype in RUNGS
        for name, make in methods(dtype).items()
    }
    record.progress(errors)
    sizes, seconds = (SIZES[:2], 0.1) if options.quick else (SIZES, 0.25)
    tflops = {
        dtype: {size: speeds(dtype, size, seconds) for size in sizes if size <= 8192 or dtype == "float32"}
        for dtype in RUNGS
    }
    record.write(record.gpu(), options.out, errors_in_u=errors, tflops=tflops)


if __name__ == "__main__":
    main()
