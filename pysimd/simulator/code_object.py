"""Code objects: compiled here or elsewhere, with the kernels that are in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

from pysimd.simulator.assembly import Instruction, instructions_of
from pysimd.simulator.compilers import OPTIONS, Toolchain, toolchain
from pysimd.simulator.elf import read_kernels
from pysimd.simulator.errors import LaunchError
from pysimd.simulator.program import Program


class CodeObject:
    """Machine code of one target.

    ``kernels`` maps symbol names to ``Kernel``, ``assembly`` is the text of the instructions, ``elf`` the file. The
    symbol of a template instance is its mangled name.
    """

    def __init__(self, elf: bytes, target: str, assembly: str):
        self.elf = elf
        self.target = target
        self.assembly = assembly
        self.kernels = read_kernels(elf)
        self._programs: dict[str, Program] = {}

    @cached_property
    def instructions(self) -> dict[str, tuple[Instruction, ...]]:
        """Of each kernel, by its name."""
        return instructions_of(self.assembly, self.kernels)

    @classmethod
    def from_bytes(cls, elf: bytes, target: str) -> CodeObject:
        """A code object made elsewhere, by hiprtc for example. Raises UnavailableError without llvm-objdump."""
        return cls(elf, target, toolchain().disassemble(elf))

    def program(self, name: str) -> Program:
        """The kernel of that symbol name, decoded once. Raises LaunchError, which lists the names there are."""
        if name not in self.kernels:
            raise LaunchError(f"no kernel {name!r} in this code object; it has {', '.join(sorted(self.kernels))}")
        if name not in self._programs:
            self._programs[name] = Program(self.instructions[name], self.kernels[name], self.target)
        return self._programs[name]


def compile_hip(source: str, target: str, options: Sequence[str] = OPTIONS) -> CodeObject:
    """Compile HIP device code for one target; what was compiled once is kept.

    ``source`` is self-contained: no header is included, neither HIP's nor the standard library's. ``target`` is a
    processor such as ``gfx942``. Raises CompileError with the compiler's text, UnavailableError without a compiler.
    """
    return _compiled(source, target, tuple(options), toolchain())


@cache
def _compiled(source: str, target: str, options: tuple[str, ...], tools: Toolchain) -> CodeObject:
    elf, assembly = tools.compile(source, target, options)
    return CodeObject(elf, target, assembly)


def assemble(text: str, target: str) -> CodeObject:
    """Assemble text as a compiler writes it, with its kernel descriptors. Raises CompileError."""
    elf, assembly = toolchain().assemble(text, target)
    return CodeObject(elf, target, assembly)
