"""Checks the header of a GPU kernel file: its labels against the rows of the table and the machine code.

A label is a list of clauses between semicolons. A clause is a quantity or a remark; a remark holds no number, so that
no number goes unchecked. A quantity is a list of alternatives between commas, ``[at most] VALUE UNIT [for SELECTOR]``:
the last one that fits a kernel is said of it. A value is arithmetic on the kernel's variables. A selector is words that
all fit (``f32 8x8``); ``and`` stands between several. A word is a types family, a tile, or an architecture or the start
of its name (``sm_75``, ``gfx11``).

    tile      NAME, NAME; k_group 4             all kernels of the file
    regs      MR*NR accumulators; at most 66 registers, at most 168 registers for 8x8; no spills
    per k     MR*NR/4 IDP.4A; (MR + NR)/16 loads of 16 bytes
    ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8; counted 1.00 for gfx11
    lanes     1
    launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
    smem      0 bytes

``at most`` is an upper bound that some kernel comes within a quarter of: register counts change with the compiler.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

from kernel_headers import LABELS, value

from pysimd import dtypes
from pysimd.backends.gpu import launches
from pysimd.ratio import tile_ratio
from pysimd.sources import labels

CHECKED = ("regs", "per k", "ratio", "lanes", "launch", "smem")
SLACK = Fraction(5, 4)

Quantities = dict[str, dict[str, Fraction | None]]


@dataclass(frozen=True)
class Facts:
    """What is known of a kernel on one architecture.

    Attributes:
        where: kernel and architecture, for complaints.
        words: what selectors may say of it.
        variables: what values may be made of.
        quantities: the true values by label and unit, units in the singular; None for one that cannot be counted here.
    """

    where: str
    words: tuple[str, ...]
    variables: dict[str, int]
    quantities: Quantities


@dataclass(frozen=True)
class Alternative:
    """One stated value; ``selector`` is empty where it is said of all kernels."""

    value: str
    unit: str
    selector: str
    bound: bool

    def fits(self, words: tuple[str, ...]) -> bool:
        def one(word: str) -> bool:
            return any(x == word or (word[:3] in ("sm_", "gfx") and x.startswith(word)) for x in words)

        return any(all(map(one, part.split())) for part in self.selector.split(" and "))


# --- the grammar ---

_NAMES = r"(?:[AC]_BYTES|MR|NR|TM|TN|PRODUCTS|LANES|M|N|K|batch|m|n|ceil|max)"
_VALUE = rf"(?:\b{_NAMES}\b(?!-[a-z])|\d+(?:\.\d+)?|[-+*/(), ])+"
_ALTERNATIVE = re.compile(rf"(?P<bound>at most )?(?P<value>{_VALUE})(?P<unit>.*?)(?:\bfor (?P<selector>.+))?$")
_NUMBER = re.compile(r"(?<![\w.])\d")


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that stand outside of parentheses."""
    parts, depth = [""], 0
    for x in text:
        depth += (x == "(") - (x == ")")
        if x == separator and not depth:
            parts.append("")
        else:
            parts[-1] += x
    return [part.strip() for part in parts]


def singular(unit: str) -> str:
    """``loads of 16 bytes`` is ``load of 16 byte``: a unit may be written either way."""
    return " ".join(word.removesuffix("s") for word in unit.split())


def alternatives(clause: str) -> list[Alternative]:
    """The alternatives of a quantity; none of a remark."""
    found = [_ALTERNATIVE.match(part) for part in _split(clause, ",")]
    if found[0] is None:
        return []
    return [
        Alternative(x["value"].strip(), singular(x["unit"]), x["selector"] or "", bool(x["bound"])) if x else None
        for x in found
    ]


