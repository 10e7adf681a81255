"""Each class of arithmetic instruction against NumPy, on random registers; and that the assembler knows them all."""

import amd_waves
import numpy as np
import pytest
from amd_waves import Registers, new_gang, pack, step
from hip_machine_code import missing

from pysimd import simulator
from pysimd.simulator import instructions
from pysimd.simulator.gang import VCC

GFX9, GFX10, GFX11, GFX12 = "gfx906", "gfx1030", "gfx1100", "gfx1200"
ALL = ("gfx900", GFX9, "gfx90a", "gfx942", GFX10, GFX11, GFX12)
CDNA = ("gfx90a", "gfx942")

SPECIAL = np.array([0, 1, -1, 0.5, 2.0**31, -(2.0**33), np.inf, -np.inf, np.nan, 1e-40, -0.0, 65504], np.float32)


def random_registers(gang, rng) -> None:
    """Registers 0 to 15 full of bits that are an integer, a float32 or two float16 of moderate size, lane by lane."""
    shape = gang.v[0].shape
    for i in range(16):
        bits = rng.integers(0, 2**32, shape, dtype=np.uint32)
        floats = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), rng.standard_normal(shape) * 100)
        halves = pack(*(rng.standard_normal(shape).astype(np.float16) for _ in range(2)))
        choice = rng.integers(0, 3, shape)
        gang.write_v(i, np.choose(choice, [bits, floats.astype(np.float32).view(np.uint32), halves]))
    for i in [*range(4, 16), VCC, VCC + 1]:
        gang.write_s(i, rng.integers(0, 2**32, len(gang.s), dtype=np.uint32))


def fma(a, b, c):
    """By extended precision, whose 64 bits of fraction leave no double rounding with these operands."""
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(np.float32)


def fma16(a, b, c):
    return (a.astype(np.float64) * b + c).astype(np.float16)


def low24(x, sign):
    wide = x.astype(np.int64) & 0xFFFFFF
    return np.where(sign & (wide >> 23 == 1), wide - (1 << 24), wide)


def wrap(x):
    return (x & 0xFFFFFFFF).astype(np.uint32)


def dot4(r, a_type, b_type, c):
    return wrap(sum(r.byte(1, i, a_type) * r.byte(2, i, b_type) for i in range(4)) + c)


