"""Values that go from lane to lane, and between lanes and scalar registers."""

from __future__ import annotations

import re

import numpy as np

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.instructions.base import Arithmetic, Decoder, Machine, Step
from pysimd.simulator.instructions.dpp import quad_permutation
from pysimd.simulator.operands import (
    Modifiers,
    parse_operand,
    scalar_reader,
    scalar_writer,
    vector_bits,
    vector_reader,
    vector_writer,
)


def _source(instruction: Instruction, index: int):
    """A vector operand that is read in lanes outside EXEC too, or a scalar: uint32 (W, L)."""
    operand = parse_operand(instruction.operands[index])
    if not operand.is_vector:
        return vector_bits(operand)
    number, acc = operand.index, operand.file == "a"
    return lambda g: g.register(number, acc)


def _read_first_lane(instruction: Instruction, machine: Machine) -> Step:
    Modifiers(instruction).done()
    write = scalar_writer(parse_operand(instruction.operands[0]), "u32")
    read = vector_reader(parse_operand(instruction.operands[1]), "u32")

    def step(g):
        values = np.broadcast_to(read(g), g.exec.shape)
        g.require_defined("a value for all lanes")
        write(g, values[np.arange(g.count), g.exec.argmax(axis=1)])  # lane 0 where no lane is active

    return step


def _read_lane(instruction: Instruction, machine: Machine) -> Step:
    Modifiers(instruction).done()
    write = scalar_writer(parse_operand(instruction.operands[0]), "u32")
    read, lane = _source(instruction, 1), scalar_reader(parse_operand(instruction.operands[2]), "u32")
    return lambda g: write(g, read(g)[np.arange(g.count), lane(g) & np.uint32(g.lanes - 1)])


def _write_lane(instruction: Instruction, machine: Machine) -> Step:
    Modifiers(instruction).done()
    result = parse_operand(instruction.operands[0])
    value, lane = (scalar_reader(parse_operand(x), "u32") for x in instruction.operands[1:])
    return lambda g: g.write_one_lane(result.index, lane(g) & np.uint32(g.lanes - 1), value(g))


def _bits_below(instruction: Instruction, machine: Machine) -> Step:
    """v_mbcnt: set bits of the mask below this lane, plus the second operand; lo: lanes 0 to 31, hi: the others."""
    Modifiers(instruction).done()
    result, mask, plus = (parse_operand(x) for x in instruction.operands)
    first = 32 if "_hi_" in instruction.mnemonic else 0
    lanes = np.arange(machine.wave_size)
    below = np.array([(1 << min(max(int(x) - first, 0), 32)) - 1 for x in lanes], np.uint32)
    read, add = vector_bits(mask), vector_bits(plus)
    ones = np.array([bin(x).count("1") for x in range(256)], np.uint32)

    def compute(g):
        word = np.broadcast_to(read(g), g.exec.shape) & below
        return ones[np.ascontiguousarray(word)[..., None].view(np.uint8)].sum(axis=2, dtype=np.uint32) + add(g)

    return Arithmetic(compute, vector_writer(result, "u32"))


def _gathered(g, values: np.ndarray, source: np.ndarray) -> np.ndarray:
    """What each lane gets from its source lane; 0 from a lane that EXEC leaves out."""
    wave = np.arange(g.count)[:, None]
    g.require_defined("a value for other lanes")
    return np.where(g.exec[wave, source], np.broadcast_to(values, g.exec.shape)[wave, source], np.uint32(0))


def _byte_permute(instruction: Instruction, machine: Machine) -> Step:
    """ds_bpermute: every lane names the lane (times 4) that it reads. It passes no LDS."""
    if machine.generation > 9 and machine.wave_size == 64:
        raise UnsupportedInstruction(f"`{instruction}` of 64 lanes on {machine.target} is not modelled")
    modifiers = Modifiers(instruction)
    offset = np.uint32(modifiers.take("offset", 0))
    modifiers.done()
    result, address, value = (parse_operand(x) for x in instruction.operands)
    where, read = vector_bits(address), vector_bits(value)
    size = np.uint32(machine.wave_size - 1)

    def compute(g):
        source = np.broadcast_to((where(g) + offset) >> np.uint32(2) & size, g.exec.shape)
        return _gathered(g, read(g), source)

    return Arithmetic(compute, vector_writer(result, "u32"))


