"""The scripts of benchmarks/: they start without a GPU, and the pages show what is recorded."""

import collections
import dataclasses
import hashlib
import importlib.util
import itertools
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from benchmark_scripts import BENCHMARKS, importable
from process import output_of

from pysimd.backends.cuda import fitted, narrow_estimates, recorded

RENDERERS = sorted(path.stem for path in BENCHMARKS.glob("render*.py"))
SCRIPTS = sorted(
    path.stem for path in BENCHMARKS.glob("*.py") if path.stem not in ("peers", "record") and path.stem not in RENDERERS
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_help(name):
    path = BENCHMARKS / f"{name}.py"
    for package in ("cupy", "dask", "numba", "torch"):
        if f"import {package}" in path.read_text() and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    assert "--out FILE.json" in output_of(str(path), "--help")


@pytest.fixture
def scripts():
    """``scripts(name)``: a script as a module."""
    with importable() as imported:
        yield imported


@pytest.mark.parametrize("name", RENDERERS)
def test_pages_show_what_is_recorded(scripts, name):
    module = scripts(name)
    for path in getattr(module, "PAGES", None) or (module.PAGE,):
        page = path.read_text()
        assert module.rendered(page) == page, path.name


def rows_of(data):
    """Every object of a JSON document."""
    for x in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from rows_of(x)
    if isinstance(data, dict):
        yield data


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "results").glob("*.json")), ids=lambda path: path.stem)
def test_nothing_recorded_is_above_its_peak(path):
    above = set()
    for row in rows_of(json.loads(path.read_text())):
        share = max(row.get("percent_of_peak") or 0, 100 * (row.get("part_of_peak") or 0))
        if share > 103:
            above.add(row.get("kernel") or row.get("name") or row.get("rung"))
    assert not above


def test_text_between_markers(scripts):
    record = scripts("record")
    page = "a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n"
    assert record.replaced(page, "new") == page.replace("old", "new")
    assert record.table(["x", "y"], [["1", "2"]]) == ["| x | y |", "|---|---|", "| 1 | 2 |"]


def test_sections_of_a_later_run_take_the_place_of_an_earlier_ones(scripts):
    """Types that were not measured again stay, as do sections; each with the commit that it was measured at."""
    record = scripts("record")
    old = {"machine": {"device": "x", "commit": "1"}, "peaks": {"ffma": 60}, "small": [{"us": 3}]}
    old["batched"] = [{"types": x, "rate": rate} for x, rate in (("f16", 2), ("f16", 3), ("f32", 4))]
    new = {"machine": {"device": "x", "commit": "2"}, "small": [{"us": 2}], "batched": [{"types": "f16", "rate": 4}]}
    found = record.merged(old, new, {"batched": ["types"]})
    assert found["machine"] == new["machine"]
    assert found["peaks"] == {"commit": "1", "ffma": 60}
    assert found["small"] == [{"commit": "2", "us": 2}]
    assert [(row["types"], row["rate"], row["commit"]) for row in found["batched"]] == [
        ("f16", 4, "2"),
        ("f32", 4, "1"),
    ]
    assert record.merged(found, new, {"batched": ["types"]}) == found
    with pytest.raises(ValueError, match="two devices"):
        record.merged(old | {"machine": {"device": "y", "commit": "1"}}, new)


def test_some_rungs_are_timed_again(scripts):
    """cuBLAS and the peaks stay those of the run of all rungs, where it had them."""
    pytest.importorskip("cupy")
    ladder = scripts("ladder")

    def row(name, rate, types="f32"):
        return {
            "types": types,
            "name": name,
            "size": 1024,
            "number": None if name == "cuBLAS" else "S1",
            "tflops": rate,
        }

    machine = {"device": "x", "commit": "1"}
    old = {"machine": machine, "peak_tflops": {"f32": 60}, "rows": [row("naive", 3), row("smem", 8), row("cuBLAS", 50)]}
    rows = [row("smem", 9), row("cuBLAS", 40), row("ozaki2_f64", 60, "f64"), row("cuBLAS", 55, "f64")]
    new = {"machine": machine | {"commit": "2"}, "peak_tflops": {"f32": 59, "f64": None}, "rows": rows}
    found = ladder.into(old, new, some=True)
    assert [(x["name"], x["tflops"], x["commit"]) for x in found["rows"]] == [
        ("naive", 3, "1"),
        ("smem", 9, "2"),
        ("cuBLAS", 50, "1"),
        ("ozaki2_f64", 60, "2"),
        ("cuBLAS", 55, "2"),
    ]
    assert found["peak_tflops"] == {"f32": 60, "f64": None}
    whole = ladder.into(old, new, some=False)
    assert [x["tflops"] for x in whole["rows"]] == [3, 9, 40, 60, 55]
    assert whole["peak_tflops"] == {"f32": 59, "f64": None}


