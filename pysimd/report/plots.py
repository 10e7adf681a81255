"""Figures drawn with matplotlib, which is imported only here, when a figure is asked for.

Every function takes the ``path`` of the file, PNG, SVG, PDF, ... by its ending, and raises ``UnavailableError`` where
matplotlib is not installed, ``OptionError`` for an ending that matplotlib does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pysimd.errors import OptionError, UnavailableError
from pysimd.report.drawing import COLORS, FONT_SIZE, STYLES, Dot, Drawing, Line, Rectangle, Shape, Text
from pysimd.report.rows import in_table_order
from pysimd.report.text import number

OUTER, INNER, PEER = COLORS["outer"].light, COLORS["inner"].light, "#9a9a9a"
_FADED = 0.35
_PIXELS_PER_INCH, _POINTS_PER_PIXEL = 96, 0.75


def _figure(width: float, height: float, **options):
    """A figure of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnavailableError("matplotlib is not installed: pip install 'pysimd[plot]'") from error
    return Figure(figsize=(width, height), **options)


def check(path) -> None:
    """Raise where nothing could be drawn into a file of this name: for use before a measurement."""
    _checked(_figure(1, 1), path)


def _save(figure, path) -> None:
    _checked(figure, path)
    figure.savefig(path, dpi=150)


def _checked(figure, path) -> None:
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"the path of a drawing must be a string or a Path, got {path!r}")
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if ending not in known:
        raise OptionError(f"cannot draw {os.fspath(path)!r}: its name must end in one of .{', .'.join(sorted(known))}")


# --- drawings ---


def drawings(found: Sequence[Drawing], path, *, columns: int = 1) -> None:
    """Drawings of one size in a grid, in their colours of a light page."""
    columns = min(columns, len(found))
    rows = -(-len(found) // columns)
    width, height = (max(sizes) / _PIXELS_PER_INCH for sizes in zip(*((x.width, x.height) for x in found), strict=True))
    figure = _figure(columns * width, rows * height)
    for i, drawing in enumerate(found):
        row, column = divmod(i, columns)
        axes = figure.add_axes((column / columns, 1 - (row + 1) / rows, 1 / columns, 1 / rows))
        axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
        axes.axis("off")
        for order, shape in enumerate(drawing.shapes):
            _draw(axes, shape, order)
    _save(figure, path)


def _draw(axes, shape: Shape, order: int) -> None:
    from matplotlib import patches
    from matplotlib.patheffects import withStroke

    style = STYLES[shape.kind]
    fill, stroke = (COLORS[name].light if name else "none" for name in (style.fill, style.stroke))
    width = style.width * _POINTS_PER_PIXEL
    match shape:
        case Rectangle():
            corner = (shape.x, shape.y)
            options = {"facecolor": fill, "edgecolor": stroke, "linewidth": width, "zorder": order}
            axes.add_patch(patches.Rectangle(corner, shape.width, shape.height, **options))
        case Dot():
            center = (shape.x, shape.y)
            axes.add_patch(patches.Circle(center, shape.radius, facecolor=fill, edgecolor=stroke, zorder=order))
        case Line():
            xs, ys = zip(*shape.points, strict=True)
            axes.plot(xs, ys, color=stroke, linewidth=width, linestyle="--" if style.dashed else "-", zorder=order)
        case Text():
            effects = [withStroke(linewidth=width, foreground=stroke)] if style.stroke else []
            axes.text(
                shape.x,
                shape.y,
                shape.text,
                ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
                fontsize=FONT_SIZE * _POINTS_PER_PIXEL,
                color=fill,
                weight="bold" if style.bold else "normal",
                path_effects=effects,
                zorder=order,
            )


# --- bars ---


def _bars(names: Sequence[str], height: float, xlabel: str, **tick_options):
    """A figure with a place for a bar for each name, from the last up, and its axes."""
    figure = _figure(9, height, layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(names)), names, fontsize=8, **tick_options)
    axes.set_ylim(-0.6, max(1, len(names)) - 0.4)
    axes.set_xlabel(xlabel)
    axes.xaxis.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    return figure, axes


def _legend(figure, colors: Mapping[str, str]) -> None:
    """Colours by their meaning."""
    from matplotlib.patches import Patch

    handles = [Patch(color=color, label=label) for label, color in colors.items()]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles) or 1, frameon=False, fontsize=9)


def _annotate(axes, text: str, x: float, y: float) -> None:
    """Text to the right of the end of a bar."""
    back = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", fontsize=8, bbox=back)


