"""The comment that a kernel file opens with, against the row and the code that was built: fixed labels, and no number
in ``tile``, ``regs``, ``per k`` and ``ratio`` that the code does not have.

The grammar of the four, each closed by an optional ``; words`` without a digit:

    tile      mr 6 nr 16: row i of C is 2 registers
    regs      12 accumulators + 2 of a row of B + 2 broadcasts = 16 of 16 ymm
    per k     12 vfmadd231ps 2 vmovups m256 6 vbroadcastss m32
    ratio     6*16 / (6+16) = 4.36 multiply-adds per element loaded; inner product 0.50;
              12 / 8 = 1.50 multiply-add instructions per load instruction

``per k`` lists what the hot loop does for one step of k (``per 2 k``: for two): a count, the mnemonic, and the memory
operand as Intel's manual writes it (``m32bcst``: a broadcast that is part of the instruction), or the kind of register
that Arm's ``ldr`` and ``ldp`` load (``ldr q``). Counts are arithmetic. ``vl`` is the number of elements in a vector
whose length is the processor's: ``nr 2vl``; ratios are for 128 bits.
"""

import ast
import math
import operator
import re
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from pysimd.sources import labels as labels_of  # noqa: F401

LABELS = ("contract", "tile", "regs", "per k", "ratio", "rounding", "needs", "idea", "lanes", "launch", "smem")


@dataclass
class Built:
    """What a header is compared with: numbers of the row, and counts of one iteration of the loop that was built."""

    form: str
    mr: int
    nr: int
    k: Fraction
    """Steps of k in an iteration."""
    instructions: Counter
    """Mnemonic (and memory operand): how many."""
    multiply_adds: int
    accumulations: int
    """Instructions that add into an accumulator: the multiply-adds, or the adds after them."""
    loads: int
    registers: int
    registers_there_are: int
    kind: str = "registers"
    """What the target calls them: ymm."""
    names: dict[str, int] = field(default_factory=dict)
    """Values of names in arithmetic, of a file that is compiled for several tiles: MR, NR."""


def tile_of(kernel) -> tuple[str, str]:
    """mr and nr as the kernel's name has them: numbers, or vectors (``2vl``)."""
    vectors = ((kernel.mr_vl, kernel.mr), (kernel.nr_vl, kernel.nr))
    return tuple(f"{vl}vl" if vl else str(number) for vl, number in vectors)


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
FUNCTIONS = {"ceil": lambda x: Fraction(math.ceil(x)), "max": max}


def value(expression: str, names: dict[str, int] | None = None) -> Fraction:
    """Of arithmetic on numbers and names, exactly; ``ceil`` and ``max`` are known."""

    def of(node) -> Fraction:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Call):
            return FUNCTIONS[node.func.id](*map(of, node.args))
        return Fraction(names[node.id] if isinstance(node, ast.Name) else str(node.value))

    return of(ast.parse(expression, mode="eval").body)


def per_k(labels: dict[str, str]) -> tuple[int, str]:
    """Steps of k that the instructions of a header are for, and their list."""
    label = next((label for label in labels if re.fullmatch(r"per (\d+ )?k", label)), "per k")
    return int((re.search(r"\d+", label) or "1")[0]), labels.get(label, "")


def counts(text: str, names: dict[str, int] | None = None) -> Counter:
    """The list of a header: ``2 vmovups m256 MR*NR/4 vfmadd231ps``."""
    item = re.compile(r"([\dA-Z(][\w+*/().-]*) ([A-Za-z_][\w.]*)(?: (m\d+(?:bcst)?|[qds]))?(?: |$)")
    found: Counter = Counter()
    position = 0
    while position < len(text):
        match = item.match(text, position)
        if match is None:
            raise ValueError(f"{text[position:]!r} is no count, instruction and memory operand")
        found[" ".join(filter(None, match.group(2, 3)))] += value(match[1], names)
        position = match.end()
    return found


def faults(labels: dict[str, str], built: Built) -> list[str]:
    """What a header says that is not so; empty if all of it is."""
    found = []
    for check in (tile_faults, register_faults, instruction_faults, ratio_faults):
        try:
            found += check(labels, built)
        except (ValueError, TypeError, KeyError, SyntaxError, IndexError) as error:
            found.append(f"{check.__name__.removesuffix('_faults')}: cannot be read: {error}")
    return found


