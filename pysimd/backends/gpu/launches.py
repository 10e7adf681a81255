"""Launches of GPU kernels: operands as the fields of a ``Call`` (gpu_kernels/micro/call.cuh), layouts, grids.

Plain arithmetic on shapes, strides and addresses. An array here is whatever has ``shape``, ``strides``, ``itemsize``,
``ndim`` and ``data.ptr``: CuPy's, or one in the memory of the simulator.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from pysimd.errors import ShapeError
from pysimd.operands import batch_strides, merged

DIMS = 4
"""Batch dimensions of a Call."""

BLOCK = 128
"""Threads of a block of the tile kernels."""

BATCH = 4
"""Where the number of products stands in a Call."""

CALL = np.dtype(f"V{8 * (18 + 5 * DIMS)}")
"""The bytes of one Call: CuPy passes an array of one such element by value."""

MOST_STEPS = 1 << 32
"""Iterations over k, which tile kernels count in 32 bits: steps() in memory.cuh is how many k there are in one."""

MOST_TILES = 1 << 31
"""Tiles of a launch: kernels count them in 32 bits."""


class CallOperands:
    """Operands as the fields of a ``Call``: elements instead of bytes, the batch merged to few dimensions."""

    def __init__(self, a, b, c0, c):
        self.arrays = (a, b, c0, c)
        self.batch = c.shape[:-2]
        self.m, self.n, self.k = a.shape[-2], b.shape[-1], a.shape[-1]
        self.sizes = tuple(1 if x is None else x.itemsize for x in self.arrays)
        self.strides = tuple((0, 0) if x is None else _matrix_strides(x) for x in self.arrays)
        steps = [[0] * len(self.batch) if x is None else batch_strides(x, self.batch) for x in self.arrays]
        dims = merged(self.batch, *steps) if self.batch else []
        self.dims = [(n, tuple(s // e for s, e in zip(step, self.sizes, strict=True))) for n, step in dims]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to compute."""
        return math.prod(self.batch) * self.m * self.n == 0

    def alignment(self, which: int, skip: int) -> int:
        """Largest power of two up to 16 that divides the address, and all strides but that of axis ``skip`` (0 rows, 1
        columns), of an operand, in bytes."""
        x, size = self.arrays[which], self.sizes[which]
        bits = x.data.ptr | 16 | self.strides[which][1 - skip] * size
        for _, step in self.dims:
            bits |= step[which] * size
        return bits & -bits

    def contiguous(self, which: int) -> bool:
        """Whether matrices follow each other without a gap (each may be stored by rows or by columns)."""
        x = self.arrays[which]
        rows, columns = x.shape[-2:]
        products = math.prod(self.batch)
        if products <= 1:
            return True
        return len(self.dims) == 1 and self.dims[0][1][which] == rows * columns

    def calls(self, c_vector: bool, tiles: int = 1, most_tiles: int = MOST_TILES):
        """The Calls as int64 arrays: one, or several where dimensions, or ``tiles`` for each product, do not fit."""
        if tiles > most_tiles:
            raise ShapeError(f"a product of {self.m} x {self.n} has {tiles} tiles, a launch at most {most_tiles}")
        # The host walks the dimensions that do not fit, and splits the first of the others.
        kept = min(DIMS, len(self.dims))
        while kept > 1 and tiles * math.prod(n for n, _ in self.dims[1 - kept :]) > most_tiles:
            kept -= 1
        split = len(self.dims) - kept
        outer, inner = self.dims[:split], self.dims[split:] or [(1, (0, 0, 0, 0))]
        rest = math.prod(n for n, _ in inner[1:])
        pad = [0] * (DIMS - len(inner))
        for pointers, length in self.walk(outer, inner[0], max(1, most_tiles // (rest * tiles))):
            shape = [length, *(n for n, _ in inner[1:])]
            fields = [*pointers, math.prod(shape), self.m, self.n, self.k, *itertools.chain(*self.strides)]
            fields += [int(c_vector), len(inner), *shape, *pad]
            for which in range(4):
                fields += [s[which] for _, s in inner] + pad
            yield np.array(fields, np.int64)

    def walk(self, outer, split, piece: int):
        """Addresses of the operands for every index of the ``outer`` dimensions and every ``piece`` of the dimension
        ``split``, with the length of that piece. A dimension is its length and its strides in elements."""
        first, step = split
        addresses = [0 if x is None else x.data.ptr for x in self.arrays]
        for index in itertools.product(*(range(n) for n, _ in outer)):
            for start in range(0, first, piece):
                offsets = [
                    (start * step[which] + sum(i * s[which] for i, (_, s) in zip(index, outer, strict=True))) * size
                    for which, size in enumerate(self.sizes)
                ]
                pointers = [x + offset if x else 0 for x, offset in zip(addresses, offsets, strict=True)]
                yield pointers, min(piece, first - start)


def _matrix_strides(x) -> tuple[int, int]:
    """Strides of a row and of a column in elements; along a dimension of length 1 they mean nothing and count as 0."""
    return tuple(s // x.itemsize if n > 1 else 0 for s, n in zip(x.strides[-2:], x.shape[-2:], strict=True))


def layout(operands: CallOperands, which: int, tile: int, allowed: tuple[str, ...]) -> str:
    """How the kernel may read A (0) or B (1), whose tile has ``tile`` rows or columns."""
    k_axis = 1 - which
    strides, size = operands.strides[which], operands.sizes[which]
    along_k, along_r = strides[k_axis], strides[1 - k_axis]
    if "K_MAJOR" in allowed and along_k == 1 and operands.alignment(which, k_axis) == 16:
        return "K_MAJOR"
    if "MN_MAJOR" in allowed and along_r == 1 and operands.alignment(which, 1 - k_axis) >= min(16, tile * size):
        return "PACKED" if along_k == tile else "MN_MAJOR"
    return "ANY"


def tile_layouts(row, operands: CallOperands) -> tuple[str, str, bool]:
    """Layouts in which a kernel of the table reads A and B, and whether there are edge tiles, which take any layout."""
    edge = bool(operands.m % row.mr or operands.n % row.nr)
    allowed = () if edge else row.layouts
    layouts = layout(operands, 0, row.mr, allowed), layout(operands, 1, row.nr, allowed)
    most_k = MOST_STEPS * (1 if layouts == ("ANY", "ANY") else max(1, 8 // operands.sizes[0]))
    if operands.k >= most_k and row.form != "wmma":
        raise ShapeError(f"{row.name} takes fewer than {most_k} k of operands with these strides, got {operands.k}")
    return *layouts, edge


def c_vector(operands: CallOperands, tile_bytes: int) -> bool:
    """Whether rows of C can be stored in 16-byte vectors."""
    return operands.strides[3][1] == 1 and operands.alignment(3, 1) >= min(16, tile_bytes)


def grids(row, operands: CallOperands, vector: bool, *, tiles: int = 1, most_threads: int | None = None):
    """Grid, block and Call of each launch of a kernel of the table, ``row.lanes`` threads for ``tiles`` tiles."""
    down, across = -(-operands.m // row.mr), -(-operands.n // row.nr)
    most_tiles = MOST_TILES if most_threads is None else min(MOST_TILES, most_threads // row.lanes * tiles)
    for call in operands.calls(vector, down * across, most_tiles):
        groups = -(-int(call[BATCH]) // tiles) * down * across
        yield (-(-groups * row.lanes // BLOCK),), (BLOCK,), call
