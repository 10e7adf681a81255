"""The register tile of one kernel as a drawing: what holds C, and what is loaded and broadcast in a step of k."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from pysimd.errors import UnavailableError
from pysimd.inspection import Inspection, inspect
from pysimd.microkernel import MicroKernel


@dataclass(frozen=True)
class Tile:
    """What is drawn.

    Attributes:
        kernel, form, mr, nr: as of the kernel.
        holder: what C lies in: ``vector registers``, ``registers of a thread``, ...
        width: elements of C in one of them, along a row and on through the next rows; None if not known here.
        step: sentences on one step of k.
        file: what the kernel's file says of its tile, registers and step, by label.
        counted: the hot loop, where it could be read.
        uncounted_reason: else what is missing.
    """

    kernel: str
    form: str
    mr: int
    nr: int
    holder: str
    width: int | None
    step: tuple[str, ...]
    file: dict[str, str]
    counted: Inspection | None
    uncounted_reason: str

    def holder_of(self, row: int, column: int) -> int:
        """Which register (or lane) holds this element of C."""
        return (row * self.nr + column) // (self.width or 1)

    @property
    def holders(self) -> int:
        """How many hold all of C."""
        return -(-self.mr * self.nr // (self.width or 1))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = ("kernel", "form", "mr", "nr", "holder", "width", "holders", "step", "file", "uncounted_reason")
        return {key: getattr(self, key) for key in plain} | {
            "counted": None if self.counted is None else self.counted.to_dict()
        }


def tile(kernel: MicroKernel, target: str | None = None) -> Tile:
    """The drawing of a kernel, for ``target`` as in ``pysimd.inspect``.

    Raises:
        OptionError: a target that the kernel cannot be compiled for.
    """
    try:
        counted, reason = inspect(kernel, target=target), ""
    except UnavailableError as error:
        counted, reason = None, str(error)
    holder, width = _held(kernel, counted)
    return Tile(
        kernel=kernel.name,
        form=kernel.form,
        mr=kernel.mr,
        nr=kernel.nr,
        holder=holder,
        width=width,
        step=_step(kernel),
        file=_file(kernel),
        counted=counted,
        uncounted_reason=reason,
    )


def _held(kernel: MicroKernel, counted: Inspection | None) -> tuple[str, int | None]:
    if kernel.form in ("wmma", "mfma"):
        lanes = 32 if kernel.backend == "cuda" or kernel.form == "wmma" else 64
        return f"registers of {lanes} threads", None
    if kernel.form == "inner":
        return ("running sums" if kernel.backend == "cpu" else "threads"), 1
    if kernel.backend != "cpu":
        return "registers of a thread", 2 if kernel.backend == "hip" and kernel.types == "f16" else 1
    if kernel.target == "generic":
        return "vector registers", 16 // kernel.c_dtype.itemsize
    if counted is None:
        return "vector registers", None
    lanes = counted.macs // counted.multiply_adds // kernel.k_group
    return "vector registers", lanes // _LANES_OF_AN_ELEMENT.get(kernel.name, 1)


_LANES_OF_AN_ELEMENT = {"avx512_f32_outer_8x8": 2}
"""Kernels that sum the k of an element in several lanes, which are added at the end."""


def _file(kernel: MicroKernel) -> dict[str, str]:
    """Labels ``tile``, ``regs`` and ``per k`` of the header of the kernel's file."""
    found: dict[str, str] = {}
    label = ""
    for line in kernel.source.partition("*/")[0].splitlines()[1:]:
        match = re.match(r" \* (\w+(?: \d? ?k)?)\s{2,}(.*)", line)
        if match:
            label, found[match[1]] = match[1], match[2]
        elif label:
            found[label] += " " + " ".join(line.lstrip(" *").split())
    return {key: " ".join(value.split()) for key, value in found.items() if key in ("tile", "regs") or key[:3] == "per"}


def _step(kernel: MicroKernel) -> tuple[str, ...]:
    ratio, group = kernel.ratio, kernel.k_group
    if kernel.form == "inner":
        loads = "for every multiply-add one element of a row of A and one of a column of B are loaded"
        return (loads, f"{ratio.macs} multiply-adds, {ratio.loads} elements loaded: {ratio.value:.2f}")
    what = "k" if group == 1 else f"group of {group} k"
    loads = f"for every {what}: {kernel.mr * group} elements of A and {kernel.nr * group} of B are loaded"
    if kernel.form in ("wmma", "mfma"):
        loads += ", and the matrix unit multiplies each with each"
    else:
        loads += "; each of A is broadcast along its row of C"
    return (loads, f"{ratio.macs * group} multiply-adds, {ratio.loads * group} elements loaded: {ratio.value:.2f}")


