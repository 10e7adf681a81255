"""Packed, mixed and dot-product arithmetic: the operands' halves and bytes are picked by op_sel and neg."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.floats import fma16, fma32, halves, pack, sum_to_float32
from pysimd.simulator.gang import Gang
from pysimd.simulator.instructions.base import Arithmetic, Decoder, Machine
from pysimd.simulator.operands import (
    Modifiers,
    Operand,
    Reader,
    as_type,
    parse_operand,
    vector_bits,
    vector_writer,
    with_sign,
)


def _operands(instruction: Instruction, count: int) -> tuple[Operand, list[Operand]]:
    result, *sources = (parse_operand(x) for x in instruction.operands)
    if len(sources) != count:
        raise UnsupportedInstruction(f"`{instruction}`: expected {count} operands")
    return result, sources


def _sign(read: Reader, negative: int) -> Reader:
    return (lambda g: -read(g)) if negative else read


def _packed16(function: Callable, count: int, kind: str) -> Decoder:
    """Two results of 16 bits. op_sel picks the halves that the low one is made of, op_sel_hi those of the high one."""

    def half(operand: Operand, high: int, negative: int) -> Reader:
        whole = vector_bits(operand, 0, "p16")
        shift, dtype = np.uint32(16 * high), np.dtype(kind)
        return _sign(lambda g: (whole(g) >> shift).astype(np.uint16).view(dtype), negative)

    def decode(instruction: Instruction, machine: Machine):
        result, sources = _operands(instruction, count)
        if any(x.negate or x.absolute for x in sources):
            raise UnsupportedInstruction(f"`{instruction}`: sign of a packed operand outside of neg_lo and neg_hi")
        modifiers = Modifiers(instruction)
        low = modifiers.bits("op_sel", count, 0), modifiers.bits("neg_lo", count, 0)
        high = modifiers.bits("op_sel_hi", count, 1), modifiers.bits("neg_hi", count, 0)
        modifiers.done()
        if kind[0] != "f" and any(low[1] + high[1]):
            raise UnsupportedInstruction(f"`{instruction}`: sign of an integer")
        lows = [half(*x) for x in zip(sources, *low, strict=True)]
        highs = [half(*x) for x in zip(sources, *high, strict=True)]

        def compute(g: Gang):
            return pack(function(*(x(g) for x in lows)), function(*(x(g) for x in highs)))

        return Arithmetic(compute, vector_writer(result, "u32"))

    return decode


def _packed16_accumulating(instruction: Instruction, machine: Machine):
    """v_pk_fmac_f16: the result is the third operand, and nothing is picked."""
    operands = (*instruction.operands, instruction.operands[0])
    return _packed16(fma16, 3, "f2")(
        Instruction(instruction.text, instruction.mnemonic, "", operands, instruction.modifiers), machine
    )


def _packed32(function: Callable, count: int) -> Decoder:
    """Two results of 32 bits, in two registers; op_sel and op_sel_hi pick registers of the operands' pairs."""

    def register(instruction: Instruction, operand: Operand, high: int, negative: int) -> Reader:
        if operand.file == "":
            if high and operand.constant != 0:
                raise UnsupportedInstruction(f"`{instruction}`: high half of the constant {operand.text}")
            high = 0
        return _sign(as_type(vector_bits(operand, high), "f32"), negative)

    def decode(instruction: Instruction, machine: Machine):
        result, sources = _operands(instruction, count)
        modifiers = Modifiers(instruction)
        low = modifiers.bits("op_sel", count, 0), modifiers.bits("neg_lo", count, 0)
        high = modifiers.bits("op_sel_hi", count, 1), modifiers.bits("neg_hi", count, 0)
        modifiers.done()
        lows = [register(instruction, *x) for x in zip(sources, *low, strict=True)]
        highs = [register(instruction, *x) for x in zip(sources, *high, strict=True)]
        return _two_registers(result, function, lows, highs)

    return decode


def _two_registers(result: Operand, function: Callable, lows: list[Reader], highs: list[Reader]) -> Arithmetic:
    def compute(g: Gang):
        return np.array(function(*(x(g) for x in lows))), np.array(function(*(x(g) for x in highs)))

    def write(g: Gang, values):
        g.write_v(result.index, values[0].view(np.uint32))
        g.write_v(result.index + 1, values[1].view(np.uint32))

    return Arithmetic(compute, write)


def _move_packed(instruction: Instruction, machine: Machine):
    """v_pk_mov_b32: a register of the first pair, picked by the first bit of op_sel, and one of the second."""
    result, sources = _operands(instruction, 2)
    modifiers = Modifiers(instruction)
    choices = modifiers.bits("op_sel", 2, 0)
    modifiers.take("op_sel_hi", None)  # the instruction does not look at it
    modifiers.done()
    first, second = (vector_bits(x, 0 if x.file == "" else i) for x, i in zip(sources, choices, strict=True))
    return _two_registers(result, lambda a: a, [first], [second])


def _mixed(writes: str) -> Decoder:
    """fma of float32 and float16 operands: op_sel_hi says which are float16, op_sel which half of the register."""

    def operand(x: Operand, high: int, narrow: int) -> Reader:
        if not narrow:
            return with_sign(as_type(vector_bits(x), "f32"), x, "f32")
        whole, shift = vector_bits(x, 0, "p16"), np.uint32(16 * high)
        return with_sign(lambda g: (whole(g) >> shift).astype(np.uint16).view(np.float16), x, "f16")

    def decode(instruction: Instruction, machine: Machine):
        result, sources = _operands(instruction, 3)
        modifiers = Modifiers(instruction)
        high, narrow = modifiers.bits("op_sel", 3, 0), modifiers.bits("op_sel_hi", 3, 0)
        modifiers.done()
        a, b, c = (operand(*x) for x in zip(sources, high, narrow, strict=True))
        if writes == "f32":
            return Arithmetic(lambda g: fma32(a(g), b(g), c(g)), vector_writer(result, "f32"))
        write = vector_writer(result, "f16", high_half=writes == "high")
        return Arithmetic(lambda g: fma16(a(g), b(g), c(g)), write)

    return decode


