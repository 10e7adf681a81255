"""Bar charts. The figures of a row are a column of text to the right of its bars, where no bar and no line crosses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pysimd.report.axes import Axis, label
from pysimd.report.drawing import ASCENT, DESCENT, Drawing, Line, Rectangle, Shape, Text, text_width
from pysimd.report.rows import Row, in_table_order
from pysimd.report.text import number


class Bar(NamedTuple):
    """A bar of a kind of ``drawing.STYLES``, and the text at its right."""

    value: float
    kind: str
    note: str


_THICK, _GAP, _TOP, _BOTTOM, _SIDE = 14, 8, 38, 44, 10
_SWATCH, _BETWEEN = 12, 18
_TICK_GAP = 52


def chart(
    rows: Sequence[tuple[str, Sequence[Bar]]],
    name_of_axis: str,
    legend: Mapping[str, str],
    *,
    plot_width: float = 340,
    logarithmic: bool = False,
    dashed: float | None = None,
) -> Drawing:
    """Rows of a name and its bars.

    Args:
        name_of_axis: with its unit.
        legend: meanings by kind.
        plot_width: pixels of the longest bar.
        dashed: a value that is marked by a line over all rows.
    """
    bars = [bar for _, of_row in rows for bar in of_row]
    values = [bar.value for bar in bars] or [1.0]
    left = 2 * _SIDE + max((text_width(name) for name, _ in rows), default=0)
    low = min(values) / 2 if logarithmic else 0.0
    axis = Axis(low, max(values), left, left + plot_width, logarithmic)
    notes = axis.end + _SIDE
    height = _TOP + sum(_THICK * len(of_row) + _GAP for _, of_row in rows) + _BOTTOM
    grid = [(axis.at(value), label(value)) for value in axis.ticks(_TICK_GAP)]
    bottom = height - _BOTTOM
    shapes: list[Shape] = [Line("grid", ((x, _TOP - 4), (x, bottom))) for x, _ in grid]
    shapes += [Text(x, bottom + 15, text, "middle") for x, text in grid]
    shapes.append(Text(left, bottom + 34, name_of_axis))
    shapes += _legend(legend)
    y = float(_TOP)
    for name, of_row in rows:
        shapes.append(Text(left - _SIDE, _base(y, _THICK * len(of_row)), name, "end"))
        for bar in of_row:
            shapes.append(Rectangle(bar.kind, left, y, max(axis.at(bar.value) - left, 1), _THICK - 1))
            shapes.append(Text(notes, _base(y, _THICK), bar.note))
            y += _THICK
        y += _GAP
    if dashed is not None:
        shapes.append(Line("far", ((axis.at(dashed), _TOP - 4), (axis.at(dashed), bottom))))
    right = max(shape.box.right for shape in shapes if isinstance(shape, Text)) if shapes else 0
    return Drawing("bars", right + _SIDE, height, tuple(shapes))


def _base(y: float, height: float) -> float:
    """The base line of a text in the middle of what begins at ``y``."""
    return y + (height + ASCENT - DESCENT) / 2


def _legend(meanings: Mapping[str, str]) -> list[Shape]:
    """A line of swatches with their meanings."""
    shapes: list[Shape] = []
    x = float(_SIDE)
    for kind, meaning in meanings.items():
        shapes.append(
            Line(kind, ((x, 15), (x + _SWATCH, 15))) if kind == "far" else Rectangle(kind, x, 9, _SWATCH, _SWATCH)
        )
        shapes.append(Text(x + _SWATCH + 5, 19, meaning))
        x = shapes[-1].box.right + _BETWEEN
    return shapes


def ratios(rows: Sequence[Row]) -> Drawing:
    """Multiply-adds per element loaded, a bar for each row of a report, inner and outer product in two colours, with
    GFLOP/s and the share of the measured peak where they were measured. Bars of kernels that cannot run here and were
    not measured are faded."""
    meanings = {"outer": "outer product and matrix units", "inner": "inner product"}
    faded = {"outer": "outer-3", "inner": "inner-3"}
    bars = []
    for row in in_table_order(rows):
        kind = "inner" if row.form == "inner" else "outer"
        bars.append((row.kernel, [Bar(row.ratio, kind if _runs(row) else faded[kind], _note(row))]))
    used = {bar.kind for _, (bar,) in bars}
    legend = {kind: meaning for kind, meaning in meanings.items() if used & {kind, faded[kind]}}
    if used & set(faded.values()):
        legend["outer-3"] = "faded: not on this machine"
    return chart(bars, "multiply-adds per element loaded", legend)


def _runs(row: Row) -> bool:
    return row.available or row.gflops is not None


def _note(row: Row) -> str:
    text = f"{row.ratio:.2f}"
    if row.gflops is not None:
        unit = "GOP/s" if row.types.endswith("i32") else "GFLOP/s"
        text += f", {number(row.gflops, 0 if row.gflops >= 10 else 1)} {unit}"
    if row.percent_of_peak is not None:
        text += f", {row.percent_of_peak:.0f} % of peak"
    return text


def matmul(rows: Sequence) -> Drawing:
    """Time per product of ``pysimd.matmul`` and of NumPy's, a pair of bars for each case, on a logarithmic axis.

    Args:
        rows: ``bench.matmul.CpuRow`` objects.
    """
    bars = []
    for row in rows:
        ours, theirs = row.pysimd_median_ns_per_product, row.numpy_median_ns_per_product
        gain = f"{_time(ours)}  (numpy / pysimd {row.numpy_over_pysimd:.2g})"
        pair = [Bar(ours, "outer", gain), Bar(theirs, "peer", _time(theirs))]
        bars.append((f"{row.types} {row.size}x{row.size}, batch {row.batch:,}", pair))
    legend = {"outer": "pysimd.matmul", "peer": "numpy.matmul"}
    return chart(bars, "nanoseconds per product, logarithmic (shorter is better)", legend, logarithmic=True)


def _time(ns: float) -> str:
    for unit in ("ns", "µs", "ms"):
        if ns < 999.5:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"


_SHADES = ("outer", "outer-2", "outer-3")


def ladder(rows: Sequence, unit: str = "TFLOP/s") -> Drawing:
    """Speed of every rung: a group of bars for each rung, a bar for each size; the peer (cuBLAS, NumPy) last, and its
    speed at the largest size as a line.

    Args:
        rows: ``bench.cuda_ladder.Row`` or ``bench.cpu_ladder.Row`` objects that were measured, of one family.
        unit: ``TFLOP/s`` or ``GFLOP/s``, the field that is drawn.
    """
    field = unit.split("/")[0].lower() + "s"
    sizes = sorted({row.size for row in rows})
    kinds = {size: _SHADES[min(i, len(_SHADES) - 1)] for i, size in enumerate(reversed(sizes))}
    peer = next(row for row in rows if row.ratio is None and row.size == sizes[-1])
    groups: dict[str, list[Bar]] = {}
    for row in sorted(rows, key=lambda row: row.size):
        speed = getattr(row, field)
        name = f"{row.number}  {row.name}" if row.number else row.name
        note = f"{speed:.1f}" + (f"  at {row.size}" if len(sizes) > 1 else "")
        groups.setdefault(name, []).append(Bar(speed, kinds[row.size] if row.ratio else "peer", note))
    legend = {kinds[size]: f"m = n = k = {size}" for size in sizes} | {"far": f"{peer.name} at {sizes[-1]}"}
    unit = unit.replace("FLOP", "OP") if peer.types.endswith("i32") else unit
    return chart(list(groups.items()), f"{unit}, {peer.types}", legend, plot_width=520, dashed=getattr(peer, field))
