"""Matrix instructions: the layouts in the documentation of the instruction sets, written as loops, against NumPy."""

import numpy as np
import pytest
from amd_waves import WAVES, new_gang, source, step
from hip_machine_code import missing

from pysimd import simulator
from pysimd.simulator.instructions.matrix import mfma_shape

# (instruction, target, type of A and B, m = n, k, blocks, elements of A in a lane)
MFMA = [
    ("v_mfma_f32_4x4x1f32", "gfx90a", np.float32, 4, 1, 16, 1),
    ("v_mfma_f32_4x4x1_16b_f32", "gfx942", np.float32, 4, 1, 16, 1),
    ("v_mfma_f32_16x16x1f32", "gfx90a", np.float32, 16, 1, 4, 1),
    ("v_mfma_f32_16x16x4f32", "gfx90a", np.float32, 16, 4, 1, 1),
    ("v_mfma_f32_16x16x4_f32", "gfx942", np.float32, 16, 4, 1, 1),
    ("v_mfma_f32_16x16x4_4b_f16", "gfx942", np.float16, 16, 4, 4, 4),
    ("v_mfma_f32_32x32x1f32", "gfx90a", np.float32, 32, 1, 2, 1),
    ("v_mfma_f32_32x32x2f32", "gfx90a", np.float32, 32, 2, 1, 1),
    ("v_mfma_f32_4x4x4f16", "gfx90a", np.float16, 4, 4, 16, 4),
    ("v_mfma_f32_16x16x4f16", "gfx90a", np.float16, 16, 4, 4, 4),
    ("v_mfma_f32_16x16x16f16", "gfx90a", np.float16, 16, 16, 1, 4),
    ("v_mfma_f32_16x16x16_f16", "gfx942", np.float16, 16, 16, 1, 4),
    ("v_mfma_f32_32x32x8f16", "gfx90a", np.float16, 32, 8, 1, 4),
    ("v_mfma_f32_32x32x8_f16", "gfx942", np.float16, 32, 8, 1, 4),
    ("v_mfma_f32_32x32x4f16", "gfx90a", np.float16, 32, 4, 2, 4),
    ("v_mfma_f32_16x16x16bf16_1k", "gfx90a", "bf16", 16, 16, 1, 4),
    ("v_mfma_f32_16x16x8bf16", "gfx90a", "bf16", 16, 8, 1, 2),
    ("v_mfma_f32_32x32x8_bf16", "gfx942", "bf16", 32, 8, 1, 4),
    ("v_mfma_i32_16x16x16i8", "gfx90a", np.int8, 16, 16, 1, 4),
    ("v_mfma_i32_32x32x16_i8", "gfx942", np.int8, 32, 16, 1, 8),
]


def random(dtype, shape, rng):
    """Small integers: every order of summation gives the same sum."""
    return rng.integers(-8, 8, shape).astype(np.float32 if dtype == "bf16" else dtype)


def stored(values: np.ndarray, dtype) -> np.ndarray:
    """As registers hold them; a bfloat16 is the upper half of a float32."""
    return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16) if dtype == "bf16" else values


def put(gang, first: int, values: np.ndarray, file: str = "v") -> str:
    """Elements of each lane, shape (waves, lanes, n), into registers from ``first`` on; the operand's text."""
    words = np.ascontiguousarray(values).view(np.uint32)
    for i in range(words.shape[2]):
        gang.write_v(first + i, words[:, :, i], acc=file == "a")
    last = first + words.shape[2] - 1
    return f"{file}{first}" if last == first else f"{file}[{first}:{last}]"


def get(gang, first: int, count: int, dtype, file: str = "v") -> np.ndarray:
    return np.stack([gang.register(first + i, file == "a") for i in range(count)], axis=2).view(dtype)


