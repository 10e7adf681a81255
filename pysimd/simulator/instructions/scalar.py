"""Scalar instructions: one value for a whole wave. Functions take and give arrays of shape (W,)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.floats import fma32
from pysimd.simulator.gang import EXEC, Gang
from pysimd.simulator.instructions.base import Decoder, Signature, chosen, computed, table
from pysimd.simulator.instructions.compare import COMPARISONS
from pysimd.simulator.instructions.convert import float_to_int, int_to_float
from pysimd.simulator.operands import Modifiers, parse_operand, scalar_reader, scalar_writer


def _decoder(signature: Signature, function: Callable | None) -> Decoder:
    """Operands of type ``scc`` and ``exec`` are not in the text: the instruction implies them.

    Without a function: the instruction chooses one of its two operands by the third, SCC.
    """

    def decode(instruction, machine):
        Modifiers(instruction).done()
        written = [x for x in signature.results if x not in _IMPLIED]
        read = [x for x in signature.operands if x not in _IMPLIED]
        operands = [parse_operand(x) for x in instruction.operands]
        results, sources = operands[: len(written)], operands[len(written) :]
        if signature.accumulates:
            sources += results[:1]
        if len(sources) != len(read) or len(results) != len(written):
            raise UnsupportedInstruction(f"`{instruction}`: expected {len(written)} results and {len(read)} operands")
        readers, left = [], iter(sources)
        for kind in signature.operands:
            readers.append(_READERS[kind] if kind in _IMPLIED else scalar_reader(next(left), kind))
        writers, left = [], iter(results)
        for kind in signature.results:
            writers.append(_WRITERS[kind] if kind in _IMPLIED else scalar_writer(next(left), kind))
        if function is None:
            first, second, scc = readers
            readers = [second, first, scc]  # the first where SCC is set
        compute = computed(function, readers) if function else chosen(*readers)
        if len(writers) == 1:
            (write,) = writers
            return lambda g: write(g, compute(g))

        def step(g):
            values = compute(g)
            for write, value in zip(writers, values, strict=True):
                write(g, value)

        return step

    return decode


def _read_exec(g: Gang) -> np.ndarray:
    return g.read_s64(EXEC)


def _write_exec(g: Gang, value: np.ndarray) -> None:
    g.write_s(EXEC, value.astype(np.uint32))
    g.write_s(EXEC + 1, (value >> np.uint64(32)).astype(np.uint32))


_IMPLIED = ("scc", "exec")
_READERS = {"scc": Gang.read_scc, "exec": _read_exec}
_WRITERS = {"scc": Gang.write_scc, "exec": _write_exec}


def _nonzero(function: Callable) -> Callable:
    """The result, and whether it is not zero."""

    def both(*operands):
        result = function(*operands)
        return result, result != 0

    return both


def _shifted(function: Callable, bits: int) -> Callable:
    """A shift by the low bits of the second operand."""
    return lambda a, b: function(a, (b & np.uint32(bits - 1)).astype(a.dtype))


def _add(a, b, carry):
    wide = a.astype(np.uint64) + b + carry
    return wide.astype(np.uint32), wide >> np.uint64(32) != 0


def _subtract(a, b, borrow):
    wide = a.astype(np.int64) - b - borrow
    return (wide & 0xFFFFFFFF).astype(np.uint32), wide < 0


def _signed(function: Callable) -> Callable:
    """Sum or difference, and whether it overflows."""

    def both(a, b):
        wide = function(a.astype(np.int64), b)
        return wide.astype(np.int32), wide != wide.astype(np.int32)

    return both


def _multiply_high(a, b):
    wide = np.int64 if a.dtype == np.int32 else np.uint64
    return (a.astype(wide) * b.astype(wide) >> wide(32)).astype(a.dtype)


def _field(a, control):
    """Bits of a, sign-extended if a is signed: where from in the low bits of control, how many in its bits 16 to 22."""
    bits = a.dtype.itemsize * 8
    start = (control & np.uint32(bits - 1)).astype(a.dtype)
    count = np.minimum(control >> np.uint32(16) & np.uint32(127), bits).astype(a.dtype)
    left = np.maximum(bits - count - start, 0).astype(a.dtype)
    shifted = (a << left) >> np.minimum(left + start, bits - 1).astype(a.dtype)
    return np.where(count == 0, a.dtype.type(0), shifted)


def _ones(count, start):
    return ((np.uint32(1) << (count & np.uint32(31))) - np.uint32(1)) << (start & np.uint32(31))


def _first(function: Callable) -> Callable:
    """Minimum or maximum, and whether it is the first operand."""

    def both(a, b):
        result = function(a, b)
        return result, result == a

    return both


def _half(high: bool) -> Callable:
    return (lambda x: x >> np.uint32(16)) if high else (lambda x: x & np.uint32(0xFFFF))


def _pack(first: Callable, second: Callable) -> Callable:
    return lambda a, b: first(a) | second(b) << np.uint32(16)


def _count_ones(x):
    return np.unpackbits(np.ascontiguousarray(x)[:, None].view(np.uint8), axis=1).sum(axis=1).astype(np.uint32)


def _trailing_zeros(x):
    """-1 if there is no one at all."""
    lowest = x & (~x + x.dtype.type(1))
    return np.where(x == 0, np.uint32(0xFFFFFFFF), _count_ones(lowest - x.dtype.type(1))).astype(np.uint32)


def _leading_zeros(x):
    bits = x.dtype.itemsize * 8
    for shift in (1, 2, 4, 8, 16, 32)[: 6 if bits == 64 else 5]:
        x = x | x >> x.dtype.type(shift)
    return np.where(x == 0, np.uint32(0xFFFFFFFF), np.uint32(bits) - _count_ones(x)).astype(np.uint32)


_LOGIC = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "and_not1": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "or_not1": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
_SAVEEXEC = {
    **_LOGIC,
    "andn1": lambda a, b: ~a & b,
    "and_not0": lambda a, b: ~a & b,
    "orn1": lambda a, b: ~a | b,
    "or_not0": lambda a, b: ~a | b,
}


def _saveexec(function: Callable) -> Callable:
    """(old EXEC, new EXEC, whether a lane is left)."""

    def all_three(mask, active):
        new = function(mask.astype(np.uint64), active)
        return active.astype(mask.dtype), new, new.astype(mask.dtype) != 0

    return all_three


_LOGIC_ROWS = [
    (f"s_{name}_b{kind[1:]}", f"{kind} scc = {kind} {kind}", _nonzero(function))
    for name, function in _LOGIC.items()
    for kind in ("u32", "c64")
]
_SAVEEXEC_ROWS = [
    (f"s_{name}_saveexec_b{bits}", f"u{bits} exec scc = u{bits} exec", _saveexec(function))
    for name, function in _SAVEEXEC.items()
    for bits in (32, 64)
]
_COMPARE_ROWS = [
    (f"s_{cmp}_{name}_{kind}", f"scc = {kind} {second}", function)
    for name, function in COMPARISONS["integer"].items()
    for cmp, kind, second in (
        ("cmp", "u32", "u32"),
        ("cmp", "i32", "i32"),
        ("cmp", "u64", "u64"),
        ("cmpk", "u32", "u32"),
        ("cmpk", "i32", "k16"),
    )
]
_FLOAT_ROWS = [(f"s_cmp_{name}_f32", "scc = f32 f32", function) for name, function in COMPARISONS["float"].items()]

TABLE = table(
    ("s_mov_b32", "u32 = u32", lambda a: a),
    ("s_mov_b64", "c64 = c64", lambda a: a),
    ("s_movk_i32", "i32 = k16", lambda a: a),
    ("s_not_b32", "u32 scc = u32", _nonzero(lambda a: ~a)),
    ("s_not_b64", "c64 scc = c64", _nonzero(lambda a: ~a)),
    ("s_cselect_b32", "u32 = u32 u32 scc", None),
    ("s_cselect_b64", "u64 = u64 u64 scc", None),
    ("s_cmov_b32", "u32 += u32 scc", lambda a, scc, old: np.where(scc, a, old)),
    ("s_cmovk_i32", "i32 += k16 scc", lambda a, scc, old: np.where(scc, a, old)),
    ("s_cmov_b64", "u64 += u64 scc", lambda a, scc, old: np.where(scc, a, old)),
    *_LOGIC_ROWS,
    *_SAVEEXEC_ROWS,
    *_COMPARE_ROWS,
    *_FLOAT_ROWS,
    ("s_lshl_b32", "u32 scc = u32 u32", _nonzero(_shifted(np.left_shift, 32))),
    ("s_lshl_b64", "c64 scc = c64 u32", _nonzero(_shifted(np.left_shift, 64))),
    ("s_lshr_b32", "u32 scc = u32 u32", _nonzero(_shifted(np.right_shift, 32))),
    ("s_lshr_b64", "u64 scc = u64 u32", _nonzero(_shifted(np.right_shift, 64))),
    ("s_ashr_i32", "i32 scc = i32 u32", _nonzero(_shifted(np.right_shift, 32))),
    ("s_ashr_i64", "i64 scc = i64 u32", _nonzero(_shifted(np.right_shift, 64))),
    ("s_add_u32 s_add_co_u32", "u32 scc = u32 u32", lambda a, b: _add(a, b, np.uint64(0))),
    ("s_addc_u32 s_add_co_ci_u32", "u32 scc = u32 u32 scc", lambda a, b, c: _add(a, b, c.astype(np.uint64))),
    ("s_sub_u32 s_sub_co_u32", "u32 scc = u32 u32", lambda a, b: _subtract(a, b, np.int64(0))),
    ("s_subb_u32 s_sub_co_ci_u32", "u32 scc = u32 u32 scc", lambda a, b, c: _subtract(a, b, c.astype(np.int64))),
    ("s_add_i32 s_add_co_i32", "i32 scc = i32 i32", _signed(np.add)),
    ("s_sub_i32 s_sub_co_i32", "i32 scc = i32 i32", _signed(np.subtract)),
    ("s_addk_i32 s_addk_co_i32", "i32 scc += k16", _signed(np.add)),
    ("s_mulk_i32", "i32 += k16", np.multiply),
    ("s_add_nc_u64 s_add_u64", "c64 = c64 c64", np.add),
    ("s_sub_nc_u64 s_sub_u64", "c64 = c64 c64", np.subtract),
    ("s_mul_i32", "u32 = u32 u32", np.multiply),
    ("s_mul_u64", "c64 = c64 c64", np.multiply),
    ("s_mul_hi_u32", "u32 = u32 u32", _multiply_high),
    ("s_mul_hi_i32", "i32 = i32 i32", _multiply_high),
    ("s_min_u32", "u32 scc = u32 u32", _first(np.minimum)),
    ("s_max_u32", "u32 scc = u32 u32", _first(np.maximum)),
    ("s_min_i32", "i32 scc = i32 i32", _first(np.minimum)),
    ("s_max_i32", "i32 scc = i32 i32", _first(np.maximum)),
    ("s_abs_i32", "u32 scc = i32", _nonzero(lambda a: np.abs(a.astype(np.int64)).astype(np.uint32))),
    ("s_bfe_u32", "u32 scc = u32 u32", _nonzero(_field)),
    ("s_bfe_i32", "i32 scc = i32 u32", _nonzero(_field)),
    ("s_bfe_u64", "u64 scc = u64 u32", _nonzero(_field)),
    ("s_bfe_i64", "i64 scc = i64 u32", _nonzero(_field)),
    ("s_bfm_b32", "u32 = u32 u32", _ones),
    ("s_sext_i32_i8", "i32 = i32", lambda a: a << np.int32(24) >> np.int32(24)),
    ("s_sext_i32_i16", "i32 = i32", lambda a: a << np.int32(16) >> np.int32(16)),
    ("s_bitcmp0_b32", "scc = u32 u32", lambda a, b: a >> (b & np.uint32(31)) & np.uint32(1) == 0),
    ("s_bitcmp1_b32", "scc = u32 u32", lambda a, b: a >> (b & np.uint32(31)) & np.uint32(1) == 1),
    ("s_bitset0_b32", "u32 += u32", lambda a, old: old & ~(np.uint32(1) << (a & np.uint32(31)))),
    ("s_bitset1_b32", "u32 += u32", lambda a, old: old | np.uint32(1) << (a & np.uint32(31))),
    ("s_bcnt1_i32_b32", "u32 scc = u32", _nonzero(_count_ones)),
    ("s_bcnt1_i32_b64", "u32 scc = u64", _nonzero(_count_ones)),
    ("s_ff1_i32_b32 s_ctz_i32_b32", "u32 = u32", _trailing_zeros),
    ("s_ff1_i32_b64 s_ctz_i32_b64", "u32 = u64", _trailing_zeros),
    ("s_flbit_i32_b32 s_clz_i32_u32", "u32 = u32", _leading_zeros),
    ("s_flbit_i32_b64 s_clz_i32_u64", "u32 = u64", _leading_zeros),
    ("s_pack_ll_b32_b16", "u32 = u32 u32", _pack(_half(False), _half(False))),
    ("s_pack_lh_b32_b16", "u32 = u32 u32", _pack(_half(False), _half(True))),
    ("s_pack_hl_b32_b16", "u32 = u32 u32", _pack(_half(True), _half(False))),
    ("s_pack_hh_b32_b16", "u32 = u32 u32", _pack(_half(True), _half(True))),
    *[
        (f"s_lshl{n}_add_u32", "u32 scc = u32 u32", lambda a, b, n=n: _add(a.astype(np.uint64) << np.uint64(n), b, 0))
        for n in (1, 2, 3, 4)
    ],
    ("s_add_f32", "f32 = f32 f32", np.add),
    ("s_sub_f32", "f32 = f32 f32", np.subtract),
    ("s_mul_f32", "f32 = f32 f32", np.multiply),
    ("s_fmac_f32", "f32 += f32 f32", fma32),
    ("s_fmaak_f32 s_fmamk_f32", "f32 = f32 f32 f32", fma32),
    ("s_trunc_f32", "f32 = f32", np.trunc),
    ("s_floor_f32", "f32 = f32", np.floor),
    ("s_ceil_f32", "f32 = f32", np.ceil),
    ("s_rndne_f32", "f32 = f32", np.rint),
    ("s_cvt_f32_u32", "f32 = u32", int_to_float),
    ("s_cvt_f32_i32", "f32 = i32", int_to_float),
    ("s_cvt_u32_f32", "u32 = f32", float_to_int(np.uint32)),
    ("s_cvt_i32_f32", "i32 = f32", float_to_int(np.int32)),
    ("v_s_rcp_f32", "f32 = f32", np.reciprocal),
    decoder=_decoder,
)
