"""The error of tf32x3 and of float32 rungs: ``python benchmarks/tf32x3_error.py [--out FILE.json]``.

Products of 512 x k by k x 512, of normal elements (whose sums stay near 0) and of elements between 0 and 1 (whose sums
grow), against float64. An error counts in units of ``u |A||B|``, u = 2^-24: the largest of all elements of C, and the
root mean square. ``smem_dbuf`` does one fma for each term, k ascending; cuBLAS and f32_best may split K.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
import record

import pysimd

SIZE = 512
STEPS = (1, 2, 8, 32, 64, 256, 1024, 4096, 16384)
RUNGS = ("tf32x3", "smem_dbuf", "f32_best")


def row(elements: str, k: int) -> dict[str, Any]:
    rng = cupy.random.default_rng(0)
    draw = rng.standard_normal if elements == "normal" else rng.random
    a, b = draw((SIZE, k), dtype=np.float32), draw((k, SIZE), dtype=np.float32)
    expected, magnitude = a.astype(float) @ b.astype(float), abs(a).astype(float) @ abs(b).astype(float)
    results = {name: pysimd.rung(name)(a, b) for name in RUNGS} | {"cublas": a @ b}
    found: dict[str, Any] = {"elements": elements, "k": k}
    for name, result in results.items():
        error = abs(result - expected) / magnitude * 2.0**24
        found |= {f"{name}_max": float(error.max()), f"{name}_rms": float(cupy.sqrt((error**2).mean()))}
    record.progress(", ".join(f"{x}: {y if isinstance(y, str) else round(y, 2)}" for x, y in found.items()))
    return found


def main() -> None:
    parser = record.parser(__doc__)
    options = parser.parse_args()
    record.need_cuda(parser)
    rung = pysimd.rung("tf32x3")
    if not rung.available:
        parser.exit(1, f"{rung.unavailable_reason}\n")
    rows = [row(elements, k) for elements in ("normal", "between 0 and 1") for k in STEPS]
    record.write(record.gpu(), options.out, size=SIZE, rows=rows)


if __name__ == "__main__":
    main()
