"""CUDA machine code on any machine: NVRTC as CuPy ships it compiles without a driver, nvdisasm disassembles."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pysimd.backends.cuda import nvrtc
from pysimd.backends.cuda.implementation import CUDA
from pysimd.errors import OptionError, PysimdError, UnavailableError
from pysimd.gpu_kernels import table
from pysimd.inspection.counts import LOAD, MOVE, MULTIPLY_ADD, SPILL, STORE, Inspection, Line
from pysimd.microkernel import MicroKernel

DEFAULT = "sm_90"

_INSTALL = "pip install 'pysimd[cuda-test]'"
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+((?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?)\s*);")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_REGISTERS = re.compile(r"EIATTR_REGCOUNT.*?\.word\s+index@\((\S+)\).*?\.word\s+(0x[0-9a-f]+)", re.DOTALL)
_SHARED_BYTES = re.compile(r"^\.nv\.shared\.(?!reserved)(\S*):\s+\.zero\s+(\d+)", re.MULTILINE)
_SECTION = re.compile(r"^\s*\.section\s+([^\s,]+)", re.MULTILINE)
_WIDTHS = ((".128", 16), (".64", 8), (".U16", 2), (".S16", 2), (".U8", 1), (".S8", 1))
_GLOBAL, _SHARED = ("LDG.", "LD.", "LDGSTS."), ("LDS.", "LDSM.")  # LD: not seen to be global memory


@cache
def toolkit() -> Path | None:
    """Folder of the CUDA wheels, or of an installed toolkit: its include and bin."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [
        x for p in (spec.submodule_search_locations if spec else ()) or () for x in sorted(Path(p).glob("cu1*"))[::-1]
    ]
    for folder in (*wheels, Path(os.environ.get("CUDA_PATH") or "/usr/local/cuda")):
        if (folder / "include" / "cuda_fp16.h").is_file():
            return folder
    return None


@cache
def missing() -> str:
    """What is missing for compiling and disassembling, and how to install it; empty if nothing is."""
    if importlib.util.find_spec("cupy_backends") is None:
        return f"CuPy is not installed: {_INSTALL}"
    if toolkit() is None:
        return f"the CUDA headers are not installed: {_INSTALL}"
    if disassembler() is None:
        return f"nvdisasm is not installed: {_INSTALL}"
    try:
        import cupy  # noqa: F401  (finds libnvrtc in the wheels)
        from cupy_backends.cuda.libs import nvrtc as library

        library.getVersion()
    except Exception as error:
        return f"NVRTC does not load ({error}): {_INSTALL}"
    return ""


@cache
def disassembler() -> str | None:
    """Path of nvdisasm."""
    own = toolkit() / "bin" / "nvdisasm" if toolkit() else None
    return str(own) if own and own.is_file() else shutil.which("nvdisasm")


@dataclass(frozen=True)
class Instruction:
    """One instruction, its name and operands apart; ``text`` is the whole of it, with its predicate."""

    name: str
    operands: str
    text: str

    def moves(self) -> bool:
        """Whether it only copies a constant or another register: 0 * 0 + x."""
        return "-RZ, RZ," in self.operands

    def bytes_loaded(self, *loads: str) -> int:
        """Bytes that a lane loads, by default from global memory; 0 for other instructions."""
        if not (self.name + ".").startswith(loads or ("LDG.", "LD.")):
            return 0
        return next((size for part, size in _WIDTHS if part in self.name + "."), 4)


@dataclass(frozen=True)
class Code:
    """The machine code of one kernel; ``registers`` of a thread, ``shared_bytes`` of a block: static shared memory,
    which from sm_90 on includes 1024 that CUDA reserves."""

    instructions: tuple[Instruction, ...]
    loops: tuple[tuple[Instruction, ...], ...]
    registers: int
    shared_bytes: int = 0

    def count(self, *prefixes: str) -> int:
        return sum(x.name.startswith(prefixes) for x in self.instructions)

    def hot_loop(self, prefix: str) -> tuple[Instruction, ...]:
        """The loop with most of these instructions; the shortest of those."""
        found = [
            (sum(x.name.startswith(prefix) and not x.moves() for x in loop), -len(loop), loop) for loop in self.loops
        ]
        count, _, loop = max(found, key=lambda x: x[:2], default=(0, 0, ()))
        assert count, f"no loop with {prefix}"
        return loop