# Instruction, targets, result in v0 (or v[0:1] as uint64, or VCC as a mask). v1 to v15, s4 to s15 and vcc are random.
CASES = [
    ("v_mov_b32_e32 v0, v1", ALL, lambda r: r.u32(1)),
    ("v_mov_b32_e32 v0, s4", ALL, lambda r: r.scalar(4)),
    ("v_mov_b32_e32 v0, 1.0", ALL, lambda r: np.uint32(0x3F800000)),
    ("v_mov_b32_e32 v0, 0xdeadbeef", ALL, lambda r: np.uint32(0xDEADBEEF)),
    ("v_mov_b32_e32 v0, -16", ALL, lambda r: np.uint32(0xFFFFFFF0)),
    ("v_mov_b64_e32 v[0:1], v[2:3]", ["gfx942"], lambda r: r.u64(2)),
    ("v_not_b32_e32 v0, v1", ALL, lambda r: ~r.u32(1)),
    ("v_and_b32_e32 v0, s4, v2", ALL, lambda r: r.scalar(4) & r.u32(2)),
    ("v_or_b32_e32 v0, v1, v2", ALL, lambda r: r.u32(1) | r.u32(2)),
    ("v_xor_b32_e32 v0, v1, v2", ALL, lambda r: r.u32(1) ^ r.u32(2)),
    ("v_and_or_b32 v0, v1, v2, v3", ALL, lambda r: r.u32(1) & r.u32(2) | r.u32(3)),
    ("v_or3_b32 v0, v1, v2, v3", ALL, lambda r: r.u32(1) | r.u32(2) | r.u32(3)),
    ("v_bfi_b32 v0, v1, v2, v3", ALL, lambda r: r.u32(1) & r.u32(2) | ~r.u32(1) & r.u32(3)),
    ("v_bfe_u32 v0, v1, 5, 9", ALL, lambda r: r.u32(1) >> 5 & 511),
    ("v_bfe_i32 v0, v1, 8, 8", ALL, lambda r: r.byte(1, 1).astype(np.int32)),
    ("v_lshlrev_b32_e32 v0, v1, v2", ALL, lambda r: r.u32(2) << (r.u32(1) % 32)),
    ("v_lshrrev_b32_e32 v0, v1, v2", ALL, lambda r: r.u32(2) >> (r.u32(1) % 32)),
    ("v_ashrrev_i32_e32 v0, 7, v2", ALL, lambda r: r.i32(2) // 128),
    ("v_lshrrev_b64 v[0:1], v1, v[2:3]", ALL, lambda r: r.u64(2) >> (r.u32(1) % 64).astype(np.uint64)),
    ("v_ashrrev_i64 v[0:1], 40, v[2:3]", ALL, lambda r: r.i64(2) // 2**40),
    ("v_lshlrev_b64 v[0:1], 3, v[2:3]", [GFX9, GFX10, GFX11], lambda r: r.u64(2) * np.uint64(8)),
    ("v_lshl_add_u32 v0, v1, 4, v2", ALL, lambda r: r.u32(1) * 16 + r.u32(2)),
    ("v_add_lshl_u32 v0, v1, v2, 3", ALL, lambda r: (r.u32(1) + r.u32(2)) * 8),
    ("v_lshl_or_b32 v0, v1, 8, v2", ALL, lambda r: r.u32(1) * 256 | r.u32(2)),
    ("v_lshl_add_u64 v[0:1], v[2:3], 2, v[4:5]", ["gfx942"], lambda r: r.u64(2) * np.uint64(4) + r.u64(4)),
    ("v_add_u32_e32 v0, v1, v2", [GFX9, *CDNA], lambda r: r.u32(1) + r.u32(2)),
    ("v_add_nc_u32_e32 v0, v1, v2", [GFX10, GFX11, GFX12], lambda r: r.u32(1) + r.u32(2)),
    ("v_sub_u32_e32 v0, v1, v2", [GFX9], lambda r: r.u32(1) - r.u32(2)),
    ("v_subrev_u32_e32 v0, v1, v2", [GFX9], lambda r: r.u32(2) - r.u32(1)),
    ("v_add3_u32 v0, v1, v2, v3", ALL, lambda r: r.u32(1) + r.u32(2) + r.u32(3)),
    ("v_mul_lo_u32 v0, v1, v2", ALL, lambda r: r.u32(1) * r.u32(2)),
    ("v_mul_hi_u32 v0, v1, v2", ALL, lambda r: wrap(r.u32(1).astype(object) * r.u32(2).astype(object) >> 32)),
    ("v_mul_hi_i32 v0, v1, v2", ALL, lambda r: wrap(r.i32(1).astype(object) * r.i32(2).astype(object) >> 32)),
    ("v_mul_u32_u24_e32 v0, v1, v2", ALL, lambda r: wrap(low24(r.u32(1), 0) * low24(r.u32(2), 0))),
    ("v_mul_i32_i24_e32 v0, v1, v2", ALL, lambda r: wrap(low24(r.u32(1), 1) * low24(r.u32(2), 1))),
    ("v_mad_i32_i24 v0, v1, v2, v3", ALL, lambda r: wrap(low24(r.u32(1), 1) * low24(r.u32(2), 1) + r.u32(3))),
    ("v_mad_u32_u24 v0, v1, v2, v3", ALL, lambda r: wrap(low24(r.u32(1), 0) * low24(r.u32(2), 0) + r.u32(3))),
    (
        "v_mad_u64_u32 v[0:1], vcc, v1, v2, v[4:5]",
        [GFX9, *CDNA],
        lambda r: r.u32(1).astype(np.uint64) * r.u32(2) + r.u64(4),
    ),
    ("v_mad_i64_i32 v[0:1], vcc, v1, v2, v[4:5]", [GFX9], lambda r: r.i32(1).astype(np.int64) * r.i32(2) + r.i64(4)),
    ("v_min_u32_e32 v0, v1, v2", ALL, lambda r: np.minimum(r.u32(1), r.u32(2))),
    ("v_max_i32_e32 v0, v1, v2", ALL, lambda r: np.maximum(r.i32(1), r.i32(2))),
    ("v_med3_i32 v0, v1, v2, v3", ALL, lambda r: np.median([r.i32(1), r.i32(2), r.i32(3)], axis=0).astype(np.int32)),
    ("v_alignbit_b32 v0, v1, v2, 11", ALL, lambda r: r.u32(2) >> 11 | r.u32(1) << 21),
    ("v_alignbyte_b32 v0, v1, v2, 3", ALL, lambda r: r.u32(2) >> 24 | r.u32(1) << 8),
    ("v_perm_b32 v0, v1, v2, s4", ALL, None),
    ("v_ffbh_u32_e32 v0, v1", [GFX9, GFX10], lambda r: np.vectorize(lambda x: 32 - x.bit_length() if x else -1)(
        r.u32(1).astype(object)).astype(np.int32)),
    ("v_cndmask_b32_e32 v0, v1, v2, vcc", [GFX9, *CDNA], lambda r: np.where(r.vcc(), r.u32(2), r.u32(1))),
    ("v_cndmask_b32_e32 v0, v1, v2, vcc_lo", [GFX10, GFX11, GFX12], lambda r: np.where(r.vcc(), r.u32(2), r.u32(1))),
    ("v_cndmask_b32_e64 v0, -v1, v2, s[8:9]", [GFX9], lambda r: np.where(r.mask(8), r.u32(2), r.u32(1) ^ 0x80000000)),
    ("v_cndmask_b32_e64 v0, 0, 1, s8", [GFX11], lambda r: r.mask(8).astype(np.uint32)),
    # float32
    ("v_add_f32_e32 v0, v1, v2", ALL, lambda r: r.f32(1) + r.f32(2)),
    ("v_sub_f32_e32 v0, v1, v2", ALL, lambda r: r.f32(1) - r.f32(2)),
    ("v_mul_f32_e32 v0, 0.5, v2", ALL, lambda r: np.float32(0.5) * r.f32(2)),
    ("v_mul_f32_e64 v0, -v1, |v2|", ALL, lambda r: -r.f32(1) * abs(r.f32(2))),
    ("v_fma_f32 v0, v1, v2, v3", ALL, lambda r: fma(r.f32(1), r.f32(2), r.f32(3))),
    ("v_fma_f32 v0, -v1, s4, -v3", ALL, lambda r: fma(-r.f32(1), r.scalar(4).view(np.float32), -r.f32(3))),
    ("v_fmac_f32_e32 v0, v1, v2", ALL[1:], lambda r: fma(r.f32(1), r.f32(2), r.f32(0))),
    ("v_fmaak_f32 v0, v1, v2, 0x40490fdb", [GFX10, GFX11], lambda r: fma(r.f32(1), r.f32(2), np.float32(np.pi))),
    ("v_fmamk_f32 v0, v1, 0x40490fdb, v2", [GFX10, GFX11], lambda r: fma(r.f32(1), np.float32(np.pi), r.f32(2))),
    ("v_mac_f32_e32 v0, v1, v2", ["gfx900"], lambda r: r.f32(1) * r.f32(2) + r.f32(0)),
    ("v_mad_f32 v0, v1, v2, v3", ["gfx900", GFX9], lambda r: r.f32(1) * r.f32(2) + r.f32(3)),
    ("v_min_f32_e32 v0, v1, v2", ALL[:-1], lambda r: np.fmin(r.f32(1), r.f32(2))),
    ("v_max_num_f32_e32 v0, v1, v2", [GFX12], lambda r: np.fmax(r.f32(1), r.f32(2))),
    ("v_trunc_f32_e32 v0, v1", ALL, lambda r: np.trunc(r.f32(1))),
    ("v_rndne_f32_e32 v0, v1", ALL, lambda r: np.rint(r.f32(1))),
    ("v_floor_f32_e32 v0, v1", ALL, lambda r: np.floor(r.f32(1))),
    ("v_rcp_f32_e32 v0, v1", ALL, lambda r: np.float32(1) / r.f32(1)),
    ("v_ldexp_f32 v0, v1, 5", ALL[:-1], lambda r: r.f32(1) * 32),
    ("v_cvt_f32_u32_e32 v0, v1", ALL, lambda r: r.u32(1).astype(np.float32)),
    ("v_cvt_f32_i32_e32 v0, v1", ALL, lambda r: r.i32(1).astype(np.float32)),
    ("v_cvt_f32_ubyte2_e32 v0, v1", ALL, lambda r: r.byte(1, 2, np.uint8).astype(np.float32)),
    ("v_cvt_f32_f16_e32 v0, v1", [GFX9, *CDNA, GFX10], lambda r: r.half(1).astype(np.float32)),
    # float64, where a test of the sums' rounding is in test_floats.py
    ("v_add_f64 v[0:1], v[2:3], v[4:5]", [GFX9, "gfx90a", GFX10, GFX11], lambda r: r.f64(2) + r.f64(4)),
    ("v_mul_f64 v[0:1], v[2:3], -v[4:5]", [GFX9, "gfx90a", GFX10, GFX11], lambda r: r.f64(2) * -r.f64(4)),
    ("v_fma_f64 v[0:1], v[2:3], 1.0, s[4:5]", ALL, lambda r: r.f64(2) + r.scalar64(4).view(np.float64)),
    ("v_fmac_f64_e32 v[0:1], 2.0, v[2:3]", CDNA, lambda r: 2 * r.f64(2) + r.f64(0)),
    # 16 bits: gfx9 clears the other half, later targets keep it
    ("v_cvt_f16_f32_e32 v0, v1", [GFX9], lambda r: r.f32(1).astype(np.float16).view(np.uint16).astype(np.uint32)),
    ("v_cvt_f16_f32_e32 v0, v1", [GFX10], lambda r: pack(r.f32(1).astype(np.float16), r.half(0, 1))),
    ("v_add_f16_e32 v0, v1, v2", [GFX10], lambda r: pack(r.half(1) + r.half(2), r.half(0, 1))),
    ("v_fma_f16 v0, v1, v2, v3 op_sel:[0,1,0,1]", [GFX9], lambda r: pack(
        r.half(0), fma16(r.half(1), r.half(2, 1), r.half(3)))),
    ("v_fma_f16 v0, v1, v2, v3", [GFX9, GFX10], lambda r: pack(
        fma16(r.half(1), r.half(2), r.half(3)), r.half(0, 1))),
    ("v_pack_b32_f16 v0, v1, v2", [GFX9, *CDNA, GFX10], lambda r: pack(r.half(1), r.half(2))),
    # Packed
    ("v_pk_fma_f16 v0, v1, v2, v3", ALL, lambda r: pack(
        *(fma16(r.half(1, i), r.half(2, i), r.half(3, i)) for i in (0, 1)))),
    ("v_pk_fma_f16 v0, v1, v2, v0 op_sel_hi:[0,1,1]", ALL, lambda r: pack(
        *(fma16(r.half(1), r.half(2, i), r.half(0, i)) for i in (0, 1)))),
    ("v_pk_fma_f16 v0, v1, v2, v0 op_sel:[1,0,0]", ALL, lambda r: pack(
        *(fma16(r.half(1, 1), r.half(2, i), r.half(0, i)) for i in (0, 1)))),
    ("v_pk_fma_f16 v0, v1, v2, v3 neg_lo:[1,0,0] neg_hi:[0,0,1]", ALL, lambda r: pack(
        fma16(-r.half(1), r.half(2), r.half(3)), fma16(r.half(1, 1), r.half(2, 1), -r.half(3, 1)))),
    ("v_pk_fma_f16 v0, v1, 1.0, v3 op_sel_hi:[1,0,1]", ALL, lambda r: pack(
        *(r.half(1, i) + r.half(3, i) for i in (0, 1)))),
    ("v_pk_mul_f16 v0, v1, v2", ALL, lambda r: pack(*(r.half(1, i) * r.half(2, i) for i in (0, 1)))),
    ("v_pk_add_f16 v0, v1, s4", ALL, lambda r: pack(
        *(r.half(1, i) + (r.scalar(4) >> 16 * i).astype(np.uint16).view(np.float16) for i in (0, 1)))),
    ("v_pk_fmac_f16 v0, v1, v2", [GFX10], lambda r: pack(
        *(fma16(r.half(1, i), r.half(2, i), r.half(0, i)) for i in (0, 1)))),
    ("v_pk_mul_lo_u16 v0, v1, v2", ALL, lambda r: pack(
        *(r.half(1, i, np.uint16) * r.half(2, i, np.uint16) for i in (0, 1)))),
    ("v_pk_add_u16 v0, v1, v2", ALL, lambda r: pack(
        *(r.half(1, i, np.uint16) + r.half(2, i, np.uint16) for i in (0, 1)))),
    ("v_pk_ashrrev_i16 v0, 3, v2 op_sel_hi:[0,1]", ALL, lambda r: pack(
        *(r.half(2, i, np.int16) >> 3 for i in (0, 1)))),
    ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", CDNA, lambda r: (
        fma(r.f32(2), r.f32(4), r.f32(6)), fma(r.f32(3), r.f32(5), r.f32(7)))),
    ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[0:1] op_sel_hi:[0,1,1]", CDNA, lambda r: (
        fma(r.f32(2), r.f32(4), r.f32(0)), fma(r.f32(2), r.f32(5), r.f32(1)))),
    ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[0:1] op_sel:[1,0,0] neg_lo:[0,1,0] neg_hi:[0,1,0]", CDNA, lambda r: (
        fma(r.f32(3), -r.f32(4), r.f32(0)), fma(r.f32(3), -r.f32(5), r.f32(1)))),
    ("v_pk_mul_f32 v[0:1], v[2:3], s[4:5]", CDNA, lambda r: (
        r.f32(2) * r.scalar(4).view(np.float32), r.f32(3) * r.scalar(5).view(np.float32))),
    ("v_pk_add_f32 v[0:1], v[2:3], 0", CDNA, lambda r: (r.f32(2) + np.float32(0), r.f32(3) + np.float32(0))),
    ("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]", CDNA, lambda r: (r.u32(3), r.u32(4))),
    ("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]", CDNA, lambda r: (r.u32(2), r.u32(5))),
    # Mixed
    ("v_fma_mix_f32 v0, v1, v2, v3", ALL[1:], lambda r: fma(r.f32(1), r.f32(2), r.f32(3))),
    ("v_fma_mix_f32 v0, v1, v2, v0 op_sel_hi:[1,1,0]", ALL[1:], lambda r: fma(r.half(1), r.half(2), r.f32(0))),
    ("v_fma_mix_f32 v0, v1, v2, v0 op_sel:[1,0,0] op_sel_hi:[1,1,0]", ALL[1:], lambda r: fma(
        r.half(1, 1), r.half(2), r.f32(0))),
    ("v_fma_mix_f32 v0, -v1, v2, v3 op_sel:[0,1,1] op_sel_hi:[0,1,1]", ALL[1:], lambda r: fma(
        -r.f32(1), r.half(2, 1), r.half(3, 1))),
    ("v_mad_mix_f32 v0, v1, v2, v0 op_sel_hi:[1,1,0]", ["gfx900"], lambda r: fma(r.half(1), r.half(2), r.f32(0))),
    ("v_fma_mixlo_f16 v0, v1, v2, v3 op_sel_hi:[1,1,1]", ALL[1:], lambda r: pack(
        fma16(r.half(1), r.half(2), r.half(3)), r.half(0, 1))),
    # Dot products
    ("v_dot4_i32_i8 v0, v1, v2, v3", [GFX9, *CDNA, GFX10], lambda r: dot4(r, np.int8, np.int8, r.i32(3))),
    ("v_dot4c_i32_i8_e32 v0, v1, v2", [*CDNA, GFX10], lambda r: dot4(r, np.int8, np.int8, r.i32(0))),
    ("v_dot4_u32_u8 v0, v1, v2, v3", [GFX9], lambda r: dot4(r, np.uint8, np.uint8, r.u32(3))),
    ("v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]", [GFX11, GFX12], lambda r: dot4(r, np.int8, np.int8, r.i32(3))),
    ("v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,0,0]", [GFX11, GFX12], lambda r: dot4(r, np.int8, np.uint8, r.i32(3))),
    # Parts of registers
    ("v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_0", [GFX9],
     lambda r: (r.u32(1) >> 16) + (r.u32(2) & 255)),
    ("v_mul_i32_i24_sdwa v0, sext(v1), sext(v2) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:BYTE_1",
     [GFX9, GFX10], lambda r: (r.byte(1, 3) * r.byte(2, 1)).astype(np.int32)),
    ("v_cvt_f32_f16_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", [GFX9, GFX10],
     lambda r: r.half(1, 1).astype(np.float32)),
    ("v_or_b32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD", [GFX9],
     lambda r: r.u32(0) & 0xFFFF00FF | ((r.u32(1) | r.u32(2)) & 255) << 8),
    ("v_add_f16_sdwa v0, v1, -v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:WORD_1", [GFX9],
     lambda r: pack(np.zeros_like(r.half(1)), r.half(1) - r.half(2, 1))),
]  # fmt: skip
ONE_BY_ONE = [pytest.param(line, target, want, id=f"{target}-{line}") for line, ts, want in CASES for target in ts]


