"""float32 and float64 products by several products of narrower types on tensor cores:
``python benchmarks/emulated_gemm.py [--out FILE.json] [--quick]``.

int8     N int8 products modulo N coprime numbers, joined by the Chinese remainder theorem (remainders.cu;
         arXiv 2504.08009, 2508.03984). The products are those of the rung i8_wgmma.
bf16     three bf16 parts of each float32, six products: one product by bf16_best with k six times as long. Splitting is
         not timed: the speed is a bound from above.

The peers, in interleaved samples of one run: for float32 tf32x3, f32_best and cuBLAS, for float64 cuBLAS. Operands are
normal, and rows of both are K-major. An error counts in units of ``u |A||B|``, the largest and the root mean square of
the elements of C; ``graded`` is that of operands whose columns differ by factors up to 2^20, which one scale for a row
serves badly.
"""

from __future__ import annotations

from functools import partial
from math import log2, prod
from pathlib import Path

import cupy
import numpy as np
import record

import pysimd
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.bench import timing

MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193)
COUNTS = {"float32": (6, 7), "float64": (14, 15)}
SIZES = (2048, 4096, 8192, 16384)
ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
STRUCT = np.dtype(
    [
        *((name, "i4") for name in ("count", "unused")),
        *((name, kind, 20) for name, kind in (("p", "f8"), ("inverse", "f8"), ("low", "u8"), ("high", "u8"))),
        *((name, "u8") for name in ("offset_low", "offset_high")),
        *((name, "f8") for name in ("scale", "log2_norm")),
    ]
)


def moduli(count: int) -> np.ndarray:
    """The struct Moduli of the first ``count`` numbers."""
    made, chosen = np.zeros(1, STRUCT), MODULI[:count]
    whole, offset = prod(chosen), 0
    for i, p in enumerate(chosen):
        factor = (pow(whole // p, -1, p) * 2**128 * 2 // p + 1) // 2  # rounded
        offset -= factor << 31
        made["p"][0, i], made["inverse"][0, i] = p, 1 / p
        made["low"][0, i], made["high"][0, i] = factor % 2**64, factor % 2**128 >> 64
    made["count"], made["offset_low"], made["offset_high"] = count, offset % 2**64, offset % 2**128 >> 64
    made["scale"], made["log2_norm"] = whole / 2**128, (log2(whole) - 1) / 2
    return made


class ByInt8:
    """``c = a @ b.T`` by int8 products: rows of ``a`` and ``b`` are K-major."""

    def __init__(self, a, b, c, count: int):
        dtype = "float" if a.dtype == np.float32 else "double"
        names = [f"exponents<{dtype}>", f"split<{dtype}, {count}>", f"join<{dtype}, {count}>"]
        text = Path(__file__).with_name("remainders.cu").read_text()
        module = cupy.RawModule(code=text, options=("-std=c++17",), name_expressions=names)
        self._functions = [module.get_function(name) for name in names]
        self._arrays, self._moduli = (a, b, c), moduli(count).view(f"V{STRUCT.itemsize}")  # passed by value
        (m, k), n = a.shape, b.shape[0]
        self._parts = [cupy.empty((count, rows, k), np.int8) for rows in (m, n)]
        self._exponents = [cupy.empty(rows, np.int32) for rows in (m, n)]
        self._sums = cupy.empty((count, m, n), np.int32)
        parts = self._parts[0], self._parts[1].swapaxes(-1, -2)
        self.products = gpu_rungs.prepared(pysimd.rung("i8_wgmma"), *parts, self._sums)

    def __call__(self) -> None:
        exponents, split, join = self._functions
        a, b, c = self._arrays
        for x, parts, exponent in zip((a, b), self._parts, self._exponents, strict=True):
            rows, k = x.shape
            exponents((rows,), (256,), (x, exponent, np.int64(k), self._moduli))
            sizes = np.int64(rows), np.int64(k)
            split((-(-rows * k // 1024),), (256,), (x, exponent, parts, *sizes, self._moduli))
        self.products()
        sizes = np.int64(c.shape[0]), np.int64(c.shape[1])
        join((-(-c.size // 256),), (256,), (self._sums, *self._exponents, c, *sizes, self._moduli))


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
    found = {f"int8, {count} products": partial(ByInt8, count=count) for count in COUNTS[dtype]}
    if dtype == "float32":
        found |= {name: partial(rung_on, name) for name in ("tf32x3", "f32_best")}
    return found | {"cuBLAS": cublas_on}


def speeds(dtype: str, size: int, seconds: float) -> dict[str, float]:
    """TFLOP/s of products of m = n = k = size."""
    a, b = operands(dtype, size, size, size)
    c = cupy.empty((size, size), dtype)
    calls = {name: make(a, b, c) for name, make in methods(dtype).items()}
    most = f"int8, {COUNTS[dtype][0]} products"
    calls[f"{most}, the products alone"] = calls[most].products
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
        for dtype in COUNTS
        for name, make in methods(dtype).items()
    }
    record.progress(errors)
    sizes, seconds = (SIZES[:2], 0.1) if options.quick else (SIZES, 0.25)
    tflops = {
        dtype: {size: speeds(dtype, size, seconds) for size in sizes if size <= 8192 or dtype == "float32"}
        for dtype in COUNTS
    }
    record.write(record.gpu(), options.out, errors_in_u=errors, tflops=tflops)


if __name__ == "__main__":
    main()
