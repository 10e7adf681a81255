"""The register tile of one kernel or rung: which registers hold C, and what is loaded and broadcast in a step of k."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from pysimd import sources
from pysimd.microkernel import MicroKernel, Rung
from pysimd.ratio import Ratio
from pysimd.report.drawing import Drawing, Line, Rectangle, Shape, Text, text_width


@dataclass(frozen=True)
class Tile:
    """A register tile.

    Attributes:
        kernel, form, mr, nr, k_group: as of the kernel; of a rung its name, and the tile of ``lanes`` threads.
        vectors: vectors in a row of C where their length is the processor's (the tile is named 8x2vl); else None.
        holder: what holds C: ``vector registers``, ``registers of a thread``, ...
        width: elements of C in one holder, along a row and on into the next rows; None where it is not known.
        step: sentences on one step of k.
        file: labels ``tile``, ``regs`` and ``per k`` of the header of the kernel's file.
        counted: the hot loop (``Inspection.counts()``), where it was read.
        uncounted_reason: otherwise what is missing.
    """

    kernel: str
    form: str
    mr: int
    nr: int
    k_group: int
    vectors: int | None
    holder: str
    width: int | None
    step: tuple[str, ...]
    file: dict[str, str]
    counted: dict[str, Any] | None
    uncounted_reason: str

    @property
    def columns(self) -> int:
        """Columns that are drawn: of elements, or of vectors."""
        return self.vectors or self.nr // self.scale

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
        if self.mr * self.nr <= _FEW:
            return scale
        while self.width is None and (self.mr > _MOST_ROWS * scale or self.nr > _MOST_COLUMNS * scale):
            scale *= 2
        return scale

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"holders": self.holders}


_MOST_ROWS, _MOST_COLUMNS, _FEW = 32, 48, 512


def tile(kernel: MicroKernel | Rung, counted: dict[str, Any] | None = None, uncounted_reason: str = "") -> Tile:
    """The register tile of a kernel or a rung; ``counted`` and ``uncounted_reason`` as in ``Tile``."""
    if isinstance(kernel, Rung):
        form, mr, nr, k_group, vectors, unit = kernel.form, kernel.tm, kernel.tn, 1, None, False
        holder, width = _held_by_rung(kernel, counted)
    else:
        form, mr, nr, k_group = kernel.form, kernel.mr, kernel.nr, kernel.k_group
        vectors, unit = None if kernel.mr_vl else kernel.nr_vl or None, bool(kernel.mr_vl) or kernel.target == "amx"
        holder, width = _held(kernel, counted)
    return Tile(
        kernel=kernel.name,
        form=form,
        mr=mr,
        nr=nr,
        k_group=k_group,
        vectors=vectors,
        holder=holder,
        width=nr // vectors if vectors else width,
        step=_step(kernel.ratio, form, mr, _several(vectors, "vector") if vectors else nr * k_group, k_group, unit),
        file=_file(kernel),
        counted=counted,
        uncounted_reason=uncounted_reason,
    )


def _held_by_rung(rung: Rung, counted: dict[str, Any] | None) -> tuple[str, int | None]:
    if rung.backend == "cpu":
        if rung.form == "inner":
            return "accumulators", 1
        return "vector registers", None if counted is None else counted["macs"] // counted["multiply_adds"]
    if rung.lanes > 1:
        return f"registers of {rung.lanes} threads", None
    return "registers of a thread", 1


def _held(kernel: MicroKernel, counted: dict[str, Any] | None) -> tuple[str, int | None]:
    if kernel.form in ("wmma", "mfma"):
        lanes = 32 if kernel.backend == "cuda" or kernel.form == "wmma" else 64
        return f"registers of {lanes} threads", None
    if kernel.mr_vl:
        return "ZA tiles of VL x VL elements", None
    if kernel.target == "amx":
        return "tile registers of 16 x 16 elements", None
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
    lanes = counted["macs"] // counted["multiply_adds"] // kernel.k_group
    return "vector registers", lanes // _LANES_OF_AN_ELEMENT.get(kernel.name, 1)


_LANES_OF_AN_ELEMENT = {f"avx512_{types}_outer_8x8": 2 for types in ("f32", "f16f32", "bf16f32")}
"""Lanes that accumulate one element of C, of kernels that have several and add them at the end."""


def _file(kernel: MicroKernel | Rung) -> dict[str, str]:
    """Labels ``tile``, ``regs`` and ``per k`` (or ``per 2 k``, ...) of the header of the kernel's file."""
    labels = sources.labels(kernel.source).items()
    return {label: " ".join(text.split()) for label, text in labels if label.split()[0] in ("tile", "regs", "per")}