def same(got: np.ndarray, want) -> bool:
    """Equal bit for bit, except that a NaN may be any."""
    want = np.asarray(want)
    if want.dtype.kind == "f":
        got = got.view(want.dtype)
        return bool(np.all((got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)))
    return np.array_equal(got.view(want.dtype), np.broadcast_to(want, got.shape))


def test_that_a_result_is_a_nan_is_evidence_its_sign_is_not():
    """fma(infinity, 0, x) has the sign that the host's arithmetic gives it: docs/simulator.md."""
    with np.errstate(invalid="ignore"):
        made = fma(np.float32([np.inf]), np.float32([0]), np.float32([np.nan]))
    assert same(made, np.copysign(made, -1))
    assert same(made, np.copysign(made, 1))
    assert not same(made, np.float32([0]))
    assert not same(np.float32([0.0]), np.float32([-0.0]))


def same_halves(got: np.ndarray, want: np.ndarray) -> bool:
    return all(same((x := Registers.half)(_As(got), 0, i), x(_As(want), 0, i)) for i in (0, 1))


class _As:
    def __init__(self, bits):
        self.v = [bits]


@pytest.mark.parametrize(("line", "target", "want"), ONE_BY_ONE)
def test_arithmetic(line, target, want, rng):
    gang = new_gang(target)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, target, line)
    with np.errstate(all="ignore"):
        expected = permuted_bytes(before) if want is None else want(before)
    if isinstance(expected, tuple):
        assert same(gang.v[0], expected[0])
        assert same(gang.v[1], expected[1])
    elif np.asarray(expected).dtype.itemsize == 8:
        assert same(Registers(gang).u64(0), expected)
    elif "f16" in line and not line.startswith(("v_cvt_f32", "v_dot2")):
        assert same_halves(gang.v[0], expected)
    else:
        assert same(gang.v[0], expected)


