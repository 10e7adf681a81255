"""What all instruction classes share: the step, and arithmetic described by a signature and a NumPy function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.gang import Gang

Step = Callable[[Gang], object]
"""Executes one instruction; returns None, or an event that ``run.py`` handles."""


@dataclass(frozen=True)
class Machine:
    """The processor that instructions are decoded for."""

    target: str
    wave_size: int

    @cached_property
    def generation(self) -> int:
        """9, 10, 11, 12: gfx90a is 9, gfx1030 is 10."""
        return int(self.target[3:-2])

    @cached_property
    def packed_thread_ids(self) -> bool:
        """Whether v0 holds all three thread indices, ten bits each."""
        return self.generation >= 11 or self.target in ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")


Decoder = Callable[[Instruction, Machine], Step]


class Arithmetic:
    """A step in two parts, so that two of them can read before either writes."""

    __slots__ = ("compute", "write")

    def __init__(self, compute: Callable[[Gang], object], write: Callable[[Gang, object], None]):
        self.compute = compute
        self.write = write

    def __call__(self, gang: Gang) -> None:
        self.write(gang, self.compute(gang))


def pair(instruction: Instruction, machine: Machine, first: Decoder, second: Decoder) -> Step:
    """A dual instruction: both halves read their operands before one writes."""
    halves = first(instruction, machine), second(instruction.second, machine)
    if not all(isinstance(x, Arithmetic) for x in halves):
        raise UnsupportedInstruction(f"`{instruction}`: a pair of other than arithmetic instructions")

    def step(g: Gang) -> None:
        found = [g.read_apart(lambda g, x=x: np.array(x.compute(g))) for x in halves]
        for half, (value, undefined, name) in zip(halves, found, strict=True):
            g.tainted, g.tainted_by = undefined, name
            half.write(g, value)

    return step


@dataclass(frozen=True)
class Signature:
    """Types of the results and operands: ``u32 mask = u32 u32 mask``, or ``f32 += f32 f32`` where the result is also
    the last operand."""

    results: tuple[str, ...]
    operands: tuple[str, ...]
    accumulates: bool

    @classmethod
    def parse(cls, text: str) -> Signature:
        left, sign, right = text.partition("+=") if "+=" in text else text.partition("=")
        results, operands = tuple(left.split()), tuple(right.split())
        return cls(results, operands + (results[:1] if sign == "+=" else ()), sign == "+=")


def computed(function: Callable, readers: list[Callable[[Gang], np.ndarray]]) -> Callable[[Gang], object]:
    """The function applied to what the readers give; written out because this is the innermost call."""
    if len(readers) == 1:
        (a,) = readers
        return lambda g: function(a(g))
    if len(readers) == 2:
        a, b = readers
        return lambda g: function(a(g), b(g))
    if len(readers) == 3:
        a, b, c = readers
        return lambda g: function(a(g), b(g), c(g))
    return lambda g: function(*(read(g) for read in readers))


def chosen(a, b, condition) -> Callable[[Gang], np.ndarray]:
    """Readers of two operands and of a condition as one: b where the condition holds, else a."""

    def compute(g: Gang) -> np.ndarray:
        take_b = condition(g)
        return np.where(take_b, g.taint_only(b, take_b), g.taint_only(a, ~take_b))

    return compute


def table(
    *rows: tuple[str, str, Callable | None], decoder: Callable[[Signature, Callable], Decoder]
) -> dict[str, Decoder]:
    """Rows of (mnemonics, signature, function) as a table of decoders."""
    found: dict[str, Decoder] = {}
    for names, signature, function in rows:
        for name in names.split():
            assert name not in found, name
            found[name] = decoder(Signature.parse(signature), function)
    return found