def test_slow_products_are_named(scripts):
    """Those below 0.95 times cuBLAS, the slowest first; not those of the batched kernels, which have no ratio."""
    pytest.importorskip("cupy")
    gemm_shapes = scripts("gemm_shapes")
    rows = [
        {"types": "f32", "m": 3, "n": 40, "k": 7, "taken": taken, "times_cublas": ratio}
        for taken, ratio in (("narrow", 0.94), ("cublas", 1.0), ("f32_best", 0.5), ("batched", None), ("narrow", 0.95))
    ]
    assert gemm_shapes.below(rows) == ["f32 3 x 40 x 7 by f32_best: 0.500", "f32 3 x 40 x 7 by narrow: 0.940"]
    assert gemm_shapes.summary(rows)["f32"]["below_0.95"] == 2


def test_the_fit_computes_what_the_estimates_do(scripts):
    """Of narrow.cu, with the constants that are in use."""
    fit = scripts("fit_estimates")
    shapes = itertools.product(("f32", "f16", "bf16f32"), (1, 6, 16), (40, 5000), (3, 200, 9000))
    rows = [{"types": x, "m": m, "n": n, "k": k} for x, *mnk in shapes for m, n, k in (mnk, (mnk[1], mnk[0], mnk[2]))]
    values = {}
    for name in fit._START:
        found = getattr(fitted, name)
        values[name] = np.array([y for x in found.values() for y in (x if isinstance(x, tuple) else (x,))])
    expected = [narrow_estimates.narrow_us(*fit.shape(row)) for row in rows]
    assert np.allclose(fit.narrow_times(values, fit.narrow_parts(rows)), expected, rtol=1e-12)


def test_the_times_of_cublas_are_those_recorded(scripts):
    pytest.importorskip("cupy")
    fit = scripts("fit_estimates")
    rows = [row for name in fit.RECORDS for row in fit.record.read(name)["rows"] if "us" in row] + fit.squares()
    found = fit.recorded_times([row for row in rows if narrow_estimates.holds(*fit.shape(row))])
    assert {case: tuple(x) for case, x in found.items()} == recorded.CUBLAS_US
    assert set(fitted.CUBLAS) <= set(found)


def test_a_margin_leaves_out_what_was_slower(scripts):
    """The least multiple of 0.05 with which nothing slower is taken, and a spare by the number of products."""
    pytest.importorskip("cupy")
    fit = scripts("fit_estimates")
    found = [(1.02, 0.9), (1.11, 0.99), (1.13, 1.2), (1.4, 1.1)]
    assert fit.margin("narrow", found) == pytest.approx(1.15 * 1.1, abs=0.01)
    assert fit.margin("narrow", found + [(2.0, 1.5)] * 99) == pytest.approx(1.15 * 1.05, abs=0.01)
    assert fit.margin("lines", [(0.9, 0.5)]) == 1.1
    assert all(x >= 1.05 for x in fitted.MARGINS.values())


def test_a_document_is_printed_or_written(scripts, capsys, tmp_path):
    record = scripts("record")
    record.write({"device": "none"}, None, rows=[1])
    printed = capsys.readouterr().out
    record.write({"device": "none"}, tmp_path / "new" / "out.json", rows=[1])
    assert (tmp_path / "new" / "out.json").read_text() == printed
    assert '"schema_version": 1' in printed


def test_a_side_is_sampled_until_neither_gets_shorter(scripts):
    cliffs = scripts("cliffs")
    fast, slow = iter([9, 5, *[6] * 4, 3, *[4] * 99]), iter([20, *[30] * 199])
    assert cliffs.shortest({"fast": fast.__next__, "slow": slow.__next__}, 1.0) == {"fast": 3, "slow": 20}
    assert 199 - len(list(slow)) == 7 + cliffs.STEADY[False] - 1
    falling = (0.9**i for i in itertools.count())
    assert cliffs.shortest({"falling": falling.__next__}, 1.0) == {"falling": 0.9 ** (cliffs.MOST_SAMPLES[False] - 1)}


@pytest.mark.parametrize("types", ["f64", "f16f32", "u8i8i32"])
def test_control_has_numpy_on_both_sides(scripts, monkeypatch, types):
    cliffs = scripts("cliffs")
    monkeypatch.setattr(cliffs.pysimd, "matmul", None)
    row = cliffs.measured(cliffs.Case(types, "16-byte offset", 2, 3, 4, 5), threads=1, control=True)
    assert row["ratio"] > 0
    with pytest.raises(TypeError):
        cliffs.measured(cliffs.Case(types, "plain", 2, 3, 4, 5), threads=1)


def test_slower_cases_are_measured_again_and_the_median_counts(scripts):
    cliffs = scripts("cliffs")
    case = {"types": "f32", "layout": "plain", "batch": 1, "m": 4, "k": 4, "n": 4, "products": 1}

    def row(ours, theirs):
        return {**case, "pysimd_us": ours, "numpy_us": theirs, "ratio": theirs / ours}

    later = iter([row(4.0, 8.0), row(5.0, 5.0), row(4.0, 3.0), row(5.0, 6.0)])
    found = cliffs.settled([row(8.0, 4.0), row(2.0, 4.0)], lambda _: next(later))
    assert found == [{**row(5.0, 5.0), "ratios": [0.5, 0.75, 1.0, 1.2, 2.0]}, row(2.0, 4.0)]
    assert cliffs.settled([{**row(2.0, 1.0), "ratios": [0.5]}], None)[0]["ratio"] == 0.5


