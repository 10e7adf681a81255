"""SDWA: instructions of gfx9 and gfx10 that read bytes or halves of registers, and write one."""

from __future__ import annotations

import numpy as np

from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.operands import HALF, Modifiers, Operand, Reader, Writer, as_type, vector_bits, with_sign

_FIELDS = {
    **{f"BYTE_{i}": (8 * i, 8) for i in range(4)},
    **{f"WORD_{i}": (16 * i, 16) for i in range(2)},
}
"""First bit and number of bits."""


def selected(readers: list[Reader], sources: list[Operand], kinds, modifiers: Modifiers) -> list[Reader]:
    """The readers of the first two operands replaced by those of the parts that src0_sel and src1_sel name."""
    result = list(readers)
    for i, (operand, kind) in enumerate(zip(sources[:2], kinds, strict=False)):
        choice = modifiers.take(f"src{i}_sel", "DWORD")
        if choice == "DWORD":
            if operand.sign_extend:
                raise UnsupportedInstruction(f"`{modifiers.instruction}`: sext() of a whole register")
            continue
        if kind == "mask" or kind in ("f32", "f64") or (kind == "f16" and choice.startswith("BYTE")):
            raise UnsupportedInstruction(f"`{modifiers.instruction}`: src{i}_sel:{choice} of an operand of type {kind}")
        result[i] = with_sign(_field(operand, kind, *_FIELDS[choice]), operand, kind)
    return result


def _field(operand: Operand, kind: str, start: int, count: int) -> Reader:
    whole = vector_bits(operand)
    left = np.uint32(32 - count - start)
    right = np.uint32(32 - count)
    dtype = np.int32 if operand.sign_extend else np.uint32

    def read(g):
        return ((whole(g) << left).view(dtype) >> right.astype(dtype)).view(np.uint32)

    if kind in HALF:
        return as_type(lambda g: read(g).astype(np.uint16), kind)
    return as_type(read, kind)


def with_selected_result(write: Writer, operand: Operand, kind: str, modifiers: Modifiers) -> Writer:
    """Write the part that dst_sel names; dst_unused says what becomes of the rest."""
    choice, rest = modifiers.take("dst_sel", "DWORD"), modifiers.take("dst_unused", "UNUSED_PAD")
    if choice == "DWORD" or kind == "mask":
        return write
    if rest not in ("UNUSED_PAD", "UNUSED_PRESERVE"):
        raise UnsupportedInstruction(f"`{modifiers.instruction}`: dst_unused:{rest} is not modelled")
    start, count = _FIELDS[choice]
    mask = np.uint32(((1 << count) - 1) << start)

    def write_field(g, value):
        bits = np.asarray(value)
        bits = bits.view(np.uint16 if bits.dtype.itemsize == 2 else np.uint32).astype(np.uint32) << np.uint32(start)
        old = g.v[operand.index] & ~mask if rest == "UNUSED_PRESERVE" else np.uint32(0)
        g.write_v(operand.index, old | bits & mask)

    return write_field
