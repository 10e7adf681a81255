"""Text of AMD instructions, as llvm-objdump or the compiler writes it, taken apart."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from pysimd.simulator.errors import SimulationError

_LABEL = re.compile(r"^(?:(?P<address>[0-9a-f]{16}) <)?(?P<name>[\w.$@]+)>?:\s*(?:;.*)?$")
_ADDRESS = re.compile(r"//\s*([0-9A-F]{12}):")
_TARGET = re.compile(r"<(?P<name>[\w.$]+)(?:\+0x(?P<offset>[0-9a-f]+))?>\s*$")
_ENCODING = re.compile(r"_(e32|e64|sdwa|e64_dpp|dpp|vi|gfx9)$")
_FREE_TEXT = ("s_delay_alu", "s_waitcnt", "s_wait", "s_sendmsg", "s_setreg")


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``mnemonic`` has lost ``dual_`` and its encoding suffix (``_e32``), which is ``encoding``."""

    text: str
    mnemonic: str
    encoding: str
    operands: tuple[str, ...]
    modifiers: dict[str, object] = field(hash=False)
    target: int | None = None
    """For a branch: the index of the instruction that it goes to."""
    second: Instruction | None = None
    """For a pair (VOPD): the other half, which runs at the same time."""

    def __str__(self) -> str:
        return self.text


def instructions_of(assembly: str, kernels: Collection[str]) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of each kernel, from a listing of a code object or from a compiler's assembly file."""
    found: dict[str, _Function] = {}
    function = None
    for line in assembly.splitlines():
        label = _LABEL.match(line)
        if line.strip().startswith(".section"):  # after the instructions a compiler writes tables and metadata
            function = None
        elif label:
            name = label["name"]
            if name in kernels:
                function = found[name] = _Function(int(label["address"] or "0", 16))
            elif name.startswith((".L", "L")) and function is not None:
                function.places[name] = len(function.parsed)
            else:
                function = None
        elif function is not None:
            function.add(line)
    missing = set(kernels) - set(found)
    if missing:
        raise SimulationError(f"the assembly has no instructions of {', '.join(sorted(missing))}")
    return {name: x.linked() for name, x in found.items()}


class _Function:
    """Instructions of one kernel while they are read, and where labels and addresses point."""

    def __init__(self, start: int):
        self.start = start
        self.parsed: list[tuple[Instruction, str | int | None]] = []
        self.places: dict[str | int, int] = {}

    def add(self, line: str) -> None:
        code = re.split(r"//|;", line)[0].strip()
        if not code or code.startswith(".") or code.startswith("s_code_end"):
            return
        address = _ADDRESS.search(line)
        if address:
            self.places[int(address[1], 16)] = len(self.parsed)
        self.parsed.append((parse(code), self._goes_to(code, line)))

    def _goes_to(self, code: str, line: str) -> str | int | None:
        """Label or address that a branch names; the listing has it in a comment, as an offset from the kernel."""
        if not code.startswith(("s_branch", "s_cbranch")):
            return None
        target = _TARGET.search(line)
        if target is None:
            return code.split()[-1]
        if target["offset"] is None and target["name"] in self.places:
            return target["name"]
        return self.start + int(target["offset"] or "0", 16)

    def linked(self) -> tuple[Instruction, ...]:
        result = []
        for instruction, target in self.parsed:
            if target is not None and target not in self.places:
                raise SimulationError(f"`{instruction}` goes to {target}, which is not in this kernel")
            index = None if target is None else self.places[target]
            result.append(instruction if index is None else _with_target(instruction, index))
        return tuple(result)


def _with_target(instruction: Instruction, index: int) -> Instruction:
    return Instruction(instruction.text, instruction.mnemonic, "", (), {}, index)


def parse(code: str) -> Instruction:
    """One line of assembly without comment: ``v_pk_fma_f16 v0, v1, s2, v0 op_sel_hi:[1,0,1]``."""
    code = " ".join(code.split())
    first, pair, second = code.partition(" :: ")
    name, _, rest = first.partition(" ")
    encoding = _ENCODING.search(name)
    if encoding:
        name = name[: encoding.start()]
    name = name.replace("v_dual_", "v_")
    try:
        operands, modifiers = ((), {}) if name.startswith(_FREE_TEXT) else _operands(rest)
    except (ValueError, LookupError) as error:
        raise SimulationError(f"cannot take apart `{code}`") from error
    other = parse(second) if pair else None
    return Instruction(code, name, encoding[1] if encoding else "", operands, modifiers, None, other)


def _split(text: str, separator: str) -> list[str]:
    """Split at the separator where no bracket is open."""
    if "[" not in text and "(" not in text:
        return [x.strip() for x in text.split(separator) if x.strip()]
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [x.strip() for x in parts if x.strip()]


def _operands(text: str) -> tuple[tuple[str, ...], dict[str, object]]:
    """Operands are set apart by commas; what follows the last of them, set apart by spaces, are modifiers."""
    operands, modifiers = [], {}
    for part in _split(text, ","):
        words = _split(part, " ")
        if modifiers:
            raise SimulationError(f"cannot take apart the operands {text!r}")
        operands.append(words[0])
        modifiers = dict(_modifier(x) for x in words[1:])
        if len(modifiers) < len(words) - 1:
            raise SimulationError(f"a modifier stands twice in {text!r}")
    return tuple(operands), modifiers


def _modifier(word: str) -> tuple[str, object]:
    """``offset:16`` is a number, ``op_sel:[0,1]`` a list, ``glc`` is true, anything else stays text."""
    name, colon, value = word.partition(":")
    if not colon:
        return name, True
    if value.startswith("["):
        return name, [int(x, 0) for x in value[1:-1].split(",")]
    return name, int(value, 0) if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", value) else value
