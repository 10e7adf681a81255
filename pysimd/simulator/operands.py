"""Operands of instructions as functions, made once per instruction, that read or write them in a gang.

A type is what the instruction takes the bits for: ``u32 i32 f32``, ``u16 i16 f16`` (one half of a register),
``u64 i64 f64`` (two registers), ``c64`` (the same where the lower half of the result needs only the lower halves),
``p16`` (a register whose halves the instruction picks itself), ``k16`` (a constant of 16 bits) and ``mask`` (one bit
per lane, in SGPRs).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from pysimd.simulator import gang as gangs
from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.gang import Gang

Reader = Callable[[Gang], np.ndarray]
Writer = Callable[[Gang, np.ndarray], None]

WIDE = ("u64", "i64", "f64", "c64")
HALF = ("u16", "i16", "f16")
DTYPES = {
    **{"u32": np.uint32, "i32": np.int32, "f32": np.float32, "p16": np.uint32},
    **{"u16": np.uint16, "i16": np.int16, "f16": np.float16},
    **{"u64": np.uint64, "i64": np.int64, "f64": np.float64, "c64": np.uint64},
}

_REGISTER = re.compile(r"(?P<file>[vas]|ttmp)(?:(?P<one>\d+)|\[(?P<low>\d+):(?P<high>\d+)\])(?:\.(?P<half>[lh]))?")
_FILES = {"v": 256, "a": 256, "s": gangs.VCC, "ttmp": 16}
"""Registers of each file that have numbers."""
_SPECIAL = {
    "vcc": (gangs.VCC, 2),
    "vcc_lo": (gangs.VCC, 1),
    "vcc_hi": (gangs.VCC + 1, 1),
    "exec": (gangs.EXEC, 2),
    "exec_lo": (gangs.EXEC, 1),
    "exec_hi": (gangs.EXEC + 1, 1),
    "m0": (gangs.M0, 1),
    "null": (gangs.NULL, 2),
}
_FLOAT = re.compile(r"-?\d+\.\d+(e[-+]?\d+)?")
_WRAPPERS = {"|": "absolute", "abs(": "absolute", "neg(": "negate", "sext(": "sign_extend"}


@dataclass(frozen=True)
class Operand:
    """A register (``file`` v, a or s, first index, how many), a constant (file empty), or ``off`` (file ``off``)."""

    text: str
    file: str
    index: int = 0
    count: int = 1
    constant: int | float = 0
    half: str = ""
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False

    @property
    def is_vector(self) -> bool:
        return self.file in ("v", "a")


@cache
def parse_operand(text: str) -> Operand:
    """``-|v3|``, ``s[4:5]``, ``vcc_lo``, ``0x3f800000``, ``1.0``, ``v7.h``."""
    bare, found = text, {}
    while True:
        if bare[0] == "-" and not re.match(r"-[\d.]", bare):
            found["negate"], bare = True, bare[1:]
            continue
        wrapper = next((x for x in _WRAPPERS if bare.startswith(x)), None)
        if wrapper is None:
            break
        found[_WRAPPERS[wrapper]], bare = True, bare[len(wrapper) : -1]
    register = _REGISTER.fullmatch(bare)
    if register:
        low = int(register["one"] or register["low"])
        file, first = ("s", gangs.TTMP) if register["file"] == "ttmp" else (register["file"], 0)
        count = int(register["high"] or low) - low + 1
        if count < 1 or low + count > _FILES[register["file"]]:
            raise UnsupportedInstruction(f"operand {text!r}: there are no such registers")
        return Operand(text, file, first + low, count, half=register["half"] or "", **found)
    if bare in _SPECIAL:
        return Operand(text, "s", *_SPECIAL[bare], **found)
    if bare == "off":
        return Operand(text, "off")
    if _FLOAT.fullmatch(bare):
        return Operand(text, "", constant=float(bare), **found)
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", bare):
        return Operand(text, "", constant=int(bare, 0), **found)
    raise UnsupportedInstruction(f"operand {text!r} is not modelled")


def constant_bits(operand: Operand, kind: str) -> int:
    """The bits of a constant: 1.0 differs from type to type, an integer stands for itself."""
    value = operand.constant
    wide = kind in WIDE
    if isinstance(value, float):
        layout = "<e" if kind in (*HALF, "p16") else "<d" if wide else "<f"
        return int.from_bytes(struct.pack(layout, value), "little")
    if kind == "f64" and not -16 <= value <= 64:
        return (value & 0xFFFFFFFF) << 32  # a literal is the upper half of a float64
    return value & (0xFFFFFFFFFFFFFFFF if wide else 0xFFFF if kind in HALF else 0xFFFFFFFF)


class Modifiers:
    """The modifiers of an instruction; those that nobody has asked for are refused."""

    _CACHE_POLICY = ("glc", "slc", "dlc", "nt", "sc0", "sc1", "th", "scope")

    def __init__(self, instruction: Instruction):
        self.instruction = instruction
        self._left = dict(instruction.modifiers)

    def take(self, name: str, default):
        return self._left.pop(name, default)

    def bits(self, name: str, count: int, default: int) -> list[int]:
        """A list such as op_sel, one value per operand."""
        found = self.take(name, [default] * count)
        if len(found) > count:
            raise UnsupportedInstruction(f"`{self.instruction}`: {name} has more values than there are operands")
        return found + [default] * (count - len(found))

    def ignore_cache_policy(self) -> None:
        """There are no caches: which of them an access passes does not matter."""
        for name in self._CACHE_POLICY:
            self._left.pop(name, None)

    def done(self) -> None:
        if self._left:
            name = next(iter(self._left))
            raise UnsupportedInstruction(f"`{self.instruction}`: modifier {name} is not modelled")


# Vector operands: arrays that broadcast to (W, L)


def vector_reader(operand: Operand, kind: str, high_half: bool = False) -> Reader:
    """A function that gives the operand in all lanes, of the dtype of its type; scalars have shape (W, 1) or ()."""
    if kind == "mask":
        return mask_reader(operand)
    if kind in WIDE:
        read = _wide(operand, kind)
    elif kind in HALF:
        read = _half(operand, kind, high_half or operand.half == "h")
    else:
        if operand.half:
            raise UnsupportedInstruction(f"operand {operand.text!r}: half of a register where a whole one is expected")
        read = as_type(vector_bits(operand, 0, kind), kind)
    return with_sign(read, operand, kind)


def vector_bits(operand: Operand, part: int = 0, kind: str = "u32") -> Reader:
    """Register number ``part`` of the operand as uint32."""
    if operand.file == "off":
        raise UnsupportedInstruction("operand `off` where a value is expected")
    if operand.file == "":
        bits = np.uint32(constant_bits(operand, kind) >> 32 * part & 0xFFFFFFFF)
        return lambda g: bits
    if part >= operand.count:
        raise UnsupportedInstruction(f"operand {operand.text!r} has {operand.count} registers, too few for its type")
    index = operand.index + part
    if operand.file == "s":
        return lambda g: g.read_s(index)[:, None]
    acc = operand.file == "a"
    return lambda g: g.read_v(index, acc)


def as_type(read: Reader, kind: str) -> Reader:
    dtype = DTYPES[kind]
    return read if dtype is np.uint32 else lambda g: read(g).view(dtype)


def _half(operand: Operand, kind: str, high: bool) -> Reader:
    dtype = DTYPES[kind]
    if operand.file == "":
        constant = np.uint16(constant_bits(operand, kind)).view(dtype)
        return lambda g: constant
    whole = vector_bits(operand)
    if high:
        return lambda g: (whole(g) >> np.uint32(16)).astype(np.uint16).view(dtype)
    return lambda g: whole(g).astype(np.uint16).view(dtype)


def _wide(operand: Operand, kind: str) -> Reader:
    dtype = DTYPES[kind]
    if operand.file == "":
        constant = np.uint64(constant_bits(operand, kind)).view(dtype)
        return lambda g: constant
    low, high = vector_bits(operand, 0), vector_bits(operand, 1)
    if kind == "c64":
        high = _apart(high)
    return lambda g: (low(g).astype(np.uint64) | high(g).astype(np.uint64) << np.uint64(32)).view(dtype)


def _apart(high: Reader) -> Reader:
    """Read upper halves so that, if they are undefined, only the upper half of the result is."""

    def read(g):
        value, found, name = g.read_apart(high)
        if found is not None:
            g.tainted_above.append((found, name))
        return value

    return read


def _join_taint(g: Gang) -> None:
    """After the lower half of a result was written: what follows depends on the upper halves too."""
    for lanes, name in g.tainted_above:
        g.taint(lanes, name)


def with_sign(read: Reader, operand: Operand, kind: str) -> Reader:
    """The source modifiers -x and |x|, which only floating-point operands have."""
    if not (operand.negate or operand.absolute):
        return read
    if not kind.startswith("f"):
        raise UnsupportedInstruction(f"operand {operand.text!r}: sign of an operand that is no float")
    if operand.absolute and operand.negate:
        return lambda g: -np.abs(read(g))
    return (lambda g: np.abs(read(g))) if operand.absolute else (lambda g: -read(g))


def mask_reader(operand: Operand) -> Reader:
    """One bit per lane, bool (W, L)."""
    index = operand.index
    if operand.file == "":
        bits = np.array([operand.constant >> i & 1 for i in range(64)], bool)
        return lambda g: bits[: g.lanes][None, :]
    if operand.file != "s":
        raise UnsupportedInstruction(f"operand {operand.text!r} where a mask is expected")
    return lambda g: g.read_mask(index)


def vector_writer(operand: Operand, kind: str, high_half: bool = False, keeps_other_half: bool = True) -> Writer:
    """A function that writes the lanes in EXEC. A result of 16 bits keeps or clears the rest of the register."""
    if kind == "mask":
        if operand.file != "s":
            raise UnsupportedInstruction(f"operand {operand.text!r} where a mask is written")
        return lambda g, mask: g.write_mask(operand.index, mask)
    if not operand.is_vector or operand.negate or operand.absolute:
        raise UnsupportedInstruction(f"operand {operand.text!r} where a vector register is written")
    index, acc = operand.index, operand.file == "a"
    if kind in WIDE:
        return _wide_writer(index, acc)
    if kind in HALF:
        high = high_half or operand.half == "h"
        return _half_writer(index, high, keeps_other_half or bool(operand.half) or high)
    return lambda g, value: g.write_v(index, np.asarray(value).view(np.uint32), acc)


def _wide_writer(index: int, acc: bool) -> Writer:
    def write(g, value):
        bits = np.asarray(value).view(np.uint64)
        low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
        g.write_v(index, low, acc)
        _join_taint(g)
        g.write_v(index + 1, high, acc)

    return write


def _half_writer(index: int, high: bool, keeps: bool) -> Writer:
    shift = np.uint32(16 if high else 0)
    other = np.uint32(0x0000FFFF if high else 0xFFFF0000)

    def write(g, value):
        bits = np.asarray(value).view(np.uint16).astype(np.uint32) << shift
        g.write_v(index, (g.v[index] & other) | bits if keeps else bits)

    return write


# Scalar operands: arrays of shape (W,)


def scalar_reader(operand: Operand, kind: str) -> Reader:
    """A function that gives the operand for each wave."""
    if kind == "k16":  # a constant of 16 bits, printed without its sign
        value = np.uint16(int(operand.constant) & 0xFFFF).view(np.int16).astype(np.int32)
        return lambda g: value
    dtype, index = DTYPES[kind], operand.index
    if operand.negate or operand.absolute or operand.is_vector or operand.file == "off":
        raise UnsupportedInstruction(f"operand {operand.text!r} of a scalar instruction is not modelled")
    if operand.file == "":
        bits = constant_bits(operand, kind)
        constant = (np.uint64 if kind in WIDE else np.uint32)(bits).view(dtype)
        return lambda g: constant
    if kind in WIDE:
        if operand.count < 2:
            raise UnsupportedInstruction(f"operand {operand.text!r} has one register, its type needs two")
        low, high = (lambda g: g.read_s(index)), (lambda g: g.read_s(index + 1))
        if kind == "c64":
            high = _apart(high)
        return lambda g: (low(g).astype(np.uint64) | high(g).astype(np.uint64) << np.uint64(32)).view(dtype)
    return lambda g: g.read_s(index).view(dtype)


def scalar_writer(operand: Operand, kind: str) -> Writer:
    index = operand.index
    if operand.file != "s":
        raise UnsupportedInstruction(f"operand {operand.text!r} where a scalar register is written")
    if kind in WIDE:

        def write(g, value):
            bits = np.asarray(value).view(np.uint64)
            g.write_s(index, bits.astype(np.uint32))
            _join_taint(g)
            g.write_s(index + 1, (bits >> np.uint64(32)).astype(np.uint32))

        return write
    return lambda g, value: g.write_s(index, np.asarray(value).view(np.uint32))