@pytest.mark.parametrize(
    ("script", "options"),
    [("cliffs", ["--quick", "--shapes", "1", "--types", "f32"]), ("shapes_cpu", ["--count", "4", "--apart"])],
)
def test_a_comparison_from_its_command_line_to_its_record(scripts, monkeypatch, tmp_path, script, options):
    """All but the measurement: a fake says that pysimd is slower, and is asked for every case five times."""
    module, asked, out = scripts(script), collections.Counter(), tmp_path / "out.json"
    cliffs = scripts("cliffs")

    def measured(case, threads=None, alone=False, control=False):
        assert (alone, control) == ("--apart" in options, False)
        asked[case] += 1
        times = {"products": 10, "pysimd_us": 4.0, "numpy_us": 3.0, "ratio": 0.75}
        return {**dataclasses.asdict(case), **times}

    monkeypatch.setattr(cliffs, "measured", measured)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr("sys.argv", [script, *options, "--out", str(out)])
    module.main()
    document = json.loads(out.read_text())
    assert set(asked.values()) == {5}
    assert len(asked) == len(document["rows"]) > 4
    assert all(row["ratios"] == [0.75] * 5 for row in document["rows"])
    assert document["summary"]


def test_calls_of_every_form_are_those_of_numpy(scripts, monkeypatch, tmp_path):
    """Both sides compute the same for every order and factor; and the record of a few calls."""
    calls_cpu, out = scripts("calls_cpu"), tmp_path / "out.json"
    drawn = [c for c in calls_cpu.calls(("f32", "i8i32"), 400, 1) if c.m * c.k * c.n < 3000]
    assert {c.order_a for c in drawn} == {c.order_b for c in drawn} == set(calls_cpu.ORDERS)
    assert {c.order_out for c in drawn} == set(calls_cpu.OF_OUT)
    assert {c.shared for c in drawn} == {"", *calls_cpu.SHARED}
    rng = np.random.default_rng(0)
    for call in drawn:
        of_a, of_b = calls_cpu.batches(call)
        dtype = np.int8 if call.types == "i8i32" else np.float32
        a, b = (
            rng.integers(-5, 6, shape).astype(dtype) for shape in ((*of_a, call.m, call.k), (*of_b, call.k, call.n))
        )
        a, b = calls_cpu.ORDERS[call.order_a](a), calls_cpu.ORDERS[call.order_b](b)
        c = rng.integers(-5, 6, (*call.batch, call.m, call.n)).astype(np.int32 if dtype == np.int8 else dtype)
        outs = [None, None] if call.order_out == "new" else [calls_cpu.ORDERS[call.order_out](c) for _ in range(2)]
        found = calls_cpu.ours(call, 1, a, b, outs[0])
        np.testing.assert_array_equal(found, calls_cpu.numpys(call, a.astype(c.dtype), b.astype(c.dtype), outs[1]))
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr("sys.argv", ["calls_cpu", "--count", "30", "--out", str(out)])
    calls_cpu.main()
    document = json.loads(out.read_text())
    assert len(document["rows"]) == 30
    assert calls_cpu.call_of(document["rows"][0]) == next(calls_cpu.calls(("f32", *calls_cpu.cliffs.TYPES[1:]), 30, 0))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc")
def test_a_side_alone_is_sampled_when_other_threads_sleep(scripts, monkeypatch):
    """On a clock of its own, where they spin for 50 milliseconds."""

    class Clock:
        now = 0

        def perf_counter_ns(self):
            return self.now

        def sleep(self, seconds):
            self.now += round(1e9 * seconds)

    cliffs, clock, done = scripts("cliffs"), Clock(), threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    monkeypatch.setattr(cliffs, "time", clock)
    monkeypatch.setattr(cliffs, "runs", lambda task: clock.now < 50_000_000)
    samples = iter([3.0, 1.0, 2.0])
    assert cliffs.from_idle(samples.__next__, 3) == 1.0
    assert clock.now == 50_000_000
    done.set()
    other.join()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc")
def test_a_thread_that_spins_runs_and_one_that_waits_does_not(scripts):
    cliffs, done, spins = scripts("cliffs"), threading.Event(), [True]

    def spin():
        while spins:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)  # without the GIL
        done.wait()

    other = threading.Thread(target=spin, daemon=True)
    other.start()
    task = Path(f"/proc/self/task/{other.native_id}")
    end = time.monotonic() + 30

    def comes(state):  # between two calls the thread waits for the GIL for a moment
        while (found := cliffs.runs(task)) != state and time.monotonic() < end:
            time.sleep(0.001)
        return found == state

    assert comes(True)
    spins.clear()
    other_sleeps = comes(False)
    done.set()
    other.join()
    assert other_sleeps
    assert not cliffs.runs(Path("/proc/self/task/0"))  # as of one that has ended