def _swizzle(instruction: Instruction, machine: Machine) -> Step:
    """ds_swizzle: a fixed pattern within 32 lanes, or within four."""
    modifiers = Modifiers(instruction)
    source = _swizzle_sources(instruction, modifiers.take("offset", 0))[: machine.wave_size]
    modifiers.done()
    result, value = (parse_operand(x) for x in instruction.operands)
    read = vector_bits(value)
    return Arithmetic(
        lambda g: _gathered(g, read(g), np.broadcast_to(source, g.exec.shape)), vector_writer(result, "u32")
    )


def _swizzle_sources(instruction: Instruction, pattern) -> np.ndarray:
    lane = np.arange(64)
    in_half = lane % 32
    if isinstance(pattern, int):
        if pattern & 0x8000:
            return quad_permutation([pattern >> 2 * i & 3 for i in range(4)])
        low = (in_half & (pattern & 31) | pattern >> 5 & 31) ^ (pattern >> 10 & 31)
        return lane - in_half + low
    name, *numbers = re.findall(r"[A-Z_]+|\d+|\"[01pi]+\"", pattern.removeprefix("swizzle"))
    if name == "QUAD_PERM":
        return quad_permutation([int(x) for x in numbers])
    if name == "SWAP":
        return lane ^ int(numbers[0])
    if name == "REVERSE":
        return lane ^ (int(numbers[0]) - 1)
    if name == "BROADCAST":
        size, chosen = map(int, numbers)
        return lane // size * size + chosen
    if name == "BITMASK_PERM":
        low = np.zeros(64, int)
        for bit, sign in zip((16, 8, 4, 2, 1), numbers[0].strip('"'), strict=True):
            low += {"0": 0 * lane, "1": 0 * lane + bit, "p": in_half & bit, "i": ~in_half & bit}[sign]
        return lane - in_half + low
    raise UnsupportedInstruction(f"`{instruction}`: this pattern is not modelled")


def _permute_row(other_row: bool):
    """v_permlane16: a lane reads the one of its row of 16 that two scalars name, 4 bits a lane; x: of the other row."""

    def decode(instruction: Instruction, machine: Machine) -> Step:
        modifiers = Modifiers(instruction)
        fetch_inactive, bound_control = modifiers.bits("op_sel", 3, 0)[:2]
        modifiers.done()
        result = parse_operand(instruction.operands[0])
        read = _source(instruction, 1)
        low, high = (scalar_reader(parse_operand(x), "u32") for x in instruction.operands[2:])
        lane = np.arange(machine.wave_size)
        row = lane // 16 ^ 1 if other_row else lane // 16

        def step(g):
            choices = np.where(lane % 16 < 8, *(np.reshape(x(g), (-1, 1)) for x in (low, high)))
            source = row * 16 + (choices >> (lane % 8 * 4).astype(np.uint32) & np.uint32(15))
            source = np.broadcast_to(source, g.exec.shape).astype(np.intp)
            wave = np.arange(g.count)[:, None]
            values = np.broadcast_to(read(g), g.exec.shape)[wave, source]
            there = g.exec[wave, source] | bool(fetch_inactive)
            absent = np.uint32(0) if bound_control else g.register(result.index)
            g.write_v(result.index, np.where(there, values, absent))

        return step

    return decode


TABLE: dict[str, Decoder] = {
    "v_readfirstlane_b32": _read_first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    **dict.fromkeys(("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"), _bits_below),
    "ds_bpermute_b32": _byte_permute,
    "ds_swizzle_b32": _swizzle,
    "v_permlane16_b32": _permute_row(False),
    "v_permlanex16_b32": _permute_row(True),
}
