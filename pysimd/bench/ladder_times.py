"""The rungs of the GEMM ladder timed on the current CUDA device, turn by turn with cuBLAS."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from pysimd import dtypes
from pysimd.backends.cuda.implementation import CUDA
from pysimd.backends.cuda.ladder import rungs as cuda_ladder
from pysimd.bench import cuda_peaks
from pysimd.errors import OptionError, UnavailableError

ROUNDS = 9
"""Turns of a contender at a size, at most; their median counts."""

CUBLAS, CUBLAS_NARROW = "cuBLAS", "cuBLAS, 16-bit C"

_CEILINGS = {"f32": "FFMA", "f16f32": "HMMA"}


def peers(types: str) -> tuple[str, ...]:
    """The contenders beside the rungs: cuBLAS with float sums, into float, and for 16-bit operands into 16 bits too."""
    return (CUBLAS,) if types == "f32" else (CUBLAS, CUBLAS_NARROW)


class Timed(NamedTuple):
    """A contender at a size: its speed, and whether its result kept ``(K + 3) u |A||B|`` against float64."""

    tflops: float
    within_bound: bool


def check_available() -> None:
    """Raises unless the ladder can be measured here: a GPU, and a cuBLAS that computes in float32."""
    if not CUDA.backend().available:
        raise UnavailableError(CUDA.backend().reason)
    if os.environ.get("CUPY_TF32") == "1":
        raise OptionError("CUPY_TF32=1 makes cuBLAS compute in TF32, which is no peer of float32: unset it")


def ceiling(types: str) -> float | None:
    """TFLOP/s of a chain of multiply-adds that loads nothing: FFMA, or mma.sync. None for bfloat16: wgmma reads shared
    memory."""
    if types not in _CEILINGS:
        return None
    run, operations = cuda_peaks.peak_run(*cuda_peaks.PEAKS[_CEILINGS[types]])
    return operations / medians({"ceiling": [run]}, 0.2)["ceiling"] / 1e12


def at_size(rungs: Sequence, types: str, size: int, seconds: float) -> dict[str, Timed]:
    """Every rung, which are of these types, and the peers, by name, on random matrices of m = n = k = size."""
    import cupy

    # Several sets of operands, one after the other, so that none comes from the second-level cache.
    l2 = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["l2CacheSize"]
    sets = 1 + 3 * l2 // (12 * size * size)
    rng = cupy.random.default_rng(0)
    a, b = (operand(rng, types, (sets, size, size)) for _ in range(2))
    out = cupy.empty((sets, size, size), np.float32)
    runs = {}
    if types == "f32":
        runs[CUBLAS] = [partial(cupy.matmul, a[i], b[i], out=out[i]) for i in range(sets)]
    else:
        narrow_out = cupy.empty_like(a)
        runs[CUBLAS] = [_library(a[i], b[i], out[i]) for i in range(sets)]
        runs[CUBLAS_NARROW] = [_library(a[i], b[i], narrow_out[i]) for i in range(sets)]
    for rung in rungs:
        runs[rung.name] = [cuda_ladder.prepared(rung, a[i], b[i], out[i]) for i in range(sets)]
    wide = _float64(a[0]), _float64(b[0])
    expected, bound = wide[0] @ wide[1], (size + 3) * 2.0**-24 * (abs(wide[0]) @ abs(wide[1]))
    holds = {}
    for name, calls in runs.items():
        out.fill(np.nan)
        calls[0]()
        if name == CUBLAS_NARROW:
            rounding = abs(expected) * (2.0**-11 if types == "f16f32" else 2.0**-8)
            holds[name] = bool((abs(_float64(narrow_out[0]) - expected) <= bound + rounding).all())
        else:
            holds[name] = bool((abs(out[0] - expected) <= bound).all())
    del wide, expected, bound
    return {name: Timed(2e-12 * size**3 / s, holds[name]) for name, s in medians(runs, seconds).items()}


def operand(rng, types: str, shape):
    """Random normal numbers as A and B of a family hold them; bfloat16, cut, as its bits."""
    x = rng.standard_normal(shape, dtype=np.float32)
    if types == "bf16f32":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(dtypes.FAMILIES[types].a, copy=False)


def _float64(x):
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64) if x.dtype == np.uint16 else x.astype(float)


_CUDA_TYPES = {"float32": 0, "float16": 2, "uint16": 14}
"""cudaDataType of what is given to cuBLAS; uint16 holds bfloat16."""


def _library(a, b, out):
    """A function that has cuBLAS multiply 16-bit matrices with float sums, into ``out``: C^T = B^T A^T, by columns."""
    from cupy.cuda import cublas, device

    (m, k), n = a.shape, b.shape[1]
    one, zero = np.ones((), np.float32), np.zeros((), np.float32)
    float_sums, any_algorithm = 68, -1  # CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT
    of_a, of_c = _CUDA_TYPES[a.dtype.name], _CUDA_TYPES[out.dtype.name]

    def call() -> None:
        x, y, z = (b.data.ptr, of_a, n), (a.data.ptr, of_a, k), (out.data.ptr, of_c, n)
        handle = device.get_cublas_handle()
        factors = one.ctypes.data, zero.ctypes.data
        cublas.gemmEx(handle, 0, 0, n, m, k, factors[0], *x, *y, factors[1], *z, float_sums, any_algorithm)

    return call


def medians(runs: dict[str, Sequence[Callable[[], Any]]], seconds: float) -> dict[str, float]:
    """Median seconds of a call of each contender: turn by turn, each turn some calls between two events on the GPU. The
    order changes from round to round, and the first third of a turn does not count: a GPU at its limit of power is
    slower after a contender that took more, until it has found its clock.

    Args:
        runs: name to functions that do the same on different memory; they are called one after the other.
        seconds: time given to each; three turns at least, ``ROUNDS`` at most.
    """
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times: dict[str, list[float]] = {name: [] for name in runs}
    position = dict.fromkeys(runs, 0)

    def turn(name: str, calls: int) -> float:
        functions, start, untimed = runs[name], position[name], calls // 3
        position[name] += calls
        for i in range(calls):
            if i == untimed:
                begin.record()
            functions[(start + i) % len(functions)]()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) * 1e-3 / (calls - untimed)

    calls = {}
    for name in runs:
        turn(name, 1)
        calls[name] = max(1, min(50, round(seconds / ROUNDS / turn(name, 2))))
    order = random.Random(0)
    for i in range(ROUNDS):
        for name in order.sample(list(runs), len(runs)):
            found = times[name]
            if i < 3 or sum(found) * calls[name] < seconds:
                found.append(turn(name, calls[name]))
    return {name: median(found) for name, found in times.items()}