def checked(label: str, text: str, pattern: str) -> re.Match:
    """``text`` as ``pattern`` has it, with words without a digit after it."""
    match = re.fullmatch(rf"{pattern}(?:; \D*)?", text)
    if match is None:
        raise ValueError(f"{text!r} is not {label!r} by the grammar")
    return match


def compared(what: str, said, real) -> list[str]:
    return [] if said == real else [f"{what}: the header says {said}, the code has {real}"]


def tile_faults(labels, built) -> list[str]:
    match = checked("tile", labels["tile"], r"mr (\d+)(vl)? nr (\d+)(vl)?(?:: row i of C is (\d+) registers?)?")
    mr, nr = (int(match[i]) * (built.names["vl"] if match[i + 1] else 1) for i in (1, 3))
    found = compared("tile", (mr, nr), (built.mr, built.nr))
    if match[5]:
        steps = per_k(labels)[0]
        found += compared("registers of a row", int(match[5]), built.accumulations / built.k * steps / built.mr)
    return found


def register_faults(labels, built) -> list[str]:
    part = r"\d+(?: [^\d;=+]+)?"
    pattern = rf"(\d+) accumulators?(?: \* (\d+) sets)?[^\d;=+]*((?:\+ {part})*)= (\d+) of (\d+) (\w+)"
    match = checked("regs", labels["regs"], pattern)
    accumulators = int(match[1]) * int(match[2] or 1)
    others = sum(map(int, re.findall(r"\+ (\d+)", match[3])))
    return [
        *compared("accumulators", accumulators, built.accumulations / built.k * per_k(labels)[0]),
        *compared("sum of the registers", int(match[4]), accumulators + others),
        *compared("registers", int(match[4]), built.registers),
        *compared("registers of the target", int(match[5]), built.registers_there_are),
        *compared("kind of registers", match[6], built.kind),
    ]


def instruction_faults(labels, built) -> list[str]:
    steps, text = per_k(labels)
    match = checked("per k", text, r"([^;]+)")
    real = {name: Fraction(n) / built.k * steps for name, n in built.instructions.items()}
    return compared(f"per {steps} k", dict(counts(match[1], built.names)), real)


def ratio_faults(labels, built) -> list[str]:
    number = r"(\d+\.\d\d)"
    pattern = (
        rf"(.+) / (.+) = {number} multiply-adds per element loaded; (inner|outer) product {number}; "
        rf"(\S+) / (\S+) = {number} multiply-add instructions per load instruction"
    )
    match = checked("ratio", labels["ratio"], pattern)
    above, below, multiplies, loads = (value(match[i], built.names) for i in (1, 2, 6, 7))
    macs = built.mr * built.nr
    outer = (Fraction(macs), Fraction(built.mr + built.nr))
    inner = (Fraction(1), Fraction(2))
    own, other = (inner, outer) if built.form == "inner" else (outer, inner)
    steps = per_k(labels)[0]
    return [
        *compared("multiply-adds and elements", (above, below), own),
        *compared("ratio", match[3], f"{float(own[0] / own[1]):.2f}"),
        *compared("other form", match[4], "outer" if built.form == "inner" else "inner"),
        *compared("ratio of the other form", match[5], f"{float(other[0] / other[1]):.2f}"),
        *compared("multiply-add instructions", multiplies, built.multiply_adds / built.k * steps),
        *compared("load instructions", loads, built.loads / built.k * steps),
        *compared("ratio in instructions", match[8], f"{float(multiplies / loads):.2f}"),
    ]


def altered(labels: dict[str, str]) -> list[dict[str, str]]:
    """The labels with one number of ``tile``, ``regs``, ``per k`` or ``ratio`` made larger by one, for each of them."""
    found = []
    for label in labels:
        if label in ("tile", "regs", "ratio") or label.startswith("per "):
            others = {name: words for name, words in labels.items() if name != label}
            for number in re.finditer(r"\d+", line := f"{label}: {labels[label]}"):
                larger = str(int(number[0]) + 1).zfill(len(number[0]))
                name, _, words = (line[: number.start()] + larger + line[number.end() :]).partition(": ")
                found.append(others | {name: words})
    return found