def clauses(label: str, text: str) -> list[str]:
    """The clauses of a label, those with a form of their own as quantities."""
    found = []
    for clause in _split(text, ";"):
        exact, equals, rounded = clause.partition(" = ")
        if label == "ratio" and equals:
            found += [f"{exact} analytic", _with_unit(rounded, "in figures")]
        elif label == "ratio" and clause.startswith("counted "):
            found.append(_with_unit(clause.removeprefix("counted "), "counted"))
        elif clause.startswith("grid "):
            found.append(clause.removeprefix("grid ") + " block")
        else:
            found.append("0 spill" if clause == "no spills" else clause)
    return found


def _with_unit(text: str, unit: str) -> str:
    return ", ".join(re.sub(r"^([\d.]+)", rf"\1 {unit}", part) for part in _split(text, ","))


# --- the checks ---


def complaints(text: str, rows, facts: list[Facts]) -> list[str]:
    """What is wrong with the header of a file; ``rows`` are its kernels, ``facts`` what is known of each of them on one
    or several architectures."""
    said = labels(text)
    if sorted(said) != sorted(LABELS):
        return [f"the labels are {', '.join(said)}"]
    found = _of_tile(said["tile"], rows) if rows else []
    for label in CHECKED:
        found += [f"{label}: {complaint}" for complaint in _of_label(label, said[label], facts)]
    return found


def _of_tile(text: str, rows) -> list[str]:
    """The label names the kernels of the file in the order of the table, and their k_group unless it is 1."""
    names, *rest = _split(text, ";")
    found = [] if _split(names, ",") == [x.name for x in rows] else [f"tile: these are not the file's kernels: {names}"]
    stated = alternatives(", ".join(clause.replace("k_group ", "") for clause in rest))
    for row in rows:
        said = _said(stated, (row.types, f"{row.mr}x{row.nr}"))
        if (said.value if said else "1") != str(row.k_group):
            found.append(f"tile: {row.name} has k_group {row.k_group}")
    return found


def _of_label(label: str, text: str, facts: list[Facts]) -> list[str]:
    found = []
    quantities = []
    for clause in clauses(label, text):
        stated = alternatives(clause)
        if None in stated or (not stated and _NUMBER.search(clause)):
            found.append(f"{clause!r} is neither a quantity nor a remark without a number")
        else:
            quantities.append(stated)
    reached: dict[Alternative, Fraction | int] = {}
    for kernel in facts:
        said = [x for stated in quantities if (x := _said(stated, kernel.words))]
        for x in said:
            true = kernel.quantities[label].get(x.unit, 0)
            reached[x] = max(true or 0, reached.get(x, 0))
            found += [] if true is None else _of_value(x, true, kernel)
        units = {x.unit for x in said}
        for unit, true in kernel.quantities[label].items():
            if true is not None and unit not in units:
                found.append(f"{kernel.where} has {true} {unit}, which is not said")
    for x in (x for stated in quantities for x in stated):
        if x not in reached:
            found.append(f"{x.value} {x.unit} for {x.selector!r} is said of no kernel")
        elif x.bound and Fraction(x.value) > SLACK * reached[x]:
            found.append(f"at most {x.value} {x.unit}, but no kernel has more than {reached[x]}")
    return found


def _said(stated: list[Alternative], words: tuple[str, ...]) -> Alternative | None:
    fitting = [x for x in stated if not x.selector or x.fits(words)]
    return fitting[-1] if fitting else None


def _of_value(x: Alternative, true: Fraction, kernel: Facts) -> list[str]:
    try:
        stated = value(x.value, kernel.variables)
    except (SyntaxError, KeyError, TypeError) as error:
        return [f"{x.value!r} is no arithmetic ({error})"]
    digits = len(x.value.partition(".")[2])
    if stated == (round(true, digits) if digits else true) or (x.bound and true <= stated):
        return []
    return [f"{x.value} = {stated} {x.unit}, but {kernel.where} has {true}"]


# --- what is true of a kernel, from what its hot loop was counted for ---


