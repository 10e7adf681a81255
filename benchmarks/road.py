"""What a call costs before and after its kernel: every public call on a small product, compared with NumPy on the same
arrays.

    rows     microseconds a call, the best of interleaved samples; with a busy Python thread the median of single calls
    random   calls of random shape, layout, batch and type (seeded); NumPy multiplies float32 copies, made beforehand,
             of narrow types. The geometric mean and the worst of numpy / pysimd

``python benchmarks/road.py --out benchmarks/results/road_cpu.json``
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.bench import blas, timing
from pysimd.bench.data import random_array

TARGETS_US = {
    "matmul(a, b, out=)": 0.33,
    "matmul(a, b)": 0.65,
    "matmul(threads=1)": 0.8,
    "matmul(kernel=name)": 0.8,
    "k(a, b)": 0.8,
    "matmul(a.T, b)": 0.8,
    "matmul(a, b.T)": 1.0,
    "matmul((50, 4, 4), (4, 4))": 0.9,
    "matmul(a, v)": 0.8,
    "gemm(alpha, beta)": 1.5,
    "gemm(kernel=name)": 1.5,
}
"""What was aimed at, on one core of an AMD Zen 5 server."""


def public_calls() -> dict[str, tuple[Callable, Callable | None]]:
    """Name to pysimd's call and NumPy's, on 4x4 float32."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((4, 4), np.float32) for _ in range(2))
    many, out, v = rng.standard_normal((50, 4, 4), np.float32), np.empty((4, 4), np.float32), a[0].copy()
    kernel = pysimd.kernels("cpu", types="f32", form="outer", available=True)
    kernel = [k for k in kernel if (k.mr, k.nr) == (4, 4)][-1]
    bound = kernel.bind(a, b, out)
    matmul, numpy = pysimd.matmul, np.matmul
    return {
        "matmul(a, b, out=)": (partial(matmul, a, b, out=out), partial(numpy, a, b, out=out)),
        "matmul(a, b)": (partial(matmul, a, b), partial(numpy, a, b)),
        "matmul(threads=1)": (partial(matmul, a, b, out=out, threads=1), partial(numpy, a, b, out=out)),
        "matmul(kernel=name)": (partial(matmul, a, b, out=out, kernel=kernel.name), partial(numpy, a, b, out=out)),
        "k(a, b)": (partial(kernel, a, b), partial(numpy, a, b)),
        "k(a, b, c)": (partial(kernel, a, b, a), lambda: a @ b + a),
        "k.bind(a, b, c)": (partial(kernel.bind, a, b, out), None),
        "a bound call": (bound, partial(numpy, a, b, out=out)),
        "matmul(a.T, b)": (lambda: matmul(a.T, b), lambda: numpy(a.T, b)),
        "matmul(a, b.T)": (lambda: matmul(a, b.T), lambda: numpy(a, b.T)),
        "matmul((50, 4, 4), (4, 4))": (partial(matmul, many, b), partial(numpy, many, b)),
        "matmul(a, v)": (partial(matmul, a, v), partial(numpy, a, v)),
        "matmul(v, a)": (partial(matmul, v, a), partial(numpy, v, a)),
        "gemm(alpha, beta)": (partial(pysimd.gemm, a, b, a, alpha=2.0, beta=0.5), lambda: 2 * (a @ b) + 0.5 * a),
        "gemm(kernel=name)": (partial(pysimd.gemm, a, b, kernel=kernel.name), partial(numpy, a, b)),
    }


def measured_calls(seconds: float) -> list[dict]:
    """A row for each public call, interleaved with NumPy's."""
    rows = []
    for name, (ours, numpys) in public_calls().items():
        runs = {"pysimd": timing.repeated(ours)} | ({} if numpys is None else {"numpy": timing.repeated(numpys)})
        times = timing.times(runs, timing.HostClock(), seconds=seconds)
        us = {side: found.best_ns / 1000 for side, found in times.items()}
        rows.append(
            {"call": name, "pysimd_us": us["pysimd"], "numpy_us": us.get("numpy"), "target_us": TARGETS_US.get(name)}
        )
        record.progress(f"{name}: {us}")
    return rows


