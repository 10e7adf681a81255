"""CUDA machine code on any machine: NVRTC as CuPy ships it compiles without a driver, nvdisasm disassembles."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pysimd.gpu_kernels import table

from pysimd.backends import nvrtc

ARCHITECTURES = (75, 80, 90, 100)

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?);")
_LABEL = re.compile(r"^(\.L_x_\d+):")


@cache
def _nvidia() -> Path | None:
    """Folder of the CUDA wheels: its include and bin."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations if spec else ()) or ():
        for folder in sorted(Path(place).glob("cu1*"), reverse=True):
            if (folder / "include" / "cuda_fp16.h").is_file():
                return folder
    return None


@cache
def missing() -> str:
    """What is not here for compiling and disassembling; empty if all is."""
    install = "pip install 'pysimd[cuda-test]'"
    if importlib.util.find_spec("cupy_backends") is None:
        return f"CuPy is not installed: {install}"
    if _nvidia() is None or not (_nvidia() / "include" / "crt" / "mma.h").is_file():
        return f"the CUDA headers are not installed: {install}"
    if _nvdisasm() is None:
        return f"nvdisasm is not installed: {install}"
    try:
        import cupy  # noqa: F401  (finds libnvrtc in the wheels)
        from cupy_backends.cuda.libs import nvrtc as library

        library.getVersion()
    except Exception as error:
        return f"NVRTC does not load ({error}): {install}"
    return ""


@cache
def _nvdisasm() -> str | None:
    own = _nvidia() / "bin" / "nvdisasm" if _nvidia() else None
    return str(own) if own and own.is_file() else shutil.which("nvdisasm")


@dataclass(frozen=True)
class Instruction:
    name: str
    operands: str

    def moves(self) -> bool:
        """Whether it only brings a constant into a register: 0 * 0 + x."""
        return "-RZ, RZ," in self.operands

    def bytes_loaded(self, *loads: str) -> int:
        """Bytes that a lane loads, by default from global memory; 0 for other instructions."""
        if not (self.name + ".").startswith(loads or ("LDG.", "LD.")):  # LD: not seen to be global memory
            return 0
        for part, size in ((".128", 16), (".64", 8), (".U16", 2), (".S16", 2), (".U8", 1), (".S8", 1)):
            if part in self.name + ".":
                return size
        return 4


@dataclass(frozen=True)
class Code:
    """The machine code of one kernel."""

    instructions: tuple[Instruction, ...]
    loops: tuple[tuple[Instruction, ...], ...]

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


def _parse(lines) -> Code:
    labels, instructions, loops = {}, [], []
    for line in lines:
        label, instruction = _LABEL.match(line), _INSTRUCTION.match(line)
        if label:
            labels[label[1]] = len(instructions)
        if instruction:
            instructions.append(Instruction(instruction[1], instruction[2]))
            target = re.search(r"\.L_x_\d+", instruction[2]) if instruction[1].startswith("BRA") else None
            if target and target[0] in labels:
                loops.append(tuple(instructions[labels[target[0]] :]))
    return Code(tuple(instructions), tuple(loops))


@cache
def compiled(source: str, entry: str, arch: int, folder: str = "micro") -> Code:
    """The machine code of a template instance, with the options that CuPy uses."""
    from cupy_backends.cuda.libs import nvrtc as library

    program = library.createProgram(nvrtc.source(source, folder), source, (), ())
    library.addNameExpression(program, entry)
    options = (*nvrtc.OPTIONS, f"-arch=sm_{arch}", f"-I{_nvidia() / 'include'}", "-ftz=true")
    try:
        library.compileProgram(program, options)
    except library.NVRTCError:
        raise AssertionError(f"{entry} for sm_{arch}: {library.getProgramLog(program)}") from None
    cubin = library.getCUBIN(program) + b"\0"  # CuPy drops the last byte
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        text = subprocess.run([_nvdisasm(), str(file)], check=True, capture_output=True, text=True).stdout
    return _parse(text.splitlines())


def compile_all(wanted) -> None:
    """Compile (source, entry, arch) or (source, entry, arch, folder) side by side; ``compiled`` then has them."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda x: compiled(*x), wanted))


def entries_to_check(row: table.Kernel) -> dict[str, str]:
    """Template instances of a row that are compiled everywhere: the fastest, any strides, tiles that stick out."""
    if row.form == "wmma":
        return {"fast": table.entry(row, "", "", False, True), "any": table.entry(row, "", "", True, False)}
    b = "PACKED" if "PACKED" in row.layouts else "ALONG_K"
    found = {
        "fast": table.entry(row, "ALONG_K", b, False, False),
        "any": table.entry(row, "ANY", "ANY", False, False),
        "edge": table.entry(row, "ANY", "ANY", True, False),
    }
    if row.form == "batch2":
        found["gathered"] = table.entry(row, "GATHERED", "GATHERED", False, False)
    return found
