"""The portable rungs of the GPU GEMM ladder on AMD GPUs, from the same sources: compiled, executed in the simulator.

Waves are 64 wide on half of the targets; the rungs are written for warps of 32 and do not mind.
"""

import numpy as np
import pytest
from hip_machine_code import missing
from hip_simulated import arrange
from pysimd.gpu_kernels import ladder_table
from reference import moderate

from pysimd import simulator, sources
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.hip import simulation as hip_simulation

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")

RUNGS = [row for row in ladder_table.RUNGS if row.requires == "sm_75" and row.lanes == 1]
"""Those without instructions that only NVIDIA has."""

TARGETS = ("gfx906", "gfx942", "gfx1030", "gfx1100")
ALPHA, BETA = 1.5, 0.5


def test_all_of_the_documents_are_portable():
    assert len(RUNGS) == 15


@pytest.mark.parametrize("index", range(15), ids=lambda i: ladder_table.RUNGS[i].name)
def test_rung(index, rng):
    """One edge tile, several panels of k with a remainder, alpha, beta and C."""
    row = RUNGS[index]
    target = TARGETS[index % len(TARGETS)]
    m, k, n = row.bm - 5, 2 * (row.bk or 8) + 3, row.bn // 2 + 1
    a, b = moderate(rng, np.dtype(np.float32), (m, k)), moderate(rng, np.dtype(np.float32), (k, n))
    c = moderate(rng, np.dtype(np.float32), (m, n))
    device = hip_simulation.Device(target)
    operands, result = arrange(device, a, b, c, m, n, a.dtype)
    for layout_a, layout_b, products, gemm in gemm_launches.launches(row, *operands.arrays, ALPHA, BETA):
        entry = ladder_table.entry(row, layout_a, layout_b)
        text = sources.joined("hip_kernels/amd.h") + sources.joined(f"gpu_kernels/ladder/{row.name}.cu")
        code = simulator.compile_hip(f"{text}template __global__ void {entry}(const Gemm);\n", target)
        (name,) = code.kernels
        assert (code.kernels[name].scratch, code.kernels[name].vgpr_spills) == (0, 0)
        grid = (gemm_launches.tiles(row, m, n) * products,)
        simulator.launch(code, name, grid, (row.threads,), gemm.tobytes(), device.memory)
    exact = ALPHA * (a.astype(np.float64) @ b) + BETA * c.astype(np.float64)
    magnitude = ALPHA * (np.abs(a).astype(np.float64) @ np.abs(b)) + BETA * np.abs(c)
    assert (np.abs(result - exact) <= (k + 3) * 2.0**-24 * magnitude).all()