MUTANTS = [
    ("v_add_u32", "v_sub_u32"),
    ("v_subrev_u32", "v_sub_u32"),
    ("v_min_u32", "v_min_i32"),
    ("v_lshrrev_b32", "v_ashrrev_i32"),
    ("v_lshlrev_b32", "v_lshrrev_b32"),
    ("v_mul_hi_u32", "v_mul_hi_i32"),
    ("v_mul_u32_u24", "v_mul_i32_i24"),
    ("v_mad_i32_i24", "v_mad_u32_u24"),
    ("v_bfe_i32", "v_bfe_u32"),
    ("v_fma_f32", "v_mad_f32"),  # two roundings instead of one
    ("v_mul_f32", "v_mul_legacy_f32"),  # 0 times infinity
    ("v_rndne_f32", "v_floor_f32"),
    ("v_cvt_f32_u32", "v_cvt_f32_i32"),
    ("v_pk_mul_f16", "v_pk_add_f16"),
    ("v_dot4_i32_i8", "v_dot4_u32_u8"),
    ("v_fma_mixlo_f16", "v_fma_mixhi_f16"),
    ("v_alignbit_b32", "v_alignbyte_b32"),
]


@pytest.mark.parametrize(("name", "other"), MUTANTS)
def test_an_interpreter_that_is_wrong_is_caught(name, other, monkeypatch, rng):
    """By the tests above: the instruction does what a similar one does."""
    monkeypatch.setitem(instructions.TABLE, name, instructions.TABLE[other])
    cases = [x.values for x in ONE_BY_ONE if amd_waves.parse(x.values[0]).mnemonic == name]
    assert cases
    caught = 0
    for case in cases:
        try:
            test_arithmetic(*case, rng)
        except AssertionError:
            caught += 1
    assert caught