def _dot(function: Callable, accumulates: bool, picks_sign: bool = False) -> Decoder:
    """Sum of products of the parts of two registers, and a third operand; neg_lo says which are signed (iu8)."""

    def decode(instruction: Instruction, machine: Machine):
        operands = (*instruction.operands, instruction.operands[0]) if accumulates else instruction.operands
        result, *sources = (parse_operand(x) for x in operands)
        if len(sources) != 3 or any(x.negate or x.absolute for x in sources):
            raise UnsupportedInstruction(f"`{instruction}`: expected three operands without sign")
        modifiers = Modifiers(instruction)
        extra = modifiers.bits("neg_lo", 3, 0)[:2] if picks_sign else ()
        modifiers.done()
        a, b, c = (vector_bits(x, 0, kind) for x, kind in zip(sources, ("p16", "p16", "u32"), strict=True))
        return Arithmetic(lambda g: function(a(g), b(g), c(g), *extra), vector_writer(result, "u32"))

    return decode


def _bytes(word: np.ndarray, signed: int) -> list[np.ndarray]:
    if signed:
        return [(word << np.uint32(24 - 8 * i)).view(np.int32) >> np.int32(24) for i in range(4)]
    return [(word >> np.uint32(8 * i) & np.uint32(255)).view(np.int32) for i in range(4)]


def dot4(a, b, c, a_signed: int = 1, b_signed: int = 1):
    """Four products of bytes and c; the sum wraps at 32 bits."""
    total = c.view(np.int32)
    for x, y in zip(_bytes(a, a_signed), _bytes(b, b_signed), strict=True):
        total = total + x * y
    return total.view(np.uint32)


def dot2(a, b, c):
    """Two products of float16 and a float32. The sum is made in float64 and rounded once."""
    products = [x.astype(np.float64) * y.astype(np.float64) for x, y in zip(halves(a), halves(b), strict=True)]
    return sum_to_float32(products[0] + products[1], c.view(np.float32).astype(np.float64)).view(np.uint32)


def _shift16(function: Callable) -> Callable:
    return lambda distance, a: function(a, (distance & distance.dtype.type(15)).astype(a.dtype))


TABLE: dict[str, Decoder] = {
    "v_pk_fma_f16": _packed16(fma16, 3, "f2"),
    "v_pk_fmac_f16": _packed16_accumulating,
    "v_pk_mul_f16": _packed16(np.multiply, 2, "f2"),
    "v_pk_add_f16": _packed16(np.add, 2, "f2"),
    **dict.fromkeys(("v_pk_min_f16", "v_pk_min_num_f16"), _packed16(np.fmin, 2, "f2")),
    **dict.fromkeys(("v_pk_max_f16", "v_pk_max_num_f16"), _packed16(np.fmax, 2, "f2")),
    **dict.fromkeys(("v_pk_add_u16", "v_pk_add_i16"), _packed16(np.add, 2, "u2")),
    **dict.fromkeys(("v_pk_sub_u16", "v_pk_sub_i16"), _packed16(np.subtract, 2, "u2")),
    "v_pk_mul_lo_u16": _packed16(np.multiply, 2, "u2"),
    **dict.fromkeys(("v_pk_mad_u16", "v_pk_mad_i16"), _packed16(lambda a, b, c: a * b + c, 3, "u2")),
    "v_pk_min_u16": _packed16(np.minimum, 2, "u2"),
    "v_pk_max_u16": _packed16(np.maximum, 2, "u2"),
    "v_pk_min_i16": _packed16(np.minimum, 2, "i2"),
    "v_pk_max_i16": _packed16(np.maximum, 2, "i2"),
    "v_pk_lshlrev_b16": _packed16(_shift16(np.left_shift), 2, "u2"),
    "v_pk_lshrrev_b16": _packed16(_shift16(np.right_shift), 2, "u2"),
    "v_pk_ashrrev_i16": _packed16(_shift16(np.right_shift), 2, "i2"),
    "v_pk_fma_f32": _packed32(fma32, 3),
    "v_pk_mul_f32": _packed32(np.multiply, 2),
    "v_pk_add_f32": _packed32(np.add, 2),
    "v_pk_mov_b32": _move_packed,
    **dict.fromkeys(("v_fma_mix_f32", "v_mad_mix_f32"), _mixed("f32")),
    **dict.fromkeys(("v_fma_mixlo_f16", "v_mad_mixlo_f16"), _mixed("low")),
    **dict.fromkeys(("v_fma_mixhi_f16", "v_mad_mixhi_f16"), _mixed("high")),
    "v_dot2_f32_f16": _dot(dot2, False),
    **dict.fromkeys(("v_dot2c_f32_f16", "v_dot2acc_f32_f16"), _dot(dot2, True)),
    "v_dot4_i32_i8": _dot(dot4, False),
    "v_dot4c_i32_i8": _dot(dot4, True),
    "v_dot4_u32_u8": _dot(lambda a, b, c: dot4(a, b, c, 0, 0), False),
    "v_dot4_i32_iu8": _dot(dot4, False, picks_sign=True),
}
