"""Launches of the microkernels of gpu_kernels/table.py: the template instance for operands, its grids and Calls."""

from __future__ import annotations

from functools import cache

from pysimd.backends.cuda import nvrtc
from pysimd.backends.cuda.device import current_device
from pysimd.backends.gpu import batched
from pysimd.backends.gpu.launches import CallOperands, c_vector, grids, layout, tile_layouts
from pysimd.gpu_kernels import table
from pysimd.microkernel import MicroKernel


@cache
def function(source: str, entry: str, device: int):
    """The compiled kernel of a template instance, as CuPy launches it; ``device`` is the current one."""
    return nvrtc.function(source, entry).kernel


def function_with_shared_memory(source: str, entry: str, dynamic_shared_bytes: int, device: int):
    """The same, of a kernel whose blocks have that much dynamic shared memory."""
    kernel = nvrtc.function(source, entry)
    if dynamic_shared_bytes:
        kernel.max_dynamic_shared_size_bytes = dynamic_shared_bytes
    return kernel.kernel


def tile_launches(kernel: MicroKernel, a, b, c0, c):
    """Functions and arguments that do ``c = c0 + a @ b`` with a kernel of the table."""
    row, operands = table.BY_NAME[kernel.name], CallOperands(a, b, c0, c)
    if operands.empty:
        return ()
    layout_a, layout_b, edge = tile_layouts(row, operands)
    if row.form == "batch2":
        return _pair_launches(row, operands, edge)
    direct = row.form == "wmma" and not edge and _wmma_direct(operands)
    entry = table.entry(row, layout_a, layout_b, edge, direct)
    vector = not edge and c_vector(operands, (4 if row.form == "wmma" else row.nr) * operands.sizes[3])
    return _launches(row, entry, operands, vector)


def wmma_launches(types: str, a, b, c0, c):
    """The same on tensor cores for a types family of batched_mma.cu, with the same bits."""
    row, entry = table.wmma(types, batched.narrows(types, c.itemsize))
    return _launches(row, entry, CallOperands(a, b, c0, c), False)


def _launches(row, entry: str, operands: CallOperands, vector: bool, tiles: int = 1):
    compiled = function(row.source, entry, current_device())
    return ((compiled, *launch) for launch in grids(row, operands, vector, tiles=tiles))


def _wmma_direct(operands: CallOperands) -> bool:
    """Whether the tensor cores' loads can read the arrays: rows contiguous, 32-byte aligned tiles, whole ld units."""
    for which in (0, 1):
        x, size, (rows, columns) = operands.arrays[which], operands.sizes[which], operands.strides[which]
        if columns != 1 or rows <= 0 or rows * size % 32 or rows >= 1 << 31 or x.data.ptr % 32:
            return False
        if any(step[which] * size % 32 for _, step in operands.dims):
            return False
    return True


def _pair_launches(row, operands: CallOperands, edge: bool):
    """Two products at once: read as words of two halves where they lie interleaved."""
    dims = operands.dims
    present = [w for w, x in enumerate(operands.arrays) if x is not None]
    paired = bool(dims) and dims[-1][0] % 2 == 0 and all(dims[-1][1][w] == 1 for w in present)
    for w in present:
        others = [*operands.strides[w], *(step[w] for _, step in dims[:-1])]
        paired = paired and operands.arrays[w].data.ptr % 4 == 0 and all(s % 2 == 0 for s in others)
    if not paired:
        return _launches(row, table.entry(row, "GATHERED", "GATHERED", edge, False), operands, False, tiles=2)
    length, step = dims[-1]
    operands.dims = [(n, tuple(s // 2 for s in steps)) for n, steps in dims[:-1]]
    if length > 2:
        operands.dims.append((length // 2, step))
    operands.strides = tuple((rows // 2, columns // 2) for rows, columns in operands.strides)
    operands.sizes = (4, 4, 4, 4)
    layouts = ("ANY", "ANY") if edge else tuple(layout(operands, w, 4, row.layouts) for w in (0, 1))
    entry = table.entry(row, *layouts, edge, False)
    return _launches(row, entry, operands, not edge and c_vector(operands, 16))