def permuted_bytes(r) -> np.ndarray:
    """v_perm_b32 by its description, lane by lane."""
    result = np.empty_like(r.u32(1))
    for at in np.ndindex(result.shape):
        both = r.u32(2)[at].tobytes() + r.u32(1)[at].tobytes()
        choice = r.scalar(4)[at[0], 0].tobytes()
        picked = [
            both[x] if x < 8 else (0xFF if both[2 * (x - 8) + 1] >> 7 else 0) if x < 12 else 0 if x == 12 else 0xFF
            for x in choice
        ]
        result[at] = int.from_bytes(bytes(picked), "little")
    return result


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (0x03020100, 0xB3A23180),
        (0x07060504, 0x04F3C281),
        (0x0B0A0908, 0x00FFFF00),  # the signs of bytes 1, 3, 5 and 7; those of the even bytes are all set
        (0x0A08090B, 0xFF00FF00),
        (0x0C0C0C0C, 0),
        (0x0D0E0F10, 0xFFFFFFFF),
        (0xFF0C0704, 0xFF000481),
    ],
)
def test_selectors_of_v_perm(choice, expected):
    """0 to 7: a byte of {v1, v2}; 8 to 11: the sign of one of its bytes, eight times; 12: 0; above: 255."""
    gang = new_gang(GFX9)
    gang.write_v(1, np.uint32(0x04F3C281))
    gang.write_v(2, np.uint32(0xB3A23180))
    gang.write_s(4, np.uint32(choice))
    step(gang, GFX9, "v_perm_b32 v0, v1, v2, s4")
    assert {hex(x) for x in gang.v[0].reshape(-1).tolist()} == {hex(expected)}


MASKS = [
    ("v_cmp_lt_i32_e32 vcc, v1, v2", GFX9, lambda r: r.i32(1) < r.i32(2)),
    ("v_cmp_ge_u32_e32 vcc_lo, v1, v2", GFX11, lambda r: r.u32(1) >= r.u32(2)),
    ("v_cmp_gt_u64_e32 vcc, v[2:3], v[4:5]", GFX9, lambda r: r.u64(2) > r.u64(4)),
    ("v_cmp_lt_f32_e32 vcc, v1, v2", GFX9, lambda r: r.f32(1) < r.f32(2)),
    ("v_cmp_nlt_f32_e32 vcc, v1, v2", GFX9, lambda r: ~(r.f32(1) < r.f32(2))),
    ("v_cmp_u_f32_e32 vcc_lo, v1, v2", GFX12, lambda r: np.isnan(r.f32(1)) | np.isnan(r.f32(2))),
    ("v_cmp_eq_u16_e32 vcc, v1, v2", GFX9, lambda r: r.half(1, 0, np.uint16) == r.half(2, 0, np.uint16)),
    ("v_add_co_u32_e32 v0, vcc, v1, v2", GFX9, lambda r: r.u32(1).astype(np.int64) + r.u32(2) >= 2**32),
    ("v_sub_co_u32_e32 v0, vcc, v1, v2", GFX9, lambda r: r.u32(1) < r.u32(2)),
    ("v_addc_co_u32_e32 v0, vcc, v1, v2, vcc", GFX9,
     lambda r: r.u32(1).astype(np.int64) + r.u32(2) + r.vcc() >= 2**32),
    ("v_add_co_ci_u32_e32 v0, vcc_lo, v1, v2, vcc_lo", GFX11,
     lambda r: r.u32(1).astype(np.int64) + r.u32(2) + r.vcc() >= 2**32),
    ("v_mad_u64_u32 v[0:1], vcc, v1, v2, v[4:5]", GFX9,
     lambda r: (r.u32(1).astype(object) * r.u32(2).astype(object) + r.u64(4).astype(object) >= 2**64).astype(bool)),
]  # fmt: skip


@pytest.mark.parametrize(("line", "target", "want"), MASKS)
def test_masks(line, target, want, rng):
    """Comparisons and carries: one bit per lane, zero in lanes that EXEC leaves out."""
    gang = new_gang(target)
    random_registers(gang, rng)
    step(gang, target, "s_mov_b32 exec_lo, 0x0ff0f0f5")
    before = Registers(gang)
    step(gang, target, line)
    np.testing.assert_array_equal(Registers(gang).vcc(), want(before) & gang.exec)


def test_carry_chain(rng):
    """64-bit sum and difference made of two instructions each."""
    gang = new_gang(GFX9)
    random_registers(gang, rng)
    before = Registers(gang)
    for line in (
        "v_add_co_u32_e32 v8, vcc, v2, v4",
        "v_addc_co_u32_e32 v9, vcc, v3, v5, vcc",
        "v_sub_co_u32_e32 v10, vcc, v2, v4",
        "v_subb_co_u32_e32 v11, vcc, v3, v5, vcc",
    ):
        step(gang, GFX9, line)
    after = Registers(gang)
    np.testing.assert_array_equal(after.u64(8), before.u64(2) + before.u64(4))
    np.testing.assert_array_equal(after.u64(10), before.u64(2) - before.u64(4))


@pytest.mark.parametrize("target", [GFX10, GFX11, GFX12])
def test_comparison_that_writes_exec(target, rng):
    gang = new_gang(target)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, target, "v_cmpx_lt_i32_e32 v1, v2")
    np.testing.assert_array_equal(gang.exec, before.i32(1) < before.i32(2))


@pytest.mark.parametrize("target", [GFX9, GFX11])
def test_lanes_outside_exec_keep_what_they_have(target, rng):
    gang = new_gang(target)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, target, "s_mov_b32 exec_lo, 0xffff")
    step(gang, target, "v_mov_b32_e32 v0, 7")
    assert (gang.v[0][:, :16] == 7).all()
    np.testing.assert_array_equal(gang.v[0][:, 16:32], before.u32(0)[:, 16:32])


