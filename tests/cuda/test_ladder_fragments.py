"""Rungs whose warps load fragments for the tensor cores: machine code, read on every architecture. Needs no GPU."""

import itertools

import cuda_machine_code as machine
import pytest
from pysimd.gpu_kernels import ladder_table

from pysimd import sources
from pysimd.inspection import nvidia

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
    """Pairs of layouts: one aligned, one not; more of them for what CuPy compiles for on an H200."""
    wanted = (*PAIRS, *MIXED) if arch == "90a" else PAIRS[1:3]
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


@pytest.fixture(scope="module", autouse=True)
def everything():
    """Compiled side by side before the first test."""
    wanted = [case.values for case in CASES]
    machine.compile_all((row.source, ladder_table.entry(row, a, b), arch, "ladder") for row, a, b, arch in wanted)


@every_case
def test_nothing_in_local_memory_and_denormals_kept(row, a, b, arch):
    code = compiled(row, a, b, arch)
    assert code.count("LDL", "STL") == 0
    assert not [x.name for x in code.instructions if x.name.startswith(("FFMA", "FADD", "FMUL")) and ".FTZ" in x.name]


@every_case
def test_ratio_in_the_hot_loop(row, a, b, arch):
    """Multiply-adds of a warp per element that it reads: from shared memory, or without it from global memory."""
    loop = compiled(row, a, b, arch).hot_loop("HMMA")
    multiplied = sum(nvidia.macs_of_warp(x) for x in loop)
    if row is NAIVE:
        elements = 32 * sum(x.bytes_loaded() for x in loop) // 2
    else:
        squares = [x for x in loop if x.name.startswith("LDSM")]
        assert all(x.name.endswith("88.4") for x in squares)
        elements = 256 * len(squares)
    assert multiplied / elements == row.macs / row.loads


@pytest.mark.parametrize(("row", "a", "b", "arch"), [case for case in CASES if case.values[0] in PIPELINES])
class TestPipelines:
    def test_lines_along_rows_are_turned_by_the_load(self, row, a, b, arch):
        """Half of the squares are of A and half of B, and none is turned by other instructions."""
        loop = compiled(row, a, b, arch).hot_loop("HMMA")
        turned = sum(x.name.startswith("LDSM.16.MT88") for x in loop)
        squares = sum(x.name.startswith("LDSM") for x in loop)
        assert turned == squares // 2 * sum(layout.startswith("MN_MAJOR") for layout in (a, b))
        assert not any(x.name.startswith(("MOVM", "PRMT")) for x in loop if a.endswith("4") and b.endswith("4"))

    def test_copies(self, row, a, b, arch):
        """In pieces of 16 bytes that pass no register where the operand allows it; else element by element."""
        loop = compiled(row, a, b, arch).hot_loop("HMMA")
        copies = [x for x in loop if x.name.startswith("LDGSTS")]
        assert all(x.name.startswith("LDGSTS.E.BYPASS") and x.name.endswith(".128") for x in copies)
        rows = sum(r for layout, r in ((a, row.bm), (b, row.bn)) if layout.endswith("4"))
        assert len(copies) == rows * row.bk // 8 // row.threads
        assert any(x.name.startswith("LDG.E.U16") for x in loop) == (rows < row.bm + row.bn)

    def test_one_barrier_a_panel(self, row, a, b, arch):
        loop = compiled(row, a, b, arch).hot_loop("HMMA")
        assert sum(nvidia.macs_of_warp(x) for x in loop) == row.macs * row.bk
        assert sum(x.name.startswith("BAR") for x in loop) == 1

    def test_rows_of_c_are_stored_in_pieces_of_16_bytes(self, row, a, b, arch):
        assert compiled(row, a, b, arch).count("STG.E.128", "STG.E.EF.128") > 0


@pytest.mark.parametrize("row", PIPELINES, ids=lambda row: row.name)
def test_shared_memory_is_that_of_the_header(row):
    """Of a row-major call; devices of sm_80 have 163 KiB for a block."""
    every = itertools.product(ladder_table.layouts(row), repeat=2)
    most = max(ladder_table.dynamic_shared_bytes(row, a, b) for a, b in every)
    header = sources.read(f"gpu_kernels/ladder/{row.source}")
    assert f" * smem      {ladder_table.dynamic_shared_bytes(row, *PAIRS[0]) / 1024:g} KiB" in header
    assert most <= 163 << 10
