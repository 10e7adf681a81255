"""Compilers of AMD machine code that need no ROCm: clang of a distribution, or the one inside the ziglang wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pysimd.errors import OptionError, UnavailableError
from pysimd.simulator.errors import CompileError

TARGETS = ("gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1200")
"""Targets that every kernel is compiled for and run on."""

NEWEST, OLDEST = 30, 19

OPTIONS = ("-std=c++17", "-O3", "-fgpu-flush-denormals-to-zero")
"""As CuPy's ROCm build asks hiprtc: it always wants denormals flushed."""

_FREESTANDING = ("-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc")

INSTALL = "install clang-19, lld-19 and llvm-19 (apt), or: pip install 'pysimd[simulate]'"


@dataclass(frozen=True)
class Toolchain:
    """A compiler. ``version`` is its own first line; ``objdump`` is empty where machine code cannot be disassembled."""

    name: str
    version: str
    clang: tuple[str, ...]
    lld: tuple[str, ...]
    objdump: str

    def compile(self, source: str, target: str, options: Sequence[str] = OPTIONS) -> tuple[bytes, str]:
        """Compile HIP source, which must include no header: the linked code object and the text of its instructions."""
        with tempfile.TemporaryDirectory(prefix="pysimd-") as folder:
            source_file, assembly, obj, linked = (Path(folder) / f"kernel{x}" for x in (".hip", ".s", ".o", ".co"))
            source_file.write_text(source)
            command = [*self.clang, *_FREESTANDING, f"--offload-arch={target}", *options]
            run([*command, "-S", str(source_file), "-o", str(assembly)])
            _assemble(self, target, assembly, obj, linked)
            return self._with_text(linked, assembly.read_text())

    def assemble(self, text: str, target: str) -> tuple[bytes, str]:
        """The same from assembly with kernel descriptors, as the compiler writes it."""
        with tempfile.TemporaryDirectory(prefix="pysimd-") as folder:
            assembly, obj, linked = (Path(folder) / f"kernel{x}" for x in (".s", ".o", ".co"))
            assembly.write_text(text)
            _assemble(self, target, assembly, obj, linked)
            return self._with_text(linked, text)

    def disassemble(self, elf: bytes) -> str:
        """Text of the instructions in a code object."""
        if not self.objdump:
            raise UnavailableError(
                f"{self.name} has no disassembler: install llvm-{OLDEST} (apt) to read machine code made elsewhere"
            )
        with tempfile.NamedTemporaryFile(prefix="pysimd-", suffix=".co") as file:
            file.write(elf)
            file.flush()
            return run([self.objdump, "--disassemble", file.name])

    def _with_text(self, linked: Path, assembly: str) -> tuple[bytes, str]:
        """With a disassembler the text is read from the machine code; else it is what the compiler wrote."""
        elf = linked.read_bytes()
        return elf, self.disassemble(elf) if self.objdump else assembly


@cache
def toolchain() -> Toolchain:
    """The compiler of this machine: clang 19 or newer with lld and llvm-objdump, else the ziglang wheel's.

    ``PYSIMD_CLANG`` (``clang`` or ``ziglang``) asks for one of them. Raises UnavailableError if there is none.
    """
    wanted = os.environ.get("PYSIMD_CLANG", "")
    finders = {"clang": _distribution_clang, "ziglang": _ziglang}
    if wanted not in ("", *finders):
        raise OptionError(f"PYSIMD_CLANG={wanted!r}: use one of {', '.join(finders)}, or leave it unset")
    for name, find in finders.items():
        found = find() if wanted in ("", name) else None
        if found:
            return found
    raise UnavailableError(f"no compiler for AMD GPUs{' called ' + wanted if wanted else ''}: {INSTALL}")


def _distribution_clang() -> Toolchain | None:
    for version in range(NEWEST, OLDEST - 1, -1):
        clang, lld, objdump = (shutil.which(f"{x}-{version}") for x in ("clang", "ld.lld", "llvm-objdump"))
        if clang and lld and objdump and "amdgcn" in run([clang, "--print-targets"]):
            return Toolchain(f"clang-{version}", _first_line([clang, "--version"]), (clang,), (lld,), objdump)
    return None


def _ziglang() -> Toolchain | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    zig = (sys.executable, "-m", "ziglang")
    return Toolchain("ziglang", _first_line([*zig, "clang", "--version"]), (*zig, "clang"), (*zig, "ld.lld"), "")


def _assemble(tools: Toolchain, target: str, assembly: Path, obj: Path, linked: Path) -> None:
    machine = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
    run([*tools.clang, *machine, "-c", str(assembly), "-o", str(obj)])
    run([*tools.lld, "-shared", str(obj), "-o", str(linked)])


def _first_line(command: list[str]) -> str:
    return run(command).splitlines()[0]


def run(command: list[str]) -> str:
    """Standard output of a tool; raises ``CompileError`` with what it says."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        folder = re.compile(re.escape(tempfile.gettempdir()) + r"/pysimd-[^/]*/")
        raise CompileError(f"{Path(command[0]).name} failed:\n{folder.sub('', done.stderr.strip() or done.stdout)}")
    return done.stdout
