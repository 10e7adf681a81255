"""The rungs of the GEMM ladder timed on the current CUDA device, turn by turn with cuBLAS."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ..errors import OptionError, UnavailableError
from . import cuda, cuda_ladder

ROUNDS = 9
"""Turns of a contender at a size, at most; their median counts."""

CUBLAS = "cuBLAS"


class Timed(NamedTuple):
    """A contender at a size: its speed, and whether its result kept ``(K + 3) u |A||B|`` against float64."""

    tflops: float
    within_bound: bool


def check_available() -> None:
    """Raises unless the ladder can be measured here: a GPU, and a cuBLAS that computes in float32."""
    if not cuda.backend().available:
        raise UnavailableError(cuda.backend().reason)
    if os.environ.get("CUPY_TF32") == "1":
        raise OptionError("CUPY_TF32=1 makes cuBLAS compute in TF32, which is no peer of float32: unset it")


def ceiling() -> float:
    """TFLOP/s of a chain of multiply-adds that loads nothing."""
    run, operations = cuda.ceiling_run(*cuda.CEILINGS["FFMA"])
    return operations / medians({"ceiling": [run]}, 0.2)["ceiling"] / 1e12


def at_size(rungs: Sequence, size: int, seconds: float) -> dict[str, Timed]:
    """Every rung and cuBLAS, by name, on random matrices of m = n = k = size."""
    import cupy

    # Several sets of operands, one after the other, so that none comes from the second-level cache.
    l2 = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["l2CacheSize"]
    sets = 1 + 3 * l2 // (12 * size * size)
    rng = cupy.random.default_rng(0)
    a, b = (rng.standard_normal((sets, size, size), dtype=np.float32) for _ in range(2))
    out = cupy.empty_like(a)
    runs = {CUBLAS: [partial(cupy.matmul, a[i], b[i], out=out[i]) for i in range(sets)]}
    for rung in rungs:
        runs[rung.name] = [cuda_ladder.prepared(rung, a[i], b[i], out[i]) for i in range(sets)]
    wide = a[0].astype(np.float64), b[0].astype(np.float64)
    expected, bound = wide[0] @ wide[1], (size + 3) * 2.0**-24 * (abs(wide[0]) @ abs(wide[1]))
    holds = {}
    for name, calls in runs.items():
        out.fill(np.nan)
        calls[0]()
        holds[name] = bool((abs(out[0] - expected) <= bound).all())
    del wide, expected, bound
    return {name: Timed(2e-12 * size**3 / s, holds[name]) for name, s in medians(runs, seconds).items()}


def medians(runs: dict[str, Sequence[Callable[[], Any]]], seconds: float) -> dict[str, float]:
    """Median seconds of a call of each contender: turn by turn, each turn some calls between two events on the GPU. The
    order changes from round to round: a GPU at its limit of power is slower after a contender that took more.

    Args:
        runs: name to functions that do the same on different memory; they are called one after the other.
        seconds: time given to each; three turns at least, ``ROUNDS`` at most.
    """
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times: dict[str, list[float]] = {name: [] for name in runs}
    position = dict.fromkeys(runs, 0)

    def turn(name: str, calls: int) -> float:
        functions, start = runs[name], position[name]
        position[name] += calls
        begin.record()
        for i in range(start, start + calls):
            functions[i % len(functions)]()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) * 1e-3 / calls

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
