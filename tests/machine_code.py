"""The instructions that are really in the built extension: functions by ELF symbol, decoded with iced-x86, and what the
innermost loops of a kernel do."""

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import iced_x86 as iced

from pysimd import _cpu

MNEMONICS = {value: name for name, value in vars(iced.Mnemonic).items() if isinstance(value, int)}
CPUID_FEATURES = {value: name for name, value in vars(iced.CpuidFeature).items() if isinstance(value, int)}
_INFO = iced.InstructionInfoFactory()
_READS = (iced.OpAccess.READ, iced.OpAccess.COND_READ, iced.OpAccess.READ_WRITE, iced.OpAccess.READ_COND_WRITE)
_WRITES = (iced.OpAccess.WRITE, iced.OpAccess.COND_WRITE, iced.OpAccess.READ_WRITE, iced.OpAccess.READ_COND_WRITE)

SUMS_OF = {"VPDPBUSD": 4, "VDPBF16PS": 2, "VPMADDWD": 2, "PMADDWD": 2}
"""Multiply-adds in each 32-bit lane, of the instructions that do more than one."""


@cache
def functions() -> dict[str, tuple[int, bytes]]:
    """Address and code of every function of the extension that has a symbol; a static one is ``file.c:name``."""
    elf = Path(_cpu.__file__).read_bytes()
    assert elf[:5] == b"\x7fELF\x02", "not a 64-bit ELF file"
    offset, size, count = struct.unpack_from("<Q10xHH", elf, 0x28)
    fields = ("name", "type", "flags", "address", "offset", "size", "link")
    sections = [
        dict(zip(fields, struct.unpack_from("<IIQQQQI", elf, offset + i * size), strict=True)) for i in range(count)
    ]
    found = {}
    for table in (s for s in sections if s["type"] == 2):  # SHT_SYMTAB
        names = sections[table["link"]]["offset"]
        file = ""
        for at in range(table["offset"], table["offset"] + table["size"], 24):
            name, info, _, section, address, length = struct.unpack_from("<IBBHQQ", elf, at)
            text = elf[names + name : elf.index(b"\0", names + name)].decode()
            if info & 15 == 4:  # STT_FILE: the static functions of this file follow, at last (no name) the others
                file = text and f"{text}:"
            elif info & 15 == 2 and length and section < count:  # STT_FUNC
                start = address - sections[section]["address"] + sections[section]["offset"]
                found[file + text] = (address, elf[start : start + length])
    return found


@cache
def instructions(name: str) -> list[iced.Instruction]:
    address, code = functions()[name]
    return list(iced.Decoder(64, code, ip=address))


def features(name: str) -> set[str]:
    """The CPUID features that the function's instructions need, in iced-x86's names."""
    return {CPUID_FEATURES[f] for i in instructions(name) for f in i.cpuid_features()}


def masked_stores_that_fault(name: str) -> list[str]:
    """Stores of an extracted part under a mask: these fault on masked-off bytes too (exception class E6NF)."""
    return [
        str(i)
        for i in instructions(name)
        if MNEMONICS[i.mnemonic].startswith("VEXTRACT") and i.op0_kind == iced.OpKind.MEMORY and i.has_op_mask
    ]


@dataclass
class Loop:
    """What one pass through an innermost loop does.

    Attributes:
        macs: multiply-adds, one per lane and product.
        load_bytes: bytes that vector instructions read, an element broadcast from memory counted once.
        stores: instructions that write memory.
        stack: accesses of vector registers to the stack: spilled accumulators. (An address may be reloaded.)
    """

    text: list[str]
    macs: int = 0
    load_bytes: int = 0
    stores: int = 0
    stack: int = 0


def innermost_loops(name: str) -> list[Loop]:
    """The innermost loops of a function, most multiply-adds first."""
    code = instructions(name)
    backwards = [
        (i.near_branch_target, i.ip)
        for i in code
        if i.flow_control == iced.FlowControl.CONDITIONAL_BRANCH and code[0].ip <= i.near_branch_target <= i.ip
    ]
    inner = [x for x in backwards if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in backwards)]
    loops = [_loop([i for i in code if first <= i.ip <= last]) for first, last in inner]
    return sorted(loops, key=lambda loop: -loop.macs)


def _loop(body: list[iced.Instruction]) -> Loop:
    loop = Loop([str(i) for i in body])
    for i in body:
        loop.macs += _macs(i)
        info = _INFO.info(i)
        vector = any(iced.RegisterExt.is_vector_register(u.register) for u in info.used_registers())
        for memory in info.used_memory():
            loop.stores += memory.access in _WRITES
            loop.stack += vector and memory.base == iced.Register.RSP
            if vector and memory.access in _READS:
                sizes = iced.MemorySizeExt
                loop.load_bytes += (sizes.element_size if i.is_broadcast else sizes.size)(memory.memory_size)
    return loop


def _macs(i: iced.Instruction) -> int:
    name = MNEMONICS[i.mnemonic]
    if not i.op_count or not iced.RegisterExt.is_vector_register(i.op0_register):
        return 0
    width = iced.RegisterExt.size(i.op0_register)
    for prefix, sums in SUMS_OF.items():
        if name.startswith(prefix):
            return width // 4 * sums
    if name.startswith(("VFMADD", "VMULP", "MULP")) and name.endswith(("PS", "PD")):
        return width // (4 if name.endswith("PS") else 8)
    return 1 if name.startswith(("VFMADD", "VMULS", "MULS")) else 0