def ratio_bars(rows: Sequence, path) -> None:
    """Multiply-adds per element loaded, a bar for each row of a report, inner and outer product in two colours, with
    GFLOP/s and the share of the measured peak where they were measured. Bars of kernels that cannot run here are faded.

    Args:
        rows: ``rows.Row`` objects.
    """
    from_below = list(reversed(in_table_order(rows)))
    names = [row.kernel for row in from_below]
    height = 1.4 + 0.27 * max(1, len(rows))
    figure, axes = _bars(names, height, "multiply-adds per element loaded", family="monospace")
    for y, row in enumerate(from_below):
        color = INNER if row.form == "inner" else OUTER
        axes.barh(y, row.ratio, color=color, height=0.72, alpha=1.0 if row.available else _FADED)
        _annotate(axes, _note(row), row.ratio, y)
    axes.set_xlim(0, 1.42 * max((row.ratio for row in rows), default=1.0))
    forms = {"inner product" if row.form == "inner" else "outer product" for row in rows}
    _legend(figure, {name: c for name, c in (("outer product", OUTER), ("inner product", INNER)) if name in forms})
    _save(figure, path)


def _note(row) -> str:
    text = f"{row.ratio:.2f}"
    if row.gflops is not None:
        unit = "GOP/s" if row.types.endswith("i32") else "GFLOP/s"
        text += f"   {number(row.gflops, 0 if row.gflops >= 10 else 1)} {unit}"
    if row.percent_of_peak is not None:
        text += f", {row.percent_of_peak:.0f} % of peak"
    return text if row.available else f"{text}   not on this machine"


def matmul_bars(rows: Sequence, path) -> None:
    """Time per product of ``pysimd.matmul`` and of NumPy's, a pair of bars for each case, on a logarithmic axis.

    Args:
        rows: ``bench.matmul.CpuRow`` objects.
    """
    from_below = list(reversed(rows))
    names = [f"{row.types}  {row.size}x{row.size}\nbatch {row.batch:,}" for row in from_below]
    height = 1.5 + 0.5 * max(1, len(rows))
    figure, axes = _bars(names, height, "nanoseconds per product (logarithmic; shorter is better)")
    for y, row in enumerate(from_below):
        pairs = (
            (y + 0.2, row.pysimd_median_ns_per_product, OUTER, f"   (numpy / pysimd {row.numpy_over_pysimd:.2g})"),
            (y - 0.2, row.numpy_median_ns_per_product, PEER, ""),
        )
        for at, ns, color, more in pairs:
            axes.barh(at, ns, color=color, height=0.38)
            _annotate(axes, f"{_time(ns)}{more}", ns, at)
    times = [ns for row in rows for ns in (row.pysimd_median_ns_per_product, row.numpy_median_ns_per_product)] or [1.0]
    axes.set_xscale("log")
    axes.set_xlim(min(times) / 3, max(times) * 8)
    _legend(figure, {"pysimd.matmul": OUTER, "numpy.matmul": PEER})
    _save(figure, path)


def _time(ns: float) -> str:
    for unit in ("ns", "µs", "ms"):
        if ns < 999.5:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"


def ladder_bars(rows: Sequence, path, unit: str = "TFLOP/s") -> None:
    """Speed of every rung: a group of bars for each rung, a bar for each size; the peer (cuBLAS, NumPy) last, and its
    speed at the largest size as a line.

    Args:
        rows: ``bench.cuda_ladder.Row`` or ``bench.cpu_ladder.Row`` objects that were measured, of one family.
        unit: ``TFLOP/s`` or ``GFLOP/s``, the field that is drawn.
    """
    speeds = {id(row): getattr(row, "tflops" if unit == "TFLOP/s" else "gflops") for row in rows}
    from_below = list(dict.fromkeys(row.name for row in rows))[::-1]
    sizes = sorted({row.size for row in rows})
    peer = next(row for row in rows if row.ratio is None and row.size == sizes[-1])
    numbers = {row.name: f"{row.number}  " for row in rows if row.number}
    names = [numbers.get(name, "") + name for name in from_below]
    xlabel = f"{unit}, {rows[0].types}, m = n = k = {', '.join(map(str, sizes))}; dashed: {peer.name} at {sizes[-1]}"
    figure, axes = _bars(names, 1.4 + 0.16 * len(names) * (1 + len(sizes)), xlabel, family="monospace")
    height = 0.8 / len(sizes)
    for row in rows:
        i = sizes.index(row.size)
        y = from_below.index(row.name) + 0.4 - height * (i + 0.5)
        is_peer = row.ratio is None
        shade = 1.0 if is_peer else 0.4 + 0.6 * (i + 1) / len(sizes)
        axes.barh(y, speeds[id(row)], color=PEER if is_peer else OUTER, height=height, alpha=shade)
        _annotate(axes, f"{speeds[id(row)]:.1f}" + (f"   {row.size}" if len(sizes) > 1 else ""), speeds[id(row)], y)
    axes.axvline(speeds[id(peer)], color=PEER, linewidth=1, linestyle="--", zorder=0)
    axes.set_xlim(0, 1.15 * max(speeds.values()))
    _save(figure, path)
