"""The portable rungs of the GPU GEMM ladder on AMD GPUs, from the same sources: compiled, executed in the simulator.

Waves are 64 wide on half of the targets; the rungs are written for warps of 32 and do not mind.
"""

from types import SimpleNamespace

import hip_machine_code as machine
import numpy as np
import pytest
from hip_simulated import arrange
from pysimd.gpu_kernels import ladder_table
from pysimd.hip_kernels import table
from reference import moderate

import pysimd
from pysimd import simulator
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.hip import implementation as hip
from pysimd.backends.hip import ladder
from pysimd.backends.hip import simulation as hip_simulation

needs_compiler = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

ROWS = ladder_table.PORTABLE
LARGE = [row for row in ROWS if row.tm * row.tn == 64]
"""Those with 64 accumulators a thread."""

ALPHA, BETA = 1.5, 0.5


def test_all_of_the_documents_are_portable():
    assert [row.number for row in ROWS] == [f"S{i}" for i in range(15)]
    rungs = pysimd.rungs("hip")
    assert [(rung.number, rung.name) for rung in rungs] == [(row.number, f"hip_{row.name}") for row in ROWS]
    assert all((rung.backend, rung.requires) == ("hip", ("gfx900",)) for rung in rungs)
    assert pysimd.rung("hip_smem_dbuf").ratio == pysimd.rung("smem_dbuf").ratio
    assert pysimd.rung("hip_smem_dbuf").source == pysimd.rung("smem_dbuf").source


def test_layouts_are_those_of_the_ladder():
    assert table.symbol("naive<MN_MAJOR, K_MAJOR>", "Gemm") == "_Z5naiveIL6Layout1ELS0_0EEv4Gemm"
    assert all(f"Layout{i}E" in table.symbol(f"x<{name}>", "Gemm") for i, name in enumerate(ladder_table.LAYOUTS))


@needs_compiler
@pytest.mark.parametrize("index", range(len(ROWS)), ids=lambda i: ROWS[i].name)
def test_rung(index, rng):
    """One edge tile, several panels of k with a remainder, alpha, beta and C."""
    row = ROWS[index]
    check_product(row, table.TARGETS[index % len(table.TARGETS)], 2 * (row.bk or 8) + 3, rng)


@needs_compiler
@pytest.mark.parametrize("name", ["reg_prefetch", "smem_dbuf"])
def test_one_k(name, rng):
    """The panel that is loaded before the loop is the only one."""
    check_product(ladder_table.BY_NAME[name], "gfx906", 1, rng)


def check_product(row, target, k, rng):
    m, n = row.bm - 5, row.bn // 2 + 1
    a, b, c = (moderate(rng, np.dtype(np.float32), shape) for shape in ((m, k), (k, n), (m, n)))
    device = hip_simulation.Device(target)
    operands, result = arrange(device, a, b, c, m, n, a.dtype)
    for layout_a, layout_b, products, gemm in ladder.launches(row, *operands.arrays, ALPHA, BETA):
        text, symbol = ladder.instance(row, layout_a, layout_b)
        code = simulator.compile_hip(text, target)
        assert (code.kernels[symbol].scratch, code.kernels[symbol].vgpr_spills) == (0, 0)
        grid = (gemm_launches.tiles(row, m, n) * products,)
        simulator.launch(code, symbol, grid, (row.threads,), gemm.tobytes(), device.memory)
    exact = ALPHA * (a.astype(np.float64) @ b) + BETA * c.astype(np.float64)
    magnitude = ALPHA * (np.abs(a).astype(np.float64) @ np.abs(b)) + BETA * np.abs(c)
    assert (np.abs(result - exact) <= (k + 3) * 2.0**-24 * magnitude).all()


@needs_compiler
@pytest.mark.parametrize("target", table.TARGETS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_nothing_is_spilled(row, target):
    """For row-major operands, and for transposed ones that are read element by element."""
    for layouts in (ladder_table.row_major(row), ("MN_MAJOR", "K_MAJOR")):
        kernel = machine.code_of_rung(row, *layouts, target).kernel
        assert (kernel.scratch, kernel.vgpr_spills, kernel.sgpr_spills) == (0, 0, 0)


@needs_compiler
@pytest.mark.parametrize("target", table.TARGETS)
@pytest.mark.parametrize("row", LARGE, ids=lambda row: row.name)
def test_accumulators_are_in_registers(row, target):
    """The tile is read from LDS as often as its ratio says."""
    seen = pysimd.inspect(f"hip_{row.name}", target=target)
    kernel = machine.code_of_rung(row, *ladder_table.row_major(row), target).kernel
    assert kernel.vgprs <= 256
    assert seen.element_ratio == row.macs / row.loads


# --- the host ---


def fake(shape, itemsize=4):
    strides = tuple(itemsize * int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    return SimpleNamespace(
        shape=shape, strides=strides, itemsize=itemsize, ndim=len(shape), size=1, data=SimpleNamespace(ptr=256)
    )


def test_launches_stay_within_what_hip_counts():
    """Fewer than 2**32 threads a launch; a product that needs more is refused."""
    row = ladder_table.BY_NAME["naive"]
    arrays = fake((5000, 1, 1)), fake((1, 1 << 16)), None, fake((5000, 1, 1 << 16))
    counts = [count for _, _, count, _ in ladder.launches(row, *arrays, 1.0, 0.0)]
    assert sum(counts) == 5000
    assert all(count * gemm_launches.tiles(row, 1, 1 << 16) * row.threads < 1 << 32 for count in counts)
    assert len(counts) == 3
    arrays = fake((1 << 17, 1)), fake((1, 1 << 17)), None, fake((1 << 17, 1 << 17))
    with pytest.raises(pysimd.ShapeError, match="tiles, more than a launch has blocks"):
        list(ladder.launches(row, *arrays, 1.0, 0.0))


CHOICES = {
    "a batch of small products": ("f32", (32, 32, 32), "", None),
    "large, without rocBLAS": ("f32", (128, 129, 5), "not found", "hip_smem_dbuf"),
    "a few rows, without rocBLAS": ("f32", (127, 5000, 70), "not found", "hip_reg4x4_At"),
    "large, with rocBLAS": ("f32", (4096, 4096, 4096), "", None),
    "int8": ("i8i32", (100, 100, 100), "", "hip_i8i32_outer_8x8"),
    "f64, without rocBLAS": ("f64", (100, 100, 100), "not found", None),
}


@pytest.mark.parametrize("case", CHOICES)
def test_choice(case, monkeypatch):
    types, sizes, reason, expected = CHOICES[case]
    monkeypatch.setattr(hip.rocblas, "reason", lambda: reason)
    product = SimpleNamespace(types=types, sizes=sizes)
    chosen = hip.HIP._chosen(product)
    assert (chosen and chosen.name) == expected
    assert hip.HIP.applies_factors(product, None) == isinstance(chosen, pysimd.Rung)


def test_what_no_rung_multiplies_needs_rocblas(monkeypatch):
    monkeypatch.setattr(hip.rocblas, "reason", lambda: "ImportError: libhipblas.so.3")
    for types, words in (("f64", "float32 only: use a ROCm"), ("f16", "name a kernel, hip_f16_outer_4x4 or hip_f16_")):
        with pytest.raises(pysimd.UnavailableError, match=rf"rocBLAS does not start here \(ImportError: .*{words}"):
            hip.HIP.product_work(SimpleNamespace(types=types, sizes=(100, 100, 100)), None)
