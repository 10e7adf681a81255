"""Products of HIP kernels in the simulator: any m and n, any layout, and sources that were changed on purpose."""

import numpy as np
from pysimd.hip_kernels import table

from pysimd import dtypes, simulator
from pysimd.backends.gpu import batched
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.hip import simulation as hip_simulation
from pysimd.backends.hip import tiles as hip_tiles


def targets(row: table.Kernel) -> list[str]:
    """The targets that have what the kernel requires."""
    return [target for target in table.TARGETS if row.requires in table.features(target)]


def arrange(device, a, b, c, m, n, dtype):
    """Operands in the simulated memory, and the result: bytes 0xff until the kernel writes them."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], () if c is None else c.shape[:-2])
    result = np.empty((*batch, m, n), dtype)
    result.view(np.uint8).fill(0xFF)
    placed = [None if x is None else device.array(name, x) for name, x in (("a", a), ("b", b), ("c0", c))]
    return CallOperands(*placed, device.array("c", result, writable=True)), result


def product(row: table.Kernel, a, b, c, target: str, change=None) -> tuple[np.ndarray, str]:
    """``c + a @ b`` by a kernel of the table, which tiles it, and the template instance that did it.

    ``change`` maps the source text to another one.
    """
    device = hip_simulation.Device(target)
    dtype = dtypes.dtype_of(dtypes.FAMILIES[row.types].c)
    operands, result = arrange(device, a, b, c, a.shape[-2], b.shape[-1], dtype)
    entry, launches = hip_tiles.plan(row, operands)
    _launch(device, row.source, entry, launches, change)
    return result, entry


def batched_product(types: str, a, b, target: str, change=None) -> tuple[np.ndarray, str]:
    """``a @ b`` as ``matmul`` does small products, and the instance of batched.hip that did it."""
    device = hip_simulation.Device(target)
    dtype = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    operands, result = arrange(device, a, b, None, a.shape[-2], b.shape[-1], dtype)
    made = batched.instance(types, operands)
    launches = batched.launches(operands, made, None, hip_tiles.MOST_THREADS)
    _launch(device, table.BATCHED, made.entry, [launch[1:] for launch in launches], change)
    return result, made.entry


def _launch(device, source, entry, launches, change) -> None:
    if change is None:
        device.run(source, entry, launches)
        return
    text = hip_tiles.instance(source, entry)
    changed = change(text)
    assert changed != text, "the text to change is not there"
    code = simulator.compile_hip(changed, device.target)
    for grid, block, call in launches:
        simulator.launch(code, table.symbol(entry), grid, block, call.tobytes(), device.memory)


# --- operands in the layouts of the kernels; ``along`` is the axis of k: -1 for A, -2 for B ---


def laid(x: np.ndarray, layout: str, along: int) -> np.ndarray:
    """The values of ``x`` in a layout of memory.cuh; bytes between its elements are out of bounds."""
    matrix = x if along == -1 else x.swapaxes(-1, -2)  # rows along R, columns along k
    rows, k = matrix.shape[-2:]
    unit = max(1, 16 // x.itemsize)
    if layout == "K_MAJOR":
        room = np.empty((*matrix.shape[:-1], -(-max(k, 1) // unit) * unit), x.dtype)
        view = room[..., :k]
    elif layout == "PACKED":
        view = np.empty((*matrix.shape[:-2], k, rows), x.dtype).swapaxes(-1, -2)
    elif layout == "MN_MAJOR":
        room = np.empty((*matrix.shape[:-2], k, (-(-rows // unit) + 1) * unit), x.dtype)
        view = room[..., :rows].swapaxes(-1, -2)
    else:
        room = np.empty((*matrix.shape[:-2], 2 * rows + 1, 3 * k + 1), x.dtype)
        view = room[..., 1::2, 1::3][..., ::-1, :]
    view[...] = matrix
    return view if along == -1 else view.swapaxes(-1, -2)
