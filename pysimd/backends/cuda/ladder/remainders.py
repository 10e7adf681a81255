"""Rungs that multiply floats by int8 products modulo coprime numbers (gpu_kernels/ladder/remainders.cuh): the numbers,
scratch memory, and the arguments of the kernels before and after the int8 products."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import log2, prod
from typing import NamedTuple

import numpy as np

from pysimd import dtypes
from pysimd.backends.cuda import tensor_maps
from pysimd.backends.cuda.ladder.tensor import LINE, fields
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.gpu.plans import SCRATCH, Argument, Slot
from pysimd.gpu_kernels.ladder_table import Rung

MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193)

MOST_K = 1 << 16
"""Of one product: 2^17 squares of int8 may be 2^31. A longer k is several products, each added to C."""

_STRUCT = np.dtype(
    [
        *((name, kind, 16) for name, kind in (("p", "f8"), ("inverse", "f8"), ("low", "u8"), ("high", "u8"))),
        *((name, "u8") for name in ("offset_low", "offset_high")),
        *((name, "f8") for name in ("scale", "log2_norm")),
    ]
)

_LONG = 8 * LINE
"""Bytes of a row of remainders from which on it begins with a line of the L2."""

_ALIGNMENT = 256


@cache
def moduli(count: int) -> np.ndarray:
    """The struct Moduli of the first ``count`` numbers, one element."""
    made, chosen = np.zeros(1, _STRUCT), MODULI[:count]
    whole, offset = prod(chosen), 0
    for i, p in enumerate(chosen):
        factor = (pow(whole // p, -1, p) * 2**128 * 2 // p + 1) // 2  # rounded
        offset -= factor << 31
        made["p"][0, i], made["inverse"][0, i] = p, 1 / p
        made["low"][0, i], made["high"][0, i] = factor % 2**64, factor % 2**128 >> 64
    made["offset_low"], made["offset_high"] = offset % 2**64, offset % 2**128 >> 64
    made["scale"], made["log2_norm"] = whole / 2**128, (log2(whole) - 1) / 2
    return made


class Operand(NamedTuple):
    """What is made of A or of B in scratch memory.

    Attributes:
        argument: a Rows.
        layout: of the operand.
        rows: of A; columns of B.
        tiles: blocks that have something to do where remainders are written.
    """

    argument: Argument
    layout: str
    rows: int
    tiles: int


class Part(NamedTuple):
    """One product of at most ``MOST_K`` k.

    Attributes:
        operands: A and B.
        k: of this product.
        gemm: the int8 products, all of them a batch.
        joined: a Joined.
    """

    operands: tuple[Operand, Operand]
    k: int
    gemm: Argument
    joined: Argument


class Scratch:
    """Where exponents, remainders and sums of one product are in scratch memory: the parts of a launch share it."""

    def __init__(self, count: int, m: int, n: int, k: int):
        piece = LINE if k >= _LONG else tensor_maps.ALIGNMENT
        self.pitch, self.columns = -(-k // piece) * piece, -(-n // 4) * 4
        sizes = (4 * m, 4 * n, count * m * self.pitch, count * n * self.pitch, 4 * count * m * self.columns)
        self.exponents, self.remainders, at = [], [], 0
        for i, size in enumerate(sizes):
            (self.exponents if i < 2 else self.remainders).append(at)
            at += -(-size // _ALIGNMENT) * _ALIGNMENT
        self.sums, self.nbytes = self.remainders.pop(), at


def parts(
    row: Rung, layouts: tuple[str, str], products: int, gemm: Argument, alpha: float, beta: float
) -> Iterator[Part]:
    """The products of a Gemm, one after the other, in scratch memory for the longest."""
    p = fields(gemm)
    scratch = Scratch(row.remainders, p["m"], p["n"], min(p["k"], MOST_K))
    for product in range(products):
        for first in range(0, p["k"], MOST_K):
            yield _part(row, layouts, gemm, scratch, product, first, alpha, beta)


def _part(
    row: Rung,
    layouts: tuple[str, str],
    gemm: Argument,
    scratch: Scratch,
    product: int,
    first: int,
    alpha: float,
    beta: float,
) -> Part:
    p, slots = fields(gemm), {slot.word: slot for slot in gemm.slots}
    size = dtypes.dtype_of(dtypes.FAMILIES[row.types].a).itemsize
    k = min(p["k"] - first, MOST_K)
    operands = []
    for i, (letter, layout, rows) in enumerate((("a", layouts[0], p["m"]), ("b", layouts[1], p["n"]))):
        ld = p[f"ld{letter}"]
        elements = product * p[f"{letter}_batch"] + first * (1 if layout == "K_MAJOR" else ld)
        words = np.array([0, 0, 0, rows, k, ld, scratch.pitch], np.int64)
        at = (
            _moved(slots[i], 0, size * elements),
            Slot(1, SCRATCH, scratch.exponents[i]),
            Slot(2, SCRATCH, scratch.remainders[i]),
        )
        operands.append(Operand(Argument(words, at), layout, rows, -(-rows // 32) * -(-k // 64)))
    joined = _joined(p, slots, scratch, size, product, first, (alpha, beta))
    return Part(tuple(operands), k, _int8(row, p, scratch, k), joined)


def _moved(slot: Slot, word: int, nbytes: int) -> Slot:
    return slot._replace(word=word, offset=slot.offset + nbytes)


def _int8(row: Rung, p: dict[str, int], scratch: Scratch, k: int) -> Argument:
    """The Gemm of the int8 products, one for each of the coprime numbers."""
    given = dict.fromkeys(("a", "b", "c"), tensor_maps.ANYWHERE) | {"m": p["m"], "n": p["n"], "k": k, "c_vector": 1}
    given |= {"lda": scratch.pitch, "ldb": scratch.pitch, "ldc": scratch.columns}
    given |= {"a_batch": p["m"] * scratch.pitch, "b_batch": p["n"] * scratch.pitch}
    given |= {"c_batch": p["m"] * scratch.columns, "factors": gemm_launches.pair("i8i32", 1, 0)}
    words = np.array([given.get(name, 0) for name in gemm_launches.FIELDS], np.int64)
    offsets = ((0, scratch.remainders[0]), (1, scratch.remainders[1]), (3, scratch.sums))
    return Argument(words, tuple(Slot(word, SCRATCH, offset) for word, offset in offsets))


def _joined(
    p: dict[str, int],
    slots: dict[int, Slot],
    scratch: Scratch,
    size: int,
    product: int,
    first: int,
    factors: tuple[float, float],
) -> Argument:
    """A Joined; after the first part of k, what is in C already is added to."""
    c = _moved(slots[3], 4, size * product * p["c_batch"])
    at = [Slot(0, SCRATCH, scratch.sums), *(Slot(1 + i, SCRATCH, x) for i, x in enumerate(scratch.exponents)), c]
    strides, beta = (p["c0_rs"], p["c0_cs"]), factors[1]
    if first:
        at.append(c._replace(word=3))
        strides, beta = (p["ldc"], 1), 1.0
    elif p["c0"]:
        at.append(_moved(slots[2], 3, size * product * p["c0_batch"]))
    words = [0, 0, 0, 0, 0, p["m"], p["n"], scratch.columns, *strides, p["ldc"]]
    doubles = np.array([factors[0], beta], np.float64).view(np.int64)
    return Argument(np.concatenate([np.array(words, np.int64), doubles]), tuple(at))
