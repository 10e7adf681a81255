"""Rooflines: measured kernels below measured roofs. After S. Williams, A. Waterman and D. Patterson, "Roofline: An
Insightful Visual Performance Model for Multicore Architectures" (2009)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pysimd.report.drawing import Dot, Drawing, Line, Point, Rectangle, Shape, Text
from pysimd.report.rows import Row

if TYPE_CHECKING:
    from pysimd.bench.peaks import Peaks


@dataclass(frozen=True)
class Roofline:
    """The kernels of one types family on logarithmic axes.

    Attributes:
        backend, types: of the kernels.
        rows: the kernels, the slowest first: each at ``operations_per_byte`` and ``gflops``.
        xlim, ylim: ranges of the axes: operations per byte, and GFLOP/s.
        roofs: corners of each roof by its name: the bandwidth of L1, then the peak of the multiply-adds.
        farther: the two ends of the slope of each memory beyond L1, below the highest peak.
        scale, unit: GFLOP/s of one unit, and its name.
    """

    backend: str
    types: str
    rows: tuple[Row, ...]
    xlim: Point
    ylim: Point
    roofs: dict[str, tuple[Point, ...]]
    farther: dict[str, tuple[Point, Point]]
    scale: float
    unit: str


def rooflines(rows: Iterable[Row], peaks: Iterable[Peaks]) -> list[Roofline]:
    """One for each types family of a backend with kernels that were counted, and measured with their roofs."""
    placed = [row for row in rows if row.percent_of_load_bandwidth is not None]
    slopes = {
        (peak.target, peak.types): {x.memory: x.gbytes_per_s for x in peak.loads if x.memory not in ("shared", "L1")}
        for found in peaks
        for peak in found.peaks
    }
    families = dict.fromkeys((row.backend, row.types) for row in placed)
    return [_roofline(*key, [row for row in placed if (row.backend, row.types) == key], slopes) for key in families]


def _roofline(backend: str, types: str, rows: list[Row], slopes: dict[tuple[str, str], dict[str, float]]) -> Roofline:
    highest = max(rows, key=lambda row: row.peak_gflops)
    beyond = _merged(slopes.get((highest.target, types), {}))
    intensities = [operations_per_byte(row) for row in rows]
    ridges = [row.peak_gflops / row.peak_load_gbytes_per_s for row in rows]
    far_ridges = [highest.peak_gflops / slope for slope in beyond.values()]
    left, right = min(intensities + ridges) / 2, max(6 * max(intensities), 1.5 * max(far_ridges, default=0))
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
    counted = row.counted
    return 2 * counted["macs"] / (sum(counted["load_elements"].values()) * counted["element_bytes"])


def _label(row: Row) -> str:
    """The short name of a kernel."""
    form = "" if row.form in ("inner", "outer") else f"{row.form} "
    return f"{row.target} {form}{row.mr}x{row.nr}"


def _unit_of(row: Row) -> str:
    """The target, and the matrix unit where a kernel multiplies on it."""
    return f"{row.target} {row.form}" if row.form in ("wmma", "mfma") else row.target


def _merged(slopes: dict[str, float]) -> dict[str, float]:
    """Slopes by memory; memories whose lines would coincide have one line together."""
    found: dict[str, float] = {}
    for memory, slope in slopes.items():
        near = next((name for name, other in found.items() if abs(slope / other - 1) < 0.12), None)
        name = memory if near is None else f"{near}, {memory}"
        found[name] = slope if near is None else found.pop(near)
    return found


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten from ``low`` to ``high``."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**p for p in powers for step in (1, 2, 5) if low <= step * 10.0**p <= high]


_WIDTH, _HEIGHT = 520, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 28, 36  # margins
_CHARACTER_WIDTH, _LINE_HEIGHT = 7.2, 11  # of labels, about


class _Axes:
    """Pixels of a point of a roofline."""

    def __init__(self, found: Roofline):
        self._xlim, self._ylim = found.xlim, found.ylim

    def at(self, x: float, y: float) -> Point:
        (x0, x1), (y0, y1) = self._xlim, self._ylim
        right, up = math.log(x / x0) / math.log(x1 / x0), math.log(y / y0) / math.log(y1 / y0)
        return _LEFT + right * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)


def drawing(found: Roofline) -> Drawing:
    """The roofline with its kernels: their operations per byte loaded (counted), and their measured speed."""
    axes = _Axes(found)
    shapes: list[Shape] = [Rectangle("ground", 0, 0, _WIDTH, _HEIGHT)]
    shapes.append(Text(8, 17, f"{found.types}: {found.unit} over operations per byte loaded", kind="title"))
    labels = _Labels()
    lines, dots = [*_grid(found, axes), *_roofs(found, axes, labels)], list(_kernels(found, axes, labels))
    shapes += [*lines, *labels.texts, *dots]
    return Drawing("roof", _WIDTH, _HEIGHT, tuple(shapes))


class _Labels:
    """Texts of which none covers another: a label moves up until it is free."""

    def __init__(self):
        self.texts: list[Text] = []

    def add(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        label = Text(x, y, text, anchor, "label")
        while any(_overlap(label, other) for other in self.texts):
            label = replace(label, y=label.y - 2)
        self.texts.append(label)


def _overlap(one: Text, other: Text) -> bool:
    (left, right), (other_left, other_right) = map(_extent, (one, other))
    return left < other_right and other_left < right and abs(one.y - other.y) < _LINE_HEIGHT


def _extent(label: Text) -> tuple[float, float]:
    width = _CHARACTER_WIDTH * len(label.text)
    return (label.x - width, label.x) if label.anchor == "end" else (label.x, label.x + width)


def _grid(found: Roofline, axes: _Axes) -> Iterable[Shape]:
    (x0, x1), (y0, y1) = found.xlim, found.ylim
    for value in ticks(x0, x1):
        x, _ = axes.at(value, y0)
        yield Line("grid", ((x, _TOP), (x, _HEIGHT - _BOTTOM)))
        yield Text(x, _HEIGHT - 18, f"{value:g}", "middle", "label")
    for value in ticks(y0 / found.scale, y1 / found.scale):
        _, y = axes.at(x0, value * found.scale)
        yield Line("grid", ((_LEFT, y), (_WIDTH - _RIGHT, y)))
        yield Text(_LEFT - 5, y + 4, f"{value:g}", "end", "label")


def _roofs(found: Roofline, axes: _Axes, labels: _Labels) -> Iterable[Shape]:
    for memory, ends in found.farther.items():
        line = tuple(axes.at(*end) for end in ends)
        labels.add(line[0][0] + 3, line[0][1] - 9, memory)
        yield Line("far", line)
    for name, corners in found.roofs.items():
        line = tuple(axes.at(*corner) for corner in corners)
        labels.add(line[-1][0] - 4, line[-1][1] - 5, name, "end")
        yield Line("edge", line)


def _kernels(found: Roofline, axes: _Axes, labels: _Labels) -> Iterable[Shape]:
    for row in found.rows:
        x, y = axes.at(operations_per_byte(row), row.gflops)
        labels.add(x + 7, y + 4, _label(row))
        title = f"{row.kernel}: {row.gflops / found.scale:.3g} {found.unit}, {row.percent_of_peak:.0f} % of its peak"
        yield Dot("inner" if row.form == "inner" else "outer", x, y, 4.5, title)
