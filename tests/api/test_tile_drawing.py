"""``pysimd show``: a drawing shows the tile that the file of the kernel describes."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import pysimd
from pysimd.cli import show
from pysimd.inspection import compiled, x86
from pysimd.report import drawing, tile_drawing

CPU = [
    pytest.param(kernel, marks=pytest.mark.skipif(bool(reason), reason=reason or "nothing"), id=kernel.name)
    for kernel in pysimd.kernels("cpu")
    if kernel.form == "outer" and not kernel.nr_vl and kernel.target != "amx"
    for reason in [compiled.missing() if compiled.is_read(kernel) else x86.missing()]
]
SVG = "{http://www.w3.org/2000/svg}"


def counted(kernel):
    """The tile of a kernel of this machine's CPU, whose code was read."""
    return tile_drawing.tile(kernel, pysimd.inspect(kernel).counts())


@pytest.mark.parametrize("kernel", CPU)
def test_registers_of_c_are_those_of_the_file(kernel):
    drawn = counted(kernel)
    assert drawn.holders == int(re.match(r"(\d+) accumulators?", drawn.file["regs"])[1])
    assert f"C in {drawn.holders} vector register" in tile_drawing.text(drawn)


@pytest.mark.parametrize("kernel", pysimd.kernels(), ids=lambda k: k.name)
def test_every_kernel_is_drawn(kernel):
    drawn = tile_drawing.tile(kernel)
    text = tile_drawing.text(drawn)
    assert {"tile", "regs"} <= set(drawn.file)
    assert sum(line.startswith(tuple(f"{f'a{i}':>5} │" for i in range(kernel.mr))) for line in text.splitlines()) == (
        kernel.mr
    )
    assert f": {kernel.ratio.value:.2f}" in text
    lengths = {len(line) for line in text.splitlines() if line.endswith(("│", "┐", "┘"))}
    assert len(lengths) == 1
    root = ElementTree.fromstring(drawing.svg(tile_drawing.drawing(drawn)))
    rectangles = [x.get("class") for x in root.iter(f"{SVG}rect")]
    assert rectangles.count("a") == kernel.mr
    assert rectangles.count("b") == (drawn.vectors or kernel.nr)
    assert sum(x in "cd" for x in rectangles) >= (1 if drawn.width is None else drawn.holders)
    right, bottom = float(root.get("width")), float(root.get("height"))
    for x in root.iter(f"{SVG}rect"):
        assert float(x.get("x")) + float(x.get("width")) <= right
        assert float(x.get("y")) + float(x.get("height")) <= bottom


@pytest.mark.parametrize("kernel", pysimd.kernels(form="inner"), ids=lambda k: k.name)
def test_an_inner_product_is_drawn_as_dot_products(kernel):
    drawn = tile_drawing.tile(kernel)
    first, *_ = text = tile_drawing.text(drawn).splitlines()
    where = "one element of C at a time" if kernel.backend == "cpu" else "one in each thread"
    assert first == f"{kernel.name}: {kernel.mr * kernel.nr} dot products, {where}"
    assert any(f"B: {kernel.nr} columns of K elements" in line for line in text)
    assert not any("row k" in line for line in text)
    made = tile_drawing.drawing(drawn)
    assert f"A: {kernel.mr} rows of K" in [x.text for x in made.texts]
    assert not any("column k" in x.text for x in made.texts)
    row, column, element = (x for x in made.shapes if x.kind == "pick")
    assert (row.y, row.height) == (element.y, element.height)
    assert (column.x, column.width) == (element.x, element.width)


@pytest.mark.parametrize("rung", [*pysimd.rungs("cpu"), *pysimd.rungs("cuda")], ids=lambda r: r.name)
def test_every_rung_is_drawn(rung):
    drawn = tile_drawing.tile(rung)
    text = tile_drawing.text(drawn)
    assert f": {rung.ratio.value:.2f}" in text
    on_gpu = " of a thread" if rung.lanes == 1 else f"registers of {rung.lanes} threads"
    on_cpu = "dot products" if rung.form == "inner" else "vector register"
    assert (on_cpu if rung.backend == "cpu" else on_gpu) in text
    assert max(map(len, text.splitlines())) <= 115
    lengths = {len(line) for line in text.splitlines() if line.endswith(("│", "┐", "┘"))}
    assert len(lengths) == 1
    assert (f"{drawn.scale} x {drawn.scale} elements of C are drawn as one" in text) == (drawn.scale > 1)
    root = ElementTree.fromstring(drawing.svg(tile_drawing.drawing(drawn)))
    rectangles = [x.get("class") for x in root.iter(f"{SVG}rect")]
    assert rectangles.count("a") * drawn.scale == rung.tm
    assert rectangles.count("b") * drawn.scale == rung.tn


@pytest.mark.parametrize("kernel", [k for k in pysimd.kernels() if k.nr_vl and not k.mr_vl], ids=lambda k: k.name)
def test_a_tile_of_vectors_of_any_length(kernel):
    drawn = tile_drawing.tile(kernel)
    holders, width = kernel.mr * kernel.nr_vl, kernel.nr // kernel.nr_vl
    assert (drawn.vectors, drawn.width, drawn.holders) == (kernel.nr_vl, width, holders)
    text = tile_drawing.text(drawn)
    assert f"C in {holders} vector registers of VL elements, drawn for VL = {width}" in text
    assert f"B: row k, {kernel.nr_vl} vector{'s' * (kernel.nr_vl > 1)} of VL elements" in text
    assert f" c{holders - 1} " in text
    rectangles = [x for x in tile_drawing.drawing(drawn).shapes if isinstance(x, drawing.Rectangle)]
    assert sum(x.kind in "cd" for x in rectangles) == holders


@pytest.mark.parametrize("kernel", [k for k in pysimd.kernels() if k.mr_vl], ids=lambda k: k.name)
def test_a_tile_of_a_matrix_of_vectors(kernel):
    drawn = tile_drawing.tile(kernel)
    assert "C in ZA tiles of VL x VL elements" in tile_drawing.text(drawn)
    rectangles = [x for x in tile_drawing.drawing(drawn).shapes if isinstance(x, drawing.Rectangle)]
    assert sum(x.kind in "cd" for x in rectangles) == 1


def test_tile_registers():
    drawn = tile_drawing.tile(pysimd.kernel("amx_i8i32_outer_32x32"))
    assert "C in tile registers of 16 x 16 elements" in tile_drawing.text(drawn)
    assert "the matrix unit multiplies" in tile_drawing.text(drawn)


def test_without_a_disassembler_it_says_so(monkeypatch):
    monkeypatch.setattr(x86, "iced", None)
    found, reason = show._inspected(pysimd.kernel("sse_f32_outer_4x4"), None)
    drawn = tile_drawing.tile(pysimd.kernel("sse_f32_outer_4x4"), found, reason)
    assert drawn.width is None
    assert "the built loop could not be read: iced-x86" in tile_drawing.notes(drawn)[-1]
    assert "C" in [x.text for x in tile_drawing.drawing(drawn).texts]


def test_counts_of_another_machine_are_used():
    """A report that was recorded where the kernel was compiled needs no compiler here."""
    counts = {"target": "sm_90", "multiply_adds": 4, "macs": 64, "load_instructions": {"shared": 3, "global": 2}}
    counts |= {"registers": 9, "registers_there_are": 255, "spills": 0}
    drawn = tile_drawing.tile(pysimd.kernel("cuda_f32_outer_4x4"), counts)
    said = "the built loop (sm_90): 4 multiply-add and 5 load instructions an iteration, 9 of 255 registers, 0 spills"
    assert said in tile_drawing.notes(drawn)
