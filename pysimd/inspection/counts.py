"""The counts of a hot loop."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

MULTIPLY_ADD, LOAD, STORE, MOVE, SPILL = "multiply-add", "load", "store", "move", "spill"


@dataclass(frozen=True)
class Line:
    """One instruction of a hot loop.

    Attributes:
        text: as the disassembler writes it.
        roles: what it does for the tile: ``multiply-add``, ``load``, ``store``, ``move`` (register to register or a
            constant), ``spill`` (an access to the stack). Empty for addresses, counters, conversions, branches. A
            multiply-add may load one of its operands.
        macs: multiply-adds it does, all lanes together.
        memory: where it loads from: ``memory``, ``global`` or ``shared`` (LDS).
        load_bytes: bytes it loads, a value that is broadcast counted once.
    """

    text: str
    roles: tuple[str, ...] = ()
    macs: int = 0
    memory: str = ""
    load_bytes: int = 0


@dataclass(frozen=True)
class Inspection:
    """The hot loop of one kernel; counts are of one iteration, which may do several steps of k.

    Attributes:
        kernel: its name.
        target: what it was compiled for: ``avx2``, ``sm_90``, ``gfx942``.
        entry: the function, or the template instance.
        scope: whose instructions are counted: a ``core``, a GPU's ``thread``, or a ``warp`` (``wave``, ``warpgroup``)
            whose threads compute a tile together on a matrix unit.
        element_bytes: bytes of an element of A and B as the loop loads it (twice as many where packing has widened it).
        registers: vector registers that the loop names (CPU), or that a thread of the kernel has (GPU).
        registers_there_are: how many the target has for it.
        features: instruction sets that the whole function needs, in the disassembler's names; empty for GPUs.
        analytic_ratio: multiply-adds per element loaded, of the tile.
        remark: why the counted ratio may differ from the analytic one; empty if it must not.
        lines: the instructions.
        tile_memory: the memory whose loads count for the ratios; empty for all. The loop of a rung of the ladder also
            copies panels from global memory, for many threads.
    """

    kernel: str
    target: str
    entry: str
    scope: str
    element_bytes: int
    registers: int
    registers_there_are: int
    features: tuple[str, ...]
    analytic_ratio: float
    remark: str
    lines: tuple[Line, ...]
    tile_memory: str = ""

    def _count(self, role: str) -> int:
        return sum(role in line.roles for line in self.lines)

    @property
    def instructions(self) -> int:
        """Number of instructions."""
        return len(self.lines)

    @property
    def multiply_adds(self) -> int:
        """Instructions that multiply for the tile; a multiply with a separate add counts once."""
        return self._count(MULTIPLY_ADD)

    @property
    def macs(self) -> int:
        """Multiply-adds of elements: all lanes of those instructions."""
        return sum(line.macs for line in self.lines)

    @property
    def load_instructions(self) -> dict[str, int]:
        """Instructions that load elements of A and B, by memory."""
        return dict(Counter(line.memory for line in self.lines if LOAD in line.roles))

    @property
    def load_elements(self) -> dict[str, float]:
        """Elements that they load, by memory."""
        found: Counter = Counter()
        for line in self.lines:
            if LOAD in line.roles:
                found[line.memory] += line.load_bytes / self.element_bytes
        return dict(found)

    @property
    def stores(self) -> int:
        """Instructions that write memory other than the stack."""
        return self._count(STORE)

    @property
    def moves(self) -> int:
        """Instructions that copy a register or set one to a constant."""
        return self._count(MOVE)

    @property
    def spills(self) -> int:
        """Accesses of vector registers to the stack (CPU), or of any to a thread's own memory (GPU)."""
        return self._count(SPILL)

    @property
    def element_ratio(self) -> float | None:
        """Multiply-adds per element loaded; None if nothing is loaded."""
        loaded = sum(self._for_the_tile(self.load_elements))
        return self.macs / loaded if loaded else None

    @property
    def instruction_ratio(self) -> float | None:
        """Multiply-add instructions per load instruction; None without loads."""
        loads = sum(self._for_the_tile(self.load_instructions))
        return self.multiply_adds / loads if loads else None

    def _for_the_tile(self, by_memory: dict) -> list:
        return [x for memory, x in by_memory.items() if self.tile_memory in ("", memory)]

    @property
    def agrees(self) -> bool:
        """Whether the counted element ratio is the analytic one."""
        return self.element_ratio is not None and abs(self.element_ratio / self.analytic_ratio - 1) < 1e-9

    def counts(self) -> dict[str, Any]:
        """Everything but the disassembly, as plain data."""
        plain = ("kernel", "target", "entry", "scope", "element_bytes", "instructions", "multiply_adds", "macs")
        plain += ("load_instructions", "load_elements", "stores", "moves", "spills", "registers", "registers_there_are")
        plain += ("analytic_ratio", "element_ratio", "instruction_ratio", "agrees", "remark")
        return {name: getattr(self, name) for name in plain} | {"features": list(self.features)}

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        lines = [
            {"text": x.text, "roles": list(x.roles), "macs": x.macs, "memory": x.memory, "load_bytes": x.load_bytes}
            for x in self.lines
        ]
        return {**self.counts(), "lines": lines}

    @property
    def listing(self) -> str:
        """The disassembly; before each line, what it does for the tile."""
        return "\n".join(f"{self._note(line):>28}  {line.text}" for line in self.lines)

    def _note(self, line: Line) -> str:
        notes = []
        for role in line.roles:
            if role == MULTIPLY_ADD:
                notes.append(f"{line.macs} x multiply-add")
            elif role == LOAD:
                elements = line.load_bytes / self.element_bytes
                notes.append(f"load {elements:g}" + (" shared" if line.memory == "shared" else ""))
            else:
                notes.append(role)
        return ", ".join(notes)

    def __str__(self) -> str:
        loads = ", ".join(
            f"{n} instructions of {self.load_elements[where]:g} elements from {where}"
            for where, n in self.load_instructions.items()
        )
        counted = "none" if self.element_ratio is None else f"{self.element_ratio:.2f}"
        instructions = "none" if self.instruction_ratio is None else f"{self.instruction_ratio:.2f}"
        lines = [
            f"kernel     {self.kernel}: {self.entry}, compiled for {self.target}",
            f"loop       one iteration of a {self.scope}: {self.instructions} instructions",
            f"multiplies {self.multiply_adds} instructions, {self.macs} multiply-adds",
            f"loads      {loads or 'none'}",
            f"other      {self.stores} stores, {self.moves} moves, {self.spills} spills",
            f"registers  {self.registers} of {self.registers_there_are}",
            f"ratio      {counted} by element (of the tile: {self.analytic_ratio:.2f}), {instructions} by instruction",
        ]
        return "\n".join([*lines, *([f"remark     {self.remark}"] if self.remark and not self.agrees else [])])