def _step(ratio: Ratio, form: str, mr: int, of_b: int | str, group: int, unit: bool) -> tuple[str, ...]:
    """Of ``group`` steps of k, whose multiply-adds one instruction does, and which load ``of_b`` of B; ``unit``: it
    computes outer products itself."""
    if form == "inner":
        loads = "for every multiply-add one element of a row of A and one of a column of B are loaded"
        return (loads, f"{ratio.macs} multiply-adds, {ratio.loads} elements loaded: {ratio.value:.2f}")
    what = "k" if group == 1 else f"group of {group} k"
    loads = f"for every {what}: {mr * group} elements of A and {of_b} of B are loaded"
    if form == "gemv":
        loads += "; the lanes of a register are terms of one element of C"
    elif form in ("wmma", "mfma", "tensor cores") or unit:
        loads += ", and the matrix unit multiplies each with each"
    else:
        loads += "; each of A is broadcast along its row of C"
    return (loads, f"{ratio.macs * group} multiply-adds, {ratio.loads * group} elements loaded: {ratio.value:.2f}")


def spans(drawn: Tile, row: int) -> list[tuple[int, int]]:
    """Ranges of columns of a row that one register holds each; the whole row where that is not known."""
    if drawn.width is None:
        return [(0, drawn.columns)]
    if drawn.vectors:
        return [(j, j + 1) for j in range(drawn.vectors)]
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
    each = _several(drawn.width, "element")
    if drawn.vectors:
        return f"{drawn.kernel}: C in {drawn.holders} {holder} of VL elements, drawn for VL = {drawn.width}"
    return f"{drawn.kernel}: C in {drawn.holders} {holder}, {each} in each"


def notes(drawn: Tile) -> list[str]:
    """The sentences below the drawing."""
    found = [*drawn.step, *(f"{label}: {words}" for label, words in drawn.file.items())]
    seen = drawn.counted
    if seen is not None:
        used = f"{seen['registers']} of {seen['registers_there_are']} registers"
        found.append(
            f"the built loop ({seen['target']}): {seen['multiply_adds']} multiply-add and "
            f"{sum(seen['load_instructions'].values())} load instructions an iteration, {used}, {seen['spills']} spills"
        )
    elif drawn.uncounted_reason:
        found.append(f"the built loop could not be read: {drawn.uncounted_reason}")
    return found


def _operands(drawn: Tile) -> tuple[str, str]:
    """What of A and of B the drawing shows: for an outer product a step of k, for an inner product all of it."""
    if drawn.form == "inner":
        return f"A: {drawn.mr} rows of K", f"B: {drawn.nr} columns of K elements"
    if drawn.vectors:
        return "A: column k", f"B: row k, {_several(drawn.vectors, 'vector')} of VL elements"
    if drawn.k_group > 1:
        return f"A: {drawn.k_group} columns", f"B: {drawn.k_group} rows of {drawn.nr} elements{_scaled(drawn)}"
    return "A: column k", f"B: row k of {_several(drawn.nr, 'element')}{_scaled(drawn)}"


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _scaled(drawn: Tile) -> str:
    return "" if drawn.scale == 1 else f"; {drawn.scale} x {drawn.scale} elements of C are drawn as one"


def _holder_of_column(drawn: Tile, i: int, j: int) -> int:
    """The number of the register that holds what is drawn in row i, column j."""
    return i * drawn.vectors + j if drawn.vectors else drawn.holder_of(i, j)


