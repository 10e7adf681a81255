"""The one place where a HIP kernel is registered; dispatch, compilation, simulation, tests and command line read it.

The tile in the name is the tile in the row. ``entry`` is the template instance in ``source``; ``{a}`` and ``{b}`` stand
for the layouts of the operands (gpu_kernels/micro/memory.cuh), ``{edge}`` for "there are edge tiles". Plain data:
nothing here needs CuPy.
"""

import re
from dataclasses import dataclass

TARGETS = ("gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1200")
"""Targets for which every kernel is compiled and executed in the tests; others of these families are taken too."""

FEATURES = {
    "gfx900": ("gfx9", "gfx10", "gfx11", "gfx12"),
    "mfma": ("gfx908", "gfx90a", "gfx942", "gfx950"),
    "wmma": ("gfx11", "gfx12"),
}
"""What a kernel may require, and the targets, or the beginnings of their names, that have it; gfx900 is the least."""


@dataclass(frozen=True)
class Kernel:
    """One row.

    Attributes:
        requires: the one of FEATURES that the target must have.
        lanes: threads that share a tile; a whole wave for the matrix units.
        layouts: layouts that an operand may be read in, besides ANY.
    """

    name: str
    form: str
    types: str
    mr: int
    nr: int
    k_group: int
    requires: str
    lanes: int
    source: str
    entry: str
    layouts: tuple[str, ...] = ("K_MAJOR", "MN_MAJOR", "PACKED")


# fmt: off
KERNELS = (
    Kernel("hip_f16_outer_4x4", form="outer", types="f16", mr=4, nr=4, k_group=1, requires="gfx900", lanes=1,
           source="outer_packed.hip", entry="outer_f16<Packed, 4, 4, {a}, {b}, {edge}>"),
    Kernel("hip_f16_outer_8x8", form="outer", types="f16", mr=8, nr=8, k_group=1, requires="gfx900", lanes=1,
           source="outer_packed.hip", entry="outer_f16<Packed, 8, 8, {a}, {b}, {edge}>"),
    Kernel("hip_f16f32_mfma_16x16", form="mfma", types="f16f32", mr=16, nr=16, k_group=16, requires="mfma", lanes=64,
           source="mfma.hip", entry="mfma_tile<FromF16, 16, {a}, {b}, {edge}>", layouts=("K_MAJOR",)),
    Kernel("hip_f16f32_mfma_32x32", form="mfma", types="f16f32", mr=32, nr=32, k_group=8, requires="mfma", lanes=64,
           source="mfma.hip", entry="mfma_tile<FromF16, 32, {a}, {b}, {edge}>", layouts=("K_MAJOR",)),
    Kernel("hip_f16f32_outer_4x4", form="outer", types="f16f32", mr=4, nr=4, k_group=1, requires="gfx900", lanes=1,
           source="outer_mixed.hip", entry="outer_f16<Mixed, 4, 4, {a}, {b}, {edge}>"),
    Kernel("hip_f16f32_outer_8x8", form="outer", types="f16f32", mr=8, nr=8, k_group=1, requires="gfx900", lanes=1,
           source="outer_mixed.hip", entry="outer_f16<Mixed, 8, 8, {a}, {b}, {edge}>"),
    Kernel("hip_f16f32_wmma_16x16", form="wmma", types="f16f32", mr=16, nr=16, k_group=16, requires="wmma", lanes=32,
           source="wmma.hip", entry="wmma_tile<{a}, {b}, {edge}>", layouts=("K_MAJOR",)),
    Kernel("hip_f32_inner_4x4", form="inner", types="f32", mr=4, nr=4, k_group=1, requires="gfx900", lanes=16,
           source="inner.hip", entry="inner<F32, 4, 4, {a}, {b}, {edge}>", layouts=("K_MAJOR",)),
    Kernel("hip_f32_inner_8x8", form="inner", types="f32", mr=8, nr=8, k_group=1, requires="gfx900", lanes=64,
           source="inner.hip", entry="inner<F32, 8, 8, {a}, {b}, {edge}>", layouts=("K_MAJOR",)),
    Kernel("hip_f32_mfma_16x16", form="mfma", types="f32", mr=16, nr=16, k_group=4, requires="mfma", lanes=64,
           source="mfma.hip", entry="mfma_tile<FromF32, 16, {a}, {b}, {edge}>", layouts=("K_MAJOR",)),
    Kernel("hip_f32_mfma_32x32", form="mfma", types="f32", mr=32, nr=32, k_group=2, requires="mfma", lanes=64,
           source="mfma.hip", entry="mfma_tile<FromF32, 32, {a}, {b}, {edge}>", layouts=("K_MAJOR",)),
    Kernel("hip_f32_outer_4x4", form="outer", types="f32", mr=4, nr=4, k_group=1, requires="gfx900", lanes=1,
           source="outer.hip", entry="outer<F32, 4, 4, {a}, {b}, {edge}>"),
    Kernel("hip_f32_outer_8x8", form="outer", types="f32", mr=8, nr=8, k_group=1, requires="gfx900", lanes=1,
           source="outer.hip", entry="outer<F32, 8, 8, {a}, {b}, {edge}>"),
    Kernel("hip_i8i32_outer_4x4", form="outer", types="i8i32", mr=4, nr=4, k_group=4, requires="gfx900", lanes=1,
           source="outer_dot4.hip", entry="outer_dp4a<4, 4, {a}, {b}, {edge}>"),
    Kernel("hip_i8i32_outer_8x8", form="outer", types="i8i32", mr=8, nr=8, k_group=4, requires="gfx900", lanes=1,
           source="outer_dot4.hip", entry="outer_dp4a<8, 8, {a}, {b}, {edge}>"),
)
# fmt: on
BY_NAME = {row.name: row for row in KERNELS}

