"""A kernel decoded: every instruction once, before any of it runs."""

from __future__ import annotations

import re

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.counts import MACS_PER_LANE, macs_of_wave
from pysimd.simulator.elf import Kernel
from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.instructions import decode
from pysimd.simulator.instructions.base import Machine
from pysimd.simulator.instructions.matrix import decoder as matrix_decoder
from pysimd.simulator.instructions.matrix import mfma_shape

_MOST_REGISTERS = 256
"""Vector registers of a lane; as many accumulation registers."""

_VECTOR = re.compile(r"\b([va])(?:(\d+)|\[\d+:(\d+)\])")


class Program:
    """The steps of a kernel. Raises UnsupportedInstruction for the first thing in it that is not modelled."""

    def __init__(self, instructions: tuple[Instruction, ...], kernel: Kernel, target: str):
        if kernel.scratch:
            raise UnsupportedInstruction(
                f"{kernel.name} uses {kernel.scratch} bytes of scratch memory a lane: spilled registers and arrays on "
                "the stack are not modelled"
            )
        self.kernel = kernel
        self.instructions = instructions
        self.machine = Machine(target, kernel.wave_size)
        self.steps = [decode(x, self.machine) for x in instructions]
        self.registers = _registers(instructions)


def _registers(instructions: tuple[Instruction, ...]) -> tuple[int, int]:
    """How many vector and accumulation registers the text names; at least the three that hold thread indices."""
    count = {"v": 3, "a": 0}
    for instruction in instructions:
        for file, one, last in _VECTOR.findall(instruction.text):
            count[file] = max(count[file], int(one or last) + 1)
    if max(count.values()) > _MOST_REGISTERS:
        raise UnsupportedInstruction(f"register {max(count.values()) - 1} of a kernel: a lane has {_MOST_REGISTERS}")
    return count["v"], count["a"]


def macs(mnemonic: str, waves: int, lanes: int) -> int:
    """Multiply-adds in so many executions of an instruction."""
    if matrix_decoder(mnemonic) is not None:
        blocks = mfma_shape(mnemonic).blocks if mnemonic.startswith("v_mfma") else 1
        return waves * macs_of_wave(mnemonic, blocks)
    return lanes * MACS_PER_LANE.get(mnemonic, 0)
