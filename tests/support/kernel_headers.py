"""The header of a GPU kernel file: fixed labels, read by the tests of the tables."""

from pysimd.sources import header as labels_of

__all__ = ["LABELS", "labels_of"]

LABELS = ("contract", "tile", "regs", "per k", "ratio", "rounding", "needs", "idea", "lanes", "launch", "smem")
