"""The oldest NVRTC that is supported: every rung for row-major operands, instances whose code it once put into local
memory, and a rung that it once refused. The other tests read what the newest NVRTC makes. No GPU.

CI preloads NVRTC 13.0 and sets PYSIMD_TEST_NVRTC to its version; without that variable CuPy's own NVRTC is read."""

import os

import cuda_machine_code as machine
import pytest
from pysimd.gpu_kernels import ladder_table, table

import pysimd

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

RUNGS = (
    ("warptile", "MN_MAJOR_VEC4", "MN_MAJOR"),
    ("reg_prefetch", "MN_MAJOR", "K_MAJOR"),
    ("smem_dbuf", "K_MAJOR", "MN_MAJOR"),
    ("smem_dbuf", "K_MAJOR", "K_MAJOR_VEC4"),
    ("smem_dbuf", "MN_MAJOR", "K_MAJOR"),
    ("wmma_naive", "MN_MAJOR", "K_MAJOR"),
)
KERNEL = "cuda_f16_outer_8x8"


def of_rungs():
    """What row-major operands take: the first block, and what makes remainders."""
    for row in ladder_table.RUNGS:
        entries = [ladder_table.entry(row, *ladder_table.row_major(row))]
        if row.remainders:
            entries += ladder_table.remainder_entries(row, "MN_MAJOR")
        for entry in entries:
            yield pytest.param(row.source, entry, "90a", "ladder", id=entry)


WANTED = [
    *of_rungs(),
    *(
        pytest.param(
            f"{name}.cu", ladder_table.entry(ladder_table.BY_NAME[name], a, b), 90, "ladder", id=f"{name}-{a}-{b}"
        )
        for name, a, b in RUNGS
    ),
    *(
        pytest.param("outer_half2.cu", table.entry(table.BY_NAME[KERNEL], "ANY", "ANY", edge, False), 100, "micro")
        for edge in (False, True)
    ),
]


@pytest.fixture(scope="module", autouse=True)
def everything():
    """Compiled in parallel before the first test."""
    machine.compile_all(x.values for x in WANTED)


def test_it_is_that_nvrtc():
    """A preloaded library is the one that compiles."""
    from cupy_backends.cuda.libs import nvrtc

    wanted = os.environ.get("PYSIMD_TEST_NVRTC")
    if wanted is None:
        pytest.skip("PYSIMD_TEST_NVRTC is not set: CuPy's own NVRTC is read")
    assert ".".join(map(str, nvrtc.getVersion())) == wanted


@pytest.mark.parametrize(("source", "entry", "arch", "folder"), WANTED)
def test_nothing_in_local_memory(source, entry, arch, folder):
    assert machine.compiled(source, entry, arch, folder).count("LDL", "STL") == 0


def test_a_register_is_left():
    """Which code NVRTC makes of a source depends on the addresses of its heap, so on what its process compiled before.
    Some codes of this instance had a spill when all of them took the 128 registers that there are."""
    assert machine.compiled("warptile.cu", "warptile<MN_MAJOR_VEC4, MN_MAJOR>", 90, "ladder").registers < 128


def test_a_generic_lambda_compiles():
    assert pysimd.inspect("producers", target="sm_90a").spills == 0
