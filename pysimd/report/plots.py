"""Figures of reports, drawn with matplotlib, which is imported only here and only when a figure is asked for."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from pysimd.errors import OptionError, UnavailableError
from pysimd.report import tile_drawing
from pysimd.report.compare import side_by_side
from pysimd.report.text import number

OUTER, INNER, NUMPY = "#2166ac", "#d6604d", "#9a9a9a"
_FADED = 0.35


def _figure(width: float, height: float):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnavailableError("matplotlib is not installed: pip install 'pysimd[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def _save(figure, path) -> None:
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if ending not in known:
        raise OptionError(f"cannot draw {os.fspath(path)!r}: its name must end in one of .{', .'.join(sorted(known))}")
    figure.savefig(path, dpi=150)


def _bare(axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def _write(axes, text: str, x: float, y: float) -> None:
    back = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", fontsize=8, bbox=back)


def ratio_bars(rows: Sequence, path) -> None:
    """One bar per row of a report: multiply-adds per element loaded, inner against outer in two colours, with GFLOP/s
    and the share of the measured peak where they were measured. Faded bars are kernels that cannot run here.

    Args:
        rows: ``pysimd.report.Row`` objects.
        path: PNG, SVG, PDF, ... by its ending.

    Raises:
        UnavailableError: matplotlib is not installed.
        OptionError: an ending that matplotlib does not know.
    """
    from_top = list(reversed(side_by_side(rows)))
    figure = _figure(9, 1.4 + 0.27 * max(1, len(rows)))
    axes = figure.add_subplot()
    for y, row in enumerate(from_top):
        color = INNER if row.form == "inner" else OUTER
        axes.barh(y, row.ratio, color=color, height=0.72, alpha=1.0 if row.available else _FADED)
        _write(axes, _note(row), row.ratio, y)
    axes.set_yticks(range(len(from_top)), [row.kernel for row in from_top], fontsize=8, family="monospace")
    axes.set_ylim(-0.6, max(1, len(from_top)) - 0.4)
    widest = max((row.ratio for row in rows), default=1.0)
    axes.set_xlim(0, widest * 1.42)
    axes.set_xlabel("multiply-adds per element loaded")
    axes.xaxis.grid(color="#dddddd", linewidth=0.6)
    _bare(axes)
    _legend(figure, axes, rows)
    _save(figure, path)


def _note(row) -> str:
    text = f"{row.ratio:.2f}"
    if row.gflops is not None:
        unit = "GOP/s" if row.types.endswith("i32") else "GFLOP/s"
        text += f"   {number(row.gflops, 0 if row.gflops >= 10 else 1)} {unit}"
    if row.percent_of_peak is not None:
        text += f", {row.percent_of_peak:.0f} % of peak"
    return text if row.available else f"{text}   not on this machine"


def _legend(figure, axes, rows) -> None:
    from matplotlib.patches import Patch

    forms = {row.form == "inner" for row in rows}
    handles = [Patch(color=OUTER, label="outer product")] if False in forms else []
    handles += [Patch(color=INNER, label="inner product")] if True in forms else []
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False, fontsize=9)


def bench_bars(rows: Sequence, path) -> None:
    """Time per product of ``pysimd.matmul`` beside NumPy's, one pair of bars per case, on a logarithmic axis.

    Args:
        rows: ``pysimd.measure.Beside`` objects.
        path: PNG, SVG, PDF, ... by its ending.

    Raises:
        UnavailableError: matplotlib is not installed.
        OptionError: an ending that matplotlib does not know.
    """
    from_top = list(reversed(rows))
    figure = _figure(9, 1.5 + 0.5 * max(1, len(rows)))
    axes = figure.add_subplot()
    for y, row in enumerate(from_top):
        pairs = (
            (y + 0.2, row.pysimd_median_ns_per_product, OUTER, f"   (numpy / pysimd {row.numpy_over_pysimd:.2g})"),
            (y - 0.2, row.numpy_median_ns_per_product, NUMPY, ""),
        )
        for at, ns, color, more in pairs:
            axes.barh(at, ns, color=color, height=0.38)
            axes.annotate(f"{_short(ns)}{more}", (ns, at), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_xscale("log")
    times = [ns for row in rows for ns in (row.pysimd_median_ns_per_product, row.numpy_median_ns_per_product)] or [1.0]
    axes.set_xlim(min(times) / 3, max(times) * 8)
    labels = [f"{row.types}  {row.size}x{row.size}\nbatch {row.batch:,}" for row in from_top]
    axes.set_yticks(range(len(from_top)), labels, fontsize=8)
    axes.set_ylim(-0.6, max(1, len(from_top)) - 0.4)
    axes.set_xlabel("nanoseconds per product (logarithmic; shorter is better)")
    axes.xaxis.grid(color="#dddddd", linewidth=0.6)
    _bare(axes)
    from matplotlib.patches import Patch

    handles = [Patch(color=OUTER, label="pysimd.matmul"), Patch(color=NUMPY, label="numpy.matmul")]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False, fontsize=9)
    _save(figure, path)


def roof_lines(report, path) -> None:
    """A roofline for each types family with kernels that were counted and measured: below what the multiply-adds reach
    and what the first-level cache loads; dashed, the memories beyond it.

    Args:
        report: a ``pysimd.Report``.
        path: PNG, SVG, PDF, ... by its ending.

    Raises:
        UnavailableError: matplotlib is not installed.
        OptionError: nothing was counted and measured, or an ending that matplotlib does not know.
    """
    from pysimd.report import rooflines

    found = rooflines.of(report)
    if not found:
        raise OptionError("no roofline without kernels that were counted and measured (--count --measure)")
    rows = -(-len(found) // 2)
    figure = _figure(12 if len(found) > 1 else 6.5, 3.9 * rows)
    for place, one in enumerate(found, 1):
        axes = figure.add_subplot(rows, min(2, len(found)), place)
        axes.set(xscale="log", yscale="log", xlim=one.across, ylim=[y / one.scale for y in one.up])
        axes.set_title(f"{one.types}: {one.unit} over operations per byte loaded", fontsize=10, loc="left")
        for memory, ends in one.farther.items():
            axes.plot([x for x, _ in ends], [y / one.scale for _, y in ends], color=NUMPY, linewidth=1, linestyle="--")
            (x, y), _ = ends
            axes.annotate(memory, (x, y / one.scale), (3, 8), textcoords="offset points", fontsize=7, color="#666666")
        for name, corners in one.roofs.items():
            axes.plot([x for x, _ in corners], [y / one.scale for _, y in corners], color="#444444", linewidth=1.2)
            x, y = corners[-1]
            axes.annotate(
                name, (x, y / one.scale), (-3, 3), textcoords="offset points", fontsize=7, ha="right", color="#444444"
            )
        labels: list[tuple[float, float]] = []
        for row in one.rows:
            x, y = rooflines.operations_per_byte(row), row.gflops / one.scale
            axes.plot(x, y, "o", color=INNER if row.form == "inner" else OUTER, markersize=5)
            at = (math.log(x), math.log(y))
            near = sum(abs(at[0] - a) < 1.2 and abs(at[1] - b) < 0.12 for a, b in labels)
            labels.append(at)
            axes.annotate(rooflines.label(row), (x, y), (6, -3 + 8 * near), textcoords="offset points", fontsize=7)
        for axis, limits in ((axes.xaxis, one.across), (axes.yaxis, [y / one.scale for y in one.up])):
            values = rooflines.ticks(*limits)
            axis.set_ticks(values, [f"{value:g}" for value in values], fontsize=8)
            axis.set_ticks([], minor=True)
        axes.grid(color="#e6e6e6", linewidth=0.6)
        _bare(axes)
    _save(figure, path)


def register_tile(drawn, path) -> None:
    """The register tile of a kernel: B above, A to the left, C in the registers that hold it, and what it loads.

    Args:
        drawn: a ``pysimd.tile_drawing.Tile``.
        path: PNG, SVG, PDF, ... by its ending.

    Raises:
        UnavailableError: matplotlib is not installed.
        OptionError: an ending that matplotlib does not know.
    """
    lines = [line for note in tile_drawing.notes(drawn) for line in textwrap.wrap(note, 105, subsequent_indent="  ")]
    cell = min(0.34, 8 / max(drawn.nr, 1))
    width, height = max(8.6, 1.2 + drawn.nr * cell), (drawn.mr + 3) * cell + 0.17 * (len(lines) + 3)
    figure = _figure(width, height)
    axes = figure.add_subplot()
    columns, rows = width / cell, height / cell
    axes.set(xlim=(-3, columns - 3), ylim=(rows - 4, -4), aspect="equal")
    axes.axis("off")

    def box(x: float, y: float, wide: float, color: str, text: object = "") -> None:
        axes.add_patch(Rectangle((x, y), wide, 1, facecolor=color, edgecolor="#1b1b1b", linewidth=0.6))
        axes.text(x + wide / 2, y + 0.5, str(text), ha="center", va="center", fontsize=min(8, 26 * cell))

    from matplotlib.patches import Rectangle

    axes.text(-3, -3, tile_drawing.title(drawn), fontsize=10, weight="bold", va="center")
    axes.text(0, -2, "B: row k", fontsize=8, va="center")
    axes.text(-3, -0.9, "A: column k", fontsize=8, va="center")
    for j in range(drawn.nr):
        box(j, -1.4, 1, "#d8ecd0")
    for i in range(drawn.mr):
        box(-1.4, i, 1, "#f7d5c4")
        for j, until in pairwise([*tile_drawing.edges(drawn, i), drawn.nr]):
            held = drawn.holder_of(i, j)
            color = "#b5cfea" if held % 2 and drawn.width else "#cfe0f2"
            box(j, i, until - j, color, held if drawn.width else "")
    for place, line in enumerate(lines):
        axes.text(-3, drawn.mr + 1 + 0.17 / cell * place, line, fontsize=8, va="center")
    _save(figure, path)


def ladder_bars(rows: Sequence, path) -> None:
    """TFLOP/s of every rung, one group of bars per rung and one bar per size, with cuBLAS last and its speed at the
    largest size as a line.

    Args:
        rows: ``pysimd.ladder_report.Row`` objects that were measured, of one family.
        path: PNG, SVG, PDF, ... by its ending.

    Raises:
        UnavailableError: matplotlib is not installed.
        OptionError: an ending that matplotlib does not know.
    """
    names = list(dict.fromkeys(row.name for row in rows))
    sizes = sorted({row.size for row in rows})
    from_top = list(reversed(names))
    figure = _figure(9, 1.4 + 0.16 * len(names) * (1 + len(sizes)))
    axes = figure.add_subplot()
    height = 0.8 / len(sizes)
    for row in rows:
        place = sizes.index(row.size)
        y = from_top.index(row.name) + 0.4 - height * (place + 0.5)
        color = NUMPY if row.ratio is None else OUTER
        shade = 1.0 if row.ratio is None else 0.4 + 0.6 * (place + 1) / len(sizes)
        axes.barh(y, row.tflops, color=color, height=height, alpha=shade)
        _write(axes, f"{row.tflops:.1f}" + (f"   {row.size}" if len(sizes) > 1 else ""), row.tflops, y)
    peer = next(row for row in rows if row.ratio is None and row.size == sizes[-1])
    axes.axvline(peer.tflops, color=NUMPY, linewidth=1, linestyle="--", zorder=0)
    numbers = {row.name: f"{row.number}  " for row in rows if row.number}
    axes.set_yticks(range(len(names)), [numbers.get(n, "") + n for n in from_top], fontsize=8, family="monospace")
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(0, 1.15 * max(row.tflops for row in rows))
    shapes = f"m = n = k = {', '.join(map(str, sizes))}"
    axes.set_xlabel(f"TFLOP/s, {rows[0].types}, {shapes}; dashed: {peer.name} at {sizes[-1]}")
    axes.xaxis.grid(color="#dddddd", linewidth=0.6)
    _bare(axes)
    _save(figure, path)


def _short(ns: float) -> str:
    for unit in ("ns", "µs", "ms"):
        if ns < 999.5:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"
