"""Instructions that write a part of a register, or parts of which are undefined."""

import numpy as np
import pytest
from amd_waves import Registers, new_gang, step

from pysimd import simulator

GFX9 = "gfx906"


def random_gang(rng):
    gang = new_gang(GFX9)
    for i in range(5):
        gang.write_v(i, rng.integers(0, 2**32, gang.v[0].shape, dtype=np.uint32))
    return gang


@pytest.mark.parametrize(
    ("line", "keeps"),
    [
        ("v_fma_f16 v0, v1, v2, v3", True),
        ("v_mad_u16 v0, v1, v2, v3", True),
        ("v_mad_i16 v0, v1, v2, v3", True),
        ("v_add_f16_e32 v0, v1, v2", False),
        ("v_add_u16_e32 v0, v1, v2", False),
    ],
)
def test_upper_half_of_a_register_with_a_result_of_16_bits_on_gfx9(line, keeps, rng):
    gang = random_gang(rng)
    before = Registers(gang)
    step(gang, GFX9, line)
    np.testing.assert_array_equal(gang.v[0] >> 16, before.u32(0) >> 16 if keeps else np.zeros_like(gang.v[0]))


def test_a_part_of_a_sum_and_its_whole_carry(rng):
    gang = random_gang(rng)
    before = Registers(gang)
    parts = "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD"
    step(gang, GFX9, f"v_add_co_u32_sdwa v0, vcc, v1, v2 {parts}")
    total = before.u32(1).astype(np.uint64) + before.u32(2)
    np.testing.assert_array_equal(gang.v[0], before.u32(0) & 0xFFFF | total.astype(np.uint32) << 16)
    step(gang, GFX9, "v_cndmask_b32_e32 v3, 0, v4, vcc")
    np.testing.assert_array_equal(gang.v[3], np.where(total >> np.uint64(32), before.u32(4), 0))


def test_an_undefined_upper_half_leaves_the_lower_one_defined():
    gang = new_gang(GFX9)
    step(gang, GFX9, "s_mov_b32 s90, 7")
    step(gang, GFX9, "s_mov_b64 s[20:21], s[90:91]")
    step(gang, GFX9, "v_mov_b32_e32 v0, s20")
    step(gang, GFX9, "v_mov_b32_e32 v1, s21")
    step(gang, GFX9, "v_readfirstlane_b32 s0, v0")
    assert (gang.s[:, 0] == 7).all()
    with pytest.raises(simulator.SimulationError, match="nothing has written"):
        step(gang, GFX9, "v_readfirstlane_b32 s1, v1")
