"""Drawings made of a few shapes. They are laid out once, and written as SVG (``svg``) or drawn with matplotlib
(``plots.drawings``).

Coordinates are CSS pixels; y points down. The ``kind`` of a shape names its row of ``STYLES``, and in SVG its class.
"""

from __future__ import annotations

from dataclasses import dataclass
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
}


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
    "inner": Style("inner"),
    "outer": Style("outer"),
    "text": Style("ink"),
    "label": Style("ink", "ground", 2.5),
    "title": Style("ink", bold=True),
}

FONT_SIZE = 12


@dataclass(frozen=True)
class Rectangle:
    kind: str
    x: float
    y: float
    width: float
    height: float

    def svg(self) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}"'
        return f'<rect class="{self.kind}" x="{self.x:g}" y="{self.y:g}" {size}/>'


@dataclass(frozen=True)
class Line:
    """Straight lines from point to point."""

    kind: str
    points: tuple[Point, ...]

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

    def svg(self) -> str:
        where = f'x="{self.x:.1f}" y="{self.y:.1f}" text-anchor="{self.anchor}"'
        return f'<text class="{self.kind}" {where}>{escape(self.text)}</text>'


Shape: TypeAlias = Rectangle | Line | Dot | Text


@dataclass(frozen=True)
class Drawing:
    """Shapes in drawing order; ``kind`` is the class of the SVG element: ``tile`` or ``roof``."""

    kind: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


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
    return "\n".join([head, *sheet, *(shape.svg() for shape in drawing.shapes), "</svg>\n"])
