"""Rungs without asynchronous copies: machine code of every instance, against row and header. No GPU."""

import itertools

import cuda_machine_code as machine
import ladder_headers
import pytest
from pysimd.gpu_kernels import ladder_table

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

ARCHITECTURES = (75, 80, 90)
ROWS = [row for row in ladder_table.RUNGS if not (row.stages or row.blocks or row.tensor_blocks)]
"""Those that copy through registers; test_ladder_pipelines.py and test_ladder_tensor.py read the others."""


def instances(row, arch):
    """Pairs of layouts: all of them for one architecture, and what row-major arrays ask for everywhere."""
    if arch == 90:
        return list(itertools.product(ladder_table.layouts(row), repeat=2))
    return list(dict.fromkeys([ladder_table.row_major(row), ("K_MAJOR", "MN_MAJOR")]))


CASES = [
    pytest.param(row, *pair, arch, id=f"{row.name}-{'-'.join(pair)}-sm_{arch}")
    for arch in ARCHITECTURES
    for row in ROWS
    if int(row.requires.removeprefix("sm_")) <= arch
    for pair in instances(row, arch)
]
ROW_MAJOR = [
    pytest.param(row, arch, id=f"{row.name}-sm_{arch}")
    for arch in ARCHITECTURES
    for row in ROWS
    if row.types == "f32" and int(row.requires.removeprefix("sm_")) <= arch
]


def compiled(row, a, b, arch):
    return machine.compiled(row.source, ladder_table.entry(row, a, b), arch, "ladder")


@pytest.fixture(scope="module", autouse=True)
def everything():
    """Compiled in parallel before the first test."""
    wanted = [case.values for case in CASES]
    machine.compile_all((row.source, ladder_table.entry(row, a, b), arch, "ladder") for row, a, b, arch in wanted)


@pytest.mark.parametrize(("row", "a", "b", "arch"), CASES)
def test_nothing_in_local_memory_and_denormals_kept(row, a, b, arch):
    """No spills and no stack; CuPy compiles with -ftz=true, which must not reach a multiply-add."""
    code = compiled(row, a, b, arch)
    assert code.count("LDL", "STL") == 0
    assert not [x.name for x in code.instructions if x.name.startswith(("FFMA", "FADD", "FMUL")) and ".FTZ" in x.name]


@pytest.mark.parametrize(("row", "arch"), ROW_MAJOR)
def test_ratio_in_the_hot_loop(row, arch):
    """Multiply-adds per element loaded, from shared memory or without it from global memory, counted."""
    loop = compiled(row, *ladder_table.row_major(row), arch).hot_loop("FFMA")
    read = sum(x.bytes_loaded(*(("LDS.",) if row.bk else ())) for x in loop) / 4
    multiplied = sum(x.name.startswith("FFMA") and not x.moves() for x in loop)
    assert multiplied / read == row.macs / row.loads


@pytest.mark.parametrize(("row", "arch"), ROW_MAJOR)
def test_16_byte_accesses(row, arch):
    """Global memory is read 16 bytes at a time, or 4, as the table says; so are rows of C, and then fragments, too."""
    code = compiled(row, *ladder_table.row_major(row), arch)
    loads = [x for x in code.instructions if x.name.startswith("LDG") and "CONSTANT" in x.name]
    assert {x.bytes_loaded() for x in loads} == ({16} if row.wide else {4})
    assert (code.count("STG.E.128") > 0) == row.wide_c
    if row.wide_c:
        assert {x.bytes_loaded("LDS.") for x in code.hot_loop("FFMA") if x.name.startswith("LDS")} == {16}


@pytest.mark.parametrize("row", [row for row in ROWS if row.types == "f32"], ids=lambda row: row.name)
def test_header(row):
    ladder_headers.check(row, [case.values[1:] for case in CASES if case.values[0] is row], 90)


@pytest.mark.parametrize(("name", "barriers"), [("warptile", 2), ("reg_prefetch", 2), ("smem_dbuf", 1)])
def test_barriers_of_a_tile(name, barriers):
    row = ladder_table.BY_NAME[name]
    loop = compiled(row, *ladder_table.row_major(row), 90).hot_loop("FFMA")
    tiles = sum(x.name.startswith("FFMA") and not x.moves() for x in loop) / (row.macs * row.bk)
    assert sum(x.name.startswith("BAR") for x in loop) == barriers * tiles


@pytest.mark.parametrize("tile", ["32, 32, 8, 2, 4", "64, 32, 16, 4, 2", "128, 128, 8, 8, 8"])
def test_generic_tile(tile):
    """reg_generic is a template: other tiles compile, and keep their ratio."""
    tm, tn = (int(x) for x in tile.split(", ")[3:])
    code = machine.compiled("reg_generic.cu", f"reg_generic<K_MAJOR, MN_MAJOR, {tile}>", 90, "ladder")
    loop = code.hot_loop("FFMA")
    read = sum(x.bytes_loaded("LDS.") for x in loop) / 4
    assert sum(x.name.startswith("FFMA") and not x.moves() for x in loop) / read == tm * tn / (tm + tn)
