"""``compare`` and reports: ratios, speeds, JSON, plots, tables."""

import json
import sys
from dataclasses import replace

import pytest

import pysimd
from pysimd.bench import peaks
from pysimd.bench.tiles import tile_speed
from pysimd.report import bars, drawing, report, rooflines, rows, text

NAMES = ["generic_f32_inner_4x4", "generic_f32_outer_4x4"]


# --- ratios ---


@pytest.mark.parametrize("kernel", pysimd.kernels(), ids=lambda k: k.name)
def test_ratio_follows_from_the_tile(kernel):
    if kernel.form == "inner":
        assert kernel.ratio.value == 0.5
    else:
        assert kernel.ratio.value == kernel.mr * kernel.nr / (kernel.mr + kernel.nr)
    nbytes = kernel.a_dtype.itemsize
    assert kernel.ratio.per_byte == pytest.approx(kernel.ratio.value / nbytes)
    assert kernel.ratio.macs == kernel.mr * kernel.nr


def test_compare_takes_kernels_and_names():
    rows = pysimd.compare([NAMES[0], pysimd.kernel(NAMES[1])]).rows
    assert [row.kernel for row in rows] == NAMES
    assert [row.ratio for row in rows] == [0.5, 2.0]


def test_compare_takes_every_kernel_by_default():
    assert [row.kernel for row in pysimd.compare().rows] == [k.name for k in pysimd.kernels()]


def test_compare_refuses_an_unknown_name():
    with pytest.raises(pysimd.UnknownKernelError, match="did you mean"):
        pysimd.compare(["generic_f32_outer_4x5"])


@pytest.mark.parametrize("kernel", pysimd.kernels("cpu", available=True), ids=lambda k: k.name)
def test_every_cpu_kernel_has_a_speed_and_a_peak(kernel):
    speed = tile_speed(kernel, rounds=2, seconds=0.001)
    assert speed.gflops > 0
    assert speed.peak_gflops > 0
    assert speed.percent_of_peak == pytest.approx(100 * speed.gflops / speed.peak_gflops)


def test_measured_report_as_json():
    made = pysimd.compare(NAMES, measure=True, seconds=0.001)
    data = json.loads(made.to_json())
    assert data == json.loads(json.dumps(made.to_dict()))
    assert data["schema_version"] == rows.SCHEMA_VERSION
    assert set(data["machine"]) == {"cpu", "cuda", "hip"}
    assert all(row["gflops"] > 0 for row in data["rows"])


@pytest.mark.parametrize("types", ["f32", "f64"])
def test_loads_have_a_peak_where_they_load_whole_vectors(types):
    speed = tile_speed(pysimd.kernel(f"generic_{types}_outer_4x4"), rounds=2, seconds=0.001)
    assert speed.peak_load_gbytes_per_s == pytest.approx(16 * speed.peak_gloads_per_s)
    narrow = tile_speed(pysimd.kernel("generic_i8i32_outer_4x4"), rounds=2, seconds=0.001)
    assert narrow.peak_gloads_per_s is None


def test_counted_report():
    pytest.importorskip("iced_x86")
    inner, outer = pysimd.compare(NAMES, count=True, measure=True, seconds=0.001).rows
    assert (inner.counted["element_ratio"], outer.counted["element_ratio"]) == (0.5, 2.0)
    assert outer.over_inner == outer.gflops / inner.gflops
    assert inner.over_inner is None
    assert outer.limit in ("loads", "multiply-adds")
    loads = sum(outer.counted["load_instructions"].values()) / outer.counted["macs"] * outer.gflops / 2
    assert outer.percent_of_load_rate == pytest.approx(100 * loads / outer.peak_gloads_per_s)
    nbytes = 4 * outer.gflops / 2 / outer.counted["element_ratio"]
    assert outer.percent_of_load_bandwidth == pytest.approx(100 * nbytes / outer.peak_load_gbytes_per_s)


def test_the_limit_is_what_takes_longer():
    speed = {"gflops": 10.0, "peak_gflops": 20.0, "peak_gloads_per_s": 4.0, "peak_load_gbytes_per_s": 64.0}
    counted = {"macs": 8, "load_instructions": {"memory": 4}, "load_elements": {"memory": 4.0}, "element_bytes": 4}
    counted["scope"] = "core"
    found = report._limits(speed, counted)  # 5 multiply-adds a nanosecond, and half as many loads of four bytes
    assert found == {"percent_of_load_rate": 62.5, "percent_of_load_bandwidth": 15.625, "limit": "loads"}
    assert report._limits({**speed, "peak_gloads_per_s": 6.0}, counted)["limit"] == "multiply-adds"
    assert report._limits(speed, None) == {}


