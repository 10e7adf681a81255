"""The code of CPU kernels in the running process, decoded with iced-x86."""

from __future__ import annotations

import ctypes
import platform
from dataclasses import replace
from functools import cache

from pysimd._cpu import ffi, lib
from pysimd.backends.cpu import ladder
from pysimd.backends.cpu import table as cpu_table
from pysimd.errors import OptionError, UnavailableError
from pysimd.inspection.counts import LOAD, MOVE, MULTIPLY_ADD, SPILL, STORE, Inspection, Line
from pysimd.microkernel import MicroKernel, Rung

try:
    import iced_x86 as iced
except ImportError:
    iced = None

TILE_BYTES = 1024
"""Of a tile register of AMX, 16 rows of 64."""

MACS_PER_TILES = {"TDPBF16PS": 16 * 16 * 32, "TDPBSSD": 16 * 16 * 64, "TDPBUSD": 16 * 16 * 64}
"""Multiply-adds of the product of two whole tile registers."""

MACS_PER_32_BITS = {"VPDPBUSD": 4, "VPDPWSSD": 2, "VDPBF16PS": 2, "VPMADDWD": 2, "PMADDWD": 2}
"""Multiply-adds in each 32-bit lane, of instructions that do more than one."""

PRODUCTS_OF_PARTS = 4
"""Multiply-adds of bfloat16 for one of float16 in a SPLIT panel, where a value is the sum of two."""

SPLIT = "the upper parts of A are loaded twice, before and after its lower parts"
LOWERED = "the compiler lowers plain C vectors to the registers of the processor, and loads some elements twice"

_MOST_BYTES = 1 << 16
"""Longer than any ``run`` function of a kernel."""


def missing() -> str:
    """Why nothing can be decoded here; empty if it can."""
    if platform.machine() != "x86_64":
        return f"machine code of {platform.machine()} cannot be read: x86-64 only"
    return "" if iced else "iced-x86 is not installed: pip install 'pysimd[inspect]'"


def inspect(kernel: MicroKernel | Rung, target: str | None) -> Inspection:
    """``pysimd.inspect`` of a CPU kernel or of a rung of the CPU ladder."""
    if isinstance(kernel, Rung):
        microkernel = ladder.microkernel(kernel)
        built_for, start = (microkernel.target, address(microkernel)) if microkernel else ladder.code(kernel)
    else:
        microkernel, built_for, start = kernel, kernel.target, address(kernel)
    if target not in (None, built_for):
        raise OptionError(f"target={target!r}: {kernel.name} is built for {built_for}; leave the target out")
    if missing():
        raise UnavailableError(missing())
    if microkernel is None:
        return _counted(kernel.name, built_for, start, 4, kernel.ratio.value)
    return replace(inspection(microkernel, start), kernel=kernel.name)


def address(kernel: MicroKernel) -> int:
    """Where the code of a kernel's ``run`` starts, in this process."""
    return int(ffi.cast("uintptr_t", cpu_table.row(kernel.name).run))


