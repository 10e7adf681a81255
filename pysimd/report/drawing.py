"""Drawings made of a few shapes. They are laid out once, and written as SVG (``svg``) or drawn with matplotlib
(``plots.save``).

Coordinates are CSS pixels; y points down. The ``kind`` of a shape names its row of ``STYLES``, and in SVG its class.
A drawing has a background of its own, so that it is readable on a page of any colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple, TypeAlias

Point = tuple[float, float]


class Color(NamedTuple):
    """A colour on a light and on a dark page."""

    light: str
    dark: str


COLORS = {
    "ink": Color("#1b1b1b", "#e8e8e8"),
    "paper": Color("#ffffff", "#16181b"),
    "soft": Color("#666666", "#a5a5a5"),
    "line": Color("#dddddd", "#383c42"),
    "ground": Color("#f3f5f8", "#20242a"),
    "outer": Color("#2166ac", "#6aa9e0"),
    "inner": Color("#d6604d", "#ee8a78"),
    "a": Color("#f7d5c4", "#6b3a25"),
    "b": Color("#d8ecd0", "#33532a"),
    "c-even": Color("#cfe0f2", "#24405e"),
    "c-odd": Color("#b5cfea", "#2f5378"),
    "outer-2": Color("#6b9ccc", "#44709a"),
    "outer-3": Color("#a9c5e2", "#2f4c68"),
    "inner-3": Color("#edbcb3", "#6e4139"),
    "peer": Color("#8a8a8a", "#8f959c"),
    "series-0": Color("#0b5fa5", "#62b0f0"),
    "series-1": Color("#a83c08", "#f58f62"),
    "series-2": Color("#006b4a", "#45c793"),
    "series-3": Color("#8a3787", "#dd8fd6"),
    "series-4": Color("#7d5800", "#dcb34c"),
    "series-5": Color("#00657b", "#4fc3d9"),
    "series-6": Color("#555555", "#b8b8b8"),
}

SERIES = 7
"""Colours of lines and labels that belong together: ``series-0``, ..."""


class Style(NamedTuple):
    """How shapes of a kind look; ``fill`` and ``stroke`` are names of ``COLORS``. A text has its stroke below it."""

    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    dashed: bool = False
    bold: bool = False


STYLES = {
    "ground": Style("ground"),
    "a": Style("a", "ink", 0.6),
    "b": Style("b", "ink", 0.6),
    "c": Style("c-even", "ink", 0.6),
    "d": Style("c-odd", "ink", 0.6),
    "grid": Style(None, "line"),
    "edge": Style(None, "soft", 1.4),
    "far": Style(None, "soft", 1.0, dashed=True),
    "pick": Style(None, "inner", 2.4),
    **{name: Style(name) for name in ("inner", "outer", "outer-2", "outer-3", "inner-3", "peer")},
    "text": Style("ink"),
    "label": Style("ink", "ground", 2.5),
    "title": Style("ink", bold=True),
    **{f"roof-{i}": Style(None, f"series-{i}", 1.8) for i in range(SERIES)},
    **{f"leader-{i}": Style(None, f"series-{i}", 0.7) for i in range(SERIES)},
    **{f"disc-{i}": Style(f"series-{i}", "ground", 0.8) for i in range(SERIES)},
    **{f"ring-{i}": Style("ground", f"series-{i}", 1.8) for i in range(SERIES)},
    **{f"label-{i}": Style(f"series-{i}", "ground", 2.5) for i in range(SERIES)},
}

FONT_SIZE = 12
ASCENT, DESCENT = 10, 3
"""Pixels of a text above and below its base line."""

_WIDTHS = dict.fromkeys(" !'\"()*,-./:;IJ[\\]_`fijlrt|", 0.5) | dict.fromkeys("#%+<=>@MW^mw~", 1.0)
_CAPITAL_WIDTH, _OTHER_WIDTH, _BOLD = 0.79, 0.64, 1.12
"""Widths of characters as parts of the font size, none less than in DejaVu Sans or Verdana, which are wide."""


def text_width(text: str, *, bold: bool = False) -> float:
    """Pixels that a line of text takes at most."""
    widths = (_WIDTHS.get(x, _CAPITAL_WIDTH if x.isupper() or x == "&" else _OTHER_WIDTH) for x in text)
    return FONT_SIZE * sum(widths) * (_BOLD if bold else 1)


class Box(NamedTuple):
    """A rectangle from ``left`` to ``right`` and from ``top`` down to ``bottom``."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def is_crossed(self, start: Point, end: Point) -> bool:
        """Whether the straight line from ``start`` to ``end`` has a part inside."""
        enter, leave = 0.0, 1.0
        for low, high, at, to in ((self.left, self.right, start[0], end[0]), (self.top, self.bottom, start[1], end[1])):
            if at == to:
                if not low < at < high:
                    return False
                continue
            near, far = sorted(((low - at) / (to - at), (high - at) / (to - at)))
            enter, leave = max(enter, near), min(leave, far)
        return enter < leave