def test_what_cannot_be_counted_says_why(monkeypatch):
    from pysimd.inspection import x86

    monkeypatch.setattr(x86, "iced", None)
    (row,) = pysimd.compare(NAMES[:1], count=True).rows
    assert row.counted is None
    assert row.uncounted_reason == x86.missing() != ""


def test_loads_may_bind_by_their_number_or_by_their_bytes():
    speed = {"gflops": 10.0, "peak_gflops": 20.0, "peak_gloads_per_s": 64.0, "peak_load_gbytes_per_s": 16.0}
    counted = {"macs": 8, "load_instructions": {"global": 1}, "load_elements": {"global": 4.0}, "element_bytes": 4}
    assert report._limits(speed, {**counted, "scope": "thread"})["limit"] == "loads"  # 2 bytes for a multiply-add
    speed["peak_load_gbytes_per_s"] = 64.0
    assert report._limits(speed, {**counted, "scope": "thread"})["limit"] == "multiply-adds"
    of_a_warp = report._limits(speed, {**counted, "scope": "warp"})  # each of its instructions is 32 of a lane
    assert of_a_warp["percent_of_load_rate"] == 100 * 5 * 32 / 8 / 64
    assert report._limits({**speed, "peak_gflops": None}, {**counted, "scope": "warp"}) == {}


def test_a_row_for_each_target():
    names = ["hip_f32_outer_4x4", "generic_f32_outer_4x4"]
    rows = pysimd.compare(names, targets=["gfx906", "sm_80", "gfx942"]).rows
    assert [row.kernel for row in rows] == [names[0], names[0], names[1]]
    with pytest.raises(pysimd.OptionError, match="avx2"):
        pysimd.compare(names, count=True, targets=["avx2"])


def test_a_target_that_a_kernel_lacks_is_said_in_its_row(monkeypatch):
    monkeypatch.setattr(report, "inspect", lambda kernel, target: (_ for _ in ()).throw(pysimd.OptionError(target)))
    (row,) = pysimd.compare(["hip_f32_mfma_16x16"], count=True, targets=["gfx1100"]).rows
    assert row.uncounted_reason == "gfx1100"


def test_over_inner_takes_the_same_tile_if_there_is_one():
    base = pysimd.compare(NAMES[:1]).rows[0]
    small, large = (replace(base, mr=n, nr=n, gflops=g) for n, g in ((4, 2.0), (8, 4.0)))
    outer = replace(base, form="outer", mr=8, nr=8, gflops=12.0)
    assert report._over_inner(outer, [small, large, outer]) == 3
    assert report._over_inner(replace(outer, mr=6), [small, large]) == 6
    assert report._over_inner(outer, [outer]) is None
    assert report._over_inner(replace(outer, gflops=None), [large]) is None


def test_nothing_is_measured_unasked():
    assert all(row.gflops is None for row in pysimd.compare(NAMES).rows)


def test_json_has_no_nan():
    assert rows.to_json({"x": [float("nan"), float("inf"), 1.5]}, None) == '{"x": [null, null, 1.5]}'


def test_table_order_puts_inner_first_and_keeps_targets_together():
    ordered = rows.in_table_order(reversed(pysimd.compare().rows))
    seen = [(row.target, row.types) for row in ordered]
    assert len(set(seen)) == sum(1 for i, key in enumerate(seen) if i == 0 or seen[i - 1] != key)
    forms = [row.form for row in ordered if (row.target, row.types) == ("generic", "f32")]
    assert forms == ["inner", "outer"]


def test_backends_stays_a_function_when_the_folder_of_that_name_is_loaded():
    import pysimd.backends.cpu.implementation

    assert len(pysimd.backends()) == len(pysimd.backends()) == 3


