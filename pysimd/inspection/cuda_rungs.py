"""The rungs of the GEMM ladder, compiled and disassembled as CUDA kernels are: the loop along k, from the memory that
the tile of a thread, a warp or a warpgroup is read from."""

from __future__ import annotations

import re

from pysimd import dtypes
from pysimd.backends.cuda.implementation import CUDA
from pysimd.errors import OptionError, UnavailableError
from pysimd.gpu_kernels import ladder_table
from pysimd.inspection import nvidia
from pysimd.inspection.counts import LOAD, MULTIPLY_ADD, Inspection, Line
from pysimd.microkernel import Rung

SCOPES = {1: "thread", 32: "warp", 128: "warpgroup"}

_GROUPS = {"FFMA": 1, "HFMA2": 2, "IDP.4A": 4}
"""Multiply-adds of an instruction of one thread, along k."""

_OF_TYPES = {"f32": "FFMA", "f16": "HFMA2", "i8i32": "IDP.4A"}


def instruction(row: ladder_table.Rung) -> str:
    """The multiply-add of a rung, as nvdisasm spells it (a prefix)."""
    if row.lanes == 1:
        return _OF_TYPES[row.types]
    return ("I" if row.remainders or row.types == "i8i32" else "H") + ("GMMA" if row.tensor_blocks else "MMA")


def inspect(rung: Rung, target: str | None) -> Inspection:
    """``pysimd.inspect`` of a rung: the instance for row-major, aligned operands, of the first block it chooses from.

    For sm_90 that is sm_90a, as on the device: only there warps can reallocate registers, and warpgroups multiply.
    """
    row, here = ladder_table.BY_NAME[rung.name], CUDA.backend()
    target = target or (here.features[0] if here.available else nvidia.DEFAULT)
    target = "sm_90a" if target == "sm_90" else target
    found = re.fullmatch(r"sm_(\d+)a?", target)
    needs = int(row.requires[3:].rstrip("a"))
    if not found or int(found[1]) < needs or (row.requires.endswith("a") and target != row.requires):
        or_newer = "alone" if row.requires.endswith("a") else f"or newer, e.g. {nvidia.DEFAULT}"
        raise OptionError(f"target={target!r}: {row.name} is compiled for {row.requires} {or_newer}")
    if nvidia.missing():
        raise UnavailableError(nvidia.missing())
    block = next((x for x in row.blocks if target == "sm_90a" or not x.setmaxnreg), None)
    entry = ladder_table.entry(row, *ladder_table.row_major(row), block)
    try:
        code = nvidia.compiled(row.source, entry, target[3:], "ladder")
    except nvidia.CompileError as error:
        raise OptionError(f"target={target!r}: NVRTC does not compile {row.name} for it: {error}") from error
    return inspection(row, target, entry, code, block)


def inspection(
    row: ladder_table.Rung, target: str, entry: str, code: nvidia.Code, block: ladder_table.Block | None = None
) -> Inspection:
    """The hot loop of ``code``, counted: around the loop along k is one from tile to tile, which stores C."""
    along_k = nvidia.Code(
        code.instructions,
        tuple(loop for loop in code.loops if not any(x.name.startswith(("STG.", "UTMASTG.")) for x in loop)),
        code.registers,
    )
    tm, tn = (block.mr, block.nr) if block else (row.tm, row.tn)
    size = row.panel_bytes if row.remainders else dtypes.dtype_of(dtypes.FAMILIES[row.types].a).itemsize
    return Inspection(
        kernel=row.name,
        target=target,
        entry=entry,
        scope=SCOPES[row.lanes],
        element_bytes=size,
        registers=code.registers,
        registers_there_are=255,
        features=(),
        analytic_ratio=tm * tn / (2 * tm * tn if row.inner else tm + tn),
        remark="",
        lines=tuple(line(x, row, size) for x in along_k.hot_loop(instruction(row))),
        tile_memory="shared" if row.bk else "global",
    )


def line(x: nvidia.Instruction, row: ladder_table.Rung, size: int) -> Line:
    """What an instruction does for the tile."""
    of_warpgroup = re.search(r"\b[HI]GMMA\.(\d+)x(\d+)x(\d+)\.", x.text)
    if of_warpgroup:  # both operands from shared memory, each element once
        m, n, k = map(int, of_warpgroup.groups())
        word = 4 if "TF32" in x.text else size
        return Line(x.text, (MULTIPLY_ADD, LOAD), m * n * k, "shared", (m + n) * k * word)
    name = instruction(row)
    if row.lanes == 1 and x.name.startswith(name) and not x.moves():
        return Line(x.text, (MULTIPLY_ADD,), _GROUPS[name])
    if x.name.startswith("LDS") and x.operands.startswith("RZ,"):  # precedes asynchronous copies, and loads nothing
        return Line(x.text)
    matrices = re.match(r"LDSM\.16\.MT?88(?:\.([24]))?", x.name)
    if matrices:  # of 8 x 8 elements of two bytes
        return Line(x.text, (LOAD,), memory="shared", load_bytes=128 * int(matrices[1] or 1))
    return nvidia.line(x, nvidia.macs_of_warp(x) if row.lanes > 1 else 0, row.lanes)
