"""The portable HIP kernels through NVRTC: NVIDIA's compiler takes the same sources. Needs CuPy's NVRTC, no GPU; that
they are right on a GPU, benchmarks/hip_on_nvidia.py shows."""

import cuda_machine_code as machine
import pytest
from pysimd.gpu_kernels import table as gpu_table
from pysimd.hip_kernels import table

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

FOLDER = "../hip_kernels"  # from gpu_kernels, where NVRTC's sources lie
PORTABLE = [row for row in table.KERNELS if row.requires == "gfx900"]
INSTRUCTIONS = {"f32": "FFMA", "f16": "HFMA2", "f16f32": "FFMA", "i8i32": "IDP.4A"}


@pytest.mark.parametrize("row", PORTABLE, ids=lambda row: row.name)
def test_compiles_for_nvidia(row):
    b = "PACKED" if "PACKED" in row.layouts else "K_MAJOR"
    entries = table.entry(row, "K_MAJOR", b, False), table.entry(row, "ANY", "ANY", True)
    machine.compile_all((row.source, entry, 90, FOLDER) for entry in entries)
    for entry in entries:
        code = machine.compiled(row.source, entry, 90, FOLDER)
        assert code.count("LDL", "STL") == 0
        assert code.count(INSTRUCTIONS[row.types]) > 0


def test_batched_compiles_for_nvidia():
    entry = gpu_table.Batched("f16", 5, 7, 6, tm=5, tn=7, products=16, b="BROADCAST", b_transposed=True).entry
    code = machine.compiled(table.BATCHED, entry, 90, FOLDER)
    assert code.count("FFMA") > 0
