"""Every HIP kernel is compiled for seven targets and its machine code read. Needs a compiler, no GPU."""

from collections import Counter

import hip_machine_code as machine
import pytest
from hip_machine_code import code_of
from pysimd.gpu_kernels import table as gpu_table
from pysimd.hip_kernels import table

from pysimd.ratio import tile_ratio

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

CASES = [
    pytest.param(row, target, id=f"{row.name}-{target}") for row in table.KERNELS for target in machine.targets(row)
]
every_case = pytest.mark.parametrize(("row", "target"), CASES)

RDNA3 = ("gfx1100", "gfx1200")
CDNA = ("gfx90a", "gfx942")


def multiplies(row, target) -> dict[str, int]:
    """The instructions that shall multiply in the hot loop, and how many multiply-adds each does in a lane (of the
    matrix units: in a wave)."""
    if row.form == "wmma":
        return {"v_wmma_f32_16x16x16_f16": 4096}
    if row.form == "mfma":
        steps = {("f32", 16): 4, ("f32", 32): 2, ("f16f32", 16): 16, ("f16f32", 32): 8}[row.types, row.mr]
        joint = "" if target == "gfx90a" else "_"  # two spellings of the same instructions
        name = f"v_mfma_f32_{row.mr}x{row.nr}x{steps}{joint}{'f16' if row.types == 'f16f32' else 'f32'}"
        return {name: row.mr * row.nr * steps}
    if row.types == "f16":
        return {"v_pk_fma_f16": 2}
    if row.types == "f16f32":
        if target in CDNA:
            return {"v_pk_fma_f32": 2}
        return {"v_mad_mix_f32" if target == "gfx900" else "v_fma_mix_f32": 1}
    if row.types == "i8i32":
        if target == "gfx900":
            return {"v_mul_i32_i24": 1, "v_mad_i32_i24": 1}
        return {"v_dot4_i32_iu8" if target in RDNA3 else "v_dot4_i32_i8" if target == "gfx906" else "v_dot4c_i32_i8": 4}
    if row.form == "outer" and target in CDNA:
        return {"v_pk_fma_f32": 2}
    return {"v_fma_f32" if target == "gfx900" else "v_fmac_f32": 1}


def hot_loop(row, target):
    return code_of(row.source, machine.checked_entries(row)["fast"], target).hot_loop(set(multiplies(row, target)))


@every_case
@pytest.mark.parametrize("which", ["fast", "any", "edge"])
def test_everything_in_registers(row, target, which):
    """No scratch and no spills, whatever the layout; waves are as wide as the hardware's."""
    kernel = code_of(row.source, machine.checked_entries(row)[which], target).kernel
    assert (kernel.scratch, kernel.vgpr_spills, kernel.sgpr_spills) == (0, 0, 0)
    assert kernel.vgprs - kernel.agprs <= 256
    # Accumulators of the matrix cores are registers of either kind; else at most some values that outlive the loop.
    assert kernel.agprs in ((0, row.mr * row.nr // 64) if row.form == "mfma" else range(5))
    assert kernel.lds == 0
    assert kernel.wave_size == (64 if target.startswith("gfx9") else 32)


@every_case
def test_instructions_of_a_step(row, target):
    """The hot loop multiplies with the target's own instruction, as often as the tile asks, and with nothing else."""
    loop = hot_loop(row, target)
    wanted = multiplies(row, target)
    lanes = row.lanes if row.form in ("mfma", "wmma") else 1
    elements = sum(loop.loads()) * lanes // {"f32": 4, "i8i32": 1}.get(row.types, 2)
    macs = sum(loop.count(name) * each for name, each in wanted.items())
    # gfx11 wants both halves of a wave to hold the fragments: they are loaded twice.
    twice = 2 if (row.form, target) == ("wmma", "gfx1100") else 1
    assert macs * twice / elements == tile_ratio(row.form, row.mr, row.nr, 1, 1).value
    others = loop.starting(
        "v_fma", "v_mac", "v_mad_f", "v_mad_i", "v_mad_mix", "v_pk_fma", "v_dot", "v_mul_f", "v_mul_i"
    )
    assert set(others) <= set(wanted)
    assert not loop.starting("v_mul_f16", "v_add_f16", "v_add_f32", "v_pk_mul", "v_pk_add")


@every_case
def test_conversions(row, target):
    """f16 are converted only where the target has packed f32 fma: once each. Nothing is unpacked."""
    loop = hot_loop(row, target)
    converted = sum(loop.starting("v_cvt").values())
    if row.types == "f16f32" and row.form == "outer" and target in CDNA:
        steps = loop.count("v_pk_fma_f32") * 2 // (row.mr * row.nr)
        assert converted == steps * (row.mr + row.nr)
    else:
        assert converted == 0


@every_case
def test_no_stores_and_wide_loads_in_the_hot_loop(row, target):
    loop = hot_loop(row, target)
    assert not loop.starting("global_store", "flat", "buffer", "scratch", "ds_", "v_accvgpr")
    size = {"f32": 4, "i8i32": 1}.get(row.types, 2)
    assert min(loop.loads()) >= min(8, row.nr * size)


@pytest.mark.parametrize("target", RDNA3)
def test_two_at_once_on_rdna3(target):
    """Part of the float multiply-adds go out in pairs."""
    for tile in (4, 8):
        loop = hot_loop(table.BY_NAME[f"hip_f32_outer_{tile}x{tile}"], target)
        assert loop.paired("v_fmac_f32") >= 0.3 * loop.count("v_fmac_f32")


@every_case
def test_stores_are_wide(row, target):
    """Aligned rows of C are stored in vectors of 16 bytes (8 where a row has no more)."""
    if row.form != "outer":
        pytest.skip("lanes store single elements")
    names = {name for name, _ in code_of(row.source, machine.checked_entries(row)["fast"], target).instructions}
    row_bytes = row.nr * (2 if row.types == "f16" else 4)
    wide = (
        {"global_store_dwordx4", "global_store_b128"}
        if row_bytes >= 16
        else {"global_store_dwordx2", "global_store_b64"}
    )
    assert names & wide


BATCHED_FMA = {"f64": ("v_fma_f64", "v_fmac_f64"), "f32": ("v_fma_f32", "v_fmac_f32", "v_pk_fma_f32")}


@pytest.mark.parametrize("target", table.TARGETS)
@pytest.mark.parametrize("types", BATCHED_FMA)
def test_batched(types, target):
    """Small products: the expected number of multiply-adds, accumulators in registers, wide copies."""
    instance = gpu_table.Batched(types, 8, 8, 8, tm=2, tn=4, products=16, a_transposed=True)
    code = code_of(table.BATCHED, instance.entry, target)
    names = Counter(name for name, _ in code.instructions)
    assert (code.kernel.scratch, code.kernel.vgpr_spills) == (0, 0)
    assert sum(names[x] * (2 if "pk" in x else 1) for x in BATCHED_FMA[types]) == 2 * 4 * 8
    assert names["global_load_dwordx4"] + names["global_load_b128"] > 0
    assert names["s_barrier"] + names["s_barrier_signal"] > 0


def test_a_target_without_the_instruction_is_an_error_of_the_compiler():
    """Were the table wrong, nothing would be computed some other way."""
    from pysimd import simulator

    for name, target in (("hip_f32_mfma_16x16", "gfx1100"), ("hip_f16f32_wmma_16x16", "gfx942")):
        with pytest.raises(simulator.CompileError, match=r"this target does not"):
            code_of(table.BY_NAME[name].source, machine.checked_entries(table.BY_NAME[name])["fast"], target)
