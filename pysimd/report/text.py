"""Plain aligned tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()) -> str:
    """Lines of columns two blanks apart, headers first; the columns whose headers are in ``right`` are right-aligned.

    >>> print(table(["kernel", "ratio"], [["a", "0.50"], ["bcd", "12.00"]], right=["ratio"]))
    kernel  ratio
    a        0.50
    bcd     12.00
    """
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ends = [str.rjust if header in right else str.ljust for header in headers]
    return "\n".join(
        "  ".join(end(cell, width) for cell, width, end in zip(line, widths, ends, strict=True)).rstrip()
        for line in lines
    )


def number(value: float | None, digits: int = 1) -> str:
    """``value`` with that many decimals, or ``-`` for None."""
    return "-" if value is None else f"{value:,.{digits}f}"