@pytest.mark.parametrize("file", ["v", "a"])
@pytest.mark.parametrize(("name", "target", "dtype", "side", "depth", "blocks", "each"), MFMA)
def test_mfma(name, target, dtype, side, depth, blocks, each, file, rng):
    shape = mfma_shape(name)
    assert (shape.m, shape.n, shape.k, shape.blocks) == (side, side, depth, blocks)
    sums = np.int32 if dtype == np.int8 else np.float32
    a = random(dtype, (WAVES, blocks, side, depth), rng)
    b = random(dtype, (WAVES, blocks, depth, side), rng)
    c = random(sums, (WAVES, blocks, side, side), rng)
    held = side * side * blocks // 64
    a_lanes, b_lanes = np.empty((WAVES, 64, each), a.dtype), np.empty((WAVES, 64, each), a.dtype)
    c_lanes, want = np.empty((WAVES, 64, held), sums), np.empty((WAVES, 64, held), sums)
    wide = c + a.astype(np.int64) @ b.astype(np.int64)
    for lane in range(64):
        if blocks * side == 64:  # a group of lanes is a block, which holds all of k
            block, line, first_k = lane // side, lane % side, 0
        else:
            block, line, first_k = 0, lane % side, lane // side * each
        for i in range(each):
            a_lanes[:, lane, i] = a[:, block, line, first_k + i]
            b_lanes[:, lane, i] = b[:, block, first_k + i, line]
        for i in range(held):
            if side == 4:
                at = lane // 4, i, lane % 4
            elif side == 16:
                at = i // 4, 4 * (lane // 16) + i % 4, lane % 16
            else:
                at = i // 16, 8 * (i % 16 // 4) + 4 * (lane // 32) + i % 4, lane % 32
            c_lanes[:, lane, i] = c[(slice(None), *at)]
            want[:, lane, i] = wide[(slice(None), *at)]
    gang = new_gang(target)
    operands = put(gang, 64, stored(a_lanes, dtype)), put(gang, 68, stored(b_lanes, dtype)), put(gang, 0, c_lanes, file)
    step(gang, target, f"{name} {operands[2]}, {', '.join(operands)}")
    np.testing.assert_array_equal(get(gang, 0, held, sums, file), want)