def test_dual_instructions_read_before_they_write(rng):
    gang = new_gang(GFX11)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, GFX11, "v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v2, v1")
    step(gang, GFX11, "v_dual_mov_b32 v20, v90 :: v_dual_mov_b32 v21, v1")  # v90 is undefined, v21 is not
    step(gang, GFX11, "v_readfirstlane_b32 s0, v21")
    np.testing.assert_array_equal(gang.v[1], before.u32(2))
    np.testing.assert_array_equal(gang.v[2], before.u32(1))
    step(gang, GFX11, "v_dual_fmac_f32 v0, v3, v5 :: v_dual_fmac_f32 v1, v4, v0")
    with np.errstate(all="ignore"):
        assert same(gang.v[0], fma(before.f32(3), before.f32(5), before.f32(0)))
        assert same(gang.v[1], fma(before.f32(4), before.f32(0), before.f32(2)))


@pytest.mark.parametrize("line", ["v_dot2_f32_f16 v0, v1, v2, v0", "v_dot2c_f32_f16_e32 v0, v1, v2"])
def test_dot_product_of_halves(line, rng):
    """On operands whose two products have an exact sum in float64, which is then rounded once."""
    gang = new_gang("gfx90a")
    random_registers(gang, rng)
    for i in (1, 2):
        gang.write_v(i, pack(*(rng.standard_normal((2, 64)).astype(np.float16) for _ in range(2))))
    before = Registers(gang)
    step(gang, "gfx90a", line)
    products = [before.half(1, i).astype(np.longdouble) * before.half(2, i) for i in (0, 1)]
    with np.errstate(all="ignore"):
        assert same(gang.v[0], (products[0] + products[1] + before.f32(0)).astype(np.float32))


HALF_OPERANDS = [
    ("v_cvt_f32_f16_e32 v0, v1.h", lambda r: r.half(1, 1).astype(np.float32)),
    ("v_cvt_f16_f32_e32 v0.h, v1", lambda r: pack(r.half(0), r.f32(1).astype(np.float16))),
    ("v_add_f16_e32 v0.l, v1.h, v2.l", lambda r: pack(r.half(1, 1) + r.half(2), r.half(0, 1))),
    ("v_mov_b16_e32 v0.h, v1.l", lambda r: pack(r.half(0), r.half(1))),
]
"""Newer compilers name the halves of registers on gfx11."""


@pytest.mark.parametrize(("line", "want"), HALF_OPERANDS)
def test_halves_of_registers(line, want, rng):
    gang = new_gang(GFX11)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, GFX11, line)
    with np.errstate(all="ignore"):
        expected = want(before)
    assert same(gang.v[0], expected) if line.startswith("v_cvt_f32") else same_halves(gang.v[0], expected)


# Instruction; bits of the result in s0 (None: none) and SCC (None: untouched), where a and b are s4 and s5.
SCALAR = [
    ("s_add_u32 s0, s4, s5", lambda a, b: (a + b, a + b >> 32 != 0)),
    ("s_sub_u32 s0, s4, s5", lambda a, b: (a - b, a < b)),
    ("s_mul_i32 s0, s4, s5", lambda a, b: (a * b, None)),
    ("s_mul_hi_u32 s0, s4, s5", lambda a, b: (a * b >> 32, None)),
    ("s_mul_hi_i32 s0, s4, s5", lambda a, b: (signed(a) * signed(b) >> 32, None)),
    ("s_and_b32 s0, s4, s5", lambda a, b: (a & b, a & b != 0)),
    ("s_andn2_b32 s0, s4, s5", lambda a, b: (a & ~b, a & ~b != 0)),
    ("s_lshl_b32 s0, s4, 5", lambda a, b: (a << 5, a << 5 & 0xFFFFFFFF != 0)),
    ("s_ashr_i32 s0, s4, 31", lambda a, b: (signed(a) >> 31, signed(a) < 0)),
    ("s_lshl2_add_u32 s0, s4, s5", lambda a, b: ((a << 2) + b, (a << 2) + b >> 32 != 0)),
    ("s_bfe_u32 s0, s4, 0x50003", lambda a, b: (a >> 3 & 31, a >> 3 & 31 != 0)),
    ("s_bfe_i32 s0, s4, 0x80008", lambda a, b: (signed(a << 16) >> 24, signed(a << 16) >> 24 != 0)),
    ("s_min_i32 s0, s4, s5", lambda a, b: (min(signed(a), signed(b)), signed(a) <= signed(b))),
    ("s_max_u32 s0, s4, s5", lambda a, b: (max(a, b), a >= b)),
    ("s_cmp_lt_i32 s4, s5", lambda a, b: (None, signed(a) < signed(b))),
    ("s_cmp_lg_u32 s4, s5", lambda a, b: (None, a != b)),
    ("s_cmpk_gt_i32 s4, 0xff80", lambda a, b: (None, signed(a) > -128)),
    ("s_movk_i32 s0, 0x8000", lambda a, b: (-32768, None)),
    ("s_addk_i32 s4, 0xffff", lambda a, b: (None, signed(a) == -(2**31))),
    ("s_cselect_b32 s0, s4, s5", lambda a, b: (b, None)),
    ("s_sext_i32_i8 s0, s4", lambda a, b: (signed(a << 24) >> 24, None)),
    ("s_pack_ll_b32_b16 s0, s4, s5", lambda a, b: (a & 0xFFFF | b << 16, None)),
    ("s_bcnt1_i32_b32 s0, s4", lambda a, b: (bin(a).count("1"), a != 0)),
    ("s_ff1_i32_b32 s0, s4", lambda a, b: ((a & -a).bit_length() - 1, None)),
    ("s_flbit_i32_b32 s0, s4", lambda a, b: (32 - a.bit_length() if a else -1, None)),
    ("s_bitcmp1_b32 s4, 3", lambda a, b: (None, a >> 3 & 1 == 1)),
]


def signed(x: int) -> int:
    return (x & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)


@pytest.mark.parametrize(("line", "want"), SCALAR)
def test_scalar(line, want, rng):
    for _ in range(20):
        gang = new_gang(GFX9)
        random_registers(gang, rng)
        gang.write_scc(np.array([False, False]))
        if rng.random() < 0.2:
            gang.write_s(4, np.uint32(rng.choice([0, 0x80000000, 0xFFFFFFFF])))
        ab = gang.s[:, 4:6].astype(object)
        step(gang, GFX9, line)
        for wave in range(2):
            result, scc = want(*ab[wave])
            if result is not None:
                assert gang.s[wave, 0] == result & 0xFFFFFFFF
            assert gang.scc[wave] == bool(scc)


EDGES = (0, 1, 2, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)


