"""Loads and stores: global memory, LDS, and the scalar loads that a whole wave does once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.gang import Gang
from pysimd.simulator.instructions.base import Decoder, Machine, Step
from pysimd.simulator.operands import Modifiers, Operand, parse_operand, scalar_reader, vector_bits, vector_reader


@dataclass(frozen=True)
class Width:
    """How many bytes an access moves; below four, how they fill a register (``half``: only ``low`` or ``high``)."""

    size: int
    signed: bool = False
    half: str = ""

    @property
    def registers(self) -> int:
        return max(1, self.size // 4)


_BYTE, _SIGNED_BYTE, _SHORT, _SIGNED_SHORT = Width(1), Width(1, signed=True), Width(2), Width(2, signed=True)

_LOAD_WIDTHS = {
    **{"ubyte": _BYTE, "u8": _BYTE, "sbyte": _SIGNED_BYTE, "i8": _SIGNED_BYTE},
    **{"ushort": _SHORT, "u16": _SHORT, "sshort": _SIGNED_SHORT, "i16": _SIGNED_SHORT},
    **dict.fromkeys(("short_d16", "d16_b16", "u16_d16"), Width(2, half="low")),
    **dict.fromkeys(("short_d16_hi", "d16_hi_b16", "u16_d16_hi"), Width(2, half="high")),
    **dict.fromkeys(("ubyte_d16", "d16_u8", "u8_d16"), Width(1, half="low")),
    **dict.fromkeys(("ubyte_d16_hi", "d16_hi_u8", "u8_d16_hi"), Width(1, half="high")),
    **dict.fromkeys(("sbyte_d16", "d16_i8", "i8_d16"), Width(1, signed=True, half="low")),
    **dict.fromkeys(("sbyte_d16_hi", "d16_hi_i8", "i8_d16_hi"), Width(1, signed=True, half="high")),
}
_STORE_WIDTHS = {
    **{"byte": _BYTE, "b8": _BYTE, "short": _SHORT, "b16": _SHORT},
    **dict.fromkeys(("short_d16_hi", "d16_hi_b16", "b16_d16_hi"), Width(2, half="high")),
    **dict.fromkeys(("byte_d16_hi", "d16_hi_b8", "b8_d16_hi"), Width(1, half="high")),
}
_WHOLE = {
    **{"dword": Width(4), "dwordx2": Width(8), "dwordx3": Width(12), "dwordx4": Width(16)},
    **{"b32": Width(4), "b64": Width(8), "b96": Width(12), "b128": Width(16)},
}


def _destination(operand: Operand, width: Width):
    """A function that takes bytes, shape (lanes in EXEC, size), to the registers."""
    index, acc = operand.index, operand.file == "a"
    if not operand.is_vector or operand.count != width.registers:
        raise UnsupportedInstruction(f"operand {operand.text!r}: expected {width.registers} vector registers")
    if width.size >= 4:

        def write(g: Gang, data: np.ndarray) -> None:
            words = data.view(np.uint32)
            for i in range(width.registers):
                g.write_lanes(index + i, words[:, i], acc)

        return write
    half = width.half or {"l": "low", "h": "high"}.get(operand.half, "")
    narrow = np.dtype(f"{'i' if width.signed else 'u'}{width.size}")

    def write_narrow(g: Gang, data: np.ndarray) -> None:
        values = data.view(narrow)[:, 0].astype(np.int32).view(np.uint32)
        if half:
            old = g.register(index)[g.exec]
            low = half == "low"
            values = values & np.uint32(0xFFFF) if low else values << np.uint32(16)
            values = values | old & np.uint32(0xFFFF0000 if low else 0xFFFF)
        g.write_lanes(index, values, acc)

    return write_narrow


def _source(operand: Operand, width: Width):
    """A function that gives the bytes to store, shape (lanes in EXEC, size)."""
    if not operand.is_vector or operand.count != width.registers:
        raise UnsupportedInstruction(f"operand {operand.text!r}: expected {width.registers} vector registers")
    reads = [vector_bits(operand, i) for i in range(width.registers)]
    shift = np.uint32(16 if "high" in (width.half, {"h": "high"}.get(operand.half)) else 0)

    def read(g: Gang) -> np.ndarray:
        words = np.stack([x(g)[g.exec] for x in reads], axis=1)
        return (words >> shift).view(np.uint8)[:, : width.size] if width.size < 4 else words.view(np.uint8)

    return read


# Global memory


def _global_address(vector: str, scalar: str, modifiers: Modifiers):
    """64 bits from vector registers, or a base in scalar registers and 32 bits from a vector register."""
    offset = np.int64(modifiers.take("offset", 0))
    modifiers.ignore_cache_policy()
    modifiers.done()
    if scalar == "off":
        read = vector_reader(parse_operand(vector), "i64")
        return lambda g: np.broadcast_to(read(g) + offset, g.exec.shape)[g.exec]
    operand = parse_operand(scalar)
    if operand.file != "s":
        raise UnsupportedInstruction(f"operand {operand.text!r} where scalar registers hold the base address")
    base, index = scalar_reader(operand, "i64"), vector_reader(parse_operand(vector), "u32")
    return lambda g: np.broadcast_to(index(g).astype(np.int64) + (base(g) + offset)[:, None], g.exec.shape)[g.exec]


def _global_load(width: Width) -> Decoder:
    def decode(instruction: Instruction, machine: Machine) -> Step:
        result, vector, *scalar = instruction.operands
        address = _global_address(vector, scalar[0] if scalar else "off", Modifiers(instruction))
        write = _destination(parse_operand(result), width)

        def step(g: Gang) -> None:
            if g.active:
                where = address(g)
                g.require_defined("the address")
                data, is_argument = g.shared.memory.load(where, width.size, g.lanes_of(g.waves))
                g.shared.traffic.load("arguments" if is_argument else "global", data.size)
                write(g, data)

        return step

    return decode


def _global_store(width: Width) -> Decoder:
    def decode(instruction: Instruction, machine: Machine) -> Step:
        vector, value, *scalar = instruction.operands
        address = _global_address(vector, scalar[0] if scalar else "off", Modifiers(instruction))
        read = _source(parse_operand(value), width)

        def step(g: Gang) -> None:
            if g.active:
                where, data = address(g), read(g)
                g.require_defined("the address or the value")
                g.shared.memory.store(where, data, g.lanes_of(g.waves))
                g.shared.traffic.store("global", data.size)

        return step

    return decode


def _scalar_load(width: Width) -> Decoder:
    def decode(instruction: Instruction, machine: Machine) -> Step:
        result, address, *offset = (parse_operand(x) for x in instruction.operands)
        base = scalar_reader(address, "i64")
        plus = _scalar_offset(offset[0]) if offset else lambda g: np.int64(0)
        modifiers = Modifiers(instruction)
        constant = np.int64(modifiers.take("offset", 0))
        modifiers.ignore_cache_policy()
        modifiers.done()
        narrow = np.dtype(f"{'i' if width.signed else 'u'}{min(width.size, 4)}")

        def step(g: Gang) -> None:
            where = np.broadcast_to(base(g) + plus(g) + constant, (g.count,))
            g.require_defined("the address")
            data, is_argument = g.shared.memory.load(where, width.size, g.waves)
            g.shared.traffic.load("arguments" if is_argument else "scalar", data.size)
            words = data.view(narrow).astype(np.int32 if width.signed else np.uint32, copy=False).view(np.uint32)
            for i in range(width.registers):
                g.write_s(result.index + i, words[:, i])

        return step

    return decode


def _scalar_offset(operand: Operand):
    if operand.file == "":
        constant = np.int64(operand.constant)
        return lambda g: constant
    read = scalar_reader(operand, "u32")
    return lambda g: read(g).astype(np.int64)


# LDS


def _lds_place(g: Gang, address, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Blocks and byte offsets of the lanes in EXEC."""
    at = np.broadcast_to(address(g), g.exec.shape)[g.exec].astype(np.int64) + offset
    at &= 0xFFFF_FFFF  # addresses wrap: compilers fold a constant into one that is below zero
    g.require_defined("the address")
    return g.lanes_of(g.blocks), at


