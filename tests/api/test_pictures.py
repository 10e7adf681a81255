"""Pictures: no text covers another or is crossed by a line, every text is readable; SVG and PNG are one drawing."""

import itertools
import math
import random
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from types import SimpleNamespace

import pytest
from benchmark_scripts import BENCHMARKS, importable

import pysimd
from pysimd.bench import peaks
from pysimd.report import bars, drawing, plots, rooflines, tile_drawing
from pysimd.report.axes import Axis, label
from pysimd.report.drawing import Box, Dot, Drawing, Line, Rectangle, Text
from pysimd.report.rows import in_table_order

SVG = "{http://www.w3.org/2000/svg}"


def faults(made):
    """What hides or crosses a text of a drawing, or lies outside it. The grid lies behind the texts; texts have their
    place in a rectangle or outside all of them."""
    found = [(x.text, "is outside") for x in made.texts if not inside(x.box, Box(0, 0, made.width, made.height))]
    found += [(x.text, y.text) for x, y in itertools.combinations(made.texts, 2) if x.box.overlaps(y.box)]
    for shape in made.shapes:
        if isinstance(shape, Line) and shape.kind != "grid":
            ends = list(itertools.pairwise(shape.points))
            found += [(x.text, shape.kind) for x in made.texts if any(x.box.is_crossed(*line) for line in ends)]
        elif isinstance(shape, Dot):
            x, y, r = shape.x, shape.y, shape.radius
            found += [
                (text.text, shape.title) for text in made.texts if text.box.overlaps(Box(x - r, y - r, x + r, y + r))
            ]
        elif isinstance(shape, Rectangle):
            area = Box(shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
            found += [(x.text, shape) for x in made.texts if x.box.overlaps(area) and not inside(x.box, area)]
    return found


def inside(box, area):
    return area.left <= box.left and box.right <= area.right and area.top <= box.top and box.bottom <= area.bottom


# --- every picture that is made ---


def recorded():
    """Drawings of all records by the name of their file."""
    with importable() as imported:
        modules = [imported(path.stem) for path in sorted(BENCHMARKS.glob("render*.py"))]
        return {name: x for module in modules if hasattr(module, "pictures") for name, x in module.pictures().items()}


RECORDED = recorded()


def tiles():
    for thing in (*pysimd.kernels(), *pysimd.rungs()):
        yield thing.name, tile_drawing.tile(thing)


TILES = dict(tiles())

MATMUL = [
    SimpleNamespace(types=types, size=16, batch=batch, pysimd_median_ns_per_product=ours,
                    numpy_median_ns_per_product=9 * ours, numpy_over_pysimd=9.0)
    for types, batch, ours in (("f32", 1, 1.5), ("u8i8i32", 100_000, 2.5e6))
]  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_pictures(name):
    assert not faults(RECORDED[name])
    assert (BENCHMARKS / "results" / name).read_text() == drawing.svg(RECORDED[name])


@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("with_notes", [True, False])
def test_tiles(name, with_notes):
    assert not faults(tile_drawing.drawing(TILES[name], with_notes=with_notes))


def test_bars():
    for rows in ([], pysimd.compare().rows):
        assert not faults(bars.ratios(rows))
    for rows in ([], MATMUL):
        assert not faults(bars.matmul(rows))


# --- what a bar chart shows ---


def test_lengths_of_bars_are_their_values():
    """From zero, on one scale; beside each bar its note; kinds and order as given."""
    rows = [
        ("one", [bars.Bar(10.0, "outer", "ten")]),
        ("two", [bars.Bar(40.0, "inner", "forty"), bars.Bar(25.0, "peer", "twenty-five")]),
        ("three", [bars.Bar(0.0, "outer", "none")]),
    ]
    made = bars.chart(rows, "GB/s", {"outer": "ours"}, plot_width=400, dashed=20.0)
    drawn = [x for x in made.shapes if isinstance(x, Rectangle)][1:]  # the first is of the legend
    assert [x.kind for x in drawn] == ["outer", "inner", "peer", "outer"]
    assert [x.width for x in drawn] == pytest.approx([100, 400, 250, 1])
    assert len({x.x for x in drawn}) == 1
    assert [x.y for x in drawn] == sorted(x.y for x in drawn)
    for bar, note in zip(drawn, ("ten", "forty", "twenty-five", "none"), strict=True):
        (text,) = (x for x in made.texts if x.text == note)
        assert bar.y < text.y < bar.y + bar.height
        assert text.x > bar.x + bar.width
    (line,) = (x for x in made.shapes if isinstance(x, Line) and x.kind == "far")
    assert [x for x, _ in line.points] == [drawn[0].x + 200] * 2
    marks = {x.text: x.x for x in made.texts if x.anchor == "middle"}
    assert {float(text): x - drawn[0].x for text, x in marks.items()} == pytest.approx(
        {float(text): 10 * float(text) for text in marks}
    )


def test_logarithmic_bars():
    """A factor is a distance; the shortest bar is a factor of two long."""
    values = [1.0, 10.0, 100.0]
    made = bars.chart([(str(x), [bars.Bar(x, "outer", "")]) for x in values], "ns", {}, logarithmic=True)
    short, middle, long = (x.width for x in made.shapes if isinstance(x, Rectangle))
    assert long - middle == pytest.approx(middle - short)
    assert short / (middle - short) == pytest.approx(math.log10(2))


def test_bars_of_ratios_show_the_rows():
    rows = pysimd.compare().rows
    made = bars.ratios(rows)
    drawn = [x for x in made.shapes if isinstance(x, Rectangle)]
    drawn = drawn[len(drawn) - len(rows) :]
    shown = {x.text: x.y for x in made.texts if x.anchor == "end"}
    assert sorted(shown, key=shown.get) == [x.kernel for x in in_table_order(rows)]
    scale = max(x.width for x in drawn) / max(x.ratio for x in rows)
    for row, bar in zip(in_table_order(rows), drawn, strict=True):
        assert bar.width == pytest.approx(scale * row.ratio), row.kernel
        form = "inner" if row.form == "inner" else "outer"
        assert bar.kind == (form if row.available else f"{form}-3")
        assert bar.y < shown[row.kernel] < bar.y + bar.height


def test_bars_of_matmul_show_the_times():
    made = bars.matmul(MATMUL)
    drawn = [x for x in made.shapes if isinstance(x, Rectangle)][-4:]
    assert [x.kind for x in drawn] == ["outer", "peer"] * 2
    for ours, theirs in (drawn[:2], drawn[2:]):  # nine times as long, on the same logarithmic axis
        assert theirs.width - ours.width == pytest.approx(drawn[1].width - drawn[0].width)
    notes = [x.text for x in sorted(made.texts, key=lambda x: x.y) if x.x > drawn[1].x + drawn[3].width]
    assert notes == ["1.5 ns  (numpy / pysimd 9)", "13.5 ns", "2.5 ms  (numpy / pysimd 9)", "22.5 ms"]


def crowd(count, spread, seed):
    """A roofline of ``count`` kernels of seven targets that are measured within a factor ``spread`` of each other."""
    rng = random.Random(seed)
    row = pysimd.compare(["generic_f32_outer_4x4"]).rows[0]
    rows = []
    for i in range(count):
        counted = {"macs": rng.uniform(1, spread), "load_elements": {"memory": 2.0}, "element_bytes": 4}
        speed = {"gflops": 10 * rng.uniform(1, spread), "peak_gflops": 15 * spread - i % 7, "percent_of_peak": 50.0}
        speed |= {"peak_load_gbytes_per_s": 40 * spread, "percent_of_load_bandwidth": 10.0}
        tile = {"form": rng.choice(["outer", "inner", "gemv"]), "mr": rng.choice([4, 14]), "nr": rng.choice([4, 32])}
        rows.append(replace(row, kernel=f"k{i}", target=f"target{i % 7}", counted=counted, **tile, **speed))
    loads = tuple(peaks.Loads(x, 1, 40 * spread / (i + 1), 1.0) for i, x in enumerate(("L1", "L2", "L3", "memory")))
    peak = peaks.Peak("target0", "f32", "", 15 * spread, loads)
    (found,) = rooflines.rooflines(rows, [peaks.Peaks("cpu", {}, "", 1.0, (peak,))])
    return found


def in_legend(made):
    """The labels that have no room in the plot."""
    return [found[1] for x in made.texts if (found := re.match(r"([\dx]+(?: gemv)?): .* at \d", x.text))]


@pytest.mark.parametrize("spread", [1.0, 1.1, 5.0, 100.0])
@pytest.mark.parametrize("count", [1, 8, 20])
def test_a_crowd_of_kernels_is_labelled(count, spread):
    """Also where all kernels are at one point."""
    for seed in range(3):
        found = crowd(count, spread, seed)
        made = rooflines.drawing(found)
        assert not faults(made)
        labels = [x.text for x in made.texts if x.kind.startswith("label-")]
        assert sorted([*labels, *in_legend(made)]) == sorted(map(rooflines._label, found.rows))
        assert len(labels) >= min(count, 3)


def test_points_of_a_roofline_are_the_speeds_of_the_kernels():
    found = crowd(5, 5.0, 0)
    dots = {x.title.partition(":")[0]: x for x in rooflines.drawing(found).shapes if isinstance(x, Dot)}
    rows = sorted(found.rows, key=lambda row: row.gflops)
    heights = [-dots[row.kernel].y for row in rows]
    assert heights == sorted(heights)
    for (low, at_low), (high, at_high) in itertools.pairwise(zip(rows, heights, strict=True)):  # logarithmic
        scale = (at_high - at_low) / math.log(high.gflops / low.gflops)
        assert scale == pytest.approx((heights[-1] - heights[0]) / math.log(rows[-1].gflops / rows[0].gflops))
    by_intensity = sorted(found.rows, key=rooflines.operations_per_byte)
    places = [dots[row.kernel].x for row in by_intensity]
    assert places == sorted(places)
    assert all(f"{row.gflops / found.scale:.3g} {found.unit}" in dots[row.kernel].title for row in rows)


def test_axes_of_a_roofline_have_names_and_units():
    texts = [x.text for x in rooflines.drawing(crowd(3, 5.0, 0)).texts]
    assert {"GFLOP/s", "operations per byte loaded", "f32 on one core"} <= set(texts)


# --- the checks themselves ---

HELLO = Text(50, 50, "hello")


@pytest.mark.parametrize(
    ("shape", "bad"),
    [
        (Text(60, 55, "there"), True),
        (Text(50, 64, "there"), False),
        (Text(-5, 80, "there"), True),
        (Line("far", ((40, 40), (100, 55))), True),
        (Line("far", ((40, 54), (100, 54))), False),
        (Line("far", ((60, 0), (60, 100))), True),
        (Line("grid", ((60, 0), (60, 100))), False),
        (Dot("outer", 48, 48, 4, "dot"), True),
        (Dot("outer", 40, 48, 4, "dot"), False),
        (Rectangle("a", 40, 45, 60, 20), True),
        (Rectangle("a", 40, 35, 60, 30), False),
    ],
)
def test_faults_are_found(shape, bad):
    assert bool(faults(Drawing("tile", 200, 100, (HELLO, shape)))) == bad


def test_texts_are_not_wider_than_they_are_taken_for():
    textpath = pytest.importorskip("matplotlib.textpath")
    from matplotlib.font_manager import FontProperties

    measure = textpath.TextToPath().get_text_width_height_descent
    made = [*RECORDED.values(), *map(tile_drawing.drawing, TILES.values()), bars.matmul(MATMUL)]
    for text in {(x.text, drawing.STYLES[x.kind].bold) for picture in made for x in picture.texts}:
        font = FontProperties(family="DejaVu Sans", size=drawing.FONT_SIZE, weight="bold" if text[1] else "normal")
        width = measure(text[0], font, ismath=False)[0]
        assert width <= drawing.text_width(text[0], bold=text[1]) <= 1.45 * width + 1


# --- colours ---


def luminance(color):
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_are_readable(scheme):
    """By the measure of the Web Content Accessibility Guidelines, 4.5 : 1; lines and bars 3 : 1 or, faded, 1.5 : 1."""
    color = {name: values[scheme] for name, values in drawing.COLORS.items()}
    texts = {
        drawing.STYLES[x.kind].fill
        for made in (*RECORDED.values(), rooflines.drawing(crowd(20, 5.0, 0)))
        for x in made.texts
    }
    assert {"ink", "series-0", "series-6"} <= texts
    for name in texts:
        assert contrast(color[name], color["ground"]) >= 4.5, name
    for name in ("c-even", "c-odd", "a", "b"):
        assert contrast(color["ink"], color[name]) >= 4.5, name
    for name in ("inner", "outer", "peer", *(f"series-{i}" for i in range(drawing.SERIES))):
        assert contrast(color[name], color["ground"]) >= 3, name
    for name in ("outer-2", "outer-3", "inner-3"):
        assert contrast(color[name], color["ground"]) >= 1.5, name


def test_an_svg_has_its_own_background():
    """So that it is readable on white and on black, whatever the scheme of the page that shows it."""
    root = ElementTree.fromstring(drawing.svg(RECORDED["ladder_h200.svg"]))
    first = next(x for x in root if x.tag != f"{SVG}style")
    assert (first.tag, first.get("class")) == (f"{SVG}rect", "ground")
    assert (first.get("width"), first.get("height")) == (root.get("width"), root.get("height"))


def test_the_ladder_fits_900_pixels():
    assert all(made.width <= 900 for name, made in RECORDED.items() if name.startswith("ladder"))


# --- files ---


def test_svg_needs_no_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    plots.check(tmp_path / "x.svg")
    plots.save(RECORDED["ladder_h200.svg"], tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text() == drawing.svg(RECORDED["ladder_h200.svg"])


@pytest.mark.parametrize("name", RECORDED)
def test_matplotlib_draws_the_same_shapes(monkeypatch, tmp_path, name):
    figure = pytest.importorskip("matplotlib.figure")
    made, drawn = RECORDED[name], []
    monkeypatch.setattr(figure.Figure, "savefig", lambda figure, path, **options: drawn.append(figure))
    plots.save(made, tmp_path / "x.png")
    (axes,) = drawn[0].axes
    assert [(x.get_text(), *x.get_position()) for x in axes.texts] == [(x.text, x.x, x.y) for x in made.texts]
    assert len(axes.lines) == sum(isinstance(x, Line) for x in made.shapes)
    assert len(axes.patches) == sum(isinstance(x, Rectangle | Dot) for x in made.shapes)


# --- axes ---


@pytest.mark.parametrize(
    ("axis", "gap", "expected"),
    [
        (Axis(0.15, 6, 0, 500, logarithmic=True), 30, [0.2, 0.5, 1, 2, 5]),
        (Axis(0.15, 6000, 0, 200, logarithmic=True), 30, [1, 10, 100, 1000]),
        (Axis(0, 9.7, 0, 340), 50, [0, 2, 4, 6, 8]),
        (Axis(0, 110, 300, 0), 50, [0, 20, 40, 60, 80, 100]),
    ],
)
def test_ticks(axis, gap, expected):
    if axis.logarithmic and axis.high == 6000:
        expected = [value for value in axis.ticks(gap) if math.log10(value).is_integer()]
    assert axis.ticks(gap) == pytest.approx(expected)
    places = [axis.at(value) for value in axis.ticks(gap)]
    assert all(abs(one - other) >= gap for one, other in itertools.pairwise(places))


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.5"), (20, "20"), (0.1 + 0.2, "0.3"), (1e6, "1,000,000")])
def test_values_of_an_axis(value, text):
    assert label(value) == text


@pytest.mark.parametrize(("ns", "text"), [(12, "12 ns"), (1500, "1.5 µs"), (2.5e6, "2.5 ms"), (3e9, "3 s")])
def test_times_have_the_unit_that_keeps_them_short(ns, text):
    assert bars._time(ns) == text
