"""The ladder measured: every rung beside cuBLAS and beside the chain of multiply-adds that loads nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from . import ladder
from .errors import OptionError, UnavailableError

ROUNDS = 9
"""Turns of a contender at a size, at most; their median counts."""

CUBLAS = "cuBLAS"


@dataclass(frozen=True)
class Row:
    """One rung, or cuBLAS, at one size. What only a rung has is None for cuBLAS, what is measured is None in a list
    without measurement.

    Attributes:
        size: m = n = k.
        tflops: 10^12 floating-point operations per second, two per multiply-add.
        percent_of_cublas: 100 * tflops / tflops of cuBLAS at this size in the same run.
        percent_of_ceiling: 100 * tflops / tflops of a chain of multiply-adds on registers in the same run.
        within_bound: whether the result kept ``(K + 3) u |A||B|`` against float64.
    """

    number: str | None
    name: str
    new: str | None
    tile: str | None
    threads: int | None
    ratio: float | None
    registers: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    size: int | None = None
    ms: float | None = None
    tflops: float | None = None
    percent_of_cublas: float | None = None
    percent_of_ceiling: float | None = None
    within_bound: bool | None = None


def listed() -> list[Row]:
    """The rungs without measurement."""
    return [_row(rung) for rung in ladder.rungs()]


def _row(rung: ladder.Rung, **measured) -> Row:
    block = f"{rung.bm}x{rung.bn}" + (f"x{rung.bk}" if rung.bk else "")
    return Row(
        number=rung.number,
        name=rung.name,
        new=rung.new,
        tile=f"{block}, {rung.tm}x{rung.tn}",
        threads=rung.threads,
        ratio=rung.ratio.value,
        registers=rung.registers,
        shared_bytes=rung.shared_bytes,
        local_bytes=rung.local_bytes,
        **measured,
    )


def check_available() -> None:
    """Raises unless the ladder can be measured here: a GPU, and a cuBLAS that computes in float32."""
    from .backends import cuda

    if not cuda.backend().available:
        raise UnavailableError(cuda.backend().reason)
    if os.environ.get("CUPY_TF32") == "1":
        raise OptionError("CUPY_TF32=1 makes cuBLAS compute in TF32, which is no peer of float32: unset it")


def measure(sizes: Sequence[int], seconds: float, say: Callable[[str], Any]) -> tuple[list[Row], float]:
    """Rows of every rung and of cuBLAS at every size, and the ceiling in TFLOP/s.

    Args:
        sizes: m = n = k.
        seconds: time given to each contender at each size; three calls at least.
        say: is told the progress.
    """
    from .backends import cuda

    check_available()
    run, operations = cuda.ceiling_run(*cuda.CEILINGS["FFMA"])
    ceiling = operations / medians({"ceiling": [run]}, 0.2)["ceiling"] / 1e12
    say(f"chain of multiply-adds: {ceiling:.1f} TFLOP/s")
    rows = []
    for i, size in enumerate(sizes, 1):
        say(f"[{i}/{len(sizes)}] {size} x {size} x {size} ...")
        rows += _at_size(size, seconds, ceiling)
    return rows, ceiling


def _at_size(size: int, seconds: float, ceiling: float) -> list[Row]:
    import cupy
    import numpy as np

    from .backends import cuda_ladder

    # Several sets of operands, one after the other, so that none comes from the second-level cache.
    l2 = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["l2CacheSize"]
    sets = 1 + 3 * l2 // (12 * size * size)
    rng = cupy.random.default_rng(0)
    a, b = (rng.standard_normal((sets, size, size), dtype=np.float32) for _ in range(2))
    out = cupy.empty_like(a)
    runs = {CUBLAS: [partial(cupy.matmul, a[i], b[i], out=out[i]) for i in range(sets)]}
    rungs = [rung for rung in ladder.rungs() if rung.available and rung.types == "f32"]
    for rung in rungs:
        runs[rung.name] = [cuda_ladder.prepared(rung, a[i], b[i], out[i]) for i in range(sets)]
    expected, magnitude = _reference(a[0], b[0])
    holds = {}
    for name, calls in runs.items():
        out.fill(np.nan)
        calls[0]()
        holds[name] = bool((cupy.abs(out[0] - expected) <= (size + 3) * 2.0**-24 * magnitude).all())
    del expected, magnitude
    tflops = {name: 2e-12 * size**3 / s for name, s in medians(runs, seconds).items()}

    def measured(name):
        return {
            "size": size,
            "ms": 2e-9 * size**3 / tflops[name],
            "tflops": tflops[name],
            "percent_of_cublas": 100 * tflops[name] / tflops[CUBLAS],
            "percent_of_ceiling": 100 * tflops[name] / ceiling,
            "within_bound": holds[name],
        }

    peer = Row(None, CUBLAS, None, None, None, None, **measured(CUBLAS))
    return [*(_row(rung, **measured(rung.name)) for rung in rungs), peer]


def _reference(a, b):
    """The product in float64 and that of the magnitudes."""
    import numpy as np

    a, b = a.astype(np.float64), b.astype(np.float64)
    return a @ b, abs(a) @ abs(b)


def medians(runs: dict[str, Sequence[Callable[[], Any]]], seconds: float) -> dict[str, float]:
    """Median seconds of a call of each contender: turn by turn, each turn some calls between two events on the GPU.

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
    for i in range(ROUNDS):
        for name, found in times.items():
            if i < 3 or sum(found) * calls[name] < seconds:
                found.append(turn(name, calls[name]))
    return {name: median(found) for name, found in times.items()}
