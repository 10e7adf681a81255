"""Rooflines: measured kernels below measured roofs. After S. Williams, A. Waterman and D. Patterson, "Roofline: An
Insightful Visual Performance Model for Multicore Architectures" (2009)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pysimd.errors import OptionError
from pysimd.report.axes import Axis, label
from pysimd.report.drawing import (
    ASCENT,
    DESCENT,
    SERIES,
    Box,
    Dot,
    Drawing,
    Line,
    Point,
    Shape,
    Text,
    stacked,
    text_width,
)
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
    """The tile of a kernel; its form where neither the colour of its target nor the dot shows it."""
    form = "" if row.form in ("inner", "outer", "wmma", "mfma") else f" {row.form}"
    return f"{row.mr}x{row.nr}{form}"


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


_WIDTH, _MARGIN = 560, 8.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 548, 52, 336
"""The plot in the drawing."""
_RADIUS = 4.5
_TICK_GAP = 34


def picture(rows: Iterable[Row], peaks: Iterable[Peaks]) -> Drawing:
    """The rooflines of ``rooflines``, two side by side.

    Raises:
        OptionError: no kernel was counted and measured.
    """
    drawings = [drawing(found) for found in rooflines(rows, peaks)]
    if not drawings:
        raise OptionError("a roofline needs kernels that were counted and measured (--count --measure)")
    return stacked(drawings, columns=2)


def drawing(found: Roofline) -> Drawing:
    """The roofline with its kernels: their operations per byte loaded (counted), and their measured speed."""
    x, y = Axis(*found.xlim, _LEFT, _RIGHT, logarithmic=True), Axis(*found.ylim, _BOTTOM, _TOP, logarithmic=True)

    def at(points: Iterable[Point]) -> tuple[Point, ...]:
        return tuple((x.at(intensity), y.at(speed)) for intensity, speed in points)

    colors = {name: i % SERIES for i, name in enumerate(found.roofs)}
    roofs = [Line(f"roof-{colors[name]}", at(corners)) for name, corners in found.roofs.items()]
    far = {memory: Line("far", at(ends)) for memory, ends in found.farther.items()}
    kernels = [(row, *at([(operations_per_byte(row), row.gflops)])[0]) for row in found.rows]
    labels = _Labels([*roofs, *far.values()], [point for _, *point in kernels])
    for text in _memories(far, labels.boxes):
        labels.put(text)
    crowded = [row for row, *point in kernels if not labels.add(*point, _label(row), colors[_unit_of(row)])]
    where = "one core" if found.backend == "cpu" else "the whole device"
    legend = _legend(found, colors, crowded)
    shapes: list[Shape] = [Text(_MARGIN, 19, f"{found.types} on {where}", kind="title"), *legend]
    shapes += [*_grid(found, x, y), *far.values(), *roofs, *labels.leaders, *labels.texts]
    shapes += [_dot(found, row, *point, colors[_unit_of(row)]) for row, *point in kernels]
    return Drawing("roof", _WIDTH, legend[-1].box.bottom + _MARGIN, tuple(shapes))


def _dot(found: Roofline, row: Row, x: float, y: float, color: int) -> Dot:
    title = f"{row.kernel}: {row.gflops / found.scale:.3g} {found.unit}, {row.percent_of_peak:.0f} % of its peak"
    return Dot(f"{'ring' if row.form == 'inner' else 'disc'}-{color}", x, y, _RADIUS, title)


def _grid(found: Roofline, x: Axis, y: Axis) -> Iterable[Shape]:
    """Lines, values, and the names of the axes with their units."""
    for value in x.ticks(_TICK_GAP):
        yield Line("grid", ((x.at(value), _TOP), (x.at(value), _BOTTOM)))
        yield Text(x.at(value), _BOTTOM + 17, label(value), "middle")
    scaled = replace(y, low=y.low / found.scale, high=y.high / found.scale)
    for value in scaled.ticks(_LINE):
        yield Line("grid", ((_LEFT, scaled.at(value)), (_RIGHT, scaled.at(value))))
        yield Text(_LEFT - 5, scaled.at(value) + 4, label(value), "end")
    yield Text(_MARGIN, _TOP - 12, found.unit)
    yield Text((_LEFT + _RIGHT) / 2, _BOTTOM + 35, "operations per byte loaded", "middle")


_LEGEND_TOP, _LINE, _SWATCH = 398, 17, 18


def _legend(found: Roofline, colors: dict[str, int], crowded: Iterable[Row]) -> list[Shape]:
    """The colours of the roofs with their peak and their bandwidth, the kinds of dots, and the kernels whose label has
    no room in the plot; in columns that fit."""
    entries: list[tuple[Line | Dot, str]] = []
    for name, corners in found.roofs.items():
        intensity, peak = corners[1]
        said = f"{name}: {_rounded(peak / found.scale)} {found.unit}, L1 {_bandwidth(peak / intensity)}"
        entries.append((Line(f"roof-{colors[name]}", ((0, 0), (_SWATCH, 0))), said))
    for is_inner in dict.fromkeys(row.form == "inner" for row in found.rows):
        said = "inner product of that tile" if is_inner else "kernel of that tile"
        entries.append((Dot("ring-6" if is_inner else "disc-6", _SWATCH / 2, 0, _RADIUS, said), said))
    for row in crowded:
        said = f"{_label(row)}: {_rounded(row.gflops / found.scale)} {found.unit} at {operations_per_byte(row):.2f}"
        entries.append((_dot(found, row, _SWATCH / 2, 0, colors[_unit_of(row)]), said))
    column = _MARGIN + _SWATCH + 6 + max(text_width(said) for _, said in entries)
    columns = 2 if 2 * column < _WIDTH else 1
    shapes: list[Shape] = []
    for i, (swatch, said) in enumerate(entries):
        x, y = _MARGIN + i % columns * _WIDTH / 2, _LEGEND_TOP + _LINE * (i // columns)
        shapes += [swatch.moved(x, y - 4), Text(x + _SWATCH + 6, y, said)]
    return shapes


def _bandwidth(gbytes_per_s: float) -> str:
    large = gbytes_per_s > 10_000
    return f"{_rounded(gbytes_per_s / 1000)} TB/s" if large else f"{_rounded(gbytes_per_s)} GB/s"


def _rounded(value: float) -> str:
    """Three digits."""
    return label(float(f"{value:.3g}"))


def _memories(far: dict[str, Line], dots: Sequence[Box]) -> list[Text]:
    """The names of the memories beyond L1, each at the upper end of its line, above all roofs."""
    texts: list[Text] = []
    for memory, line in sorted(far.items(), key=lambda item: item[1].points[-1][0]):
        x, y = line.points[-1]
        text = Text(min(x, _RIGHT - text_width(memory) / 2), y - 6, memory, "middle", "label")
        while any(text.box.overlaps(other) for other in (*dots, *(x.box for x in texts))):
            text = text.moved(0, -_LINE)
        texts.append(text)
    return texts


_DIRECTIONS = tuple(
    (math.cos(math.pi * i / 8), math.sin(math.pi * i / 8)) for i in (0, 8, 12, 4, 14, 2, 10, 6, *range(1, 16, 2))
)
_NEAREST, _FARTHEST, _STEP = 8, 80, 5
_LEADER_FROM = 14
"""Pixels from a dot to its label: the nearest place that is free. From some distance on a line leads to the dot."""


class _Labels:
    """Texts near points. None covers another text, a dot, a line of the drawing or a leader."""

    def __init__(self, lines: Iterable[Line], dots: Iterable[Iterable[float]]):
        self.texts: list[Text] = []
        self.leaders: list[Line] = []
        self.boxes = [Box(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in dots]
        self._segments = [ends for line in lines for ends in pairwise(line.points)]

    def put(self, text: Text) -> None:
        """A text in its place."""
        self.texts.append(text)
        self.boxes.append(text.box)

    def add(self, x: float, y: float, text: str, color: int) -> bool:
        """Place a label, if there is room for it."""
        for distance in range(_NEAREST, _FARTHEST, _STEP):
            for right, down in _DIRECTIONS:
                width = text_width(text)
                middle = x + right * (distance + width / 2), y + down * (distance + _LINE / 2)
                label = Text(middle[0], middle[1] + (ASCENT - DESCENT) / 2, text, "middle", f"label-{color}")
                leader = ((x, y), _nearest(label.box, x, y)) if distance >= _LEADER_FROM else None
                if self._is_free(label.box, leader):
                    self.put(label)
                    if leader:
                        self.leaders.append(Line(f"leader-{color}", leader))
                        self._segments.append(leader)
                    return True
        return False

    def _is_free(self, box: Box, leader: tuple[Point, Point] | None) -> bool:
        inside = min(box.left - _LEFT, _RIGHT - box.right, box.top - _TOP, _BOTTOM - box.bottom) > 0
        return (
            inside
            and not any(box.overlaps(other) for other in self.boxes)
            and not any(box.is_crossed(*ends) for ends in self._segments)
            and not (leader and any(text.box.is_crossed(*leader) for text in self.texts))
        )


def _nearest(box: Box, x: float, y: float) -> Point:
    """The point of a box that is nearest to a point."""
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