def edges(drawn: Tile, row: int) -> list[int]:
    """Columns where another register begins."""
    if drawn.width is None:
        return [0]
    return [j for j in range(drawn.nr) if j == 0 or drawn.holder_of(row, j) != drawn.holder_of(row, j - 1)]


def title(drawn: Tile) -> str:
    """What is drawn, in a line."""
    if drawn.width is None:
        return f"{drawn.kernel}: C in {drawn.holder}"
    holder = drawn.holder.replace("registers", "register") if drawn.holders == 1 else drawn.holder
    each = "1 element" if drawn.width == 1 else f"{drawn.width} elements"
    return f"{drawn.kernel}: C in {drawn.holders} {holder}, {each} in each"


def notes(drawn: Tile) -> list[str]:
    """The sentences below the drawing."""
    found = [*drawn.step, *(f"{label}: {words}" for label, words in drawn.file.items())]
    seen = drawn.counted
    if seen is not None:
        used = f"{seen.registers} of {seen.registers_there_are} registers"
        found.append(
            f"the built loop ({seen.target}): {seen.multiply_adds} multiply-add and "
            f"{sum(seen.load_instructions.values())} load instructions a turn, {used}, {seen.spills} spills"
        )
    elif drawn.uncounted_reason:
        found.append(f"the built loop could not be read: {drawn.uncounted_reason}")
    return found


def text(drawn: Tile) -> str:
    """For the terminal: B above, A to the left, C in its registers."""
    cell = 5 if drawn.width == 1 else 3 if drawn.nr <= 16 else 2
    side = f"{'A':>5} "
    lines = [title(drawn), "", f"{'':>{len(side) + 1}}B: row k of {drawn.nr} elements"]
    rows = []
    for i in range(drawn.mr):
        row = ""
        for j, until in pairwise([*edges(drawn, i), drawn.nr]):
            name = f"c{drawn.holder_of(i, j)}" if drawn.width else ""
            row += "│" + f" {name}".ljust((until - j) * cell - 1)
        rows.append(f"{'a' + str(i):>5} {row}│")
    border = "─" * (drawn.nr * cell - 1)
    lines += [" " * len(side) + "┌" + border + "┐", *rows, " " * len(side) + "└" + border + "┘", ""]
    return "\n".join([*lines, *(textwrap.fill(note, 110, subsequent_indent="  ") for note in notes(drawn))])


_STYLE = """
svg.tile { font: 12px system-ui, sans-serif; --ink: #1b1b1b; --c: #cfe0f2; --c2: #b5cfea; --a: #f7d5c4; --b: #d8ecd0 }
@media (prefers-color-scheme: dark) {
  svg.tile { --ink: #e6e6e6; --c: #24405e; --c2: #2f5378; --a: #6b3a25; --b: #33532a }
}
svg.tile text { fill: var(--ink) } svg.tile rect { stroke: var(--ink); stroke-width: .6 }
svg.tile .c { fill: var(--c) } svg.tile .d { fill: var(--c2) }
svg.tile .a { fill: var(--a) } svg.tile .b { fill: var(--b) }
"""


def svg(drawn: Tile) -> str:
    """As an SVG image, light or dark as its reader has it."""
    cell, left, top = 26, 104, 74
    width, height = left + drawn.nr * cell, top + drawn.mr * cell
    shapes = [f'<text x="4" y="18" font-weight="600">{escape(title(drawn))}</text>']
    shapes.append(f'<text x="{left}" y="{top - 38}">B: row k</text><text x="4" y="{top - 8}">A: column k</text>')
    for j in range(drawn.nr):
        shapes.append(_rect("b", left + j * cell, top - 32, cell, 20))
    for i in range(drawn.mr):
        shapes.append(_rect("a", left - 30, top + i * cell, 22, cell))
    if drawn.width is None:
        shapes.append(_rect("c", left, top, drawn.nr * cell, drawn.mr * cell))
    for i in range(drawn.mr if drawn.width else 0):
        y = top + i * cell
        for j, until in pairwise([*edges(drawn, i), drawn.nr]):
            number, x = drawn.holder_of(i, j), left + (j + until) * cell / 2
            shapes.append(_rect("d" if number % 2 else "c", left + j * cell, y, (until - j) * cell, cell))
            shapes.append(f'<text x="{x:g}" y="{y + 17}" text-anchor="middle">{number}</text>')
    below = [line for note in notes(drawn) for line in textwrap.wrap(note, 100, subsequent_indent="  ")]
    for line, note in enumerate(below):
        shapes.append(f'<text x="4" y="{height + 24 + 18 * line}">{escape(note)}</text>')
    width, height = max(width + 10, 700), height + 24 + 18 * len(below)
    return (
        f'<svg class="tile" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img"><style>{_STYLE}</style>\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
