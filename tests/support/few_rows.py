"""The rows of few.inc, read from the file."""

import re
from importlib.resources import files
from typing import NamedTuple

from pysimd._cpu import lib

import pysimd
from pysimd.backends.cpu import table

ORDERS = {"ROWS": lib.PYSIMD_BY_ROWS, "COLUMNS": lib.PYSIMD_BY_COLUMNS}
KERNELS = {k.name: k for k in pysimd.kernels("cpu")}


class Row(NamedTuple):
    types: str
    a: str
    b: str
    side: str
    few: range
    many: range
    k: range
    where: str
    kernel: str

    def has(self, types: str, m: int, k: int, n: int, a: int, b: int) -> bool:
        few, many, side = (m, n, "ROWS") if m < n else (n, m, "COLUMNS")
        if few == 1:  # one row, or column, has no order
            a, b = (b, b) if m < n else (a, a)
        kind = (types, a, b, side) == (self.types, ORDERS[self.a], ORDERS[self.b], self.side)
        return kind and few in self.few and many in self.many and k in self.k


def read() -> list[Row]:
    text = files("pysimd.cpu_kernels").joinpath("few.inc").read_text()
    found = []
    for line in re.findall(r"^FEW\((.*?)\)", text, re.MULTILINE):
        types, a, b, side, *ends, where, kernel = line.split(", ")
        ranges = (range(int(first), int(last) + 1) for first, last in zip(ends[::2], ends[1::2], strict=True))
        found.append(Row(types.lower(), a, b, side, *ranges, where, kernel))
    return found


ROWS = read()


def row_of(types: str, m: int, k: int, n: int, a: int, b: int) -> Row | None:
    """The row that has a product and counts on this processor, which has AVX-512."""
    other = "WHOLE" if lib.pysimd_halves_avx512() else "HALVES"
    for row in ROWS:
        if row.where != other and KERNELS[row.kernel].available and row.has(types, m, k, n, a, b):
            return row
    return None


def chosen(types: str, m: int, k: int, n: int, a: int, b: int) -> str:
    """The kernel that matmul takes."""
    return table.text(lib.pysimd_choose_ordered(table.TYPES[types], m, n, k, a, b).name)
