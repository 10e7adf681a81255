"""``pysimd show``: the drawing of a tile is of the tile that the kernel's file describes."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import pysimd
from pysimd import tile_drawing
from pysimd.inspection import x86

CPU = [kernel for kernel in pysimd.kernels("cpu") if kernel.form == "outer"]
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
    root = ElementTree.fromstring(tile_drawing.svg(drawn))
    rectangles = [x.get("class") for x in root.iter(f"{SVG}rect")]
    assert rectangles.count("a") == kernel.mr
    assert rectangles.count("b") == kernel.nr
    assert sum(x in "cd" for x in rectangles) >= (1 if drawn.width is None else drawn.holders)
    right, bottom = float(root.get("width")), float(root.get("height"))
    for x in root.iter(f"{SVG}rect"):
        assert float(x.get("x")) + float(x.get("width")) <= right
        assert float(x.get("y")) + float(x.get("height")) <= bottom


def test_without_a_disassembler_it_says_so(monkeypatch):
    monkeypatch.setattr(x86, "iced", None)
    drawn = tile_drawing.tile(pysimd.kernel("sse_f32_outer_4x4"))
    assert drawn.width is None
    assert "could not be read" in tile_drawing.text(drawn)
