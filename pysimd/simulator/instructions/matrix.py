"""Matrix instructions, which a whole wave does together: MFMA (gfx908 to gfx950) and WMMA (gfx11, gfx12).

D = A B + C, where a lane holds parts of a row of A, of a column of B, and of a column of C and D. EXEC does not
matter. How the hardware rounds within the sum is not documented: here float32 is one fma per k, k ascending; narrow
types are summed in float64, k ascending, and rounded once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from pysimd.simulator.assembly import Instruction
from pysimd.simulator.errors import SimulationError, UnsupportedInstruction
from pysimd.simulator.floats import bfloat16_to_float32, fma32
from pysimd.simulator.gang import Gang
from pysimd.simulator.instructions.base import Decoder, Machine, Step
from pysimd.simulator.operands import Modifiers, Operand, parse_operand

_MFMA = re.compile(r"v_mfma_(f32|i32)_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?(f32|f16|bf16|i8)(_1k)?")
_WMMA = re.compile(r"v_wmma_(f32|i32)_16x16x16_(f16|bf16|iu8)")

_ELEMENTS_PER_LANE = {"f32": 1, "f16": 4, "bf16": 2, "bf16_1k": 4, "i8": 4}
"""Of A, in the instructions whose names do not tell the number of blocks (gfx908 and gfx90a)."""

_STORAGE = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i8": np.int8, "u8": np.uint8}


def decoder(mnemonic: str) -> Decoder | None:
    """The decoder of a matrix instruction; None if the mnemonic is none that is known."""
    if _MFMA.fullmatch(mnemonic):
        return _mfma
    return _wmma if _WMMA.fullmatch(mnemonic) else None


@dataclass(frozen=True)
class Shape:
    """``blocks`` products of m x k by k x n, computed by one instruction."""

    m: int
    n: int
    k: int
    blocks: int


def mfma_shape(mnemonic: str) -> Shape:
    """From the name: 32x32x2f32 is one product, 32x32x1f32 two, 4x4x1_16b_f32 sixteen."""
    found = _MFMA.fullmatch(mnemonic)
    m, n, k = (int(x) for x in found.group(2, 3, 4))
    if found[5]:
        return Shape(m, n, k, int(found[5]))
    if re.search(r"x\d+_[a-z]", mnemonic):
        return Shape(m, n, k, 1)
    return Shape(m, n, k, 64 * _ELEMENTS_PER_LANE[found[6] + (found[7] or "")] // (m * k))


def elements(g: Gang, operand: Operand, storage: str, count: int) -> np.ndarray:
    """The elements that each lane holds in its registers: (waves, lanes, count)."""
    dtype = np.dtype(_STORAGE[storage])
    words = operand_words(g, operand, count * dtype.itemsize // 4)
    values = words.view(dtype)
    return bfloat16_to_float32(values) if storage == "bf16" else values


def operand_words(g: Gang, operand: Operand, count: int) -> np.ndarray:
    """(waves, lanes, count) uint32; a constant is the same everywhere."""
    if operand.file == "":
        if operand.constant != 0:
            raise UnsupportedInstruction(f"constant {operand.text} as an operand of a matrix instruction")
        return np.zeros((g.count, g.lanes, count), np.uint32)
    if not operand.is_vector or operand.count != count or operand.negate or operand.absolute:
        raise UnsupportedInstruction(f"operand {operand.text!r}: expected {count} vector registers")
    acc = operand.file == "a"
    return np.stack([g.read_everywhere(operand.index + i, acc) for i in range(count)], axis=2)


def write_words(g: Gang, operand: Operand, words: np.ndarray) -> None:
    """(waves, lanes, count) uint32 to as many registers."""
    for i in range(words.shape[2]):
        g.write_everywhere(operand.index + i, words[:, :, i], operand.file == "a")


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, fused: bool) -> np.ndarray:
    """(..., m, k) by (..., k, n) plus (..., m, n); fused: one fma for each k."""
    if c.dtype == np.int32:
        return (c + a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    if fused:
        for k in range(a.shape[-1]):
            c = fma32(a[..., :, k, None], b[..., None, k, :], c)
        return c
    total = c.astype(np.float64)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k, None].astype(np.float64) * b[..., None, k, :].astype(np.float64)
    return total.astype(np.float32)


def _mfma(instruction: Instruction, machine: Machine) -> Step:
    found = _MFMA.fullmatch(instruction.mnemonic)
    modifiers = Modifiers(instruction)
    modifiers.done()  # cbsz, abid and blgp broadcast and permute blocks
    shape, storage = mfma_shape(instruction.mnemonic), found[6]
    result, a, b, c = (parse_operand(x) for x in instruction.operands)
    dtype = np.int32 if found[1] == "i32" else np.float32
    each = shape.m * shape.k * shape.blocks // 64
    place = _mfma_places(shape, each)

    def step(g: Gang) -> None:
        left = np.empty((g.count, shape.blocks, shape.m, shape.k), _STORAGE["f32" if storage == "bf16" else storage])
        right = np.empty((g.count, shape.blocks, shape.k, shape.n), left.dtype)
        acc = np.empty((g.count, shape.blocks, shape.m, shape.n), dtype)
        left[:, place.block, place.outer, place.k] = elements(g, a, storage, each)
        right[:, place.block, place.k, place.outer] = elements(g, b, storage, each)
        at = (slice(None), place.sum_block, place.row, place.column)
        acc[at] = operand_words(g, c, place.row.shape[1]).view(dtype)
        write_words(g, result, np.ascontiguousarray(product(left, right, acc, storage == "f32")[at]).view(np.uint32))

    return step


@dataclass(frozen=True)
class _Places:
    """Where element i of lane l belongs, as index arrays of shape (64, elements): of A (row) and B (column): block,
    outer, k; of C and D: sum_block, row, column."""

    block: np.ndarray
    outer: np.ndarray
    k: np.ndarray
    sum_block: np.ndarray
    row: np.ndarray
    column: np.ndarray


def _mfma_places(shape: Shape, each: int) -> _Places:
    """Lanes go over the rows of A first, then over groups of ``each`` neighbours along k, then over blocks. A lane has
    one column of C, four neighbouring rows at a time; lanes go over columns first, then over those groups of four."""
    lane = np.arange(64)[:, None]
    i = np.arange(each)[None, :]
    group = lane // shape.m
    groups_along_k = shape.k // each
    in_sum = np.arange(shape.m * shape.n * shape.blocks // 64)[None, :]
    row = in_sum // 4 * (256 // shape.n) + 4 * (lane // shape.n) + in_sum % 4  # counted through all blocks
    return _Places(
        block=np.broadcast_to(group // groups_along_k, (64, each)),
        outer=np.broadcast_to(lane % shape.m, (64, each)),
        k=group % groups_along_k * each + i,
        sum_block=row // shape.m,
        row=row % shape.m,
        column=np.broadcast_to(lane % shape.n, row.shape),
    )


def _wmma(instruction: Instruction, machine: Machine) -> Step:
    """16x16x16. On gfx11 a lane holds a whole row of A, and lanes 16 to 31 the same as 0 to 15; its rows of C are 2i or
    2i + 1. On gfx12 it holds half a row of A, and its rows of C are neighbours."""
    if machine.wave_size != 32 or machine.generation not in (11, 12):
        raise UnsupportedInstruction(f"`{instruction}` on {machine.target} with {machine.wave_size} lanes")
    kind, storage = _WMMA.fullmatch(instruction.mnemonic).group(1, 2)
    modifiers = Modifiers(instruction)
    storages = [storage, storage]
    if storage == "iu8":
        storages = ["i8" if x else "u8" for x in modifiers.bits("neg_lo", 3, 0)[:2]]
    modifiers.done()
    result, a, b, c = (parse_operand(x) for x in instruction.operands)
    dtype = np.int32 if kind == "i32" else np.float32
    lane, i = np.arange(32)[:, None], np.arange(8)[None, :]
    row = 2 * i + lane // 16 if machine.generation == 11 else 8 * (lane // 16) + i
    at = (slice(None), row, np.broadcast_to(lane % 16, row.shape))
    spread = _rows_gfx11 if machine.generation == 11 else _rows_gfx12

    def step(g: Gang) -> None:
        left, right = (spread(g, x, y) for x, y in zip((a, b), storages, strict=True))
        acc = np.empty((g.count, 16, 16), dtype)
        acc[at] = operand_words(g, c, 8).view(dtype)
        total = product(left, right.swapaxes(1, 2), acc, fused=False)
        write_words(g, result, np.ascontiguousarray(total[at]).view(np.uint32))

    return step


def _rows_gfx11(g: Gang, operand: Operand, storage: str) -> np.ndarray:
    """(waves, 16 rows, 16 k)."""
    values = elements(g, operand, storage, 16)
    if not np.array_equal(*(values[:, i : i + 16].view(np.uint8) for i in (0, 16))):
        raise SimulationError(f"gfx11 WMMA: lanes 16 to 31 of {operand.text} must hold what lanes 0 to 15 hold")
    return values[:, :16]


def _rows_gfx12(g: Gang, operand: Operand, storage: str) -> np.ndarray:
    values = elements(g, operand, storage, 8)
    return np.concatenate([values[:, :16], values[:, 16:]], axis=2)
