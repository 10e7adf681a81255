"""The register tile of one kernel or rung: which registers hold C, and what is loaded and broadcast in a step of k."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pysimd import sources
from pysimd.errors import UnavailableError
from pysimd.inspection import Inspection, inspect
from pysimd.microkernel import MicroKernel, Rung
from pysimd.ratio import Ratio
from pysimd.report.drawing import Drawing, Rectangle, Shape, Text


@dataclass(frozen=True)
class Tile:
    """A register tile.

    Attributes:
        kernel, form, mr, nr: as of the kernel; of a rung its name, and the tile of ``lanes`` threads.
        holder: what holds C: ``vector registers``, ``registers of a thread``, ...
        width: elements of C in one holder, along a row and on into the next rows; None where it is not known.
        step: sentences on one step of k.
        file: labels ``tile``, ``regs`` and ``per k`` of the header of the kernel's file.
        counted: the hot loop, where it could be read.
        uncounted_reason: otherwise what is missing.
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
        """Number of the register (or thread) that holds this element of C."""
        return (row * self.nr + column) // (self.width or 1)

    @property
    def holders(self) -> int:
        """Number of holders of all of C."""
        return -(-self.mr * self.nr // (self.width or 1))

    @property
    def scale(self) -> int:
        """Rows and columns of C that one row and one column of a drawing stand for: 1, unless C would be too large."""
        scale = 1
        while self.width is None and (self.mr > _MOST_ROWS * scale or self.nr > _MOST_COLUMNS * scale):
            scale *= 2
        return scale

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = ("kernel", "form", "mr", "nr", "holder", "width", "holders", "step", "file", "uncounted_reason")
        return {key: getattr(self, key) for key in plain} | {
            "counted": None if self.counted is None else self.counted.to_dict()
        }


_MOST_ROWS = _MOST_COLUMNS = 32


def tile(kernel: MicroKernel | Rung, target: str | None = None) -> Tile:
    """The register tile of a kernel or a rung, for ``target`` as in ``pysimd.inspect``.

    Raises:
        OptionError: a target that the kernel cannot be compiled for.
    """
    try:
        counted, reason = inspect(kernel, target=target), ""
    except UnavailableError as error:
        counted, reason = None, str(error)
    if isinstance(kernel, Rung):
        form, mr, nr, k_group = kernel.form, kernel.tm, kernel.tn, 1
        holder, width = _held_by_rung(kernel, counted)
    else:
        form, mr, nr, k_group = kernel.form, kernel.mr, kernel.nr, kernel.k_group
        holder, width = _held(kernel, counted)
    return Tile(
        kernel=kernel.name,
        form=form,
        mr=mr,
        nr=nr,
        holder=holder,
        width=width,
        step=_step(kernel.ratio, form, mr, nr, k_group),
        file=_file(kernel),
        counted=counted,
        uncounted_reason=reason,
    )


def _held_by_rung(rung: Rung, counted: Inspection | None) -> tuple[str, int | None]:
    if rung.backend == "cpu":
        if rung.form == "inner":
            return "accumulators", 1
        return "vector registers", None if counted is None else counted.macs // counted.multiply_adds
    if rung.lanes > 1:
        return f"registers of {rung.lanes} threads", None
    return "registers of a thread", 1


def _held(kernel: MicroKernel, counted: Inspection | None) -> tuple[str, int | None]:
    if kernel.form in ("wmma", "mfma"):
        lanes = 32 if kernel.backend == "cuda" or kernel.form == "wmma" else 64
        return f"registers of {lanes} threads", None
    if kernel.form == "gemv":
        return "vector registers", 1
    if kernel.form == "inner":
        return ("accumulators" if kernel.backend == "cpu" else "threads"), 1
    if kernel.backend != "cpu":
        return "registers of a thread", 2 if kernel.backend == "hip" and kernel.types == "f16" else 1
    if kernel.target == "generic":
        return "vector registers", 16 // kernel.c_dtype.itemsize
    if counted is None:
        return "vector registers", None
    lanes = counted.macs // counted.multiply_adds // kernel.k_group
    return "vector registers", lanes // _LANES_OF_AN_ELEMENT.get(kernel.name, 1)


_LANES_OF_AN_ELEMENT = {"avx512_f32_outer_8x8": 2, "avx512_f16f32_outer_8x8": 2}
"""Lanes that accumulate one element of C, of kernels that have several and add them at the end."""


def _file(kernel: MicroKernel | Rung) -> dict[str, str]:
    """Labels ``tile``, ``regs`` and ``per k`` (or ``per 2 k``, ...) of the header of the kernel's file."""
    labels = sources.labels(kernel.source).items()
    return {label: " ".join(text.split()) for label, text in labels if label.split()[0] in ("tile", "regs", "per")}


def _step(ratio: Ratio, form: str, mr: int, nr: int, group: int) -> tuple[str, ...]:
    """Of ``group`` steps of k, whose multiply-adds one instruction does."""
    if form == "inner":
        loads = "for every multiply-add one element of a row of A and one of a column of B are loaded"
        return (loads, f"{ratio.macs} multiply-adds, {ratio.loads} elements loaded: {ratio.value:.2f}")
    what = "k" if group == 1 else f"group of {group} k"
    loads = f"for every {what}: {mr * group} elements of A and {nr * group} of B are loaded"
    if form == "gemv":
        loads += "; the lanes of a register are terms of one element of C"
    elif form in ("wmma", "mfma", "tensor cores"):
        loads += ", and the matrix unit multiplies each with each"
    else:
        loads += "; each of A is broadcast along its row of C"
    return (loads, f"{ratio.macs * group} multiply-adds, {ratio.loads * group} elements loaded: {ratio.value:.2f}")


def spans(drawn: Tile, row: int) -> list[tuple[int, int]]:
    """Ranges of columns of a row that one register holds each; the whole row where that is not known."""
    if drawn.width is None:
        return [(0, drawn.nr // drawn.scale)]
    holders = [drawn.holder_of(row, j) for j in range(drawn.nr)]
    starts = [j for j in range(drawn.nr) if j == 0 or holders[j] != holders[j - 1]]
    return list(pairwise([*starts, drawn.nr]))


_DOT_PRODUCTS = {"accumulators": "one element of C at a time", "threads": "one in each thread"}
"""What inner-product kernels do with one element of C, by what holds it."""


def title(drawn: Tile) -> str:
    """One line: the kernel, and what holds C."""
    if drawn.form == "inner" and drawn.holder in _DOT_PRODUCTS:
        return f"{drawn.kernel}: {drawn.holders} dot products, {_DOT_PRODUCTS[drawn.holder]}"
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
            f"{sum(seen.load_instructions.values())} load instructions an iteration, {used}, {seen.spills} spills"
        )
    elif drawn.uncounted_reason:
        found.append(f"the built loop could not be read: {drawn.uncounted_reason}")
    return found


def _operands(drawn: Tile) -> tuple[str, str]:
    """What of A and of B the drawing shows: for an outer product a step of k, for an inner product all of it."""
    if drawn.form == "inner":
        return "A: rows of K", f"B: {drawn.nr} columns of K elements"
    return "A: column k", f"B: row k of {drawn.nr} elements{_scaled(drawn)}"


def _scaled(drawn: Tile) -> str:
    return "" if drawn.scale == 1 else f"; {drawn.scale} x {drawn.scale} elements of C are drawn as one"


def text(drawn: Tile) -> str:
    """The tile for the terminal: B above, A to the left, C in its registers."""
    columns = drawn.nr // drawn.scale
    cell = max(5, len(f"c{drawn.holders - 1}") + 2) if drawn.width == 1 else 3 if columns <= 16 else 2
    side = f"{'A':>5} "
    lines = [title(drawn), "", f"{'':>{len(side) + 1}}{_operands(drawn)[1]}"]
    rows = []
    for i in range(0, drawn.mr, drawn.scale):
        row = ""
        for j, until in spans(drawn, i):
            name = f"c{drawn.holder_of(i, j)}" if drawn.width else ""
            row += "│" + f" {name}".ljust((until - j) * cell - 1)
        rows.append(f"{'a' + str(i):>5} {row}│")
    border = "─" * (columns * cell - 1)
    lines += [" " * len(side) + "┌" + border + "┐", *rows, " " * len(side) + "└" + border + "┘", ""]
    return "\n".join([*lines, *(textwrap.fill(note, 110, subsequent_indent="  ") for note in notes(drawn))])


_CELL, _LEFT, _TOP = 26, 104, 74
_LINE, _LEAST_WIDTH = 18, 760


def drawing(drawn: Tile) -> Drawing:
    """The tile: a row of B above, a column of A to the left, C in its registers, notes below."""
    rows, columns = drawn.mr // drawn.scale, drawn.nr // drawn.scale
    bottom = _TOP + rows * _CELL + 24
    lines = [line for note in notes(drawn) for line in textwrap.wrap(note, 100, subsequent_indent="  ")]
    shapes: list[Shape] = [Text(4, 18, title(drawn), kind="title")]
    of_a, of_b = _operands(drawn)
    shapes += [Text(_LEFT, _TOP - 38, of_b), Text(4, _TOP - 8, of_a)]
    shapes += [Rectangle("b", _LEFT + j * _CELL, _TOP - 32, _CELL, 20) for j in range(columns)]
    shapes += [Rectangle("a", _LEFT - 30, _TOP + i * _CELL, 22, _CELL) for i in range(rows)]
    for i in range(rows):
        shapes += _row(drawn, i)
    shapes += [Text(4, bottom + _LINE * i, line) for i, line in enumerate(lines)]
    width = max(_LEFT + columns * _CELL + 10, _LEAST_WIDTH)
    return Drawing("tile", width, bottom + _LINE * len(lines), tuple(shapes))


def _row(drawn: Tile, i: int) -> Iterable[Shape]:
    """A row of C: the registers that hold it, with their numbers."""
    y = _TOP + i * _CELL
    for j, until in spans(drawn, i):
        number = drawn.holder_of(i, j) if drawn.width else 0
        yield Rectangle("d" if number % 2 else "c", _LEFT + j * _CELL, y, (until - j) * _CELL, _CELL)
        if drawn.width:
            yield Text(_LEFT + (j + until) * _CELL / 2, y + 17, str(number), "middle")
