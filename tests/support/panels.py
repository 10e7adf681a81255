"""Operands of the C contract, laid out in NumPy after the words of pysimd.h, independently of pack.c."""

from dataclasses import dataclass

import numpy as np

from pysimd import dtypes
from pysimd.backends.cpu import table as cpu_table


@dataclass
class Tile:
    """Arguments of ``pysimd_kernel.run`` but for C: buffers, and strides in values."""

    groups: int
    a: np.ndarray
    rs_a: int
    cs_a: int
    b: np.ndarray
    rs_b: int


def tile(kernel, a: np.ndarray, b: np.ndarray, *, packed: bool) -> Tile:
    """``a`` (mr, K) and ``b`` (K, nr) as ``kernel`` reads them: as dense panels, or at loose strides."""
    mr, nr, group, k = kernel.mr, kernel.nr, kernel.k_group, a.shape[1]
    gap = 0 if packed else 3
    if kernel.form != "outer":
        return Tile(k, _rows(a, gap), k + gap, 1, _rows(b.T, gap), k + gap)
    panel = cpu_table.row(kernel.name).panel
    if panel == cpu_table.lib.SPLIT:
        return _split(a, b, gap)
    groups = -(-k // group)
    wide_a, wide_b = np.zeros((mr, groups * group), a.dtype), np.zeros((groups * group, nr), b.dtype)
    wide_a[:, :k], wide_b[:k] = a, b
    closing = None
    if panel == cpu_table.lib.WIDE:
        wider = np.int16 if kernel.c_dtype.kind == "i" else np.float32
        wide_a, wide_b = dtypes.widened(wide_a, wider), dtypes.widened(wide_b, wider)
    elif panel == cpu_table.lib.OFFSET:
        closing = (-128 * wide_a.sum(axis=1, dtype=np.int64)).astype(np.int32).reshape(mr, 1).view(np.int8)
        wide_b = (wide_b.astype(np.int16) + 128).astype(np.uint8)
    in_groups = wide_a.reshape(mr, groups, group)
    if closing is not None:
        in_groups = np.concatenate([in_groups, closing.reshape(mr, 1, 4)], axis=1)
    if packed:
        a_memory, rs_a, cs_a = np.ascontiguousarray(in_groups.transpose(1, 0, 2)), group, mr * group
    else:
        a_memory, rs_a, cs_a = _rows(in_groups.reshape(mr, -1), group), in_groups.shape[1] * group + group, group
    interleaved = wide_b.reshape(groups, group, nr).transpose(0, 2, 1).reshape(groups, nr * group)
    return Tile(groups, a_memory, rs_a, cs_a, _rows(interleaved, gap), nr * group + gap)


PLANE_K = 32
"""Steps of k of a SPLIT panel of A that have their upper parts in one piece."""


def _split(a: np.ndarray, b: np.ndarray, gap: int) -> Tile:
    """float16 as the sum of two bfloat16: of A a plane for the upper parts of 32 k, and one for the lower; of each pair
    of rows of B the same, the second in the middle of the row. Finite values only."""
    (mr, k), nr = a.shape, b.shape[1]
    whole = -(-k // PLANE_K) * PLANE_K
    wide_a, wide_b = np.zeros((mr, whole), np.float16), np.zeros((whole, nr), np.float16)
    wide_a[:, :k], wide_b[:k] = a, b
    of_a = np.stack([x.reshape(mr, -1, PLANE_K) for x in _parts(wide_a)], axis=2).reshape(mr, -1)
    halves = [_rows(x.reshape(-1, 2, nr).transpose(0, 2, 1).reshape(-1, 2 * nr), 2 * gap) for x in _parts(wide_b)]
    of_b = np.concatenate(halves, axis=1)
    return Tile(-(-k // 2), _rows(of_a, 2 * gap), whole + gap, 2, of_b, of_b.shape[1] // 2)


def _parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of core/planes.h: ``x`` cut to eight bits and the others, or twice the half of ``x`` where those are zero."""
    x = x.astype(np.float32)
    cut = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    upper, lower = (np.where(x == cut, x / 2, part) for part in (cut, x - cut))
    return tuple((part.view(np.uint32) >> 16).astype(np.uint16) for part in (upper, lower))


def _rows(x: np.ndarray, gap: int) -> np.ndarray:
    """Rows with ``gap`` values of 0xff bytes behind each."""
    memory = np.full((x.shape[0], (x.shape[1] + gap) * x.itemsize), 0xFF, np.uint8).view(x.dtype)
    memory[:, : x.shape[1]] = x
    return memory


def run(kernel, at: Tile, c: np.ndarray, rs_c: int) -> None:
    """Call the kernel's own ``run`` on the tile; ``c`` is where C starts."""
    a, b = (cpu_table.ffi.from_buffer(x.reshape(-1).view(np.uint8)) for x in (at.a, at.b))
    to = cpu_table.ffi.cast("void *", c.__array_interface__["data"][0])
    cpu_table.row(kernel.name).run(at.groups, a, at.rs_a, at.cs_a, b, at.rs_b, to, rs_c)