# --- plots ---


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot_of_a_report(tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"ratio.{ending}"
    pysimd.compare(NAMES, measure=True, seconds=0.001).plot(path)
    assert path.stat().st_size > 2000
    if ending == "svg":
        assert "<svg" in path.read_text()


@pytest.fixture
def measured():
    """A report of an invented machine on which everything was counted and measured."""
    counted = {"macs": 32, "load_instructions": {"memory": 8}, "load_elements": {"memory": 16.0}, "element_bytes": 4}
    speed = {"gflops": 20.0, "peak_gflops": 25.0, "percent_of_peak": 80.0, "peak_gloads_per_s": 8.0}
    speed |= {"peak_load_gbytes_per_s": 128.0, "percent_of_load_rate": 31.0, "percent_of_load_bandwidth": 17.0}
    rows = tuple(replace(row, counted=counted, **speed) for row in pysimd.compare(NAMES).rows)
    loads = (peaks.Loads(memory, 4096, rate, 1.0) for memory, rate in (("L1", 128.0), ("L2", 60.0), ("memory", 10.0)))
    peak = peaks.Peak("generic", "f32", "", 25.0, tuple(loads))
    return report.Report(rows, report.machine(), (peaks.Peaks("cpu", {"device": "none"}, "", 1.0, (peak,)),))


def test_roofs_are_what_was_measured(measured):
    (found,) = rooflines.rooflines(measured.rows, measured.peaks)
    assert [row.kernel for row in found.rows] == NAMES
    assert rooflines.operations_per_byte(found.rows[0]) == 2 * 32 / (16 * 4)
    slope, ridge, end = found.roofs["generic"]
    assert slope[1] == pytest.approx(128 * slope[0])
    assert ridge == pytest.approx((25 / 128, 25))
    assert end[1] == 25
    assert list(found.farther) == ["L2", "memory"]
    for memory, rate in (("L2", 60.0), ("memory", 10.0)):
        for x, y in found.farther[memory]:
            assert y == pytest.approx(rate * x)
    assert (found.scale, found.unit) == (1, "GFLOP/s")


def test_memories_of_one_speed_are_one_line():
    assert rooflines._merged({"L2": 90.0, "L3": 30.0, "memory": 29.0}) == {"L2": 90.0, "L3, memory": 30.0}


def test_rooflines_are_drawn(measured, tmp_path):
    measured.plot_rooflines(tmp_path / "roofs.svg")
    (found,) = rooflines.rooflines(measured.rows, measured.peaks)
    assert (tmp_path / "roofs.svg").read_text() == drawing.svg(rooflines.drawing(found))
    with pytest.raises(pysimd.OptionError, match="--count --measure"):
        pysimd.compare(NAMES).plot_rooflines(tmp_path / "none.png")


def test_plot_of_every_kernel_and_of_none(tmp_path):
    pytest.importorskip("matplotlib")
    pysimd.compare().plot(tmp_path / "all.png")
    pysimd.compare([]).plot(tmp_path / "none.png")


def test_plot_names_what_is_measured_and_what_is_missing():
    row = replace(pysimd.compare(NAMES[1:]).rows[0], gflops=12.3, percent_of_peak=98.0)
    assert bars._note(row) == "2.00, 12 GFLOP/s, 98 % of peak"
    assert "GOP/s" in bars._note(replace(row, types="i8i32"))
    missing = replace(row, available=False, gflops=None, percent_of_peak=None)
    assert bars._note(missing) == "2.00"
    made = bars.ratios([row, missing])
    assert [x.kind for x in made.shapes if isinstance(x, drawing.Rectangle)][-2:] == ["outer", "outer-3"]
    assert "faded: not on this machine" in [x.text for x in made.texts]


def test_plot_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(pysimd.UnavailableError, match=r"pip install 'pysimd\[plot\]'"):
        pysimd.compare(NAMES).plot(tmp_path / "ratio.png")


def test_plot_of_an_unknown_kind(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(pysimd.OptionError, match=r"\.png"):
        pysimd.compare(NAMES).plot(tmp_path / "ratio")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ns", "short"), [(1.234, "1.23 ns"), (999.4, "999 ns"), (1500, "1.5 µs"), (2.5e6, "2.5 ms"), (3e9, "3 s")]
)
def test_times_in_the_plot_have_their_unit(ns, short):
    assert bars._time(ns) == short


# --- tables ---


def test_table_aligns_both_ways():
    made = text.table(["kernel", "ratio"], [["a", "0.50"], ["bcd", "12.00"]], right=["ratio"])
    assert made.splitlines() == ["kernel  ratio", "a        0.50", "bcd     12.00"]


def test_number():
    assert text.number(None) == "-"
    assert text.number(1234.56) == "1,234.6"