def outside_int32(x: int) -> bool:
    return not -(2**31) <= x < 2**31


# Of a, b and SCC: the result, and SCC, which is the carry or the borrow of unsigned and the overflow of signed numbers.
CARRIES = {
    "s_add_u32 s0, s4, s5": lambda a, b, c: (a + b, a + b >= 2**32),
    "s_sub_u32 s0, s4, s5": lambda a, b, c: (a - b, a - b < 0),
    "s_addc_u32 s0, s4, s5": lambda a, b, c: (a + b + c, a + b + c >= 2**32),
    "s_subb_u32 s0, s4, s5": lambda a, b, c: (a - b - c, a - b - c < 0),
    "s_add_i32 s0, s4, s5": lambda a, b, c: (a + b, outside_int32(signed(a) + signed(b))),
    "s_sub_i32 s0, s4, s5": lambda a, b, c: (a - b, outside_int32(signed(a) - signed(b))),
    "s_addk_i32 s4, 0x7fff": lambda a, b, c: (a + 0x7FFF, outside_int32(signed(a) + 0x7FFF)),
    "s_addk_i32 s4, 0x8000": lambda a, b, c: (a - 0x8000, outside_int32(signed(a) - 0x8000)),
}


@pytest.mark.parametrize("line", CARRIES)
def test_carry_borrow_and_overflow(line):
    """At both ends of the range, upwards and downwards."""
    pairs = [(a, b, c) for a in EDGES for b in EDGES for c in (0, 1)]
    for two in zip(pairs[::2], pairs[1::2], strict=True):
        gang = new_gang(GFX9)
        for i in (0, 1):
            gang.write_s(4 + i, np.array([x[i] for x in two], np.uint32))
        gang.write_scc(np.array([bool(x[2]) for x in two]))
        step(gang, GFX9, line)
        for wave, (a, b, c) in enumerate(two):
            result, scc = CARRIES[line](a, b, c)
            written = gang.s[wave, 4 if line.startswith("s_addk") else 0]
            assert (written, bool(gang.scc[wave])) == (result & 0xFFFFFFFF, scc), (hex(a), hex(b), c)


SCALAR64 = [
    ("s_lshl_b64 s[0:1], s[4:5], 35", lambda a, b: a << 35),
    ("s_lshr_b64 s[0:1], s[4:5], 35", lambda a, b: a >> 35),
    ("s_and_b64 s[0:1], s[4:5], s[6:7]", lambda a, b: a & b),
    ("s_orn2_b64 s[0:1], s[4:5], s[6:7]", lambda a, b: a | ~b),
    ("s_mov_b64 s[0:1], -1", lambda a, b: -1),
    ("s_ashr_i64 s[0:1], s[4:5], 3", lambda a, b: ((a ^ 1 << 63) - (1 << 63)) >> 3),
    ("s_bfe_u64 s[0:1], s[4:5], 0x280008", lambda a, b: a >> 8 & (1 << 40) - 1),
]


@pytest.mark.parametrize(("line", "want"), SCALAR64)
def test_scalar_of_64_bits(line, want, rng):
    gang = new_gang(GFX9)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, GFX9, line)
    after = Registers(gang)
    for wave in range(2):
        a, b = (int(before.scalar64(i)[wave, 0]) for i in (4, 6))
        assert int(after.scalar64(0)[wave, 0]) == want(a, b) & (1 << 64) - 1


SAVEEXEC = [
    ("s_and_saveexec_b64", lambda mask, old: mask & old),
    ("s_or_saveexec_b64", lambda mask, old: mask | old),
    ("s_andn2_saveexec_b64", lambda mask, old: mask & ~old),
    ("s_xor_saveexec_b64", lambda mask, old: mask ^ old),
]


@pytest.mark.parametrize(("name", "want"), SAVEEXEC)
def test_exec_is_saved_and_changed(name, want, rng):
    gang = new_gang(GFX9)
    random_registers(gang, rng)
    step(gang, GFX9, "s_mov_b64 exec, s[8:9]")
    mask, old = Registers(gang).mask(4), gang.exec.copy()
    step(gang, GFX9, f"{name} s[0:1], s[4:5]")
    np.testing.assert_array_equal(gang.exec, want(mask, old))
    np.testing.assert_array_equal(Registers(gang).mask(0), old)
    np.testing.assert_array_equal(gang.scc, gang.exec.any(axis=1))


