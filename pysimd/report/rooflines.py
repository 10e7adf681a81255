"""Rooflines of a report: measured kernels below measured roofs, as numbers; ``html_report`` and ``plots`` draw them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pysimd.report.compare import Report, Row

Point = tuple[float, float]


@dataclass(frozen=True)
class Roofline:
    """One picture, on logarithmic axes.

    Attributes:
        backend, types: of the kernels in it.
        rows: these kernels, the slowest first: each at ``operations_per_byte`` and ``gflops``.
        across, up: ranges of the axes: operations per byte, and GFLOP/s.
        roofs: corners of each roof by its name: what L1 loads, then what the multiply-adds reach.
        farther: the two ends of the slope of each memory beyond L1, of the target that multiplies fastest.
        scale, unit: GFLOP/s of one unit, and its name.
    """

    backend: str
    types: str
    rows: tuple[Row, ...]
    across: Point
    up: Point
    roofs: dict[str, tuple[Point, ...]]
    farther: dict[str, tuple[Point, Point]]
    scale: float
    unit: str


def of(report: Report) -> list[Roofline]:
    """One for each types family of a backend that has kernels which were counted, and measured with their roofs."""
    placed = [row for row in report.rows if row.percent_of_load_bandwidth is not None]
    slopes = {
        (peak.target, peak.types): {x.memory: x.gbytes_per_s for x in peak.loads if x.memory not in ("shared", "L1")}
        for found in report.peaks
        for peak in found.peaks
    }
    families = dict.fromkeys((row.backend, row.types) for row in placed)
    return [_roofline(*key, [row for row in placed if (row.backend, row.types) == key], slopes) for key in families]


def _roofline(backend: str, types: str, rows: list[Row], slopes: dict[tuple[str, str], dict[str, float]]) -> Roofline:
    highest = max(rows, key=lambda row: row.peak_gflops)
    beyond = _apart(slopes.get((highest.target, types), {}))
    places = [operations_per_byte(row) for row in rows]
    ridges = [row.peak_gflops / row.peak_load_gbytes_per_s for row in rows]
    far_ridges = [highest.peak_gflops / slope for slope in beyond.values()]
    left, right = min(places + ridges) / 2, max(6 * max(places), 1.5 * max(far_ridges, default=0))
    speeds = [y for row in rows for y in (row.gflops, row.peak_gflops)]
    low, high = min(min(speeds) / 2, max(speeds) / 10), max(speeds) * 1.6
    roofs = {}
    for name in dict.fromkeys(map(_unit_of, rows)):
        roof = max((row for row in rows if _unit_of(row) == name), key=lambda row: row.peak_gflops)
        slope, flat = roof.peak_load_gbytes_per_s, roof.peak_gflops
        first = max(left, low / slope)
        roofs[name] = ((first, min(slope * first, flat)), (max(first, flat / slope), flat), (right, flat))
    farther = {}
    for name, slope in beyond.items():
        first = max(left, low / slope)
        farther[name] = ((first, slope * first), (highest.peak_gflops / slope, highest.peak_gflops))
    large = max(speeds) > 10_000  # of a whole GPU
    unit = ("T" if large else "G") + ("OP/s" if types.endswith("i32") else "FLOP/s")
    ordered = tuple(sorted(rows, key=lambda row: row.gflops))
    return Roofline(backend, types, ordered, (left, right), (low, high), roofs, farther, 1000 if large else 1, unit)


def operations_per_byte(row: Row) -> float:
    """Operations (two per multiply-add) for every byte that the hot loop loads."""
    seen = row.counted
    return 2 * seen["macs"] / (sum(seen["load_elements"].values()) * seen["element_bytes"])


def label(row: Row) -> str:
    """What stands beside a kernel."""
    form = "" if row.form in ("inner", "outer") else f"{row.form} "
    return f"{row.target} {form}{row.mr}x{row.nr}"


def _unit_of(row: Row) -> str:
    """The target, and the matrix unit if that does a kernel's multiply-adds."""
    return f"{row.target} {row.form}" if row.form in ("wmma", "mfma") else row.target


def _apart(slopes: dict[str, float]) -> dict[str, float]:
    """Memories whose lines would lie upon each other as one."""
    found: dict[str, float] = {}
    for memory, slope in slopes.items():
        near = next((name for name, other in found.items() if abs(slope / other - 1) < 0.12), None)
        name = memory if near is None else f"{near}, {memory}"
        found[name] = slope if near is None else found.pop(near)
    return found


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between the two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**p for p in powers for step in (1, 2, 5) if low <= step * 10.0**p <= high]
