"""``pysimd show``: a drawing shows the tile that the file of the kernel describes."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import pysimd
from pysimd.inspection import x86
from pysimd.report import drawing, tile_drawing

CPU = [kernel for kernel in pysimd.kernels("cpu") if kernel.form == "outer" and not kernel.nr_vl]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def no_compilers(monkeypatch):
    """Kernels of GPUs are drawn without their machine code: compiling is for test_inspect.py."""
    inspect = tile_drawing.inspect

    def cpu_only(kernel, *, target=None):
        if kernel.backend != "cpu":
            raise pysimd.UnavailableError("not here")
        return inspect(kernel, target=target)

    monkeypatch.setattr(tile_drawing, "inspect", cpu_only)


@pytest.mark.skipif(bool(x86.missing()), reason=x86.missing() or "nothing")
@pytest.mark.parametrize("kernel", CPU, ids=lambda k: k.name)
def test_registers_of_c_are_those_of_the_file(kernel):
    drawn = tile_drawing.tile(kernel)
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
    assert rectangles.count("b") == kernel.nr
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
    svg = drawing.svg(tile_drawing.drawing(drawn))
    assert "A: rows of K" in svg
    assert "column k" not in svg


@pytest.mark.parametrize("rung", pysimd.rungs(), ids=lambda r: r.name)
def test_every_rung_is_drawn(rung):
    drawn = tile_drawing.tile(rung)
    text = tile_drawing.text(drawn)
    assert f": {rung.ratio.value:.2f}" in text
    assert (" of a thread" if rung.lanes == 1 else f"registers of {rung.lanes} threads") in text
    assert max(map(len, text.splitlines())) <= 115
    lengths = {len(line) for line in text.splitlines() if line.endswith(("│", "┐", "┘"))}
    assert len(lengths) == 1
    assert (f"{drawn.scale} x {drawn.scale} elements of C are drawn as one" in text) == (drawn.scale > 1)
    root = ElementTree.fromstring(drawing.svg(tile_drawing.drawing(drawn)))
    rectangles = [x.get("class") for x in root.iter(f"{SVG}rect")]
    assert rectangles.count("a") * drawn.scale == rung.tm
    assert rectangles.count("b") * drawn.scale == rung.tn


@pytest.mark.parametrize("name", ["sse_f32_outer_4x4", "avx512_f32_outer_14x32", "cuda_f16f32_wmma_16x16"])
def test_drawn_with_matplotlib(tmp_path, name):
    pytest.importorskip("matplotlib")
    from pysimd.report import plots

    drawn = tile_drawing.tile(pysimd.kernel(name))
    plots.drawings([tile_drawing.drawing(drawn)], tmp_path / "tile.svg")
    root = ElementTree.parse(tmp_path / "tile.svg").getroot()
    boxes = [x for x in root.iter(f"{SVG}g") if x.get("id", "").startswith("patch_")]
    of_c = drawn.mr if drawn.width is None else sum(len(tile_drawing.spans(drawn, i)) for i in range(drawn.mr))
    assert len(boxes) == 1 + drawn.mr + drawn.nr + of_c  # the first is the figure's ground
    with pytest.raises(pysimd.OptionError, match="must end in"):
        plots.drawings([tile_drawing.drawing(drawn)], tmp_path / "tile.nothing")


def test_without_a_disassembler_it_says_so(monkeypatch):
    monkeypatch.setattr(x86, "iced", None)
    drawn = tile_drawing.tile(pysimd.kernel("sse_f32_outer_4x4"))
    assert drawn.width is None
    assert "could not be read" in tile_drawing.text(drawn)
