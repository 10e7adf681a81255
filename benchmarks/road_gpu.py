"""What a call costs the host on its way to a kernel of a GPU, beside CuPy and torch on the same arrays, and the first
call of a shape.

    rows        microseconds of host time a call: many calls in a row that wait for nothing, the GPU's work not waited
                for; the median of interleaved samples
    first       milliseconds from a call to its result, for shapes that this process has not seen, by what they need:
                ``cold`` with an empty kernel cache, so that code is compiled; ``new`` shapes after that; the worst and
                the median; ``later`` is the worst of their second to fifth call

``python benchmarks/road_gpu.py --out benchmarks/results/road_gpu_h200.json``; with ``--sections`` one of them, and with
``--into`` the other stays from an earlier record and names its commit.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp(prefix="pysimd-road-")  # before CuPy is imported: an empty cache

import cupy
import numpy as np
import record
import render_road

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda import dispatch
from pysimd.backends.cuda.implementation import INSTANCES
from pysimd.bench.data import random_array

try:
    import torch
except ImportError:
    torch = None

CALLS, SAMPLES = 100, 15

TARGETS_US = {
    "cupy: matmul(a, b)": 12,
    "cupy: matmul(a, b, out=)": 10,
    "cupy: k(a, b)": 20,
    "cupy: matmul 256": 25,
    "cupy: gemm(alpha, beta, c) 256": 25,
    "torch: matmul(a, b)": 20,
    "torch: matmul(a, b, out=)": 20,
    "torch: k(a, b)": 20,
    "torch: matmul 256": 25,
    "torch: gemm(alpha, beta, c) 256": 25,
}
"""What was aimed at on a host where cupy.matmul takes 29 and torch.bmm 18."""


def arrays(*shapes: tuple[int, ...], types: str = "f32") -> list:
    """Random arrays of CuPy."""
    rng = np.random.default_rng(0)
    return [cupy.asarray(random_array(dtypes.FAMILIES[types].a, shape, rng)) for shape in shapes]


def of_cupy() -> dict[str, tuple[Callable, Callable | None]]:
    """Name to pysimd's call and CuPy's. Small ones are batches of 100 products of 4x4."""
    a, b, c, out = arrays(*[(100, 4, 4)] * 4)
    x, y, z, result = arrays(*[(256, 256)] * 4)
    v = a[0, 0].copy()
    matmul, gemm, kernel = pysimd.matmul, pysimd.gemm, pysimd.kernel("cuda_f32_outer_4x4")
    bound = kernel.bind(a, b, out)
    return {
        "matmul(a, b)": (partial(matmul, a, b), partial(cupy.matmul, a, b)),
        "matmul(a, b, out=)": (partial(matmul, a, b, out=out), partial(cupy.matmul, a, b, out=out)),
        "matmul(a.mT, b)": (lambda: matmul(a.swapaxes(1, 2), b), lambda: cupy.matmul(a.swapaxes(1, 2), b)),
        "matmul(a, b[0])": (lambda: matmul(a, b[0]), lambda: cupy.matmul(a, b[0])),
        "matmul(a, v)": (partial(matmul, a, v), partial(cupy.matmul, a, v)),
        "matmul(kernel=name)": (partial(matmul, a, b, kernel=kernel.name), partial(cupy.matmul, a, b)),
        "k(a, b)": (partial(kernel, a, b), partial(cupy.matmul, a, b)),
        "k(a, b, c, out=)": (partial(kernel, a, b, c, out=out), lambda: cupy.matmul(a, b) + c),
        "a bound call": (bound, partial(cupy.matmul, a, b, out=out)),
        "gemm(alpha, beta, c)": (
            partial(gemm, a, b, c, alpha=2.0, beta=0.5),
            lambda: 2.0 * cupy.matmul(a, b) + 0.5 * c,
        ),
        "matmul 256": (partial(matmul, x, y), partial(cupy.matmul, x, y)),
        "matmul(out=) 256": (partial(matmul, x, y, out=result), partial(cupy.matmul, x, y, out=result)),
        "gemm(alpha, beta, c) 256": (
            partial(gemm, x, y, z, alpha=2.0, beta=0.5),
            lambda: 2.0 * cupy.matmul(x, y) + 0.5 * z,
        ),
        "gemm(alpha, beta, out, out=) 256": (
            partial(gemm, x, y, result, alpha=2.0, beta=0.5, out=result),
            lambda: 2.0 * cupy.matmul(x, y) + 0.5 * z,
        ),
        "gemm split along k, 64 x 64 x 8192": _of_shape(64, 64, 8192),
    }


def _of_shape(m: int, n: int, k: int):
    a, b = arrays((m, k), (k, n))
    return partial(pysimd.gemm, a, b), partial(cupy.matmul, a, b)


def of_torch() -> dict[str, tuple[Callable, Callable | None]]:
    """The same of torch."""
    a, b, c, out = (torch.from_dlpack(x).clone() for x in arrays(*[(100, 4, 4)] * 4))
    x, y, z = (torch.from_dlpack(x).clone() for x in arrays(*[(256, 256)] * 3))
    p, q = (torch.randn(1024, 1024, device="cuda").to(torch.bfloat16) for _ in range(2))
    matmul, gemm, kernel = pysimd.matmul, pysimd.gemm, pysimd.kernel("cuda_f32_outer_4x4")
    return {
        "matmul(a, b)": (partial(matmul, a, b), partial(torch.bmm, a, b)),
        "matmul(a, b, out=)": (partial(matmul, a, b, out=out), partial(torch.bmm, a, b, out=out)),
        "matmul(a.mT, b)": (lambda: matmul(a.mT, b), lambda: torch.matmul(a.mT, b)),
        "matmul(a, b[0])": (lambda: matmul(a, b[0]), lambda: torch.matmul(a, b[0])),
        "k(a, b)": (partial(kernel, a, b), partial(torch.bmm, a, b)),
        "gemm(alpha, beta, c)": (
            partial(gemm, a, b, c, alpha=2.0, beta=0.5),
            partial(torch.baddbmm, c, a, b, alpha=2.0, beta=0.5),
        ),
        "matmul 256": (partial(matmul, x, y), partial(torch.matmul, x, y)),
        "gemm(alpha, beta, c) 256": (
            partial(gemm, x, y, z, alpha=2.0, beta=0.5),
            partial(torch.addmm, z, x, y, alpha=2.0, beta=0.5),
        ),
        "matmul of bfloat16, 1024": (partial(matmul, p, q), partial(torch.matmul, p, q)),
    }


def host_us(call: Callable) -> float:
    """Microseconds of a call, of calls in a row; the GPU is not waited for within a sample."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    us = (time.perf_counter_ns() - start) / CALLS / 1000
    cupy.cuda.Device().synchronize()
    return us


