"""HIP machine code on any machine, compiled and disassembled by the compilers of the simulator."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, cached_property

from pysimd import dtypes, simulator
from pysimd.backends.hip import device as hip_device
from pysimd.backends.hip import ladder, tiles
from pysimd.backends.hip.implementation import HIP
from pysimd.errors import OptionError
from pysimd.gpu_kernels import ladder_table
from pysimd.hip_kernels import table
from pysimd.inspection.counts import LOAD, MOVE, MULTIPLY_ADD, SPILL, STORE, Inspection, Line
from pysimd.microkernel import MicroKernel, Rung
from pysimd.simulator.counts import MACS_PER_LANE, macs_of_wave

DEFAULTS = ("gfx942", "gfx1100")

TWICE = "on gfx11 lanes 0-15 and 16-31 of a wave hold the same fragments: each element is loaded twice"

# Without dot4 a byte product is a 24-bit one, whose sum is another instruction or its own.
_MACS = {**MACS_PER_LANE, "v_mul_i32_i24": 1}

_LOADED = {"dwordx4": 16, "b128": 16, "dwordx3": 12, "b96": 12, "dwordx2": 8, "b64": 8, "dword": 4, "b32": 4}
_LOADED |= dict.fromkeys(("ushort", "sshort", "short", "u16", "i16", "b16"), 2)
_LOADED |= dict.fromkeys(("ubyte", "sbyte", "u8", "i8"), 1)


class Code:
    """The kernel ``symbol`` of a source text for one target. An instruction is its name, without ``dual_``, and whether
    it is one of a pair."""

    def __init__(self, text: str, symbol: str, target: str):
        self._code = simulator.compile_hip(text, target)
        self.kernel = self._code.kernels[symbol]

    @cached_property
    def instructions(self) -> list[tuple[str, bool]]:
        return _names(self._code.instructions[self.kernel.name])

    @cached_property
    def loops(self) -> list[Loop]:
        instructions = self._code.instructions[self.kernel.name]
        return [
            Loop(instructions[x.target : i + 1])
            for i, x in enumerate(instructions)
            if x.target is not None and x.target <= i
        ]

    def hot_loop(self, multiplies: set[str]) -> Loop:
        """The loop with most of these instructions; the shortest of those."""
        most = max(self.loops, key=lambda x: (x.count(*multiplies), -len(x.instructions)))
        assert most.count(*multiplies), f"no loop with {', '.join(sorted(multiplies))}"
        return most

    def hottest(self) -> Loop:
        """The loop with most multiply-adds; the shortest of those."""
        return max(self.loops, key=lambda x: (sum(macs(name) for name, _ in x.instructions), -len(x.instructions)))


class Loop:
    """The instructions of a loop."""

    def __init__(self, instructions):
        self.texts = [(x, [name for name, _ in _names([x])]) for x in instructions]
        self.instructions = _names(instructions)
        self.names = Counter(name for name, _ in self.instructions)

    def count(self, *names: str) -> int:
        return sum(self.names[name] for name in names)

    def starting(self, *prefixes: str) -> Counter:
        return Counter({name: n for name, n in self.names.items() if name.startswith(prefixes)})

    def paired(self, name: str) -> int:
        """How many of these are half of a dual instruction."""
        return sum(x == name and pair for x, pair in self.instructions)

    def loads(self) -> list[int]:
        """Bytes of each load of a lane from global memory; of whatever else is loaded, nothing is expected."""
        assert not self.starting("flat_load", "buffer_load", "scratch_load", "ds_read", "ds_load")
        return [bytes_loaded(name) for name, n in self.starting("global_load").items() for _ in range(n)]


def _names(instructions) -> list[tuple[str, bool]]:
    single = [(x, bool(x.second)) for x in instructions] + [(x.second, True) for x in instructions if x.second]
    return [(re.sub(r"^v_dual_|^v_(?=dual_)", "v_", x.mnemonic), pair) for x, pair in single]


def bytes_loaded(name: str) -> int:
    """Bytes that a lane loads with a load instruction of that name."""
    parts = name.split("_")
    each = next(_LOADED[part] for part in reversed(parts) if part in _LOADED)
    return 2 * each if {"read2", "read2st64", "2addr"} & set(parts) else each


def macs(name: str) -> int:
    """Multiply-adds of one lane; of a whole wave, for the matrix units."""
    return macs_of_wave(name) or _MACS.get(name, 0)


@cache
def code_of(source: str, entry: str, target: str) -> Code:
    """A template instance of a file in ``hip_kernels`` for one target."""
    return Code(tiles.instance(source, entry), table.symbol(entry), target)


@cache
def code_of_rung(row: ladder_table.Rung, layout_a: str, layout_b: str, target: str) -> Code:
    """The instance of a rung for operands of these layouts and one target."""
    return Code(*ladder.instance(row, layout_a, layout_b), target)


def fast_entry(row: table.Kernel) -> str:
    """The template instance of a row for operands that are read in the widest pieces."""
    return table.entry(row, "K_MAJOR", "PACKED" if "PACKED" in row.layouts else "K_MAJOR", False)


def inspect(kernel: MicroKernel | Rung, target: str | None) -> Inspection:
    """``pysimd.inspect`` of a HIP kernel or rung, of a rung the instance for row-major, aligned operands."""
    here = HIP.backend()
    if target is None:
        candidates = (*here.features[:1], *DEFAULTS)
        target = next(x for x in candidates if not hip_device.lacks(kernel, x))
    if target not in table.TARGETS and not (here.available and target == here.features[0]):
        raise OptionError(f"target={target!r}: kernels are read for {', '.join(table.TARGETS)}")
    if hip_device.lacks(kernel, target):
        raise OptionError(f"target={target!r}: {hip_device.lacks(kernel, target)}")
    if isinstance(kernel, Rung):
        row = ladder.ROWS[kernel.name]
        layouts = ladder_table.row_major(row)
        code, entry = code_of_rung(row, *layouts, target), ladder_table.entry(row, *layouts)
        return inspection(kernel, target, entry, code, "shared" if row.bk else "global")
    row = table.BY_NAME[kernel.name]
    entry = fast_entry(row)
    return inspection(kernel, target, entry, code_of(row.source, entry, target))


def inspection(
    kernel: MicroKernel | Rung, target: str, entry: str, code: Code, tile_memory: str = "global"
) -> Inspection:
    """The hot loop of ``code``, counted."""
    matrix = kernel.form in ("mfma", "wmma")
    lanes = code.kernel.wave_size if matrix else 1
    unified = target in ("gfx90a", "gfx942")  # where accumulation registers are part of the same file
    return Inspection(
        kernel=kernel.name,
        target=target,
        entry=entry,
        scope="wave" if matrix else "thread",
        element_bytes=dtypes.dtype_of(dtypes.FAMILIES[kernel.types].a).itemsize,
        registers=code.kernel.vgprs,
        registers_there_are=512 if unified else 256,
        features=(),
        analytic_ratio=kernel.ratio.value,
        remark=TWICE if kernel.form == "wmma" and target.startswith("gfx11") else "",
        lines=tuple(line(x, names, lanes) for x, names in code.hottest().texts),
        tile_memory=tile_memory,
    )


def line(instruction, names: list[str], lanes: int) -> Line:
    """What an instruction, or a pair of them, does for the tile: in one lane, or in a wave of ``lanes``."""
    text, first = str(instruction), names[0]
    if any(map(macs, names)):
        return Line(text, (MULTIPLY_ADD,), sum(map(macs, names)))
    for memory, prefixes in (
        ("global", ("global_load", "flat_load", "buffer_load")),
        ("shared", ("ds_read", "ds_load")),
    ):
        if first.startswith(prefixes):
            return Line(text, (LOAD,), memory=memory, load_bytes=bytes_loaded(first) * lanes)
    if first.startswith("scratch_"):
        return Line(text, (SPILL,))
    if first.startswith(("global_store", "flat_store", "buffer_store", "ds_write", "ds_store", "global_atomic")):
        return Line(text, (STORE,))
    return Line(text, (MOVE,) if all(x.startswith(("v_mov_b", "v_accvgpr", "v_pk_mov")) for x in names) else ())