LANES = np.arange(64)
PERMUTATIONS = [
    ("v_mov_b32_dpp v0, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", GFX9, LANES ^ 3),
    ("v_mov_b32_dpp v0, v1 row_ror:4 row_mask:0xf bank_mask:0xf", GFX9, LANES // 16 * 16 + (LANES - 4) % 16),
    ("v_mov_b32_dpp v0, v1 row_mirror row_mask:0xf bank_mask:0xf", GFX9, LANES ^ 15),
    ("v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf", GFX9, LANES ^ 7),
    ("v_mov_b32_dpp v0, v1 row_xmask:5 row_mask:0xf bank_mask:0xf", GFX11, LANES ^ 5),
    ("v_mov_b32_dpp v0, v1 row_share:3 row_mask:0xf bank_mask:0xf", GFX11, LANES // 16 * 16 + 3),
    ("v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]", GFX11, LANES ^ 7),
    ("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", GFX9, LANES ^ 16),
    ("ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,1,0,3,2)", GFX9, LANES ^ 1),
    ("ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,3)", GFX11, LANES // 8 * 8 + 3),
    ('ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,"0pi1p")', GFX9, LANES & 0b101001 | 0b10 | ~LANES & 0b100),
    ("ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE,32)", GFX9, LANES ^ 31),
]


@pytest.mark.parametrize(("line", "target", "source"), PERMUTATIONS)
def test_permutation_of_lanes(line, target, source, rng):
    gang = new_gang(target)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, target, line)
    np.testing.assert_array_equal(gang.v[0], before.u32(1)[:, source[: gang.lanes]])


@pytest.mark.parametrize("bound_ctrl", ["", " bound_ctrl:1"])
def test_shift_within_a_row(bound_ctrl, rng):
    """Where no lane is to the left, the result stays or becomes 0."""
    gang = new_gang(GFX9)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, GFX9, f"v_mov_b32_dpp v0, v1 row_shr:2 row_mask:0xf bank_mask:0xf{bound_ctrl}")
    inside = LANES % 16 >= 2
    want = np.where(inside, np.roll(before.u32(1), 2, axis=1), 0 if bound_ctrl else before.u32(0))
    np.testing.assert_array_equal(gang.v[0], want)


def test_permutation_and_sum_in_one_instruction(rng):
    """As a reduction over 16 lanes is made."""
    gang = new_gang(GFX9)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, GFX9, "v_add_f32_dpp v0, v1, v2 row_ror:8 row_mask:0x5 bank_mask:0xf")
    rows = np.isin(LANES // 16, (0, 2))
    with np.errstate(all="ignore"):
        want = before.f32(1)[:, LANES // 16 * 16 + (LANES - 8) % 16] + before.f32(2)
    assert same(gang.v[0], np.where(rows, want, before.f32(0)))


@pytest.mark.parametrize("target", [GFX9, GFX11])
def test_byte_permutation(target, rng):
    gang = new_gang(target)
    random_registers(gang, rng)
    lanes = gang.lanes
    choice = rng.permutation(lanes)
    gang.write_v(3, (choice * 4).astype(np.uint32)[None, :])
    before = Registers(gang)
    step(gang, target, "s_mov_b32 exec_lo, 0x7fffffff")
    step(gang, target, "ds_bpermute_b32 v0, v3, v1")
    want = np.where(choice == 31, 0, before.u32(1)[:, choice])  # lane 31 gives nothing
    np.testing.assert_array_equal(gang.v[0][gang.exec], want[gang.exec])


def test_lanes_and_scalars(rng):
    gang = new_gang(GFX9)
    random_registers(gang, rng)
    before = Registers(gang)
    step(gang, GFX9, "v_readlane_b32 s0, v1, 17")
    step(gang, GFX9, "v_writelane_b32 v2, s4, 9")
    step(gang, GFX9, "s_mov_b64 exec, 0xf0")
    step(gang, GFX9, "v_readfirstlane_b32 s1, v1")
    np.testing.assert_array_equal(gang.s[:, 0], before.u32(1)[:, 17])
    np.testing.assert_array_equal(gang.s[:, 1], before.u32(1)[:, 4])
    np.testing.assert_array_equal(gang.v[2][:, 9], before.scalar(4)[:, 0])


def test_lane_number():
    """As compilers ask for it."""
    gang = new_gang(GFX9)
    step(gang, GFX9, "v_mbcnt_lo_u32_b32 v0, -1, 0")
    step(gang, GFX9, "v_mbcnt_hi_u32_b32 v0, -1, v0")
    np.testing.assert_array_equal(gang.v[0], np.broadcast_to(LANES, (2, 64)))


@pytest.mark.parametrize("cross", [False, True])
def test_permlane16(cross, rng):
    gang = new_gang(GFX11)
    random_registers(gang, rng)
    choice = rng.permutation(16)
    for i in range(2):
        gang.write_s(4 + i, np.uint32(sum(int(x) << 4 * j for j, x in enumerate(choice[8 * i : 8 * i + 8]))))
    before = Registers(gang)
    step(gang, GFX11, f"v_permlane{'x' if cross else ''}16_b32 v0, v1, s4, s5")
    lane = np.arange(32)
    want = before.u32(1)[:, (lane // 16 ^ cross) * 16 + choice[lane % 16]]
    np.testing.assert_array_equal(gang.v[0], want)


REFUSED = [
    ("v_frobnicate_b32 v0, v1", GFX9, "instruction v_frobnicate_b32 is not modelled"),
    ("scratch_load_dword v0, off, s4", GFX9, "scratch_load_dword"),
    ("v_fma_f32 v0, v1, v2, v3 clamp", GFX9, "modifier clamp is not modelled"),
    ("v_mul_f32_e64 v0, v1, v2 mul:2", GFX9, "modifier mul is not modelled"),
    ("v_mfma_f32_16x16x4f32 v[0:3], v4, v5, v[0:3] cbsz:1", "gfx90a", "modifier cbsz is not modelled"),
    ("v_add_u32_e32 v0, v1, flat_scratch_lo", GFX9, "'flat_scratch_lo' is not modelled"),
    ("v_pk_fma_f32 v[0:1], v[2:3], 2.0, v[4:5]", "gfx90a", "high half of the constant 2.0"),
    ("v_add_u32_dpp v0, v1, v2 wave_rol:1 row_mask:0xf bank_mask:0xf", GFX9, "permutation of lanes is not modelled"),
    ("v_add_u32_e32 v0, -v1, v2", GFX9, "sign of an operand that is no float"),
    ("v_dot4_i32_i8 v0, v1, v2, v3 clamp", GFX9, "modifier clamp"),
    ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", GFX9, "on gfx906"),
    ("v_mov_b32_e32 v0, s[4:5", GFX9, "cannot take apart|not modelled"),
    ("s_add_u32 s0, s4", GFX9, "expected 1 results and 2 operands"),
    ("ds_read_b64 v0, v1", GFX9, "expected 2 vector registers"),
    ("ds_read_b32 v0, v1 gds", GFX9, "modifier gds is not modelled"),
]


@pytest.mark.parametrize(("line", "target", "why"), REFUSED)
def test_what_is_not_known_is_refused(line, target, why):
    """By name, never guessed."""
    with pytest.raises(simulator.SimulationError, match=why):
        step(new_gang(target), target, line)


@pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")
@pytest.mark.parametrize("target", ALL)
def test_the_assembler_knows_what_is_tested_here(target):
    """A table of instructions that do not exist would prove nothing."""
    lines = [line for line, targets, _ in CASES if target in targets]
    lines += [line for line, only, _ in [*MASKS, *PERMUTATIONS] if only == target]
    if target == GFX11 and simulator.toolchain().name == "ziglang":
        lines += [line for line, _ in HALF_OPERANDS]
    if target == GFX9:
        lines += [line for line, _ in [*SCALAR, *SCALAR64]] + [f"{name} s[0:1], s[4:5]" for name, _ in SAVEEXEC]
    code = simulator.assemble(amd_waves.source("\n".join(lines), target), target)
    assert len(code.instructions["probe"]) == len(lines) + 1
    for written, read in zip(lines, code.instructions["probe"], strict=False):
        assert amd_waves.parse(written).mnemonic == read.mnemonic
