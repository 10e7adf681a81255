"""The same sources through hiprtc, as CuPy compiles them: here version 5.2.3 with its clang 15, as Debian has it.

Its code objects run in the simulator. That old compiler spills accumulators of one tile into scratch memory, which is
right and slow, and which the simulator does not model: that kernel is only compiled.
"""

import hip_machine_code as machine
import hip_simulated
import hiprtc
import numpy as np
import pytest
from pysimd.hip_kernels import table
from reference import check, moderate, random_result

from pysimd import dtypes, simulator
from pysimd.backends.gpu import batched
from pysimd.backends.hip import simulation as hip_simulation
from pysimd.backends.hip import tiles as hip_tiles

WHY_NOT = "libamdhip64.so.5 is not installed: apt install libamdhip64-5" if hiprtc.library() is None else ""
WHY_NOT = WHY_NOT or machine.missing()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "nothing")

CASES = [
    pytest.param(row, target, id=f"{row.name}-{target}")
    for row in table.KERNELS
    for target in hiprtc.TARGETS
    if row.requires in table.features(target)
]
IN_SCRATCH = {("hip_i8i32_outer_8x8", "gfx900")}


@pytest.mark.parametrize(("row", "target"), CASES)
def test_compiled_and_executed(row, target, rng):
    family = dtypes.FAMILIES[row.types]
    layouts = ("K_MAJOR", "PACKED" if "PACKED" in row.layouts else "K_MAJOR")
    a = hip_simulated.laid(moderate(rng, dtypes.dtype_of(family.a), (3, row.mr, 43)), layouts[0], -1)
    b = hip_simulated.laid(moderate(rng, dtypes.dtype_of(family.b), (3, 43, row.nr)), layouts[1], -2)
    c = random_result(rng, dtypes.dtype_of(family.c), (3, row.mr, row.nr))
    device = hip_simulation.Device(target)
    operands, result = hip_simulated.arrange(device, a, b, c, row.mr, row.nr, c.dtype)
    entry, launches = hip_tiles.plan(row, operands)
    assert entry == table.entry(row, *layouts, False)
    code = simulator.CodeObject.from_bytes(hiprtc.compile_for(hip_tiles.instance(row.source, entry), target), target)
    kernel = code.kernels[table.symbol(entry)]
    assert bool(kernel.scratch) == ((row.name, target) in IN_SCRATCH)
    if kernel.scratch:
        return
    for grid, block, call in launches:
        simulator.launch(code, kernel.name, grid, block, call.tobytes(), device.memory)
    check(result, row.types, a, b, c)


def test_batched_source_compiles(rng):
    a, b = (moderate(rng, np.dtype(np.float32), (70, 5, 5)) for _ in range(2))
    device = hip_simulation.Device("gfx906")
    operands, result = hip_simulated.arrange(device, a, b, None, 5, 5, a.dtype)
    made = batched.instance("f32", operands)
    text = hip_tiles.instance(table.BATCHED, made.entry)
    code = simulator.CodeObject.from_bytes(hiprtc.compile_for(text, "gfx906"), "gfx906")
    for _, grid, block, call in batched.launches(operands, made, None, hip_tiles.MOST_THREADS):
        simulator.launch(code, table.symbol(made.entry), grid, block, call.tobytes(), device.memory)
    check(result, "f32", a, b)


def test_errors_name_the_file_and_line():
    """``#line`` tells where in the project's files; the compiler's words reach the caller."""
    with pytest.raises(hiprtc.CompileError, match=r"mfma\.hip:\d+:\d+: error: .*this target does not"):
        hiprtc.compile_for(hip_tiles.instance("mfma.hip", "mfma_tile<FromFloat, 16, ANY, ANY, false>"), "gfx906")
