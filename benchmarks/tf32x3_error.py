"""The error of tf32x3 beside that of float32: ``python benchmarks/tf32x3_error.py [--out FILE.json]``.

Products of 512 x k by k x 512, of normal elements (sums about 0) and of elements between 0 and 1 (sums that grow),
against float64. An error counts in units of ``u |A||B|``, u = 2^-24: the largest of all elements of C, and the root of
the mean square. ``smem_dbuf`` is float32 as it is written down, one fma a term; cuBLAS and f32_best may sum in several
parts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cupy
import numpy as np
from gpu_record import deliver, machine

import pysimd

SIZE = 512
STEPS = (1, 2, 8, 32, 64, 256, 1024, 4096, 16384)
RUNGS = ("tf32x3", "smem_dbuf", "f32_best")


def row(elements: str, k: int) -> dict[str, object]:
    rng = cupy.random.default_rng(0)
    draw = rng.standard_normal if elements == "normal" else rng.random
    a, b = draw((SIZE, k), dtype=np.float32), draw((k, SIZE), dtype=np.float32)
    expected, magnitude = a.astype(float) @ b.astype(float), abs(a).astype(float) @ abs(b).astype(float)
    results = {name: pysimd.rung(name)(a, b) for name in RUNGS} | {"cublas": a @ b}
    found: dict[str, object] = {"elements": elements, "k": k}
    for name, result in results.items():
        error = abs(result - expected) / magnitude * 2.0**24
        found |= {f"{name}_max": float(error.max()), f"{name}_rms": float(cupy.sqrt((error**2).mean()))}
    print(", ".join(f"{x}: {y if isinstance(y, str) else round(y, 2)}" for x, y in found.items()), file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    options = parser.parse_args()
    rung = pysimd.rung("tf32x3")
    if not rung.available:
        parser.exit(1, f"{rung.unavailable_reason}\n")
    rows = [row(elements, k) for elements in ("normal", "between 0 and 1") for k in STEPS]
    deliver({"machine": machine(), "size": SIZE, "rows": rows}, options.out)


if __name__ == "__main__":
    main()