def parse(text: str) -> dict[str, Code]:
    """The kernels in what nvdisasm wrote of a cubin, by their mangled names."""
    starts = [(x[1], x.start()) for x in _SECTION.finditer(text)] + [("", len(text))]
    sections = {name: text[start:end] for (name, start), (_, end) in itertools.pairwise(starts)}
    registers = {name: int(count, 16) for name, count in _REGISTERS.findall(text)}
    shared = {name: int(size) for name, size in _SHARED_BYTES.findall(text)}
    return {
        name: Code(*_instructions(sections[f".text.{name}"]), registers[name], shared.get(name, 0))
        for name in registers
    }


def _instructions(text: str) -> tuple[tuple[Instruction, ...], tuple[tuple[Instruction, ...], ...]]:
    """All instructions of a section, and its loops."""
    labels, instructions, loops = {}, [], []
    for line in text.splitlines():
        label, instruction = _LABEL.match(line), _INSTRUCTION.match(line)
        if label:
            labels[label[1]] = len(instructions)
        if instruction:
            whole, name, operands = instruction.groups()
            instructions.append(Instruction(name, operands, whole))
            target = re.search(r"\.L_x_\d+", operands) if name.startswith("BRA") else None
            if target and target[0] in labels:
                loops.append(tuple(instructions[labels[target[0]] :]))
    return tuple(instructions), tuple(loops)


class CompileError(PysimdError):
    """NVRTC refused a source; its own text is the message."""


def compile_text(text: str, name: str, entries: Sequence[str], arch: int | str) -> list[Code]:
    """The machine code of template instances in CUDA source, with the options that CuPy uses. Raises CompileError.

    ``arch`` is 80, 90, ... or a name with a letter, ``90a``. The instances are those that each gives alone; together
    the source is read once and the disassembler started once."""
    from cupy_backends.cuda.libs import nvrtc as library

    program = library.createProgram(text, name, (), ())
    for entry in entries:
        library.addNameExpression(program, entry)
    from_cupy = ("--device-as-default-execution-space", "-ftz=true")  # NVRTC 13.0 needs the first for generic lambdas
    options = (*nvrtc.OPTIONS, f"-arch=sm_{arch}", f"-I{toolkit() / 'include'}", *from_cupy)
    try:
        library.compileProgram(program, options)
    except library.NVRTCError:
        raise CompileError(f"{', '.join(entries)} for sm_{arch}: {library.getProgramLog(program)}") from None
    code = parse(_disassembled(library.getCUBIN(program) + b"\0"))  # CuPy drops the last byte
    return [code[library.getLoweredName(program, entry)] for entry in entries]


