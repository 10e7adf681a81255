"""Launches of the rungs of the GEMM ladder: operands as the fields of a ``Gemm`` (gpu_kernels/ladder/gemm.cuh), grids.

Plain arithmetic on shapes, strides and addresses, as in ``launches``.
"""

from __future__ import annotations

import itertools

import numpy as np

from pysimd.backends.gpu.launches import Arranged

GEMM = np.dtype(f"V{8 * 18}")
"""The bytes of one Gemm: CuPy passes an array of one such element by value."""

# fmt: off
FIELDS = ("a", "b", "c0", "c", "m", "n", "k", "lda", "ldb", "c0_rs", "c0_cs", "ldc",
          "a_batch", "b_batch", "c0_batch", "c_batch", "c_vector", "factors")
# fmt: on

_MOST_BLOCKS = (1 << 31) - 1


def layout(arranged: Arranged, which: int) -> tuple[str, int] | None:
    """How a rung reads A (0) or B (1) element by element, and the leading dimension; None if it cannot: neither
    dimension is adjacent in memory."""
    strides = arranged.strides[which]
    along_k, along_r = strides[1 - which], strides[which]
    extent_r = (arranged.m, arranged.n)[which]
    if along_r == 1:
        return "MN_MAJOR", along_k
    if along_k == 1 or arranged.k <= 1:
        return "K_MAJOR", along_r
    return ("MN_MAJOR", along_k) if extent_r == 1 else None


def _wide(arranged: Arranged, which: int, name: str, ld: int) -> bool:
    """Whether all that lies along memory can be read in pieces of 16 bytes, none of which reaches past an operand."""
    extent = arranged.k if name == "K_MAJOR" else (arranged.m, arranged.n)[which]
    piece = 16 // arranged.sizes[which]
    lengths = (ld, extent, *(step[which] for _, step in arranged.dims))
    return not (arranged.operands[which].data.ptr % 16 or any(x % piece for x in lengths))


def row_major(c) -> bool:
    """Whether a rung can write this C: adjacent columns. The transposed of a C with adjacent rows is such a one."""
    return c.shape[-1] <= 1 or c.strides[-1] == c.itemsize


def copied_by_feeds(arranged: Arranged, which: int) -> bool:
    """Whether feed.cuh can bring A (0) or B (1): it holds what a thread reads of a panel, 512 rows by 32 k at most, as
    an offset of 32 bits from the panel's first element."""
    name, ld = layout(arranged, which)
    reach = 512 * ld if name == "K_MAJOR" else 32 * ld + 512
    return ld >= 0 and reach * arranged.sizes[which] < 1 << 32


def launches(row, a, b, c0, c, alpha: float, beta: float):
    """What does ``c = alpha a @ b + beta c0`` with a rung of the table: for each launch the layouts of A and B, how
    many products, and the Gemm. C is row-major, ``layout`` is known for A and B, ``c0`` may be None; a launch has one
    dimension of the batch."""
    arranged = Arranged(a, b, c0, c)
    if arranged.empty:
        return
    (layout_a, lda), (layout_b, ldb) = layout(arranged, 0), layout(arranged, 1)
    if row.wide:
        layout_a += "4" if _wide(arranged, 0, layout_a, lda) else ""
        layout_b += "4" if _wide(arranged, 1, layout_b, ldb) else ""
    dims = sorted(arranged.dims, key=lambda dim: dim[0]) or [(1, (0, 0, 0, 0))]
    outer, (length, step) = dims[:-1], dims[-1]
    piece = max(1, _MOST_BLOCKS // max(tiles(x, arranged.m, arranged.n) for x in (row.blocks or (row,))))
    pointers = [0 if x is None else x.data.ptr for x in arranged.operands]
    _, _, c0_strides, (ldc, _) = arranged.strides
    vector = [3] if arranged.operands[2] is None else [2, 3]
    c_vector = all(arranged.strides[which][1] == 1 and arranged.alignment(which, 1) == 16 for which in vector)
    with np.errstate(over="ignore"):  # a factor beyond float32 is infinity there
        factors = int(np.array([alpha, beta], np.float32).view(np.int64)[0])
    for index in itertools.product(*(range(n) for n, _ in outer)):
        for start in range(0, length, piece):
            offsets = [
                (start * step[which] + sum(i * s[which] for i, (_, s) in zip(index, outer, strict=True))) * size
                for which, size in enumerate(arranged.sizes)
            ]
            fields = [p + o if p else 0 for p, o in zip(pointers, offsets, strict=True)]
            fields += [arranged.m, arranged.n, arranged.k, lda, ldb, *c0_strides, ldc, *step, int(c_vector), factors]
            yield layout_a, layout_b, min(piece, length - start), np.array(fields, np.int64).view(GEMM)


def tiles(block, m: int, n: int) -> int:
    """Tiles of one product; ``block`` has ``bm`` and ``bn``."""
    return -(-m // block.bm) * -(-n // block.bn)