def measured(library: str, calls: dict[str, tuple[Callable, Callable | None]]) -> list[dict]:
    """A row for each call."""
    rows = []
    for name, (ours, theirs) in calls.items():
        sides = {"pysimd": ours, library: theirs}
        for call in sides.values():
            for _ in range(5):
                call()
        INSTANCES.wait()
        samples: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(SAMPLES):
            for side, call in sides.items():
                samples[side].append(host_us(call))
        us = {side: median(found) for side, found in samples.items()}
        target = TARGETS_US.get(f"{library}: {name}")
        rows.append(
            {"library": library, "call": name, "pysimd_us": us["pysimd"], "peer_us": us[library], "target_us": target}
        )
        record.progress(f"{library}: {name}  " + "  ".join(f"{side} {x:.1f}" for side, x in us.items()))
    return rows


# --- first calls ---


def seconds(call: Callable) -> float:
    """From the call to its result."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    call()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start


def first(name: str, cases: list[Callable]) -> dict:
    """Of calls, each of another shape: the first to fifth time that each is made."""
    once = [seconds(call) for call in cases]
    later = [seconds(call) for call in cases for _ in range(4)]
    INSTANCES.wait()
    ready = [seconds(call) for call in cases]
    row = {
        "calls": name,
        "count": len(cases),
        "median_ms": 1000 * median(once),
        "worst_ms": 1000 * max(once),
        "later_worst_ms": 1000 * max(later),
        "ready_worst_ms": 1000 * max(ready),
    }
    record.progress("  ".join(f"{key} {x:.3g}" if isinstance(x, float) else str(x) for key, x in row.items()))
    return row


def new_shapes(types: str, count: int, low: int, high: int, high_k: int, batch: int, seed: int) -> list[Callable]:
    """Products of shapes that were not seen."""
    rng, cases = np.random.default_rng(seed), []
    for _ in range(count):
        m, n = (int(x) for x in rng.integers(low, high + 1, 2))
        k = int(rng.integers(low, high_k + 1))
        shape = (batch, m, k), (batch, k, n)
        cases.append(partial(pysimd.matmul, *arrays(*(x if batch > 1 else x[1:] for x in shape), types=types)))
    return cases


def new_narrow_shapes(types: str, count: int, seed: int) -> list[Callable]:
    """Products of few rows or columns that were not seen, and that narrow.cu computes."""
    rng, cases = np.random.default_rng(seed), []
    while len(cases) < count:
        short, long, k = int(rng.integers(2, 17)), int(rng.integers(200, 3000)), int(rng.integers(1000, 5000))
        m, n = (short, long) if rng.integers(2) else (long, short)
        if dispatch.choose(types, m, n, k, 1).way is dispatch.Way.NARROW:
            cases.append(partial(pysimd.matmul, *arrays((m, k), (k, n), types=types)))
    return cases


def first_calls() -> list[dict]:
    """Before anything else of this process."""
    cupy.matmul(*arrays((8, 8), (8, 8)))  # the context, the pool and cuBLAS
    cupy.cuda.Device().synchronize()
    rows = []
    for types in ("f32", "f64", "f16", "i8i32"):
        rows.append(first(f"{types}, small, cold", new_shapes(types, 1, 3, 3, 3, 100, 0)))
    for types in ("f32", "f64", "f16", "i8i32"):
        rows.append(first(f"{types}, small, new", new_shapes(types, 20, 1, 32, 64, 100, 1)))
    for types in ("f32", "i8i32"):
        rows.append(first(f"{types}, few rows, cold", new_narrow_shapes(types, 1, 4)))
        rows.append(first(f"{types}, few rows, new", new_narrow_shapes(types, 20, 5)))
    rows.append(first("f32, cuBLAS, new", new_shapes("f32", 20, 33, 500, 500, 1, 2)))
    a, b = arrays((64, 8192), (8192, 64))
    rows.append(first("f32, split along k, cold", [partial(pysimd.matmul, a, b)]))
    rows.append(first("f32, large, cold", [partial(pysimd.matmul, *arrays((2048, 2048), (2048, 2048)))]))
    rows.append(first("f32, large, new", new_shapes("f32", 10, 2040, 2100, 2100, 1, 3)))
    kernel = pysimd.kernel("cuda_f32_outer_8x8")
    rows.append(first("k(a, b), cold", [partial(kernel, *arrays((10, 8, 8), (10, 8, 8)))]))
    lengths = [arrays((10, 8, k), (10, k, 8)) for k in (4, 12, 100)]
    rows.append(first("k(a, b), new", [partial(kernel, *x) for x in lengths]))
    return rows


def all_calls() -> list[dict]:
    """CuPy's arrays and, where torch is installed, its tensors."""
    return measured("cupy", of_cupy()) + (measured("torch", of_torch()) if torch is not None else [])


SECTIONS = {"first": first_calls, "rows": all_calls}


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--into", type=Path, metavar="FILE.json", help="an earlier record, whose other section stays")
    options = parser.parse_args()
    record.need_cuda(parser)
    found: dict[str, Any] = {name: SECTIONS[name]() for name in SECTIONS if name in options.sections}
    found["machine"] = record.gpu() | ({} if torch is None else {"torch": torch.__version__})
    if options.into:
        found = record.merged(json.loads(options.into.read_text()), found)
    for name, lines in (("rows", render_road.gpu_calls), ("first", render_road.gpu_first_calls)):
        if name in found:
            record.progress("\n".join(["", *lines(found)]))
    record.write(**{"out": options.out, **{name: x for name, x in found.items() if name != "schema_version"}})


if __name__ == "__main__":
    main()