def text(drawn: Tile) -> str:
    """The tile for the terminal: B above, A to the left, C in its registers."""
    columns = drawn.columns
    cell = max(5, len(f"c{drawn.holders - 1}") + 2) if drawn.width == 1 else 3 if columns <= 16 else 2
    if drawn.vectors:
        cell = 12
    side = f"{'A':>5} "
    lines = [title(drawn), "", f"{'':>{len(side) + 1}}{_operands(drawn)[1]}"]
    rows = []
    for i in range(0, drawn.mr, drawn.scale):
        row = ""
        for j, until in spans(drawn, i):
            name = f"c{_holder_of_column(drawn, i, j)}" if drawn.width else ""
            row += "│" + f" {name}".ljust((until - j) * cell - 1)
        rows.append(f"{'a' + str(i):>5} {row}│")
    border = "─" * (columns * cell - 1)
    lines += [" " * len(side) + "┌" + border + "┐", *rows, " " * len(side) + "└" + border + "┘", ""]
    return "\n".join([*lines, *(textwrap.fill(note, 110, subsequent_indent="  ") for note in notes(drawn))])


_CELL, _VECTOR = 26, 120
_MARGIN, _TITLE, _LINE = 8, 32, 18
_OF_K = 84
"""Pixels of the K elements of a row of A or of a column of B, of which an inner product takes all."""


def drawing(drawn: Tile, *, with_notes: bool = True) -> Drawing:
    """The tile: B above, A to the left, C in its registers; below them the notes.

    For an outer product A is a column and B a row. For an inner product they are rows and columns of K elements, and
    those of one element of C are marked."""
    rows, columns = drawn.mr // drawn.scale, drawn.columns
    cell = _VECTOR if drawn.vectors else _CELL
    inner = drawn.form == "inner"
    deep = _OF_K if inner else 20
    of_a, of_b = _operands(drawn)
    left = _MARGIN + max(text_width(of_a), deep) + _MARGIN
    top = _TITLE + _LINE + deep + _MARGIN
    bottom = top + rows * _CELL + _LINE + _MARGIN
    shapes: list[Shape] = [Text(_MARGIN, 19, title(drawn), kind="title")]
    shapes += [Text(left, _TITLE + 11, of_b), Text(left - _MARGIN, top - _MARGIN - 3, of_a, "end")]
    shapes += [Rectangle("b", left + j * cell, top - _MARGIN - deep, cell, deep) for j in range(columns)]
    shapes += [Rectangle("a", left - _MARGIN - deep, top + i * _CELL, deep, _CELL) for i in range(rows)]
    if drawn.width is None:
        shapes += _whole(drawn, left, top, columns * cell, rows * _CELL)
    else:
        for i in range(rows):
            shapes += _row(drawn, i, left, top + i * _CELL, cell)
    if inner:
        shapes += [
            Rectangle("pick", left - _MARGIN - deep, top, deep, _CELL),
            Rectangle("pick", left, top - _MARGIN - deep, cell, deep),
            Rectangle("pick", left, top, cell, _CELL),
        ]
    if with_notes:
        lines = [line for note in notes(drawn) for line in textwrap.wrap(note, 92, subsequent_indent="  ")]
        shapes += [Text(_MARGIN, bottom + _LINE * i, line) for i, line in enumerate(lines)]
        bottom += _LINE * len(lines)
    right = max(shape.box.right for shape in shapes if isinstance(shape, Text))
    width = max(left + columns * cell, right) + _MARGIN
    return Drawing("tile", width, bottom - _LINE + _MARGIN, tuple(shapes))


def _whole(drawn: Tile, left: float, top: float, width: float, height: float) -> Iterable[Shape]:
    """C as one rectangle, whose elements lie in registers of which the numbers are not known."""
    yield Rectangle("c", left, top, width, height)
    words = (f"{drawn.mr} x {drawn.nr} of C", f"in {drawn.holder}")
    lines = words if max(map(text_width, words)) < width and height >= 2 * _LINE else ("C",)
    for i, line in enumerate(lines):
        yield Text(left + width / 2, top + height / 2 + 4 + _LINE * (i - (len(lines) - 1) / 2), line, "middle")


def _row(drawn: Tile, i: int, left: float, y: float, cell: float) -> Iterable[Shape]:
    """A row of C: the registers that hold it, with their numbers. A vector of any length has an open end."""
    for j, until in spans(drawn, i):
        number = _holder_of_column(drawn, i, j)
        yield Rectangle("d" if number % 2 else "c", left + j * cell, y, (until - j) * cell, _CELL)
        yield Text(left + (j + until) * cell / 2, y + 17, str(number), "middle")
        if drawn.vectors:
            yield Line("far", ((left + until * cell - 14, y + 4), (left + until * cell - 14, y + _CELL - 4)))