def _lds_load(width: Width, stride: int = 0) -> Decoder:
    """With a stride: two accesses, offset0 and offset1 count strides, the results follow one another."""

    def decode(instruction: Instruction, machine: Machine) -> Step:
        result, address = (parse_operand(x) for x in instruction.operands)
        offsets = _lds_offsets(instruction, stride)
        read = vector_bits(address)
        write = _destination(result, Width(width.size * len(offsets), width.signed, width.half))

        def step(g: Gang) -> None:
            if g.active:
                waves = g.lanes_of(g.in_block)
                parts = [g.shared.lds.load(*_lds_place(g, read, x), width.size, waves) for x in offsets]
                data = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
                g.shared.traffic.load("lds", data.size)
                write(g, data)

        return step

    return decode


def _lds_store(width: Width, stride: int = 0) -> Decoder:
    def decode(instruction: Instruction, machine: Machine) -> Step:
        address, *values = (parse_operand(x) for x in instruction.operands)
        offsets = _lds_offsets(instruction, stride)
        place = vector_bits(address)
        reads = [_source(x, width) for x in values]
        if len(reads) != len(offsets):
            raise UnsupportedInstruction(f"`{instruction}`: expected {len(offsets)} values")

        def step(g: Gang) -> None:
            if g.active:
                for read, offset in zip(reads, offsets, strict=True):
                    data = read(g)
                    g.require_defined("the value")
                    g.shared.lds.store(*_lds_place(g, place, offset), data, g.lanes_of(g.in_block))
                    g.shared.traffic.store("lds", data.size)

        return step

    return decode