def with_a_busy_thread(calls: int = 2000) -> dict:
    """The median of single calls while another Python thread computes."""
    a = np.ones((4, 4), np.float32)
    out = np.empty_like(a)
    stop = threading.Event()

    def busy():
        x = 0
        while not stop.is_set():
            x += 1

    thread = threading.Thread(target=busy)
    thread.start()
    times: dict[str, list[int]] = {"pysimd": [], "numpy": []}
    for _ in range(calls):
        for name, call in (("pysimd", pysimd.matmul), ("numpy", np.matmul)):
            start = time.perf_counter_ns()
            call(a, a, out=out)
            times[name].append(time.perf_counter_ns() - start)
    stop.set()
    thread.join()
    found = {f"{name}_us": float(np.median(ns)) / 1000 for name, ns in times.items()}
    return {"call": "matmul(out=) while a Python thread is busy", **found, "target_us": 2.0}


# --- random calls ---

LAYOUTS = ("plain", "A.mT", "B.mT", "every other row", "shared A", "shared B", "A @ v", "v @ B")
BATCHES = (1, 1, 10, 100, 1000)


def random_case(rng: np.random.Generator) -> tuple[dict, np.ndarray, np.ndarray]:
    """Shape, layout, batch and type of a call, and its operands."""
    types = str(rng.choice([t for t in ("f32", "f32", "f64", "bf16f32", "i8i32", "u8i8i32") if usable(t)]))
    m, k, n = (int(x) for x in rng.integers(1, 65, 3))
    batch, layout = int(rng.choice(BATCHES)), str(rng.choice(LAYOUTS))
    family = dtypes.FAMILIES[types]

    def array(name, rows, columns, transposed=False, sliced=False):
        shape = (batch, columns, rows) if transposed else (batch, rows * (1 + sliced), columns)
        x = random_array(name, shape, rng)
        return x.swapaxes(-1, -2) if transposed else x[:, :: 1 + sliced]

    a = array(family.a, m, k, layout == "A.mT", layout == "every other row")
    b = array(family.b, k, n, layout == "B.mT", layout == "every other row")
    if layout in ("shared A", "v @ B"):
        a = a[0] if layout == "shared A" else a[0, 0]
    if layout in ("shared B", "A @ v"):
        b = b[0] if layout == "shared B" else b[0, :, 0].copy()
    return {"types": types, "m": m, "k": k, "n": n, "batch": batch, "layout": layout}, a, b


def usable(types: str) -> bool:
    """Whether the dtype alone says that arrays are of this family."""
    return dtypes.dtype_of(dtypes.FAMILIES[types].a).name == dtypes.FAMILIES[types].a


def random_calls(count: int, seed: int) -> list[dict]:
    """numpy / pysimd of random calls, each the best of five samples of some 200 microseconds."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(count):
        case, a, b = random_case(rng)
        plain = case["types"] in ("f32", "f64")
        x, y = (a, b) if plain else (a.astype(np.float32), b.astype(np.float32))
        ns = {"pysimd": math.inf, "numpy": math.inf}
        calls = {"pysimd": partial(pysimd.matmul, a, b), "numpy": partial(np.matmul, x, y)}
        for call in calls.values():
            call()
        for _ in range(5):
            for name, call in calls.items():
                start, done = time.perf_counter_ns(), 0
                while done == 0 or time.perf_counter_ns() - start < 200_000:
                    call()
                    done += 1
                ns[name] = min(ns[name], (time.perf_counter_ns() - start) / done)
        rows.append({**case, **{f"{name}_us": t / 1000 for name, t in ns.items()}, "ratio": ns["numpy"] / ns["pysimd"]})
        if i % 250 == 249:
            record.progress(f"{i + 1} of {count} random calls: geometric mean {summary(rows)['geometric_mean']:.2f}")
    return rows


def summary(rows: list[dict]) -> dict:
    """Of random calls: how often slower than NumPy, the geometric mean of numpy / pysimd, and the worst calls."""
    ratios = np.array([row["ratio"] for row in rows])
    worst = sorted(rows, key=lambda row: row["ratio"])[:10]
    return {
        "calls": len(rows),
        "slower_percent": 100 * float((ratios < 1).mean()),
        "geometric_mean": float(np.exp(np.log(ratios).mean())),
        "worst": worst,
    }


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.3, help="time given to each side of a row (0.3)")
    parser.add_argument("--random", type=int, default=3000, metavar="N", help="random calls (3000); 0: none")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if blas.numpy_blas().forced is not None:
        sys.exit("OPENBLAS_CORETYPE is set: NumPy may run another machine's kernels; unset it")
    rows = [*measured_calls(options.seconds), with_a_busy_thread()]
    calls = random_calls(options.random, options.seed)
    sections = {"rows": rows}
    if calls:
        sections |= {"random": summary(calls), "random_calls": calls}
    record.write(record.cpu(), options.out, **sections)


if __name__ == "__main__":
    main()
