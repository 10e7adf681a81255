"""HIP kernels in the simulator: the host's part of a call as on a GPU, NumPy arrays for its memory.

Launch after launch, what runs is the machine code that a compiler made for the target. It is slow, says nothing of
time, and never replaces a GPU: only ``MicroKernel.simulate`` comes here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace

import numpy as np

from pysimd import operands, simulator
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.hip import device, tiles
from pysimd.errors import DTypeError, OptionError, UnavailableError
from pysimd.hip_kernels import table
from pysimd.microkernel import MicroKernel
from pysimd.simulator import Simulation


class Device:
    """A simulated GPU: its memory, and launches of the kernels in ``hip_kernels``."""

    def __init__(self, target: str):
        self.target = target
        self.memory = simulator.Memory()

    def array(self, name: str, x: np.ndarray, *, writable: bool = False):
        """``x`` in the memory, as ``launches.CallOperands`` takes an array."""
        address = self.memory.add(x, name, writable)
        return SimpleNamespace(
            shape=x.shape, strides=x.strides, itemsize=x.itemsize, ndim=x.ndim, data=SimpleNamespace(ptr=address)
        )

    def run(self, source: str, entry: str, launches: Iterable) -> simulator.Counts:
        """Compile a template instance, and launch it for every grid, block and Call."""
        code, name = compiled(source, entry, self.target), table.symbol(entry)
        counts = [
            simulator.launch(code, name, grid, block, call.tobytes(), self.memory) for grid, block, call in launches
        ]
        return _sum(counts)


def compiled(source: str, entry: str, target: str) -> simulator.CodeObject:
    """The code object of one template instance of a file in ``hip_kernels``."""
    return simulator.compile_hip(tiles.instance(source, entry), target)


def simulate(kernel: MicroKernel, a, b, c, target: str) -> Simulation:
    """``MicroKernel.simulate`` of a HIP kernel."""
    row = table.BY_NAME[kernel.name]
    if not isinstance(target, str) or target not in simulator.TARGETS:
        raise OptionError(f"target={target!r}: the simulator knows {', '.join(simulator.TARGETS)}")
    if device.lacks(kernel, target):
        raise UnavailableError(device.lacks(kernel, target))
    where = operands.backend_for({"a": a, "b": b, "c": c})
    if where != "cpu":
        raise DTypeError(f"simulate takes NumPy arrays, these are on {where}: copy them with cupy.asnumpy()")
    a, b, c = (None if x is None else operands.as_numpy(name, x) for name, x in (("a", a), ("b", b), ("c", c)))
    result = np.empty(operands.check_tile_call(kernel, a, b, c, None).full, kernel.c_dtype)
    result.view(np.uint8).fill(0xFF)  # an element that the kernel leaves out is seen
    gpu = Device(target)
    placed = [None if x is None else gpu.array(name, _whole(x)) for name, x in (("a", a), ("b", b), ("c", c))]
    call = CallOperands(*placed, gpu.array("result", result, writable=True))
    if call.empty:
        return Simulation(result, target, "", _sum([]), 0, 0)
    entry, launches = tiles.plan(row, call)
    counts = gpu.run(row.source, entry, launches)
    macs = counts.macs
    if kernel.types == "i8i32":
        macs += counts.lanes("v_mul_i32_i24")  # where there is no dot4: the sum is another instruction
    loaded = counts.load_bytes.get("global", 0) - (0 if c is None else result.nbytes)
    return Simulation(result, target, entry, counts, macs, loaded // kernel.a_dtype.itemsize)


def _whole(x: np.ndarray) -> np.ndarray:
    """``x``, or a copy if a stride is not a multiple of the element: kernels count strides in elements."""
    return x.copy() if any(s % x.itemsize for s, n in zip(x.strides, x.shape, strict=True) if n > 1) else x


def _sum(counts: list[simulator.Counts]) -> simulator.Counts:
    instructions: dict[str, simulator.Executed] = {}
    load_bytes, store_bytes = Counter(), Counter()
    for one in counts:
        for name, more in one.instructions.items():
            so_far = instructions.get(name, simulator.Executed(0, 0))
            instructions[name] = simulator.Executed(so_far.waves + more.waves, so_far.lanes + more.lanes)
        load_bytes.update(one.load_bytes)
        store_bytes.update(one.store_bytes)
    macs, barriers = sum(x.macs for x in counts), sum(x.barriers for x in counts)
    return simulator.Counts(instructions, macs, dict(load_bytes), dict(store_bytes), barriers)