def facts_of_row(
    row, target: str, *, regs: Quantities, instructions: Counter, loads: Counter, macs: int, smem: int, **more
) -> Facts:
    """Facts of a row of a table.

    Args:
        instructions, loads: multiply-adds by name, and loads by their bytes, of a lane in the hot loop.
        macs: multiply-adds that these do for the tile: in a lane, or in all lanes of a matrix unit.
        more: arguments of ``steps_of``.
    """
    family = dtypes.FAMILIES[row.types]
    elements, steps = steps_of(row, loads, **more)
    tile = tile_ratio(row.form, row.mr, row.nr, 1, 1)
    analytic, counted = Fraction(tile.macs, tile.loads), macs / elements
    batch, m, n = 1001, 3 * row.mr - 1, 4 * row.nr + 1
    ((grid, block, _),) = launches.grids(row, operands(batch, m, n, 8), False, tiles=more.get("tiles", 1))
    return Facts(
        where=f"{row.name} on {target}",
        words=(row.types, f"{row.mr}x{row.nr}", target),
        variables={
            **{"MR": row.mr, "NR": row.nr, "batch": batch, "m": m, "n": n},
            **{"A_BYTES": itemsize(family.a), "C_BYTES": itemsize(family.c)},
        },
        quantities={
            "regs": regs,
            "per k": {name: count / steps for name, count in instructions.items()}
            | {f"load of {size} byte": count / steps for size, count in loads.items()},
            "ratio": {"analytic": analytic, "in figure": Fraction(f"{tile.value:.2f}")}
            | ({} if counted == analytic else {"counted": counted}),
            "lanes": {"": Fraction(row.lanes)},
            "launch": {"thread a block": Fraction(block[0]), "block": Fraction(grid[0])},
            "smem": {"byte": Fraction(smem)},
        },
    )


def steps_of(row, loads: Counter, *, tiles: int = 1, copies: int = 1) -> tuple[Fraction, Fraction]:
    """Elements loaded in the hot loop, by all lanes of a matrix unit, and steps of k that they are; ``tiles`` of a
    thread, ``copies`` of each element that the instruction wants in registers."""
    lanes = row.lanes if row.form in ("mfma", "wmma") else 1
    elements = Fraction(sum(size * n for size, n in loads.items()) * lanes, itemsize(dtypes.FAMILIES[row.types].a))
    return elements, elements / tiles / copies / (2 if row.form == "inner" else row.mr + row.nr)


def accumulators(multiply_adds) -> int:
    """Chains of multiply-adds in a loop, from pairs (result, addend): those whose addend none of them wrote before."""
    written, chains = set(), 0
    for result, addend in multiply_adds:
        chains += addend not in written
        written.add(result)
    return chains


def itemsize(dtype: str) -> int:
    return dtypes.dtype_of(dtype).itemsize


def operands(batch: int, m: int, n: int, k: int, size: int = 4, size_c: int = 4) -> launches.CallOperands:
    """Contiguous operands, as far as the host looks at them."""

    def array(rows, columns, size):
        shape, strides = (batch, rows, columns), (rows * columns * size, columns * size, size)
        return SimpleNamespace(shape=shape, strides=strides, itemsize=size, ndim=3, data=SimpleNamespace(ptr=1 << 20))

    return launches.CallOperands(array(m, k, size), array(k, n, size), None, array(m, n, size_c))


# --- headers that are not true, for the tests of the checks ---


def altered(text: str):
    """The file with each number of the checked labels changed, one at a time."""
    header = text[: text.index("*/")]
    for label in ("tile", *CHECKED):
        start = header.index(f" * {label} ")
        end = min(x for y in LABELS if (x := header.find(f"\n * {y} ", start + 1)) > 0 or (x := len(header)))
        for number in re.finditer(r"(?<![\w.])\d+(\.\d+)?", header[start:end]):
            first, last = start + number.start(), start + number.end()
            yield f"{text[:first]}{2 * Fraction(number[0]) + 1}{text[last:]}"
