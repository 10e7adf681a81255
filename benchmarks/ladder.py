"""The GPU GEMM ladder beside cuBLAS: ``python benchmarks/ladder.py [--out FILE.json]``.

All rungs and cuBLAS (cupy.matmul) take turns at each size, m = n = k, on random float32 operands that are larger than
the second-level cache in all; each result is checked against float64 before it is timed. Figures are medians of times
between two events on the GPU. That cuBLAS computes in float32 is seen from its error: with TF32 it would be some
thousand times as large, and outside the bound.

``--once RUNG --size N`` runs one rung twice and nothing else, for a profiler:
``ncu --metrics smsp__inst_executed.sum,... python benchmarks/ladder.py --once smem --size 2048``.
PYSIMD_COMMIT names the commit where git cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import date
from pathlib import Path

import cupy
import numpy as np

import pysimd
from pysimd import ladder_report
from pysimd.backends import cuda_ladder

SIZES = (1024, 2048, 4096, 8192)


def output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def clocks() -> str:
    """What the driver says of clocks and power while the GPU has just worked; empty if it does not."""
    return output("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu", "--format=csv,noheader")


def machine() -> dict[str, object]:
    """What a figure needs to be understood later."""
    runtime, here = cupy.cuda.runtime, pysimd.backends()[1]
    properties = runtime.getDeviceProperties(0)
    return {
        "device": here.device,
        "capability": here.features[0],
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": runtime.driverGetVersion(),
        "cuda_runtime": runtime.runtimeGetVersion(),
        "nvrtc": list(cupy.cuda.nvrtc.getVersion()),
        "cublas": cupy.cuda.cublas.getVersion(cupy.cuda.device.get_cublas_handle()),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "pysimd": pysimd.__version__,
        "commit": os.environ.get("PYSIMD_COMMIT") or output("git", "rev-parse", "--short", "HEAD") or "unknown",
        "date": date.today().isoformat(),
    }


def once(name: str, size: int) -> None:
    rng = cupy.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    run = cuda_ladder.prepared(pysimd.rung(name), a, b, cupy.empty_like(a))
    run()
    run()
    cupy.cuda.get_current_stream().synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each contender at each size (%(default)s)")
    parser.add_argument("--once", metavar="RUNG", help="run this rung twice, for a profiler")
    parser.add_argument("--size", type=int, default=2048, help="of --once (%(default)s)")
    options = parser.parse_args()
    reason = pysimd.backends()[1].reason
    if reason:
        parser.exit(1, f"{reason}\n")
    if options.once:
        once(options.once, options.size)
        return
    rows, ceiling = ladder_report.measure(options.sizes, options.seconds, lambda text: print(text, file=sys.stderr))
    after = clocks()
    document = {
        "machine": machine(),
        "clocks_after": after,
        "ceiling_tflops": ceiling,
        "rows": [asdict(row) for row in rows],
    }
    text = json.dumps(document, indent=1)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    for row in rows:
        print(f"{row.size:6} {row.name:18} {row.tflops:7.2f} TFLOP/s {row.percent_of_cublas:6.1f} % of cuBLAS")


if __name__ == "__main__":
    main()