BATCHED = "batched.hip"
"""What ``matmul`` runs for batches of small products; its instances are those of gpu_kernels/table.py."""


def features(target: str) -> tuple[str, ...]:
    """What a target such as ``gfx90a`` has, of FEATURES."""
    return tuple(name for name, targets in FEATURES.items() if target.startswith(targets))


def entry(row: Kernel, a: str, b: str, edge: bool) -> str:
    """The template instance of a row for operands of these layouts."""
    return row.entry.format(a=a, b=b, edge="true" if edge else "false")


def entries(row: Kernel) -> list[str]:
    """Every template instance of a row that a call can ask for."""
    layouts = ("ANY", *row.layouts)
    return [entry(row, a, b, False) for a in layouts for b in layouts] + [entry(row, "ANY", "ANY", True)]


# --- symbols ---

_ENUMERATORS = {
    "Call": {
        "Layout": ("ANY", "K_MAJOR", "MN_MAJOR", "PACKED"),
        "Source": ("CONTIGUOUS", "STRIDED", "BROADCAST"),
    },
    "Gemm": {"Layout": ("K_MAJOR", "MN_MAJOR", "K_MAJOR_VEC4", "MN_MAJOR_VEC4")},
}
"""Of the sources whose kernels take this struct."""

_ARGUMENT = re.compile(r"\w+(?:<[^>]*>)?")


def symbol(entry: str, parameter: str = "Call") -> str:
    """The name of a template instance in machine code, as the C++ ABI makes it: ``outer<F32, 4>`` is
    ``_Z5outerI3F32Li4EEv4Call``. ``parameter`` is the struct that the kernel takes: ``Gemm`` that of a rung.

    CuPy's ROCm build compiles a module with name expressions again in every process; without them, by this name, a
    compiled module comes from its cache.
    """
    seen = []  # what the ABI abbreviates when it comes again: S_, S0_, S1_, ...

    def name(word: str) -> str:
        if word in seen:
            at = seen.index(word)
            return "S_" if at == 0 else f"S{at - 1}_"
        template, _, arguments = word.partition("<")
        text = name(template) + list_of(arguments) if arguments else f"{len(word)}{word}"
        seen.append(word)
        return text

    def list_of(arguments: str) -> str:
        return f"I{''.join(argument(x) for x in _ARGUMENT.findall(arguments))}E"

    def argument(word: str) -> str:
        if word in ("true", "false"):
            return f"Lb{int(word == 'true')}E"
        if word.isdecimal():
            return f"Li{word}E"
        for enum, words in _ENUMERATORS[parameter].items():
            if word in words:
                return f"L{name(enum)}{words.index(word)}E"
        return name(word)

    return f"_Z{name(entry)}v{len(parameter)}{parameter}"