def inspection(kernel: MicroKernel, start: int) -> Inspection:
    """The hot loop of the function at an address, counted as this kernel's."""
    panel = cpu_table.row(kernel.name).panel
    element_bytes = kernel.a_dtype.itemsize * (2 if panel in (lib.WIDE, lib.SPLIT) else 1)
    found = _counted(kernel.name, kernel.target, start, element_bytes, kernel.ratio.value)
    if panel != lib.SPLIT:
        return found
    lines = tuple(replace(line, macs=line.macs // PRODUCTS_OF_PARTS) for line in found.lines)
    return replace(found, lines=lines, remark=SPLIT)


def _counted(name: str, target: str, start: int, element_bytes: int, ratio: float) -> Inspection:
    code = decode(*function_at(start))
    loops = innermost_loops(code)
    if not any(macs(i) for loop in loops for i in loop):
        raise UnavailableError(f"no loop of {name} has a multiply-add that is known: it cannot be counted")
    loop = hot_loop(loops)
    return Inspection(
        kernel=name,
        target=target,
        entry=name,
        scope="core",
        element_bytes=element_bytes,
        registers=len(vector_registers(loop)),
        registers_there_are=8 if target == "amx" else 32 if target.startswith("avx512") else 16,
        features=tuple(sorted(features(code))),
        analytic_ratio=ratio,
        remark=LOWERED if target == "generic" else "",
        lines=tuple(line(i) for i in loop),
    )


def function_at(address: int) -> tuple[int, bytes]:
    """Address and code of the function that starts there: up to the return that no branch passes."""
    code = ctypes.string_at(address, min(_MOST_BYTES, _mapped_until(address) - address))
    farthest = address
    for i in iced.Decoder(64, code, ip=address):
        if i.flow_control in (iced.FlowControl.CONDITIONAL_BRANCH, iced.FlowControl.UNCONDITIONAL_BRANCH):
            farthest = max(farthest, i.near_branch_target)
        leaves = (iced.FlowControl.RETURN, iced.FlowControl.UNCONDITIONAL_BRANCH, iced.FlowControl.INDIRECT_BRANCH)
        if i.flow_control in leaves and farthest < i.next_ip:
            return address, code[: i.next_ip - address]
    raise UnavailableError(f"the function at {address:#x} does not end within {len(code)} bytes: it cannot be read")


def _mapped_until(address: int) -> int:
    with open("/proc/self/maps") as maps:
        for line in maps:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if start <= address < end:
                return end
    raise UnavailableError(f"/proc/self/maps has no code at {address:#x}: it cannot be read")


def decode(address: int, code: bytes) -> list:
    """The instructions of a piece of code."""
    return list(iced.Decoder(64, code, ip=address))


def innermost_loops(code: list) -> list[list]:
    """The instructions of each innermost loop of a function."""
    backwards = [
        (i.near_branch_target, i.ip)
        for i in code
        if i.flow_control == iced.FlowControl.CONDITIONAL_BRANCH and code[0].ip <= i.near_branch_target <= i.ip
    ]
    inner = [x for x in backwards if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in backwards)]
    return [[i for i in code if first <= i.ip <= last] for first, last in inner]


def hot_loop(loops: list[list]) -> list:
    """The loop that packed panels take: most multiply-adds, then fewest registers in addresses, since the strides of a
    packed panel are constants."""
    return max(loops, key=lambda loop: (sum(map(macs, loop)), -len(_address_registers(loop)), -len(loop)))


def _address_registers(loop: list) -> set[int]:
    return {r for i in loop for m in _used(i).used_memory() for r in (m.base, m.index)}


def vector_registers(loop: list) -> set[int]:
    """The vector and tile registers that a loop names, each by its widest form."""
    used = (u.register for i in loop for u in _used(i).used_registers())
    return {iced.RegisterExt.full_register(r) for r in used if _is_vector(r)}


def _is_vector(register: int) -> bool:
    return iced.RegisterExt.is_vector_register(register) or iced.RegisterExt.is_tmm(register)


def features(code: list) -> set[str]:
    """The CPUID features that instructions need, in iced-x86's names."""
    return {_names("CpuidFeature")[f] for i in code for f in i.cpuid_features()}


def mnemonic(i) -> str:
    """In capitals, as iced-x86 has it."""
    return _names("Mnemonic")[i.mnemonic]


def line(i) -> Line:
    """What an instruction does for the tile."""
    roles, load_bytes, used = [], 0, _used(i)
    vector = any(_is_vector(u.register) for u in used.used_registers())
    if macs(i):
        roles.append(MULTIPLY_ADD)
    for memory in used.used_memory():
        reads, writes = memory.access in _reads(), memory.access in _writes()
        if memory.base == iced.Register.RSP:
            roles += [SPILL] if vector else []  # an address may be reloaded
            continue
        roles += [LOAD] * reads + [STORE] * writes
        sizes = iced.MemorySizeExt
        size = (sizes.element_size if i.is_broadcast else sizes.size)(memory.memory_size)
        load_bytes += reads * (size or TILE_BYTES)  # the size of a tile is not in the instruction
    if vector and not roles and mnemonic(i).startswith(("MOV", "VMOV")):
        roles.append(MOVE)
    return Line(str(i), tuple(roles), macs(i), "memory" if LOAD in roles else "", load_bytes)


def macs(i) -> int:
    """Multiply-adds of one instruction, all lanes; of a multiply and its add, the multiply counts."""
    name = mnemonic(i)
    if name in MACS_PER_TILES:
        return MACS_PER_TILES[name]
    if not i.op_count or not iced.RegisterExt.is_vector_register(i.op0_register):
        return 0
    width = iced.RegisterExt.size(i.op0_register)
    for prefix, macs_per_word in MACS_PER_32_BITS.items():
        if name.startswith(prefix):
            return width // 4 * macs_per_word
    if name == "PMULUDQ":  # how plain C without SSE4.1 multiplies 32-bit integers: two products at a time
        return 2
    if name.startswith(("VFMADD", "VMULP", "MULP")) and name.endswith(("PS", "PD", "PH")):
        return width // {"PS": 4, "PD": 8, "PH": 2}[name[-2:]]
    return 1 if name.startswith(("VFMADD", "VMULS", "MULS")) else 0


@cache
def _names(kind: str) -> dict[int, str]:
    return {value: name for name, value in vars(getattr(iced, kind)).items() if isinstance(value, int)}


@cache
def _information():
    return iced.InstructionInfoFactory()


def _used(i):
    return _information().info(i)


@cache
def _reads() -> tuple[int, ...]:
    access = iced.OpAccess
    return (access.READ, access.COND_READ, access.READ_WRITE, access.READ_COND_WRITE)


@cache
def _writes() -> tuple[int, ...]:
    access = iced.OpAccess
    return (access.WRITE, access.COND_WRITE, access.READ_WRITE, access.READ_COND_WRITE)
