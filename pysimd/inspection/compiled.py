"""Kernels of Arm and RISC-V on any machine: compiled by clang for their target, and disassembled by llvm-objdump."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from pysimd.backends.cpu import table as cpu_table
from pysimd.cpu_kernels import targets
from pysimd.errors import OptionError, UnavailableError
from pysimd.inspection.counts import LOAD, MOVE, MULTIPLY_ADD, SPILL, STORE, Inspection, Line
from pysimd.microkernel import MicroKernel
from pysimd.simulator import compilers

FOLDERS = {"arm": "aarch64", "riscv": "riscv64"}
"""Folders of cpu_kernels whose kernels are read like this, and the machine that clang is told."""

_FLAGS = {"aarch64": (), "riscv64": ("-mno-relax",)}  # relaxation would leave the targets of branches to the linker

_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*([^/]*)")
_TARGET = re.compile(r"0x([0-9a-f]+) <")

_MACS_PER_32_BITS = {"fmla": 1, "sdot": 4, "smmla": 8, "usmmla": 8, "bfmmla": 4, "fmopa": 1, "bfmopa": 2}
_MACS_PER_32_BITS |= {"vfmacc.vf": 1, "vwmacc.vx": 1}
"""Multiply-adds that an instruction does for each 32 bits of the accumulators that it adds to (half of it for 64)."""

_LOADED_BY_LANES = {"ld1w": 4, "ld1d": 8, "vle16.v": 2, "vle32.v": 4, "vle64.v": 8}
_LOADED = {"ld1rw": 4, "ld1rd": 8, "flw": 4, "fld": 8, "lh": 2}
_LOADED_BY_REGISTER = {"q": 16, "d": 8, "s": 4}


@dataclass(frozen=True)
class Instruction:
    """An instruction: where it is, its name and operands as text, and where it branches to."""

    address: int
    name: str
    operands: str
    goes_to: int | None

    def __str__(self) -> str:
        return f"{self.name} {self.operands}".strip()


def missing() -> str:
    """Why nothing can be compiled and disassembled here; empty if it can."""
    try:
        tools = compilers.toolchain()
    except UnavailableError as error:
        return str(error)
    return "" if tools.objdump else f"{tools.name} has no disassembler: install llvm-19 (apt)"


def is_read(kernel: MicroKernel) -> bool:
    """Whether this module reads a CPU kernel."""
    return kernel.source_path.split("/")[1] in FOLDERS


def inspect(kernel: MicroKernel, target: str | None) -> Inspection:
    """``pysimd.inspect`` of a kernel of Arm or RISC-V."""
    if target not in (None, kernel.target):
        raise OptionError(f"target={target!r}: {kernel.name} is built for {kernel.target}; leave the target out")
    if missing():
        raise UnavailableError(missing())
    loop = hot_loop(kernel)
    wide = cpu_table.row(kernel.name).panel == cpu_table.lib.WIDE
    return Inspection(
        kernel=kernel.name,
        target=kernel.target,
        entry=kernel.name,
        scope="core",
        element_bytes=kernel.a_dtype.itemsize * (2 if wide else 1),
        registers=registers(kernel, loop),
        registers_there_are=36 if kernel.target == "sme" else 32,
        features=(),
        analytic_ratio=kernel.ratio.value,
        remark="",
        lines=tuple(line(kernel, i) for i in loop),
    )


@cache
def instructions(kernel: MicroKernel) -> tuple[Instruction, ...]:
    """The instructions of the kernel's ``run``."""
    folder, flags = targets.TARGETS[kernel.target]
    machine = FOLDERS[folder]
    tools = compilers.toolchain()
    path = Path(kernel.source_path)
    options = (*targets.FLAGS, *flags, *_FLAGS[machine], "-ffreestanding", "-w")
    with as_file(files("pysimd.cpu_kernels")) as sources, tempfile.TemporaryDirectory(prefix="pysimd-") as made:
        source, obj = sources / Path(*path.parts[1:]), Path(made) / "kernel.o"
        compilers.run([*tools.clang, f"--target={machine}-linux-gnu", *options, "-c", str(source), "-o", str(obj)])
        listing = tools.disassemble(obj.read_bytes())
    body = listing.split(f"<{kernel.name}>:", 1)[1].split("\n\n", 1)[0]
    return tuple(_instruction(match) for match in map(_LINE.match, body.splitlines()) if match)


