"""Rungs whose warps load fragments for the tensor cores: machine code, read on every architecture. Needs no GPU."""

import itertools

import cuda_machine_code as machine
import ladder_headers
import pytest
from pysimd.gpu_kernels import ladder_table

from pysimd.inspection import cuda_rungs, nvidia

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

NAIVE = ladder_table.BY_NAME["wmma_naive"]
ROWS = [row for row in ladder_table.RUNGS if row.lanes == 32]
PIPELINES = [row for row in ROWS if row.stages]
ARCHITECTURES = (75, 80, 90, "90a", 100)
PAIRS = (
    ("K_MAJOR_VEC4", "MN_MAJOR_VEC4"),
    ("MN_MAJOR_VEC4", "K_MAJOR_VEC4"),
    ("K_MAJOR", "MN_MAJOR"),
    ("MN_MAJOR", "K_MAJOR"),
)
MIXED = (("K_MAJOR_VEC4", "MN_MAJOR"), ("MN_MAJOR", "K_MAJOR_VEC4"), ("K_MAJOR", "MN_MAJOR_VEC4"))


def pairs(row, arch):
    """Pairs of layouts: one aligned, one not; more of them for sm_90a, which is what CuPy compiles for on an H200."""
    wanted = (*PAIRS, *MIXED) if arch == "90a" else PAIRS[1:3]
    if row.packs_operands:
        return [ladder_table.row_major(row)]
    return [pair for pair in wanted if set(pair) <= set(ladder_table.layouts(row))]


CASES = [
    pytest.param(row, *pair, arch, id=f"{row.name}-{'-'.join(pair)}-sm_{arch}")
    for row in ROWS
    for arch in ARCHITECTURES
    if int(row.requires.removeprefix("sm_")) <= int(str(arch).rstrip("a"))
    for pair in pairs(row, arch)
]
every_case = pytest.mark.parametrize(("row", "a", "b", "arch"), CASES)


def compiled(row, a, b, arch):
    return machine.compiled(row.source, ladder_table.entry(row, a, b), arch, "ladder")


def hot_loop(row, a, b, arch):
    return compiled(row, a, b, arch).hot_loop(cuda_rungs.instruction(row))


def multiplied(row, a, b):
    """The layouts that the tensor cores multiply: where operands are packed, aligned and K-major ones."""
    return ("K_MAJOR_VEC4", "K_MAJOR_VEC4") if row.packs_operands else (a, b)


@pytest.fixture(scope="module", autouse=True)
def everything():
    """Compiled in parallel before the first test."""
    wanted = [case.values for case in CASES]
    machine.compile_all((row.source, ladder_table.entry(row, a, b), arch, "ladder") for row, a, b, arch in wanted)


@every_case
def test_nothing_in_local_memory_and_denormals_kept(row, a, b, arch):
    code = compiled(row, a, b, arch)
    assert code.count("LDL", "STL") == 0
    assert not [x.name for x in code.instructions if x.name.startswith(("FFMA", "FADD", "FMUL")) and ".FTZ" in x.name]


@every_case
def test_ratio_in_the_hot_loop(row, a, b, arch):
    """Multiply-adds of a warp per element that it loads, from shared memory or without it from global memory."""
    loop = hot_loop(row, a, b, arch)
    macs = sum(nvidia.macs_of_warp(x) for x in loop)
    if row is NAIVE:
        elements = 32 * sum(x.bytes_loaded() for x in loop) // 2
    else:
        ldmatrix = [x for x in loop if x.name.startswith("LDSM")]
        assert all(x.name.endswith("88.4") for x in ldmatrix)
        elements = 512 // row.panel_bytes * len(ldmatrix)
    assert macs / elements == row.macs / row.loads


@pytest.mark.parametrize(("row", "a", "b", "arch"), [case for case in CASES if case.values[0] in PIPELINES])
class TestPipelines:
    def test_mn_major_operands_are_transposed_by_ldmatrix(self, row, a, b, arch):
        """Half of the loads are of A and half of B, and no other instruction transposes."""
        loop, layouts = hot_loop(row, a, b, arch), multiplied(row, a, b)
        transposed = sum(x.name.startswith("LDSM.16.MT88") for x in loop)
        loads = sum(x.name.startswith("LDSM") for x in loop)
        assert transposed == loads // 2 * sum(layout.startswith("MN_MAJOR") for layout in layouts)
        aligned = all(layout.endswith("4") for layout in layouts)
        assert not any(x.name.startswith(("MOVM", "PRMT")) for x in loop if aligned)

    def test_copies(self, row, a, b, arch):
        """cp.async of 16 bytes where the operand is aligned; else element by element."""
        loop = hot_loop(row, a, b, arch)
        copies = [x for x in loop if x.name.startswith("LDGSTS")]
        assert all(x.name.startswith("LDGSTS.E.BYPASS") and x.name.endswith(".128") for x in copies)
        sides = zip(multiplied(row, a, b), (row.bm, row.bn), strict=True)
        rows = sum(r for layout, r in sides if layout.endswith("4"))
        assert len(copies) == rows * row.bk * row.panel_bytes // 16 // row.threads
        assert any(x.name.startswith("LDG.E.U16") for x in loop) == (rows < row.bm + row.bn)

    def test_one_barrier_a_panel(self, row, a, b, arch):
        loop = hot_loop(row, a, b, arch)
        assert sum(nvidia.macs_of_warp(x) for x in loop) == row.macs * row.bk
        assert sum(x.name.startswith("BAR") for x in loop) == 1

    def test_rows_of_c_are_stored_16_bytes_at_a_time(self, row, a, b, arch):
        assert compiled(row, a, b, arch).count("STG.E.128", "STG.E.EF.128") > 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_header(row):
    ladder_headers.check(row, [case.values[1:] for case in CASES if case.values[0] is row], "90a")


@pytest.mark.parametrize("row", PIPELINES, ids=lambda row: row.name)
def test_shared_memory_fits(row):
    """A block on sm_80 has at most 163 KiB, one on sm_86 and sm_89, for which matmul takes i8_mma_sync, 99 KiB."""
    every = itertools.product(ladder_table.layouts(row), repeat=2)
    most = 99 << 10 if row.name == "i8_mma_sync" else 163 << 10
    assert max(ladder_table.dynamic_shared_bytes(row, a, b) for a, b in every) <= most


def test_packing_in_the_file_of_int8():
    row = ladder_table.BY_NAME["i8_mma_sync"]
    for layout in ("K_MAJOR", "MN_MAJOR"):
        code = machine.compiled(row.source, ladder_table.pack_entry(row, layout), 80, "ladder")
        assert code.count("LDL", "STL") == 0
        assert code.count("STG.E.128") == 1