def _lds_offsets(instruction: Instruction, stride: int) -> list[int]:
    modifiers = Modifiers(instruction)
    names = ("offset0", "offset1") if stride else ("offset",)
    offsets = [modifiers.take(x, 0) * (stride or 1) for x in names]
    modifiers.done()
    return offsets


def _two_accesses() -> dict[str, Decoder]:
    """Loads and stores of two places, by their names on gfx9 and on gfx11; the last of each count in 64 elements."""
    found = {}
    for bits in (32, 64):
        size = bits // 8
        for load, store, stride in (
            ("read2", "write2", size),
            ("load_2addr", "store_2addr", size),
            ("read2st64", "write2st64", 64 * size),
            ("load_2addr_stride64", "store_2addr_stride64", 64 * size),
        ):
            found[f"ds_{load}_b{bits}"] = _lds_load(Width(size), stride)
            found[f"ds_{store}_b{bits}"] = _lds_store(Width(size), stride)
    return found


TABLE: dict[str, Decoder] = {
    **{f"s_load_dword{f'x{n}' if n > 1 else ''}": _scalar_load(Width(4 * n)) for n in (1, 2, 4, 8, 16)},
    **{f"s_load_b{32 * n}": _scalar_load(Width(4 * n)) for n in (1, 2, 3, 4, 8, 16)},
    **{f"s_load_{x}": _scalar_load(_LOAD_WIDTHS[x]) for x in ("u8", "i8", "u16", "i16")},
    **{
        f"{space}_load_{name}": _global_load(width)
        for space in ("global", "flat")
        for name, width in {**_LOAD_WIDTHS, **_WHOLE}.items()
    },
    **{
        f"{space}_store_{name}": _global_store(width)
        for space in ("global", "flat")
        for name, width in {**_STORE_WIDTHS, **_WHOLE}.items()
    },
    **{f"ds_{x}_{name}": _lds_load(w) for x in ("read", "load") for name, w in {**_LOAD_WIDTHS, **_WHOLE}.items()},
    **{f"ds_{x}_{name}": _lds_store(w) for x in ("write", "store") for name, w in {**_STORE_WIDTHS, **_WHOLE}.items()},
    **_two_accesses(),
}
