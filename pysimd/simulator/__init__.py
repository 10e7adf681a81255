"""A functional interpreter of AMD machine code: what a compiled HIP kernel computes, found out without an AMD GPU.

It runs the instructions that the compiler really made, on NumPy arrays, for wave32 and wave64 targets from gfx900 to
gfx1200, and counts them. It has no notion of time. It is here for verification: kernels and backends do not need it.
docs/simulator.md says what it models and what it does not.

    code = compile_hip(source, "gfx942")
    memory = Memory()
    arguments = struct.pack("<QQi", memory.add(a, "a"), memory.add(b, "b"), len(a))
    counts = launch(code, "kernel", grid=(4,), block=(64,), kernarg=arguments, memory=memory)
"""

from pysimd.simulator.code_object import CodeObject, assemble, compile_hip
from pysimd.simulator.compilers import OPTIONS, TARGETS, Toolchain, toolchain
from pysimd.simulator.counts import Counts, Executed
from pysimd.simulator.elf import Argument, Kernel
from pysimd.simulator.errors import (
    AccessError,
    CompileError,
    LaunchError,
    RaceError,
    SimulationError,
    UndefinedRead,
    UnsupportedInstruction,
)
from pysimd.simulator.memory import Memory
from pysimd.simulator.run import launch
from pysimd.simulator.simulation import Simulation

__all__ = [
    "OPTIONS",
    "TARGETS",
    "AccessError",
    "Argument",
    "CodeObject",
    "CompileError",
    "Counts",
    "Executed",
    "Kernel",
    "LaunchError",
    "Memory",
    "RaceError",
    "Simulation",
    "SimulationError",
    "Toolchain",
    "UndefinedRead",
    "UnsupportedInstruction",
    "assemble",
    "compile_hip",
    "launch",
    "toolchain",
]
