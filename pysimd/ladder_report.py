"""The ladder measured: every rung beside cuBLAS and beside the chain of multiply-adds that loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import ladder


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


def measure(sizes: Sequence[int], seconds: float, say: Callable[[str], Any]) -> tuple[list[Row], float]:
    """Rows of every rung and of cuBLAS at every size, and the ceiling in TFLOP/s.

    Args:
        sizes: m = n = k.
        seconds: time given to each contender at each size; three calls at least.
        say: is told the progress.
    """
    from .backends import ladder_times

    ladder_times.check_available()
    ceiling = ladder_times.ceiling()
    say(f"chain of multiply-adds: {ceiling:.1f} TFLOP/s")
    rungs = {rung.name: rung for rung in ladder.rungs() if rung.available and rung.types == "f32"}
    rows = []
    for i, size in enumerate(sizes, 1):
        say(f"[{i}/{len(sizes)}] {size} x {size} x {size} ...")
        timed = ladder_times.at_size(list(rungs.values()), size, seconds)
        peer = timed[ladder_times.CUBLAS]
        for name in (*rungs, ladder_times.CUBLAS):
            measured = {
                "size": size,
                "ms": 2e-9 * size**3 / timed[name].tflops,
                "tflops": timed[name].tflops,
                "percent_of_cublas": 100 * timed[name].tflops / peer.tflops,
                "percent_of_ceiling": 100 * timed[name].tflops / ceiling,
                "within_bound": timed[name].within_bound,
            }
            known = name in rungs
            rows.append(_row(rungs[name], **measured) if known else Row(None, name, None, None, None, None, **measured))
    return rows, ceiling
