"""kernels.inc: names, files and headers say the same as the rows; the ratio follows from the row."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
from kernel_headers import tile_of

import pysimd
from pysimd import sources
from pysimd.backends.cpu import table as cpu_table

KERNELS = pysimd.kernels("cpu")
PROMISED = """
sse_f32_outer_4x4 sse_f32_inner_4x4 avx_f32_outer_8x8 avx_f32_inner_8x8
avx2_f32_outer_4x4 avx2_f32_outer_8x8 avx2_f32_inner_8x8 avx2_f32_outer_6x16 avx2_f64_outer_4x4
avx512_f32_outer_4x4 avx512_f32_outer_8x8 avx512_f32_inner_8x8 avx512_f64_outer_4x4 avx512_f64_outer_8x8
generic_f32_outer_4x4 generic_f64_outer_4x4 generic_i8i32_outer_4x4 generic_u8i8i32_outer_4x4
generic_bf16f32_outer_4x4
neon_f32_outer_8x12 sve_f32_outer_8x2vl sme_f32_outer_1vlx2vl rvv_f32_outer_7x4vl
"""
"""Names that others rely on."""


@pytest.fixture(params=KERNELS, ids=lambda k: k.name)
def kernel(request):
    return request.param


def test_names_are_unique_and_the_promised_ones_exist():
    names = [k.name for k in KERNELS]
    assert len(set(names)) == len(names)
    assert set(PROMISED.split()) <= set(names)


def test_name_is_built_from_the_row(kernel):
    assert kernel.name == f"{kernel.target}_{kernel.types}_{kernel.form}_{'x'.join(tile_of(kernel))}"


def test_every_row_has_its_file(kernel):
    assert Path(kernel.source_path).stem == kernel.name
    assert re.search(rf"\b{kernel.name}\b", kernel.source.replace("/*", ""))


def test_every_file_has_its_row():
    folder = Path(str(files("pysimd.cpu_kernels")))
    tiles = [p for p in folder.rglob("*.c") if re.search(r"_\d+(vl)?x\d+(vl)?$", p.stem)]
    assert {f"cpu_kernels/{p.relative_to(folder)}" for p in tiles} == {k.source_path for k in KERNELS}


def test_header_names_kernel_and_operation(kernel):
    first = kernel.source.splitlines()[0]
    mr, nr = tile_of(kernel)
    assert first.startswith(f"/* {kernel.name}: C[{mr},{nr}] += A[{mr},K] * B[K,{nr}], ")


def test_header_has_the_numbers_of_the_row(kernel):
    """Those of the code are compared in test_headers.py."""
    labels = sources.labels(kernel.source)
    panels = {getattr(cpu_table.lib, name.upper()): name for name in ("plain", "wide", "offset", "split")}
    panel = panels[cpu_table.row(kernel.name).panel]
    assert labels["tile"].startswith("mr {} nr {}".format(*tile_of(kernel)))
    assert re.findall(r"k_group (\d+), panel (\w+)", labels["contract"]) == [(str(kernel.k_group), panel)]
    assert re.search(r"= (\d+\.\d+)", labels["ratio"])[1] == f"{kernel.ratio.value:.2f}"


def test_header_has_every_label(kernel):
    labels = ["per k" if label.startswith("per ") else label for label in sources.labels(kernel.source)]
    needed = ["contract", "tile", "regs", "per k", "ratio", "rounding", "needs", "idea"]
    assert [label for label in labels if label in needed] == needed
    assert set(labels) <= {*needed, "bound", "tried"}


def test_ratio(kernel):
    macs = kernel.mr * kernel.nr
    loads = 2 * macs if kernel.form == "inner" else kernel.mr + kernel.nr
    assert (kernel.ratio.macs, kernel.ratio.loads) == (macs, loads)
    assert kernel.ratio.value == macs / loads
    sizes = (kernel.a_dtype.itemsize, kernel.b_dtype.itemsize)
    assert kernel.ratio.per_byte == pytest.approx(kernel.ratio.value / sizes[0])


def test_inner_twins_exist():
    """Every backend has the inner form of its f32 4x4 or 8x8, so that a ratio can be seen between two kernels."""
    for inner in pysimd.kernels("cpu", form="inner"):
        assert inner.name.replace("inner", "outer") in {k.name for k in KERNELS}
        assert inner.ratio.value == 0.5
