"""kernels.inc: names, files and headers say the same as the rows; the ratio follows from the row."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

import pysimd
from pysimd.backends.cpu import table as cpu_table

KERNELS = pysimd.kernels("cpu")
PROMISED = """
sse_f32_outer_4x4 sse_f32_inner_4x4 avx_f32_outer_8x8 avx_f32_inner_8x8
avx2_f32_outer_4x4 avx2_f32_outer_8x8 avx2_f32_inner_8x8 avx2_f32_outer_6x16 avx2_f64_outer_4x4
avx512_f32_outer_4x4 avx512_f32_outer_8x8 avx512_f32_inner_8x8 avx512_f64_outer_4x4 avx512_f64_outer_8x8
generic_f32_outer_4x4 generic_f64_outer_4x4 generic_i8i32_outer_4x4 generic_u8i8i32_outer_4x4
generic_bf16f32_outer_4x4
"""
"""Names that others rely on."""


@pytest.fixture(params=KERNELS, ids=lambda k: k.name)
def kernel(request):
    return request.param


def header(kernel) -> str:
    assert kernel.source.startswith("/*")
    return kernel.source.partition("*/")[0]


def test_names_are_unique_and_the_promised_ones_exist():
    names = [k.name for k in KERNELS]
    assert len(set(names)) == len(names)
    assert set(PROMISED.split()) <= set(names)


def test_name_is_built_from_the_row(kernel):
    assert kernel.name == f"{kernel.target}_{kernel.types}_{kernel.form}_{kernel.mr}x{kernel.nr}"


def test_every_row_has_its_file(kernel):
    assert Path(kernel.source_path).stem == kernel.name
    assert re.search(rf"\b{kernel.name}\b", kernel.source.replace("/*", ""))


def test_every_file_has_its_row():
    folder = Path(str(files("pysimd.cpu_kernels")))
    tiles = [p for p in folder.rglob("*.c") if re.search(r"_\d+x\d+$", p.stem)]
    assert {f"cpu_kernels/{p.relative_to(folder)}" for p in tiles} == {k.source_path for k in KERNELS}


def test_header_names_kernel_and_operation(kernel):
    first = header(kernel).splitlines()[0]
    assert first.startswith(f"/* {kernel.name}: C[{kernel.mr},{kernel.nr}] += A[{kernel.mr},K] * B[K,{kernel.nr}], ")


def test_header_has_the_tile_of_the_row(kernel):
    text = header(kernel)
    assert re.findall(r"\* tile +mr (\d+) +nr (\d+)", text) == [(str(kernel.mr), str(kernel.nr))]
    assert re.findall(r"k_group (\d+)", text) == [str(kernel.k_group)]


def test_header_has_the_panel_of_the_row(kernel):
    lib = cpu_table.lib
    names = {lib.PLAIN: "plain", lib.WIDE: "wide", lib.OFFSET: "offset"}
    assert re.findall(r"panel (\w+)", header(kernel)) == [names[cpu_table.row(kernel.name).panel]]


def test_header_states_the_ratio_of_the_row(kernel):
    line = re.search(r"\* ratio (.*)", header(kernel)).group(1)
    stated = re.search(r"= (\d+\.\d+)", line).group(1)
    assert stated == f"{kernel.ratio.value:.2f}"


@pytest.mark.parametrize("label", ["contract", "tile", "regs", "per", "ratio", "rounding", "needs"])
def test_header_has_every_label(kernel, label):
    assert re.search(rf"^ \* {label}\b", header(kernel), re.MULTILINE)


def test_ratio(kernel):
    macs = kernel.mr * kernel.nr
    loads = kernel.mr + kernel.nr if kernel.form == "outer" else 2 * macs
    assert (kernel.ratio.macs, kernel.ratio.loads) == (macs, loads)
    assert kernel.ratio.value == macs / loads
    sizes = (kernel.a_dtype.itemsize, kernel.b_dtype.itemsize)
    assert kernel.ratio.per_byte == pytest.approx(kernel.ratio.value / sizes[0])


def test_inner_twins_exist():
    """Every backend has the inner form of its f32 4x4 or 8x8, so that a ratio can be seen between two kernels."""
    for inner in pysimd.kernels("cpu", form="inner"):
        assert inner.name.replace("inner", "outer") in {k.name for k in KERNELS}
        assert inner.ratio.value == 0.5
