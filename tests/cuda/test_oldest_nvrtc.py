"""The oldest NVRTC that is supported: the instances that need most registers, whose code differs from one NVRTC to
another. The other tests read what the newest NVRTC makes. No GPU.

CI preloads NVRTC 13.0 and sets PYSIMD_TEST_NVRTC to its version; without that variable these tests run with the NVRTC
that CuPy finds."""

import itertools
import os

import cuda_machine_code as machine
import pytest
from pysimd.gpu_kernels import ladder_table, table

import pysimd

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

RUNGS = [
    pytest.param(ladder_table.BY_NAME[name], a, b, id=f"{name}-{a}-{b}")
    for name in ("warptile", "reg_prefetch", "smem_dbuf", "wmma_naive")
    for a, b in itertools.product(ladder_table.layouts(ladder_table.BY_NAME[name]), repeat=2)
    if name == "smem_dbuf" or "VEC4" not in a or "VEC4" not in b
]
KERNELS = [
    pytest.param(row, entry, id=f"{row.name}-{which}")
    for row in table.KERNELS
    if row.mr * row.nr == 64
    for which, entry in machine.entries_to_check(row).items()
    if which != "fast"
]


@pytest.fixture(scope="module", autouse=True)
def everything():
    """Compiled in parallel before the first test."""
    rungs = [(x.values[0].source, ladder_table.entry(*x.values), 90, "ladder") for x in RUNGS]
    machine.compile_all([*rungs, *((x.values[0].source, x.values[1], 100) for x in KERNELS)])


def test_it_is_that_nvrtc():
    """A preloaded library is the one that compiles."""
    from cupy_backends.cuda.libs import nvrtc

    wanted = os.environ.get("PYSIMD_TEST_NVRTC")
    if wanted is None:
        pytest.skip("PYSIMD_TEST_NVRTC is not set: CuPy's own NVRTC is read")
    assert ".".join(map(str, nvrtc.getVersion())) == wanted


@pytest.mark.parametrize(("row", "a", "b"), RUNGS)
def test_no_rung_uses_local_memory(row, a, b):
    assert machine.compiled(row.source, ladder_table.entry(row, a, b), 90, "ladder").count("LDL", "STL") == 0


@pytest.mark.parametrize(("row", "entry"), KERNELS)
def test_no_kernel_uses_local_memory(row, entry):
    assert machine.compiled(row.source, entry, 100).count("LDL", "STL") == 0


@pytest.mark.parametrize("name", ["producers", "tma", "bf16_best", "tf32x3"])
def test_a_rung_of_every_pipeline_compiles(name):
    seen = pysimd.inspect(name, target="sm_90a")
    assert seen.spills == 0
    assert seen.multiply_adds > 0
