"""The rows of a report as a table of text."""

from __future__ import annotations

from collections.abc import Sequence

from pysimd.report.rows import Row, in_table_order
from pysimd.report.text import number, table


def ratio_table(rows: Sequence[Row]) -> str:
    """The rows of a report for the terminal; columns that all rows lack are left out."""
    rows = in_table_order(rows)
    headers = ["kernel", "form", "tile", "FMA/element", "FMA/byte", "GFLOP/s", "peak", "% of peak"]
    lines = [_cells(row) for row in rows]
    for header, cell in _MORE_COLUMNS.items():
        cells = [cell(row) for row in rows]
        if any(x is not None for x in cells):
            headers.append(header)
            for line, x in zip(lines, cells, strict=True):
                line.append("-" if x is None else x)
    reasons = dict.fromkeys(
        f"{row.backend} not counted: {row.uncounted_reason}" for row in rows if row.uncounted_reason
    )
    integers = any(row.gflops is not None and row.types.endswith("i32") for row in rows)
    remarks = [*reasons, *(["integer kernels: GOP/s"] if integers else [])]
    return "\n".join(
        [table(headers, lines, right=[x for x in headers[3:] if x != "limit"]), *(f"({x})" for x in remarks)]
    )


def _cells(row: Row) -> list[str]:
    speeds = [number(row.gflops), number(row.peak_gflops), number(row.percent_of_peak, 0)]
    tile = [row.kernel, row.form, f"{row.mr}x{row.nr}", number(row.ratio, 2), number(row.ratio_per_byte, 3)]
    return [*tile, *(speeds if row.available else ["not here", "", ""])]


def _counted(key: str):
    return lambda row: None if row.counted is None or row.counted[key] is None else number(row.counted[key], 2)


def _measured(key: str, digits: int):
    return lambda row: None if getattr(row, key) is None else number(getattr(row, key), digits)


_MORE_COLUMNS = {
    "counted": _counted("element_ratio"),
    "FMA/load": _counted("instruction_ratio"),
    "% of loads": _measured("percent_of_load_rate", 0),
    "% of load bytes": _measured("percent_of_load_bandwidth", 0),
    "limit": lambda row: row.limit,
    "over inner": _measured("over_inner", 2),
}
"""Columns of what some rows have counted or measured."""