def _disassembled(cubin: bytes) -> str:
    with tempfile.TemporaryDirectory(prefix="pysimd-") as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        # Without analysis of the data flow, which adds nothing that is read here and a quarter of the time.
        command = [disassembler(), "--no-dataflow", str(file)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


_COMPILED: dict[tuple[str, str, str, str], Code] = {}


def compiled(source: str, entry: str, arch: int | str, folder: str = "micro") -> Code:
    """The machine code of a template instance of a file in ``gpu_kernels``; kept. Raises CompileError."""
    if not is_compiled(source, entry, arch, folder):
        keep(source, (entry,), arch, folder, compile_together(source, (entry,), arch, folder))
    return _COMPILED[source, entry, str(arch), folder]


def is_compiled(source: str, entry: str, arch: int | str, folder: str) -> bool:
    """Whether ``compiled`` has it at once."""
    return (source, entry, str(arch), folder) in _COMPILED


def compile_together(source: str, entries: Sequence[str], arch: int | str, folder: str = "micro") -> list[Code]:
    """Machine code of instances of a file, compiled in one program. Raises CompileError."""
    return compile_text(nvrtc.source(source, folder), source, entries, arch)


def keep(source: str, entries: Sequence[str], arch: int | str, folder: str, codes: Sequence[Code]) -> None:
    """Keep what ``compile_together`` gave, maybe in another process, for ``compiled``."""
    for entry, code in zip(entries, codes, strict=True):
        _COMPILED[source, entry, str(arch), folder] = code


def fast_entry(row: table.Kernel) -> str:
    """The template instance of a row for operands that are read in the widest pieces."""
    return table.entry(row, "K_MAJOR", "PACKED" if "PACKED" in row.layouts else "K_MAJOR", False, row.form == "wmma")


def inspect(kernel: MicroKernel, target: str | None) -> Inspection:
    """``pysimd.inspect`` of a CUDA kernel."""
    row, here = table.BY_NAME[kernel.name], CUDA.backend()
    target = target or (here.features[0] if here.available else DEFAULT)
    if not re.fullmatch(r"sm_\d+", target) or int(target[3:]) < int(row.requires[3:]):
        raise OptionError(f"target={target!r}: {kernel.name} is compiled for {row.requires} or newer, e.g. {DEFAULT}")
    if missing():
        raise UnavailableError(missing())
    entry = fast_entry(row)
    try:
        code = compiled(row.source, entry, int(target[3:]))
    except CompileError as error:
        raise OptionError(f"target={target!r}: NVRTC does not compile {kernel.name} for it: {error}") from error
    return inspection(kernel, target, entry, code)


def inspection(kernel: MicroKernel, target: str, entry: str, code: Code) -> Inspection:
    """The hot loop of ``code``, counted."""
    row = table.BY_NAME[kernel.name]
    lanes = 32 if row.form == "wmma" else 1
    return Inspection(
        kernel=kernel.name,
        target=target,
        entry=entry,
        scope="warp" if lanes == 32 else "thread",
        element_bytes=kernel.a_dtype.itemsize,
        registers=code.registers,
        registers_there_are=255,
        features=(),
        analytic_ratio=kernel.ratio.value,
        remark="",
        lines=tuple(line(x, macs(x, row), lanes) for x in code.hot_loop(row.instruction)),
    )


_SHAPES = {"16816": 2048, "1688": 1024, "16832": 4096, "8816": 1024, "8832": 2048}


def macs(x: Instruction, row: table.Kernel) -> int:
    """Multiply-adds of one instruction of a kernel: in a lane, or in a warp for the tensor cores."""
    if not x.name.startswith(row.instruction) or x.moves():
        return 0
    return macs_of_warp(x) or row.macs


def macs_of_warp(x: Instruction) -> int:
    """Multiply-adds of an instruction of the tensor cores, whose name has the shape; 0 for others."""
    shape = re.match(r"[HI]MMA\.(\d+)", x.name)
    return _SHAPES[shape[1]] if shape else 0


def line(x: Instruction, macs: int, lanes: int) -> Line:
    """What an instruction of so many multiply-adds does for the tile, in one lane or in a warp of ``lanes``."""
    name = x.name + "."
    if macs:
        return Line(x.text, (MULTIPLY_ADD,), macs)
    for memory, loads in (("global", _GLOBAL), ("shared", _SHARED)):
        if name.startswith(loads):
            return Line(x.text, (LOAD,), memory=memory, load_bytes=x.bytes_loaded(*loads) * lanes)
    if name.startswith(("LDL.", "STL.")):
        return Line(x.text, (SPILL,))
    if name.startswith(("STG.", "ST.", "STS.", "RED.", "ATOM")):
        return Line(x.text, (STORE,))
    return Line(x.text, (MOVE,) if x.moves() or name.startswith(("MOV.", "IMAD.MOV.", "CS2R.")) else ())