@dataclass(frozen=True)
class Rectangle:
    kind: str
    x: float
    y: float
    width: float
    height: float

    def moved(self, x: float, y: float) -> Rectangle:
        return replace(self, x=self.x + x, y=self.y + y)

    def svg(self) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}"'
        return f'<rect class="{self.kind}" x="{self.x:g}" y="{self.y:g}" {size}/>'


@dataclass(frozen=True)
class Line:
    """Straight lines from point to point."""

    kind: str
    points: tuple[Point, ...]

    def moved(self, x: float, y: float) -> Line:
        return replace(self, points=tuple((at + x, to + y) for at, to in self.points))

    def svg(self) -> str:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)
        return f'<polyline class="{self.kind}" points="{points}"/>'


@dataclass(frozen=True)
class Dot:
    """A disc; ``title`` is shown by browsers."""

    kind: str
    x: float
    y: float
    radius: float
    title: str

    def moved(self, x: float, y: float) -> Dot:
        return replace(self, x=self.x + x, y=self.y + y)

    def svg(self) -> str:
        circle = f'<circle class="{self.kind}" cx="{self.x:.1f}" cy="{self.y:.1f}" r="{self.radius:g}">'
        return f"{circle}<title>{escape(self.title)}</title></circle>"


@dataclass(frozen=True)
class Text:
    """One line; ``anchor`` is ``start``, ``middle`` or ``end`` of its base line."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    kind: str = "text"

    @property
    def box(self) -> Box:
        width = text_width(self.text, bold=STYLES[self.kind].bold)
        left = self.x - width * {"start": 0, "middle": 0.5, "end": 1}[self.anchor]
        return Box(left, self.y - ASCENT, left + width, self.y + DESCENT)

    def moved(self, x: float, y: float) -> Text:
        return replace(self, x=self.x + x, y=self.y + y)

    def svg(self) -> str:
        where = f'x="{self.x:.1f}" y="{self.y:.1f}" text-anchor="{self.anchor}"'
        return f'<text class="{self.kind}" {where}>{escape(self.text)}</text>'


Shape: TypeAlias = Rectangle | Line | Dot | Text


@dataclass(frozen=True)
class Drawing:
    """Shapes in drawing order, above a background; ``kind`` is the class of the SVG element: ``tile``, ``roof`` or
    ``bars``."""

    kind: str
    width: float
    height: float
    shapes: tuple[Shape, ...]

    @property
    def texts(self) -> list[Text]:
        """Its texts."""
        return [shape for shape in self.shapes if isinstance(shape, Text)]


def css() -> str:
    """The style sheet of all drawings, light or dark as the reader's system."""
    light, dark = (" ".join(f"--{name}: {color[i]};" for name, color in COLORS.items()) for i in (0, 1))
    return "\n".join(
        [
            f":root {{ color-scheme: light dark; {light} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
            f"svg {{ font: {FONT_SIZE}px system-ui, sans-serif }}",
            "svg text { paint-order: stroke }",
            *(f"svg .{kind} {{ {_css(style)} }}" for kind, style in STYLES.items()),
        ]
    )


def _css(style: Style) -> str:
    fill, stroke = (f"var(--{name})" if name else "none" for name in (style.fill, style.stroke))
    rules = [f"fill: {fill}", f"stroke: {stroke}", f"stroke-width: {style.width:g}"]
    rules += ["stroke-dasharray: 3 3"] if style.dashed else []
    rules += ["font-weight: 600"] if style.bold else []
    return "; ".join(rules)


def svg(drawing: Drawing, *, style: bool = True) -> str:
    """The drawing as an SVG image. A page that has the style sheet of ``css`` itself needs no ``style`` in it."""
    size = f'viewBox="0 0 {drawing.width:g} {drawing.height:g}" width="{drawing.width:g}" height="{drawing.height:g}"'
    head = f'<svg class="{drawing.kind}" xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    sheet = [f"<style>\n{css()}\n</style>"] if style else []
    shapes = (Rectangle("ground", 0, 0, drawing.width, drawing.height), *drawing.shapes)
    return "\n".join([head, *sheet, *(shape.svg() for shape in shapes), "</svg>\n"])


def stacked(drawings: Sequence[Drawing], columns: int) -> Drawing:
    """The drawings in a grid, as one."""
    width, height = (max(sizes) for sizes in zip(*((x.width, x.height) for x in drawings), strict=True))
    columns = min(columns, len(drawings))
    places = (divmod(i, columns) for i in range(len(drawings)))
    shapes = (
        shape.moved(column * width, row * height)
        for (row, column), drawing in zip(places, drawings, strict=True)
        for shape in drawing.shapes
    )
    return Drawing(drawings[0].kind, columns * width, -(-len(drawings) // columns) * height, tuple(shapes))
