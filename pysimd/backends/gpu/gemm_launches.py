"""Launches of the rungs of the GEMM ladder: operands as the fields of a ``Gemm`` (gpu_kernels/ladder/gemm.cuh), grids.

Plain arithmetic on shapes, strides and addresses, as in ``launches``.
"""

from __future__ import annotations

import numpy as np

from pysimd import dtypes
from pysimd.backends.gpu.launches import CallOperands
from pysimd.errors import ShapeError

GEMM = np.dtype(f"V{8 * 18}")
"""The bytes of one Gemm: CuPy passes an array of one such element by value."""

# fmt: off
FIELDS = ("a", "b", "c0", "c", "m", "n", "k", "lda", "ldb", "c0_rs", "c0_cs", "ldc",
          "a_batch", "b_batch", "c0_batch", "c_batch", "c_vector", "factors")
# fmt: on

_MOST_BLOCKS = (1 << 31) - 1


def layout(operands: CallOperands, which: int) -> tuple[str, int] | None:
    """How a rung reads A (0) or B (1) element by element, and the leading dimension; None if it cannot: neither
    dimension is adjacent in memory."""
    strides = operands.strides[which]
    along_k, along_r = strides[1 - which], strides[which]
    extent_r = (operands.m, operands.n)[which]
    if along_r == 1:
        return "MN_MAJOR", along_k
    if along_k == 1 or operands.k <= 1:
        return "K_MAJOR", along_r
    return ("MN_MAJOR", along_k) if extent_r == 1 else None


def _wide(operands: CallOperands, which: int, name: str, ld: int) -> bool:
    """Whether all that lies along memory can be read in pieces of 16 bytes, none of which reaches past an operand."""
    extent = operands.k if name == "K_MAJOR" else (operands.m, operands.n)[which]
    piece = 16 // operands.sizes[which]
    lengths = (ld, extent, *(step[which] for _, step in operands.dims))
    return not (operands.arrays[which].data.ptr % 16 or any(x % piece for x in lengths))


def row_major(c) -> bool:
    """Whether a rung can write this C: adjacent columns. The transpose of a C with adjacent rows has them."""
    return c.shape[-1] <= 1 or c.strides[-1] == c.itemsize


def copied_by_feeds(operands: CallOperands, which: int) -> bool:
    """Whether panel_loader.cuh can load A (0) or B (1): it keeps what a thread reads of a panel, 512 rows by 32 k at
    most, as an offset of 32 bits from the panel's first element."""
    name, ld = layout(operands, which)
    reach = 512 * ld if name == "K_MAJOR" else 32 * ld + 512
    return ld >= 0 and reach * operands.sizes[which] < 1 << 32


def launches(row, a, b, c0, c, alpha: float, beta: float, most_blocks: int | None = None):
    """Launches of ``c = alpha a @ b + beta c0`` by a rung of the table: for each the layouts of A and B, how
    many products, and the Gemm. C is row-major, ``layout`` is known for A and B, ``c0`` may be None; a launch has one
    dimension of the batch, and ``most_blocks`` at most. Raises ShapeError where one product has more tiles."""
    operands = CallOperands(a, b, c0, c)
    if operands.empty:
        return
    (layout_a, lda), (layout_b, ldb) = layout(operands, 0), layout(operands, 1)
    if row.wide:
        layout_a += "_VEC4" if _wide(operands, 0, layout_a, lda) else ""
        layout_b += "_VEC4" if _wide(operands, 1, layout_b, ldb) else ""
    dims = sorted(operands.dims, key=lambda dim: dim[0]) or [(1, (0, 0, 0, 0))]
    blocks = max(tiles(x, operands.m, operands.n) for x in (row.blocks or (row,)))
    piece = (most_blocks or _MOST_BLOCKS) // blocks
    if not piece:
        raise ShapeError(f"{row.name}: {operands.m} x {operands.n} are {blocks} tiles, more than a launch has blocks")
    _, _, c0_strides, (ldc, _) = operands.strides
    vector = [3] if operands.arrays[2] is None else [2, 3]
    c_vector = all(operands.strides[which][1] == 1 and operands.alignment(which, 1) == 16 for which in vector)
    factors = pair(row.types, alpha, beta)
    for pointers, products in operands.walk(dims[:-1], dims[-1], piece):
        fields = [*pointers, operands.m, operands.n, operands.k, lda, ldb, *c0_strides, ldc]
        fields += [*dims[-1][1], int(c_vector), factors]
        yield layout_a, layout_b, products, np.array(fields, np.int64).view(GEMM)


def pair(types: str, x: float, y: float) -> int:
    """alpha and beta as one field: two float32, or two int32 where C holds integers."""
    if dtypes.FAMILIES[types].c == "int32":
        return int(np.array([int(x), int(y)], np.int32).view(np.int64)[0])
    with np.errstate(over="ignore"):  # a factor beyond float32 is infinity there
        return int(np.array([x, y], np.float32).view(np.int64)[0])


def tiles(block, m: int, n: int) -> int:
    """Tiles of one product; ``block`` has ``bm`` and ``bn``."""
    return -(-m // block.bm) * -(-n // block.bn)