def _instruction(match: re.Match) -> Instruction:
    """The bytes of the instruction, which come first, are left out."""
    words = re.sub(r"^(?:[0-9a-f]{2,8} )+\s*", "", f"{match[2]} {match[3]}").split(None, 1)
    operands = " ".join(words[1].split()) if len(words) > 1 else ""
    target = _TARGET.search(operands)
    is_branch = re.match(r"b\.|cbn?z|tbn?z|b(?:eq|ne|lt|ge|gt|le)", words[0])
    return Instruction(int(match[1], 16), words[0], operands, int(target[1], 16) if target and is_branch else None)


def loops(kernel: MicroKernel) -> list[list[Instruction]]:
    """The innermost loops of the kernel's ``run``."""
    code = instructions(kernel)
    backwards = [(i.goes_to, i.address) for i in code if i.goes_to is not None and i.goes_to <= i.address]
    inner = [x for x in backwards if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in backwards)]
    return [[i for i in code if first <= i.address <= last] for first, last in inner]


def hot_loop(kernel: MicroKernel) -> list[Instruction]:
    """The loop that packed panels take: most multiply-adds, then fewest instructions, since their strides are known."""
    return max(loops(kernel), key=lambda loop: (sum(macs(kernel, i) for i in loop), -len(loop)))


def _vector_bytes(kernel: MicroKernel) -> int:
    return kernel.nr // kernel.nr_vl * kernel.c_dtype.itemsize if kernel.nr_vl else 16


def macs(kernel: MicroKernel, i: Instruction) -> int:
    """Multiply-adds of one instruction, all lanes."""
    each = _MACS_PER_32_BITS.get(i.name, 0)
    if kernel.target == "rvv":  # a row of C
        return each * kernel.nr
    words = _vector_bytes(kernel) // 4
    if i.name.endswith("mopa"):
        return each * words * words
    return each * words // (2 if i.name == "fmla" and re.match(r"[vz]\d+\.2?d", i.operands) else 1)


def load_bytes(kernel: MicroKernel, i: Instruction) -> int:
    """Bytes of elements that one instruction loads; 0 if it loads none."""
    if i.name in _LOADED_BY_LANES:
        lanes = kernel.nr if kernel.target == "rvv" else _vector_bytes(kernel) // kernel.c_dtype.itemsize
        return _LOADED_BY_LANES[i.name] * lanes
    if i.name in ("ldr", "ldur", "ldp"):
        return _LOADED_BY_REGISTER.get(i.operands[0], 0) * (2 if i.name == "ldp" else 1)
    return _LOADED.get(i.name, 0)


def line(kernel: MicroKernel, i: Instruction) -> Line:
    """What an instruction does for the tile."""
    if macs(kernel, i):
        return Line(str(i), (MULTIPLY_ADD,), macs(kernel, i))
    loaded = load_bytes(kernel, i)
    stores = i.name.startswith(
        ("str", "stp", "stur", "st1", "vse8", "vse16", "vse32", "vse64", "vs1r", "vs2r", "vs4r", "fsw", "fsd")
    )
    if re.search(r"\[sp\b|\(sp\)", i.operands):
        return Line(str(i), (SPILL,) if loaded or re.match(r"[vqdszf]", i.operands) else ())
    if loaded:
        return Line(str(i), (LOAD,), memory="memory", load_bytes=loaded)
    if stores:
        return Line(str(i), (STORE,))
    return Line(str(i), (MOVE,) if re.match(r"(mov|dup|vmv)", i.name) and re.match(r"[vz]", i.operands) else ())


def registers(kernel: MicroKernel, loop: list[Instruction]) -> int:
    """Vector registers that a loop names, and tiles of ZA."""
    if kernel.target != "rvv":
        named = {x for i in loop for x in re.findall(r"\b(?:za|[vqdsz])(?=\d)\d+\b", i.operands)}
        return len({re.sub("^[vqds]", "z", x) for x in named})
    in_a_row = kernel.nr_vl
    half = "vwmacc.vx" in {i.name for i in loop}  # the row of B is half as wide as that of C
    of_c = {i.operands.split(",")[0] for i in loop if macs(kernel, i)}
    of_b = {i.operands.split(",")[0] for i in loop if i.name.startswith("vle")}
    return in_a_row * len(of_c) + in_a_row // (2 if half else 1) * len(of_b)