def test_mfma_of_floats_is_one_fma_for_each_k(rng):
    """k ascending, each rounded once: the result is that of the scalar loop, bit for bit."""
    from pysimd.simulator.floats import fma32

    gang = new_gang("gfx90a")
    a, b, c = (rng.standard_normal((WAVES, 64, n)).astype(np.float32) for n in (1, 1, 4))
    operands = put(gang, 64, a), put(gang, 68, b), put(gang, 0, c)
    step(gang, "gfx90a", f"v_mfma_f32_16x16x4f32 v[0:3], {operands[0]}, {operands[1]}, {operands[2]}")
    lane = np.arange(64)
    for i in range(4):
        total = c[:, :, i]
        for k in range(4):
            row = 4 * (lane // 16) + i
            total = fma32(a[:, 16 * k + row, 0], b[:, 16 * k + lane % 16, 0], total)
        np.testing.assert_array_equal(gang.v[i].view(np.float32), total)


def test_constant_zero_for_c(rng):
    gang = new_gang("gfx90a")
    a, b = (random(np.float32, (WAVES, 64, 1), rng) for _ in range(2))
    step(gang, "gfx90a", f"v_mfma_f32_4x4x1f32 v[0:3], {put(gang, 64, a)}, {put(gang, 68, b)}, 0")
    want = a[:, :, 0].reshape(WAVES, 16, 4, 1) * b[:, :, 0].reshape(WAVES, 16, 1, 4)
    got = get(gang, 0, 4, np.float32).reshape(WAVES, 16, 4, 4).swapaxes(2, 3)
    np.testing.assert_array_equal(got, want)


def test_exec_is_not_looked_at(rng):
    """A wave multiplies with all its lanes, whatever EXEC says."""
    gang = new_gang("gfx90a")
    a, b = (random(np.float32, (WAVES, 64, 1), rng) for _ in range(2))
    operands = put(gang, 64, a), put(gang, 68, b)
    step(gang, "gfx90a", "s_mov_b64 exec, 1")
    step(gang, "gfx90a", f"v_mfma_f32_4x4x1f32 v[0:3], {operands[0]}, {operands[1]}, 0")
    assert (gang.v[0].view(np.float32) == a[:, ::4, 0].repeat(4, axis=1) * b[:, :, 0]).all()


WMMA = [
    ("v_wmma_f32_16x16x16_f16", np.float16),
    ("v_wmma_f32_16x16x16_bf16", "bf16"),
    ("v_wmma_i32_16x16x16_iu8", np.int8),
]


@pytest.mark.parametrize("target", ["gfx1100", "gfx1200"])
@pytest.mark.parametrize(("name", "dtype"), WMMA)
def test_wmma(name, dtype, target, rng):
    sums = np.int32 if dtype == np.int8 else np.float32
    a, b = random(dtype, (WAVES, 16, 16), rng), random(dtype, (WAVES, 16, 16), rng)
    c = random(sums, (WAVES, 16, 16), rng)
    wide = c + a.astype(np.int64) @ b.astype(np.int64)
    each = 16 if target == "gfx1100" else 8
    a_lanes, b_lanes = np.empty((WAVES, 32, each), a.dtype), np.empty((WAVES, 32, each), a.dtype)
    c_lanes, want = np.empty((WAVES, 32, 8), sums), np.empty((WAVES, 32, 8), sums)
    for lane in range(32):
        first = 0 if target == "gfx1100" else 8 * (lane // 16)
        a_lanes[:, lane] = a[:, lane % 16, first : first + each]
        b_lanes[:, lane] = b[:, first : first + each, lane % 16]
        for i in range(8):
            row = 2 * i + lane // 16 if target == "gfx1100" else 8 * (lane // 16) + i
            c_lanes[:, lane, i], want[:, lane, i] = c[:, row, lane % 16], wide[:, row, lane % 16]
    gang = new_gang(target)
    operands = put(gang, 64, stored(a_lanes, dtype)), put(gang, 72, stored(b_lanes, dtype)), put(gang, 0, c_lanes)
    signed = " neg_lo:[1,1,0]" if dtype == np.int8 else ""
    step(gang, target, f"{name} v[0:7], {', '.join(operands)}{signed}")
    np.testing.assert_array_equal(get(gang, 0, 8, sums), want)


def test_wmma_of_unsigned_bytes(rng):
    gang = new_gang("gfx1200")
    a = rng.integers(128, 256, (WAVES, 32, 8)).astype(np.uint8)
    b = np.ones((WAVES, 32, 8), np.int8) * -1
    operands = put(gang, 64, a), put(gang, 72, b)
    step(gang, "gfx1200", f"v_wmma_i32_16x16x16_iu8 v[0:7], {operands[0]}, {operands[1]}, 0 neg_lo:[0,1,0]")
    rows = -(a[:, :16].astype(np.int32).sum(axis=2) + a[:, 16:].astype(np.int32).sum(axis=2))
    np.testing.assert_array_equal(gang.v[0].view(np.int32)[:, 0], rows[:, 0])
    np.testing.assert_array_equal(gang.v[3].view(np.int32)[:, 31], rows[:, 11])


def test_halves_of_the_wave_must_agree_on_gfx11(rng):
    gang = new_gang("gfx1100")
    operands = [put(gang, i, random(np.float16, (WAVES, 32, 16), rng)) for i in (64, 72)]
    with pytest.raises(simulator.SimulationError, match="lanes 16 to 31 of"):
        step(gang, "gfx1100", f"v_wmma_f32_16x16x16_f16 v[0:7], {operands[0]}, {operands[1]}, 0")


def test_an_undefined_operand_is_refused(rng):
    gang = new_gang("gfx90a")
    a = put(gang, 64, random(np.float32, (WAVES, 64, 1), rng))
    with pytest.raises(simulator.UndefinedRead, match="v70"):
        step(gang, "gfx90a", f"v_mfma_f32_4x4x1f32 v[0:3], {a}, v70, 0")


@pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1200"])
def test_the_assembler_knows_what_is_tested_here(target):
    """Names, and how many registers each operand has."""
    lines = []
    for name, only, dtype, side, _, blocks, each in MFMA:
        size = 2 if dtype == "bf16" else np.dtype(dtype).itemsize
        held, packed = side * side * blocks // 64, each * size // 4
        ab = [f"v{x}" if packed == 1 else f"v[{x}:{x + packed - 1}]" for x in (64, 68)]
        lines += [f"{name} v[0:{held - 1}], {', '.join(ab)}, v[0:{held - 1}]"] * (only == target)
    for name, dtype in WMMA if target.startswith("gfx1") else ():
        count = (8 if dtype != np.int8 else 4) // (1 if target == "gfx1100" else 2)
        lines.append(f"{name} v[0:7], v[64:{63 + count}], v[72:{71 + count}], v[0:7]")
    code = simulator.assemble(source("\n".join(lines), target), target)
    assert [x.mnemonic for x in code.instructions["probe"]][:-1] == [x.split()[0] for x in lines]
