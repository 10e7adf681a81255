"""Drawings in files: SVG is written as it is, PNG, PDF, ... with matplotlib, which is imported only then.

Every function takes the ``path`` of the file, and raises ``UnavailableError`` where matplotlib is needed and not
installed, ``OptionError`` for an ending that is not known.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pysimd.errors import OptionError, UnavailableError
from pysimd.report import bars, drawing
from pysimd.report.drawing import COLORS, FONT_SIZE, STYLES, Dot, Drawing, Line, Rectangle, Shape, Text

_PIXELS_PER_INCH, _POINTS_PER_PIXEL = 96, 0.75
_DPI = 2 * _PIXELS_PER_INCH


def save(found: Drawing, path) -> None:
    """Write a drawing as SVG, light or dark as the reader's system, or in other formats in its colours of a light page.

    Args:
        path: PNG, SVG, PDF, ... by its ending.
    """
    if _is_svg(path):
        Path(path).write_text(drawing.svg(found), encoding="utf-8")
        return
    figure = _figure(found.width, found.height)
    _check_ending(figure, path)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, found.width), ylim=(found.height, 0))
    axes.axis("off")
    for order, shape in enumerate(found.shapes):
        _draw(axes, shape, order)
    figure.savefig(path, dpi=_DPI)


def check(path) -> None:
    """Raise where nothing could be drawn into a file of this name: for use before a measurement."""
    if not _is_svg(path):
        _check_ending(_figure(_PIXELS_PER_INCH, _PIXELS_PER_INCH), path)


def ratio_bars(rows: Sequence, path) -> None:
    """``bars.ratios`` in a file."""
    save(bars.ratios(rows), path)


def matmul_bars(rows: Sequence, path) -> None:
    """``bars.matmul`` in a file."""
    save(bars.matmul(rows), path)


def ladder_bars(rows: Sequence, path, unit: str = "TFLOP/s") -> None:
    """``bars.ladder`` in a file."""
    save(bars.ladder(rows, unit), path)


def _is_svg(path) -> bool:
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"the path of a drawing must be a string or a Path, got {path!r}")
    return os.path.splitext(path)[1].lower() == ".svg"


def _figure(width: float, height: float):
    """A figure of so many pixels."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnavailableError(
            "matplotlib is not installed: pip install 'pysimd[plot]', or give a path that ends in .svg"
        ) from error
    return Figure(figsize=(width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH), facecolor=COLORS["ground"].light)


def _check_ending(figure, path) -> None:
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if ending not in known:
        raise OptionError(f"cannot draw {os.fspath(path)!r}: its name must end in one of .{', .'.join(sorted(known))}")


def _draw(axes, shape: Shape, order: int) -> None:
    from matplotlib import patches
    from matplotlib.patheffects import withStroke

    style = STYLES[shape.kind]
    fill, stroke = (COLORS[name].light if name else "none" for name in (style.fill, style.stroke))
    width = style.width * _POINTS_PER_PIXEL
    area = {"facecolor": fill, "edgecolor": stroke, "linewidth": width, "zorder": order}
    match shape:
        case Rectangle():
            axes.add_patch(patches.Rectangle((shape.x, shape.y), shape.width, shape.height, **area))
        case Dot():
            axes.add_patch(patches.Circle((shape.x, shape.y), shape.radius, **area))
        case Line():
            xs, ys = zip(*shape.points, strict=True)
            axes.plot(xs, ys, color=stroke, linewidth=width, linestyle="--" if style.dashed else "-", zorder=order)
        case Text():
            axes.text(
                shape.x,
                shape.y,
                shape.text,
                ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
                family="DejaVu Sans",
                fontsize=FONT_SIZE * _POINTS_PER_PIXEL,
                color=fill,
                weight="bold" if style.bold else "normal",
                path_effects=[withStroke(linewidth=width, foreground=stroke)] if style.stroke else [],
                parse_math=False,
                zorder=order,
            )
