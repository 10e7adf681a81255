"""What instructions do: one module per class, each a table from mnemonics to decoders."""

from __future__ import annotations

import struct

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.instructions import control, lanes, matrix, memory, packed, scalar, vector
from pysimd.simulator.instructions.base import Decoder, Machine, Step, pair

TABLE: dict[str, Decoder] = {
    **control.TABLE,
    **scalar.TABLE,
    **vector.TABLE,
    **packed.TABLE,
    **lanes.TABLE,
    **memory.TABLE,
}
"""Every instruction that is modelled; the matrix instructions, whose names carry their shape, are found by pattern."""


def decode(instruction: Instruction, machine: Machine) -> Step:
    """The instruction as a function of a gang. Raises UnsupportedInstruction, which names what is not known."""
    try:
        if instruction.second is not None:
            return pair(instruction, machine, _decoder(instruction), _decoder(instruction.second))
        return _decoder(instruction)(instruction, machine)
    except (ValueError, LookupError, TypeError, OverflowError, struct.error) as error:
        raise UnsupportedInstruction(f"`{instruction}`: not the operands of {instruction.mnemonic}") from error


def _decoder(instruction: Instruction) -> Decoder:
    decoder = TABLE.get(instruction.mnemonic) or matrix.decoder(instruction.mnemonic)
    if decoder is None:
        raise UnsupportedInstruction(f"`{instruction}`: instruction {instruction.mnemonic} is not modelled")
    return decoder
