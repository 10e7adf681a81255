"""The ladder measured: every rung beside cuBLAS and beside a chain of multiply-adds that loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pysimd import registry
from pysimd.errors import OptionError
from pysimd.microkernel import Rung

TYPES = ("f32", "f16f32", "bf16f32")
"""The families that are timed: sums in float."""


@dataclass(frozen=True)
class Row:
    """One rung, or cuBLAS, at one size. What only a rung has is None for cuBLAS, what is measured is None in a list
    without measurement.

    Attributes:
        types: family; float sums, whatever A and B hold.
        size: m = n = k.
        tflops: 10^12 floating-point operations per second, two per multiply-add.
        percent_of_cublas: 100 * tflops / tflops of cuBLAS with a float C at this size in the same run.
        percent_of_ceiling: 100 * tflops / tflops of a chain of multiply-adds on registers in the same run; None for
            bfloat16.
        within_bound: whether the result kept ``(K + 3) u |A||B|`` against float64.
    """

    number: str | None
    name: str
    new: str | None
    tile: str | None
    threads: int | None
    ratio: float | None
    types: str = "f32"
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
    return [_row(rung) for rung in registry.rungs()]


_SHARED_BY = {1: "", 32: " a warp", 128: " a warpgroup"}


def _row(rung: Rung, **measured) -> Row:
    block = f"{rung.bm}x{rung.bn}" + (f"x{rung.bk}" if rung.bk else "")
    return Row(
        number=rung.number,
        name=rung.name,
        new=rung.new,
        tile=f"{block}, {rung.tm}x{rung.tn}{_SHARED_BY[rung.lanes]}",
        threads=rung.threads,
        ratio=rung.ratio.value,
        types=rung.types,
        registers=rung.registers,
        shared_bytes=rung.shared_bytes,
        local_bytes=rung.local_bytes,
        **measured,
    )


def measure(
    sizes: Sequence[int], seconds: float, say: Callable[[str], Any], types: Sequence[str] = ("f32",)
) -> tuple[list[Row], dict[str, float | None]]:
    """Rows of every rung of these families and of cuBLAS at every size, and the ceilings of the families in TFLOP/s.

    Args:
        sizes: m = n = k.
        seconds: time given to each contender at each size; three calls at least.
        say: is told the progress.
        types: any of f32, f16f32, bf16f32.

    Raises:
        OptionError: another family.
        UnavailableError: there is no GPU.
    """
    from pysimd.bench import ladder_times

    unknown = [name for name in types if name not in TYPES]
    if unknown:
        raise OptionError(f"types {unknown[0]!r}: the ladder is timed for {', '.join(TYPES)}")
    ladder_times.check_available()
    rows, ceilings = [], {}
    for family in types:
        ceilings[family] = ladder_times.ceiling(family)
        if ceilings[family]:
            say(f"chain of multiply-adds, {family}: {ceilings[family]:.1f} TFLOP/s")
        rungs = {rung.name: rung for rung in registry.rungs() if rung.available and rung.types == family}
        for i, size in enumerate(sizes, 1):
            say(f"[{i}/{len(sizes)}] {size} x {size} x {size}, {family} ...")
            timed = ladder_times.at_size(list(rungs.values()), family, size, seconds)
            peer = timed[ladder_times.CUBLAS]
            for name in (*rungs, *ladder_times.peers(family)):
                measured = {
                    "size": size,
                    "ms": 2e-9 * size**3 / timed[name].tflops,
                    "tflops": timed[name].tflops,
                    "percent_of_cublas": 100 * timed[name].tflops / peer.tflops,
                    "percent_of_ceiling": 100 * timed[name].tflops / ceilings[family] if ceilings[family] else None,
                    "within_bound": timed[name].within_bound,
                }
                if name in rungs:
                    rows.append(_row(rungs[name], **measured))
                else:
                    rows.append(Row(None, name, None, None, None, None, types=family, **measured))
    return rows, ceilings
