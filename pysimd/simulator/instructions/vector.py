"""Vector arithmetic: one value per lane. Functions take and give arrays that broadcast to (waves, lanes)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.floats import fma16, fma32, fma64, pack
from pysimd.simulator.gang import EXEC
from pysimd.simulator.instructions.base import Arithmetic, Decoder, Signature, chosen, computed, table
from pysimd.simulator.instructions.compare import COMPARISONS
from pysimd.simulator.instructions.convert import float16_towards_zero, float_to_int, int_to_float
from pysimd.simulator.instructions.dpp import permuted, with_disabled_lanes
from pysimd.simulator.instructions.sdwa import selected, with_selected_result
from pysimd.simulator.operands import HALF, Modifiers, parse_operand, vector_reader, vector_writer

_KEEPS_HALF_ON_GFX9 = ("v_mad_f16", "v_fma_f16", "v_mac_f16", "v_fmac_f16", "v_mad_u16", "v_mad_i16")
"""Gfx9 clears the upper half of the register that a 16-bit result goes to, except for these; later ones keep it."""


def decoder(signature: Signature, function: Callable | None) -> Decoder:
    """Decodes arithmetic in any encoding: plain, with lane permutation (DPP), with byte selection (SDWA).

    Without a function: the instruction chooses one of its two operands by the third, a mask.
    """

    def decode(instruction, machine):
        modifiers = Modifiers(instruction)
        operands = [parse_operand(x) for x in instruction.operands]
        results, sources = operands[: len(signature.results)], operands[len(signature.results) :]
        if signature.accumulates:
            sources += results[:1]
        if len(sources) == len(signature.operands) - 1 and signature.operands[-1] == "mask":
            sources.append(parse_operand("vcc_lo"))
        if len(sources) != len(signature.operands):
            raise UnsupportedInstruction(f"`{instruction}`: expected {len(signature.operands)} operands")
        halves = [0] * (len(sources) + 1)
        if any(x in HALF for x in signature.results + signature.operands):
            halves = modifiers.bits("op_sel", len(sources) + 1, 0)
            if signature.accumulates:
                halves[-2] = halves[-1]
        readers = [
            vector_reader(operand, kind, bool(half))
            for operand, kind, half in zip(sources, signature.operands, halves, strict=False)
        ]
        keeps = machine.generation > 9 or instruction.mnemonic in _KEEPS_HALF_ON_GFX9
        writers = [
            vector_writer(operand, kind, bool(halves[-1]), keeps)
            for operand, kind in zip(results, signature.results, strict=True)
        ]
        if instruction.encoding == "sdwa":
            readers = selected(readers, sources, signature.operands, modifiers)
            writers[0] = with_selected_result(writers[0], results[0], signature.results[0], modifiers)
        write = writers[0] if len(writers) == 1 else _write_all(writers)
        if "dpp" in instruction.encoding:
            readers[0], enabled = permuted(readers[0], modifiers, machine)
            write = with_disabled_lanes(write, results, signature.results, enabled)
        elif instruction.encoding != "sdwa" and any(x.sign_extend for x in sources):
            raise UnsupportedInstruction(f"`{instruction}`: sext() outside of SDWA")
        modifiers.done()
        compute = computed(function, readers) if function else chosen(*readers)
        return Arithmetic(compute, write)

    return decode


def _write_all(writers: list) -> Callable:
    def write(g, values):
        for one, value in zip(writers, values, strict=True):
            one(g, value)

    return write


def _comparison(function: Callable, kind: str, writes_exec: bool) -> Decoder:
    """A comparison writes a bit per lane to SGPRs; the x-forms to EXEC, and until gfx9 to SGPRs as well."""
    plain = decoder(Signature.parse(f"mask = {kind} {kind}"), lambda a, b: np.asarray(function(a, b)))
    if not writes_exec:
        return plain

    def decode(instruction, machine):
        if len(instruction.operands) == 2:
            modifiers = Modifiers(instruction)
            readers = [vector_reader(parse_operand(x), kind) for x in instruction.operands]
            modifiers.done()
            compute = computed(lambda a, b: np.asarray(function(a, b)), readers)
            return Arithmetic(compute, lambda g, mask: g.write_mask(EXEC, mask))
        both = plain(instruction, machine)

        def write(g, mask):
            both.write(g, mask)
            g.write_mask(EXEC, mask)

        return Arithmetic(both.compute, write)

    return decode


def _signed(a):
    return a.view(np.int32).astype(np.int64)


def _low24(a, sign: bool):
    return (_signed(a) << 40) >> 40 if sign else (a & np.uint32(0xFFFFFF)).astype(np.int64)


def _wrap(a):
    return (a & 0xFFFFFFFF).astype(np.uint32)


def _mad24(sign: bool) -> Callable:
    return lambda a, b, c=0: _wrap(_low24(a, sign) * _low24(b, sign) + c)


def _multiply_high(a, b):
    wide = np.int64 if a.dtype == np.int32 else np.uint64
    return (a.astype(wide) * b.astype(wide) >> wide(32)).astype(a.dtype)


def _add_carry(a, b, carry=False):
    total = a.astype(np.uint64) + b + carry
    return total.astype(np.uint32), total >> np.uint64(32) != 0


def _subtract_borrow(a, b, borrow=False):
    difference = a.astype(np.int64) - b - borrow
    return _wrap(difference), difference < 0


def _mad_wide(wide) -> Callable:
    """A product of 32 bits each, plus 64 bits; and whether that overflows."""

    def mad(a, b, c):
        product, c = a.astype(wide) * b.astype(wide), c.view(wide)
        total = product + c
        overflows = total < product if wide is np.uint64 else (total < product) != (c < 0)
        return total, overflows

    return mad


def _field_unsigned(a, start, count):
    ones = (np.uint64(1) << (count & np.uint32(31)).astype(np.uint64)) - np.uint64(1)
    return a >> (start & np.uint32(31)) & ones.astype(np.uint32)


def _field_signed(a, start, count):
    count = (count & np.uint32(31)).astype(np.int64)
    left = 64 - count
    shifted = (_signed(a) >> (start & np.uint32(31)).astype(np.int64)) << np.minimum(left, 63) >> np.minimum(left, 63)
    return _wrap(np.where(count == 0, 0, shifted))


def _permuted_bytes(a, b, choice):
    """Each byte of the choice picks one of the eight bytes of {a, b}, or 0 or 255."""
    both = a.astype(np.uint64) << np.uint64(32) | b
    result = np.uint32(0)
    for i in range(4):
        pick = choice >> np.uint32(8 * i) & np.uint32(0xFF)
        byte = both >> (np.minimum(pick, np.uint32(7)) * np.uint32(8)).astype(np.uint64) & np.uint64(0xFF)
        sign_pick = np.minimum(np.maximum(pick, np.uint32(8)) - np.uint32(8), np.uint32(3)).astype(np.uint64)
        sign = both >> (sign_pick * np.uint64(16) + np.uint64(15)) & np.uint64(1)
        byte = np.where(pick < 8, byte, np.where(pick < 12, sign * np.uint64(0xFF), np.where(pick == 12, 0, 0xFF)))
        result = result | byte.astype(np.uint32) << np.uint32(8 * i)
    return result


def _align(unit: int, mask: int) -> Callable:
    def align(a, b, shift):
        both = a.astype(np.uint64) << np.uint64(32) | b
        return (both >> ((shift & np.uint32(mask)) * np.uint32(unit)).astype(np.uint64)).astype(np.uint32)

    return align


def _median(a, b, c):
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _multiply_legacy(a, b):
    """0 times anything is 0."""
    return np.where((a == 0) | (b == 0), np.float32(0), a * b)


def _leading_zeros(x):
    for shift in (1, 2, 4, 8, 16):
        x = x | x >> np.uint32(shift)
    ones = np.zeros(x.shape, np.uint32)
    for i in range(32):
        ones = ones + (x >> np.uint32(i) & np.uint32(1))
    return np.where(x == 0, np.uint32(0xFFFFFFFF), np.uint32(32) - ones)


def _ldexp(a, exponent):
    """Exact steps in float64, one rounding."""
    return np.ldexp(a.astype(np.float64), np.clip(exponent, -1000, 1000)).astype(np.float32)


def _shift(function: Callable, bits: int) -> Callable:
    """A shift whose distance comes first; only its low bits count."""
    return lambda distance, a: function(a, (distance & np.asarray(bits - 1, distance.dtype)).astype(a.dtype))


_COMPARISONS = {
    f"v_{cmp}_{name}_{kind}": _comparison(function, kind, cmp == "cmpx")
    for cmp in ("cmp", "cmpx")
    for family, kinds in (
        ("integer", ("u32", "i32", "u64", "i64", "u16", "i16")),
        ("float", ("f32", "f16", "f64")),
    )
    for name, function in COMPARISONS[family].items()
    for kind in kinds
}

TABLE: dict[str, Decoder] = {
    **_COMPARISONS,
    **table(
        # Moves and selections
        ("v_mov_b32 v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32", "u32 = u32", lambda a: a),
        ("v_mov_b64", "c64 = c64", lambda a: a),
        ("v_mov_b16", "u16 = u16", lambda a: a),
        ("v_cndmask_b32", "f32 = f32 f32 mask", None),
        ("v_cndmask_b16", "f16 = f16 f16 mask", None),
        # Logic
        ("v_not_b32", "u32 = u32", np.invert),
        ("v_and_b32", "u32 = u32 u32", np.bitwise_and),
        ("v_or_b32", "u32 = u32 u32", np.bitwise_or),
        ("v_xor_b32", "u32 = u32 u32", np.bitwise_xor),
        ("v_xnor_b32", "u32 = u32 u32", lambda a, b: ~(a ^ b)),
        ("v_and_b16", "u16 = u16 u16", np.bitwise_and),
        ("v_or_b16", "u16 = u16 u16", np.bitwise_or),
        ("v_xor_b16", "u16 = u16 u16", np.bitwise_xor),
        ("v_and_or_b32", "u32 = u32 u32 u32", lambda a, b, c: a & b | c),
        ("v_or3_b32", "u32 = u32 u32 u32", lambda a, b, c: a | b | c),
        ("v_xor3_b32", "u32 = u32 u32 u32", lambda a, b, c: a ^ b ^ c),
        ("v_xad_u32", "u32 = u32 u32 u32", lambda a, b, c: (a ^ b) + c),
        ("v_bfi_b32", "u32 = u32 u32 u32", lambda a, b, c: a & b | ~a & c),
        ("v_bfe_u32", "u32 = u32 u32 u32", _field_unsigned),
        ("v_bfe_i32", "u32 = u32 u32 u32", _field_signed),
        ("v_perm_b32", "u32 = u32 u32 u32", _permuted_bytes),
        ("v_alignbit_b32", "u32 = u32 u32 u32", _align(1, 31)),
        ("v_alignbyte_b32", "u32 = u32 u32 u32", _align(8, 3)),
        ("v_ffbh_u32 v_clz_i32_u32", "u32 = u32", _leading_zeros),
        # Shifts
        ("v_lshlrev_b32", "u32 = u32 u32", _shift(np.left_shift, 32)),
        ("v_lshrrev_b32", "u32 = u32 u32", _shift(np.right_shift, 32)),
        ("v_ashrrev_i32", "i32 = u32 i32", _shift(np.right_shift, 32)),
        ("v_lshlrev_b16", "u16 = u16 u16", _shift(np.left_shift, 16)),
        ("v_lshrrev_b16", "u16 = u16 u16", _shift(np.right_shift, 16)),
        ("v_ashrrev_i16", "i16 = u16 i16", _shift(np.right_shift, 16)),
        ("v_lshlrev_b64", "c64 = u32 c64", _shift(np.left_shift, 64)),
        ("v_lshrrev_b64", "u64 = u32 u64", _shift(np.right_shift, 64)),
        ("v_ashrrev_i64", "i64 = u32 i64", _shift(np.right_shift, 64)),
        ("v_lshl_or_b32", "u32 = u32 u32 u32", lambda a, b, c: a << (b & np.uint32(31)) | c),
        ("v_lshl_add_u32", "u32 = u32 u32 u32", lambda a, b, c: (a << (b & np.uint32(31))) + c),
        ("v_add_lshl_u32", "u32 = u32 u32 u32", lambda a, b, c: (a + b) << (c & np.uint32(31))),
        ("v_lshl_add_u64", "c64 = c64 u32 c64", lambda a, b, c: (a << (b & np.uint32(7)).astype(np.uint64)) + c),
        # Integers
        ("v_add_u32 v_add_nc_u32", "u32 = u32 u32", np.add),
        ("v_sub_u32 v_sub_nc_u32", "u32 = u32 u32", np.subtract),
        ("v_subrev_u32 v_subrev_nc_u32", "u32 = u32 u32", lambda a, b: b - a),
        ("v_add_i32 v_add_nc_i32", "u32 = u32 u32", np.add),
        ("v_sub_i32 v_sub_nc_i32", "u32 = u32 u32", np.subtract),
        ("v_add_u16 v_add_nc_u16", "u16 = u16 u16", np.add),
        ("v_sub_u16 v_sub_nc_u16", "u16 = u16 u16", np.subtract),
        ("v_mul_lo_u16", "u16 = u16 u16", np.multiply),
        ("v_mad_u16 v_mad_legacy_u16", "u16 = u16 u16 u16", lambda a, b, c: a * b + c),
        ("v_mad_i16 v_mad_legacy_i16", "i16 = i16 i16 i16", lambda a, b, c: a * b + c),
        ("v_mad_u32_u16", "u32 = u16 u16 u32", lambda a, b, c: a.astype(np.uint32) * b.astype(np.uint32) + c),
        ("v_mad_i32_i16", "i32 = i16 i16 i32", lambda a, b, c: a.astype(np.int32) * b.astype(np.int32) + c),
        ("v_add3_u32", "u32 = u32 u32 u32", lambda a, b, c: a + b + c),
        ("v_add_co_u32", "u32 mask = u32 u32", _add_carry),
        ("v_addc_co_u32 v_add_co_ci_u32", "u32 mask = u32 u32 mask", _add_carry),
        ("v_sub_co_u32", "u32 mask = u32 u32", _subtract_borrow),
        ("v_subrev_co_u32", "u32 mask = u32 u32", lambda a, b: _subtract_borrow(b, a)),
        ("v_subb_co_u32 v_sub_co_ci_u32", "u32 mask = u32 u32 mask", _subtract_borrow),
        ("v_subbrev_co_u32 v_subrev_co_ci_u32", "u32 mask = u32 u32 mask", lambda a, b, c: _subtract_borrow(b, a, c)),
        ("v_mul_lo_u32", "u32 = u32 u32", np.multiply),
        ("v_mul_hi_u32", "u32 = u32 u32", _multiply_high),
        ("v_mul_hi_i32", "i32 = i32 i32", _multiply_high),
        ("v_mul_u32_u24", "u32 = u32 u32", _mad24(False)),
        ("v_mul_i32_i24", "u32 = u32 u32", _mad24(True)),
        ("v_mad_u32_u24", "u32 = u32 u32 u32", _mad24(False)),
        ("v_mad_i32_i24", "u32 = u32 u32 u32", _mad24(True)),
        ("v_mad_u64_u32 v_mad_co_u64_u32", "c64 mask = u32 u32 c64", _mad_wide(np.uint64)),
        ("v_mad_i64_i32 v_mad_co_i64_i32", "c64 mask = i32 i32 c64", _mad_wide(np.int64)),
        ("v_min_u32", "u32 = u32 u32", np.minimum),
        ("v_max_u32", "u32 = u32 u32", np.maximum),
        ("v_min_i32", "i32 = i32 i32", np.minimum),
        ("v_max_i32", "i32 = i32 i32", np.maximum),
        ("v_min3_u32", "u32 = u32 u32 u32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
        ("v_max3_u32", "u32 = u32 u32 u32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
        ("v_min3_i32", "i32 = i32 i32 i32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
        ("v_max3_i32", "i32 = i32 i32 i32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
        ("v_med3_i32", "i32 = i32 i32 i32", _median),
        ("v_med3_u32", "u32 = u32 u32 u32", _median),
        # float32
        ("v_add_f32", "f32 = f32 f32", np.add),
        ("v_sub_f32", "f32 = f32 f32", np.subtract),
        ("v_subrev_f32", "f32 = f32 f32", lambda a, b: b - a),
        ("v_mul_f32", "f32 = f32 f32", np.multiply),
        ("v_mul_legacy_f32 v_mul_dx9_zero_f32", "f32 = f32 f32", _multiply_legacy),
        ("v_min_f32 v_min_num_f32", "f32 = f32 f32", np.fmin),
        ("v_max_f32 v_max_num_f32", "f32 = f32 f32", np.fmax),
        ("v_fma_f32 v_fmaak_f32 v_fmamk_f32", "f32 = f32 f32 f32", fma32),
        ("v_fmac_f32", "f32 += f32 f32", fma32),
        ("v_mad_f32 v_madak_f32 v_madmk_f32", "f32 = f32 f32 f32", lambda a, b, c: a * b + c),
        ("v_mac_f32", "f32 += f32 f32", lambda a, b, c: a * b + c),
        ("v_rcp_f32 v_rcp_iflag_f32", "f32 = f32", np.reciprocal),
        ("v_trunc_f32", "f32 = f32", np.trunc),
        ("v_floor_f32", "f32 = f32", np.floor),
        ("v_ceil_f32", "f32 = f32", np.ceil),
        ("v_rndne_f32", "f32 = f32", np.rint),
        ("v_ldexp_f32", "f32 = f32 i32", _ldexp),
        # float16
        ("v_add_f16", "f16 = f16 f16", np.add),
        ("v_sub_f16", "f16 = f16 f16", np.subtract),
        ("v_mul_f16", "f16 = f16 f16", np.multiply),
        ("v_min_f16 v_min_num_f16", "f16 = f16 f16", np.fmin),
        ("v_max_f16 v_max_num_f16", "f16 = f16 f16", np.fmax),
        ("v_fma_f16", "f16 = f16 f16 f16", fma16),
        ("v_fmac_f16", "f16 += f16 f16", fma16),
        # float64
        ("v_add_f64", "f64 = f64 f64", np.add),
        ("v_mul_f64", "f64 = f64 f64", np.multiply),
        ("v_fma_f64", "f64 = f64 f64 f64", fma64),
        ("v_fmac_f64", "f64 += f64 f64", fma64),
        # Conversions
        ("v_cvt_f32_f16", "f32 = f16", lambda a: a.astype(np.float32)),
        ("v_cvt_f16_f32", "f16 = f32", lambda a: a.astype(np.float16)),
        ("v_cvt_f32_u32", "f32 = u32", int_to_float),
        ("v_cvt_f32_i32", "f32 = i32", int_to_float),
        ("v_cvt_u32_f32", "u32 = f32", float_to_int(np.uint32)),
        ("v_cvt_i32_f32", "i32 = f32", float_to_int(np.int32)),
        *[
            (f"v_cvt_f32_ubyte{i}", "f32 = u32", lambda a, i=i: (a >> np.uint32(8 * i) & np.uint32(255)).astype("f4"))
            for i in range(4)
        ],
        (
            "v_cvt_pkrtz_f16_f32 v_cvt_pk_rtz_f16_f32",
            "u32 = f32 f32",
            lambda a, b: pack(float16_towards_zero(a), float16_towards_zero(b)),
        ),
        ("v_pack_b32_f16", "u32 = f16 f16", pack),
        decoder=decoder,
    ),
}
