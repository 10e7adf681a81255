"""The command line: every command as text and as JSON, errors of one line, exit codes, input and output files."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import pysimd
from pysimd import dtypes
from pysimd.bench import matmul, verify
from pysimd.bench.data import random_array
from pysimd.bench.tiles import Speed
from pysimd.cli import command as cli
from pysimd.cli import output, ratio, report, run, show

QUICK = ["--seconds", "0.001"]


@pytest.fixture
def pysimd_cli(capsys):
    """``pysimd_cli(*words)``: exit code, standard output and standard error of the command."""

    def call(*words):
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def document(pysimd_cli):
    """``document(*words)``: the one JSON document that the command prints with --json."""

    def call(*words):
        code, out, err = pysimd_cli(*words, "--json")
        assert code == 0, err
        data = json.loads(out)
        assert data["schema_version"] == 1
        assert data["pysimd"] == pysimd.__version__
        return data

    return call


def in_a_process(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "pysimd", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("words", [["show", "generic_f32_outer_4x4"], ["show", "naive"], ["kernels"], []])
def test_an_output_that_takes_ascii_alone(words):
    done = in_a_process(*words, *([] if words else QUICK), PYTHONIOENCODING="ascii")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert done.stdout.isascii()
    assert "?" not in done.stdout
    if words[:1] == ["show"]:
        assert "+---" in done.stdout
        assert "a0 | c0" in done.stdout


def only_error(err):
    """The error, which must be one line."""
    assert err.startswith("pysimd: error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


# --- overview ---


def test_overview_names_backends_targets_and_both_forms(pysimd_cli):
    code, out, err = pysimd_cli(*QUICK)
    assert code == 0
    for backend in pysimd.backends():
        assert backend.name in out
        assert backend.available or backend.reason in out
    assert "generic_f32_inner_4x4" in out
    assert "generic_f32_outer_4x4" in out
    assert "OpenBLAS" in out or "blas" in out.lower()
    assert "measuring" in err  # progress is no data
    assert "measuring" not in out


def test_overview_as_json_has_speeds_with_units(document):
    data = document(*QUICK)
    assert set(data["machine"]) == {"cpu", "cuda", "hip"}
    assert set(data["kernel_by_types_and_columns"]) == {"f32", "f64", "bf16f32", "f16f32", "i8i32", "u8i8i32"}
    by_name = {row["kernel"]: row for row in data["rows"]}
    assert by_name["generic_f32_inner_4x4"]["ratio"] == 0.5
    assert by_name["generic_f32_outer_4x4"]["ratio"] == 2.0
    assert all(row["gflops"] > 0 for row in data["rows"] if row["backend"] == "cpu")


def test_json_before_the_command_counts_too(capsys):
    assert cli.main(["--json", "kernels", "--target", "generic"]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"]


# --- kernels ---


def test_kernels_lists_every_kernel_once(pysimd_cli):
    code, out, _ = pysimd_cli("kernels")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == [k.name for k in pysimd.kernels()]


def test_kernels_says_which_backends_are_missing_where_it_matters(pysimd_cli):
    missing = [b for b in pysimd.backends() if not b.available]
    for backend in missing:
        assert backend.reason in pysimd_cli("kernels")[2]
        assert backend.reason in pysimd_cli("kernels", "--backend", backend.name)[2]
    assert pysimd_cli("kernels", "--target", "generic")[2] == ""


def test_kernels_columns_are_aligned(pysimd_cli):
    lines = pysimd_cli("kernels", "--backend", "cpu", "--form", "outer")[1].splitlines()
    at = lines[0].index("backend")
    assert {line[at : at + 5] for line in lines[1:]} == {"cpu  "}


@pytest.mark.parametrize("key", ["backend", "target", "types", "form"])
def test_kernels_filters(document, key):
    first = pysimd.kernels()[0]
    found = document("kernels", f"--{key}", getattr(first, key))["kernels"]
    assert [k["name"] for k in found] == [k.name for k in pysimd.kernels(**{key: getattr(first, key)})]


def test_kernels_available_only(document):
    found = document("kernels", "--available")["kernels"]
    assert [k["name"] for k in found] == [k.name for k in pysimd.kernels(available=True)]


@pytest.mark.parametrize(("key", "valid"), [("target", "generic"), ("types", "f32"), ("form", "outer")])
def test_kernels_unknown_filter_lists_the_valid_ones(pysimd_cli, key, valid):
    code, out, err = pysimd_cli("kernels", f"--{key}", "nonsense")
    assert (code, out) == (2, "")
    assert valid in only_error(err)


def test_kernels_says_why_one_cannot_run():
    done = in_a_process("kernels", "--target", "avx2", PYSIMD_ISA="generic")
    if "avx2" in done.stderr:
        pytest.skip("no avx2 kernels in this build")
    assert done.returncode == 0
    assert all("no: " in line for line in done.stdout.splitlines()[1:])


# --- run ---


@pytest.mark.parametrize("name", [k.name for k in pysimd.kernels("cpu", available=True)])
def test_run_on_random_input(document, name):
    data = document("run", name, "--batch", 3, "--k", 5, *QUICK)
    kernel = pysimd.kernel(name)
    assert data["shapes"]["a"] == [3, kernel.mr, 5]
    assert data["shapes"]["b"] == [3, 5, kernel.nr]
    assert data["shapes"]["out"] == [3, kernel.mr, kernel.nr]
    assert data["products"] == 3
    assert data["error"]["holds"]
    assert 0 < data["best_ns_per_product"] <= data["median_ns_per_product"]
    assert data["best_gflops"] == pytest.approx(2 * kernel.mr * kernel.nr * 5 / data["best_ns_per_product"])


@pytest.mark.parametrize(("name", "unit"), [("generic_f32_outer_4x4", "GFLOP/s"), ("generic_i8i32_outer_4x4", "GOP/s")])
def test_run_as_text(pysimd_cli, name, unit):
    code, out, _ = pysimd_cli("run", name, "--batch", 2, *QUICK)
    assert code == 0
    labels = [line.split()[0] for line in out.splitlines()]
    assert labels == ["kernel", "input", "a", "b", "c", "result", "time", "speed", "tile", "error"]
    assert unit in out
    assert "holds" in out or "exact" in out


def test_run_has_the_speed_of_the_tile_as_ratio_measures_it(document, monkeypatch):
    """The same function measures both."""
    asked = []

    def tile_speed(kernel, **options):
        asked.append((kernel.name, options))
        return Speed(gflops=12.5, peak_gflops=25.0, peak_gloads_per_s=1.0, peak_load_gbytes_per_s=1.0)

    monkeypatch.setattr("pysimd.bench.tiles.tile_speed", tile_speed)
    name = "generic_f32_outer_4x4"
    ran = document("run", name, "--batch", 3, "--seconds", "0.05")
    (row,) = document("ratio", name, "--measure")["rows"]
    assert ran["tile_gflops"] == row["gflops"] == 12.5
    assert ran["tile_peak_gflops"] == row["peak_gflops"] == 25.0
    assert asked == [(name, {"seconds": 0.02})] * 2


def test_run_the_same_seed_gives_the_same_result(pysimd_cli, tmp_path):
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        code, *_ = pysimd_cli(
            "run", "generic_f32_outer_4x4", "--batch", 2, "--seed", seed, "--out", tmp_path / f"{name}.npy", *QUICK
        )
        assert code == 0
    one, two, three = (np.load(tmp_path / f"{name}.npy") for name in ("one", "two", "three"))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)


def test_run_reads_and_writes_files(pysimd_cli, tmp_path, rng):
    a, b, c = (rng.standard_normal((2, 3, *shape), np.float32) for shape in ((4, 7), (7, 4), (4, 4)))
    for name, x in (("a", a), ("b", b), ("c", c)):
        np.save(tmp_path / f"{name}.npy", x)
    files = [word for name in "abc" for word in (f"--{name}", tmp_path / f"{name}.npy")]
    code, out, _ = pysimd_cli("run", "generic_f32_outer_4x4", *files, "--out", tmp_path / "out", *QUICK)
    assert code == 0
    assert "a.npy" in out
    assert np.array_equal(np.load(tmp_path / "out"), pysimd.kernel("generic_f32_outer_4x4")(a, b, c))


def test_run_takes_bfloat16_files(pysimd_cli, tmp_path, rng):
    a, b = (random_array("bfloat16", shape, rng) for shape in ((4, 6), (6, 4)))
    np.save(tmp_path / "a.npy", a)  # as ml_dtypes has numpy write it
    np.save(tmp_path / "b.npy", b.view(np.uint16).view(dtypes.dtype_of("bfloat16")))
    code, _, err = pysimd_cli(
        "run", "generic_bf16f32_outer_4x4", "--a", tmp_path / "a.npy", "--b", tmp_path / "b.npy", *QUICK
    )
    assert code == 0, err


def test_run_with_k_0(document):
    assert document("run", "generic_f32_outer_4x4", "--k", 0, "--batch", 2, *QUICK)["error"]["max_abs_error"] == 0


def test_run_on_an_empty_batch(document, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((0, 4, 3), np.float32))
    np.save(tmp_path / "b.npy", np.ones((3, 4), np.float32))
    data = document("run", "generic_f32_outer_4x4", "--a", tmp_path / "a.npy", "--b", tmp_path / "b.npy", *QUICK)
    assert (data["products"], data["best_ns_per_product"], data["error"]["holds"]) == (0, None, True)


def test_run_a_result_outside_the_bound_is_a_failure(pysimd_cli, monkeypatch):
    wrong = verify.Verified("float64", 1.0, 99.0, False)
    monkeypatch.setattr(run, "verify", lambda *_: wrong)
    code, out, err = pysimd_cli("run", "generic_f32_outer_4x4", "--batch", 2, *QUICK)
    assert code == 1
    assert "DOES NOT HOLD" in out
    assert "outside the error bound" in only_error(err)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run", "generic_f32_outer_5x5"], 2, "did you mean generic_f32_outer_4x4"),
        (["run", "generic_f32_outer_4x4", "--a", "a.npy"], 2, "--a and --b belong together"),
        (["run", "generic_f32_outer_4x4", "--a", "none.npy", "--b", "b.npy"], 1, "none.npy: No such file"),
        (["run", "generic_f32_outer_4x4", "--a", "text.npy", "--b", "b.npy"], 1, "text.npy is not an array file"),
        (["run", "generic_f32_outer_4x4", "--a", "many.npz", "--b", "b.npy"], 1, "holds several arrays"),
        (
            ["run", "generic_f32_outer_4x4", "--a", "flat.npy", "--b", "b.npy"],
            1,
            "at least 2 dimensions (..., rows, columns), got",
        ),
        (["run", "generic_f32_outer_4x4", "--a", "a.npy", "--b", "a.npy"], 1, "(3, 4)"),
        (["run", "generic_f64_outer_4x4", "--a", "a.npy", "--b", "b.npy"], 1, "float32"),
        (["run", "generic_f32_outer_4x4", "--a", "a.npy", "--b", "b.npy", "--k", "3"], 2, "--k is for random input"),
        (["run", "generic_f32_outer_4x4", "--out", "no/such/folder.npy", *QUICK], 1, "No such file"),
        (["source", "generic_f32_outer"], 2, "no kernel"),
        (["ratio", "nonsense_kernel"], 2, "no kernel"),
        (["run", "?"], 2, "no kernel '?': `pysimd kernels` lists them all"),
        (["show", "?"], 2, "no kernel '?': `pysimd kernels` and `pysimd ladder --list` list them all"),
        (["show", "generic_f32_outer_4x4", "--target", "sm_80"], 2, "--target 'sm_80': generic_f32_outer_4x4 is built"),
        (["show", "f32_best", "--target", "sm_3"], 2, "--target 'sm_3': f32_best is compiled for"),
        (["run", "hip_f32_outer_4x4", "--simulate", "sm_80"], 2, "--simulate 'sm_80': the simulator knows gfx900, "),
    ],
)
def test_errors_are_one_line(pysimd_cli, tmp_path, monkeypatch, words, code, says):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.ones((4, 3), np.float32))
    np.save("b.npy", np.ones((3, 4), np.float32))
    np.save("flat.npy", np.ones(3, np.float32))
    np.savez("many.npz", a=np.ones(3))
    (tmp_path / "text.npy").write_text("no array")
    if words[:4] == ["run", "generic_f32_outer_4x4", "--a", "a.npy"] and words[-1] == "a.npy":
        np.save("a.npy", np.ones((3, 4), np.float32))
    got, out, err = pysimd_cli(*words)
    assert (got, out) == (code, "")
    assert says in only_error(err)


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["nonsense"],
        ["run", "generic_f32_outer_4x4", "--batch", "0"],
        ["run", "generic_f32_outer_4x4", "--k", "-1"],
        ["bench", "--sizes", "4,x"],
        ["bench", "--types", "f33"],
        ["--seconds", "0"],
        ["--seconds", "soon"],
        ["kernels", "--backend", "tpu"],
    ],
)
def test_usage_errors_end_with_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_a_kernel_that_cannot_run_says_why():
    done = in_a_process("run", "avx_f32_outer_8x8", PYSIMD_ISA="generic")
    assert done.returncode in (1, 2)  # 2: a build for another processor has no such kernel
    assert "PYSIMD_ISA" in only_error(done.stderr) or "no kernel" in done.stderr
    assert done.stdout == ""


def test_a_gpu_kernel_without_gpu_says_why(pysimd_cli):
    here = [k for k in pysimd.kernels("cuda") + pysimd.kernels("hip") if not k.available]
    if not here:
        pytest.skip("every GPU kernel of this version can run on this machine")
    code, out, err = pysimd_cli("run", here[0].name)
    assert (code, out) == (1, "")
    assert here[0].unavailable_reason in only_error(err)


def test_a_kernel_that_cannot_run_says_so_before_files_are_read(pysimd_cli, tmp_path):
    kernel = next(k for k in pysimd.kernels() if not k.available)
    code, out, err = pysimd_cli("run", kernel.name, "--a", tmp_path / "no.npy", "--b", tmp_path / "no.npy")
    assert (code, out) == (1, "")
    assert " ".join(kernel.unavailable_reason.split()) in " ".join(only_error(err).split())


def test_a_bad_isa_is_one_line():
    done = in_a_process("kernels", PYSIMD_ISA="avx9")
    assert done.returncode == 2
    assert "avx512" in only_error(done.stderr)


# --- ratio, bench, source ---


def test_ratio_without_measuring_is_analytic(document):
    data = document("ratio")
    assert [row["kernel"] for row in data["rows"]] == [k.name for k in pysimd.kernels()]
    assert all(row["gflops"] is None for row in data["rows"])


def test_ratio_counted(pysimd_cli):
    pytest.importorskip("iced_x86")
    code, out, _ = pysimd_cli("ratio", "generic_f32_outer_4x4", "--count")
    assert code == 0
    header, row = out.splitlines()
    assert header.split()[-2:] == ["counted", "FMA/load"]  # nothing was measured: no more columns
    assert row.split()[-2] == "2.00"


def test_show(pysimd_cli, document, tmp_path):
    code, out, _ = pysimd_cli("show", "generic_f32_outer_4x4", "--svg", tmp_path / "tile.svg")
    assert code == 0
    assert "a3 │" in out
    assert (tmp_path / "tile.svg").read_text().startswith("<svg")
    data = document("show", "generic_f32_outer_4x4")
    assert (data["mr"], data["nr"], data["holders"]) == (4, 4, 4)
    pytest.importorskip("iced_x86")
    code, out, _ = pysimd_cli("show", "generic_f32_outer_4x4", "--code")
    assert "x multiply-add  mulps" in out


def test_show_as_png(pysimd_cli, tmp_path):
    pytest.importorskip("matplotlib")
    code, _, err = pysimd_cli("show", "generic_f32_outer_4x4", "--plot", tmp_path / "tile.png")
    assert code == 0
    assert "tile.png" in err
    assert (tmp_path / "tile.png").read_bytes().startswith(b"\x89PNG")


def test_kernels_of_one_backend(document):
    rows = document("ratio", "--backend", "hip")["rows"]
    assert [row["kernel"] for row in rows] == [k.name for k in pysimd.kernels("hip")]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["generic_f32_outer_4x4", "--backend", "cpu"], "names or --backend"),
        (["--target", "sm_90"], "add --count"),
        (["--rooflines", "x.svg"], "add --count --measure"),
        (["--rooflines", "x.svg", "--count"], "add --count --measure"),
        (["generic_f32_outer_4x4", "--target", "avx2", "--count"], "architectures of GPUs"),
    ],
)
def test_ratio_that_cannot_be_made(pysimd_cli, given, says):
    code, _, err = pysimd_cli("ratio", *given)
    assert code == 2
    assert says in err


@pytest.mark.parametrize("flag", ["--count", "--measure"])
def test_ratio_says_which_kernel_it_works_on(pysimd_cli, flag):
    names = ["generic_f32_inner_4x4", "generic_f32_outer_4x4"]
    assert pysimd_cli("ratio", *names, flag, *QUICK)[2].splitlines() == [
        f"[{i}/2] {name} ..." for i, name in enumerate(names, 1)
    ]
    assert pysimd_cli("ratio", *names)[2] == ""  # at once


def test_what_is_slow_is_said(monkeypatch, capsys):
    waited = []

    class Timer:
        """Goes off at once."""

        def __init__(self, seconds, function, arguments):
            waited.append(seconds)
            self.start = lambda: function(*arguments)

        def cancel(self):
            waited.append("cancelled")

    monkeypatch.setattr(output.threading, "Timer", Timer)
    assert cli.main(["show", "generic_f32_outer_4x4"]) == 0
    assert capsys.readouterr().err == "reading the code of generic_f32_outer_4x4 ...\n"
    assert waited == [1.0, "cancelled"]


def test_show_without_a_disassembler(pysimd_cli, monkeypatch):
    from pysimd.inspection import x86

    monkeypatch.setattr(x86, "iced", None)
    code, _, err = pysimd_cli("show", "generic_f32_outer_4x4", "--code")
    assert code == 1
    assert "pysimd" in err


def test_report(pysimd_cli, tmp_path):
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    names = ("generic_f32_inner_4x4", "generic_f32_outer_4x4")
    code, out, err = pysimd_cli("report", *names, "-o", page, "--json", *QUICK)
    assert code == 0
    assert str(page) in err
    assert all(row["gflops"] > 0 for row in json.loads(out)["rows"])
    data.write_text(out)
    first = page.read_text()
    assert first.startswith("<!doctype html>")
    code, out, _ = pysimd_cli("report", "--from", data, "-o", page)
    assert (code, out) == (0, "")
    assert page.read_text() == first


@pytest.mark.parametrize(("given", "says"), [(["--no-measure"], "leave everything"), ([], "not a JSON file")])
def test_report_that_cannot_be_made(pysimd_cli, tmp_path, given, says):
    (tmp_path / "x.json").write_text("nonsense")
    code, _, err = pysimd_cli("report", "--from", tmp_path / "x.json", "-o", tmp_path / "x.html", *given)
    assert code == 2
    assert says in err
    assert not (tmp_path / "x.html").exists()


def test_ratio_of_named_kernels_inner_first(pysimd_cli):
    code, out, _ = pysimd_cli("ratio", "generic_f32_outer_4x4", "generic_f32_inner_4x4", "--measure", *QUICK)
    assert code == 0
    lines = [line.split() for line in out.splitlines()[1:]]
    assert [line[0] for line in lines] == ["generic_f32_inner_4x4", "generic_f32_outer_4x4"]
    assert [line[3] for line in lines] == ["0.50", "2.00"]


@pytest.mark.parametrize(
    "command", [["ratio", "generic_f32_outer_4x4"], ["bench", "--sizes", "4", "--batch", "2", *QUICK]]
)
def test_plots_are_written(pysimd_cli, tmp_path, command):
    pytest.importorskip("matplotlib")
    code, _, err = pysimd_cli(*command, "--plot", tmp_path / "plot.png")
    assert code == 0
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "plot.png" in err


def test_plot_without_matplotlib(pysimd_cli, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = pysimd_cli("ratio", "generic_f32_outer_4x4", "--plot", tmp_path / "plot.png")
    assert code == 1
    assert "pip install 'pysimd[plot]'" in only_error(err)


def test_plot_of_an_unknown_kind(pysimd_cli, tmp_path):
    pytest.importorskip("matplotlib")
    code, _, err = pysimd_cli("ratio", "generic_f32_outer_4x4", "--plot", tmp_path / "plot.bmpx")
    assert code == 2
    assert ".png" in only_error(err)


WRITERS = {
    "bench": ["bench", "--sizes", "4", "--batch", "2", *QUICK, "--plot"],
    "ratio": ["ratio", "generic_f32_outer_4x4", "--measure", *QUICK, "--plot"],
    "rooflines": ["ratio", "generic_f32_outer_4x4", "--measure", "--count", *QUICK, "--rooflines"],
    "report": ["report", "generic_f32_outer_4x4", *QUICK, "-o"],
    "run": ["run", "generic_f32_outer_4x4", *QUICK, "--out"],
    "show": ["show", "generic_f32_outer_4x4", "--plot"],
}


@pytest.fixture
def nothing_is_measured(monkeypatch):
    """Fails a test that comes to a measurement."""

    def measured(*_, **__):
        raise AssertionError("measured before the path was looked at")

    for module, name in (
        (matmul, "against_numpy"),
        (ratio, "compare"),
        (report, "compare"),
        (run, "timed_call"),
        (show.tile_drawing, "tile"),
    ):
        monkeypatch.setattr(module, name, measured)


@pytest.mark.usefixtures("nothing_is_measured")
@pytest.mark.parametrize("command", WRITERS)
def test_a_path_that_cannot_be_written_is_told_before_measuring(pysimd_cli, tmp_path, command):
    pytest.importorskip("matplotlib")
    (tmp_path / "folder.png").mkdir()
    for path, says in ((tmp_path / "no" / "x.png", "No such file"), (tmp_path / "folder.png", "Is a directory")):
        code, out, err = pysimd_cli(*WRITERS[command], path)
        assert (code, out) == (1, "")
        assert f"{path}: {says}" in only_error(err)


@pytest.mark.usefixtures("nothing_is_measured")
@pytest.mark.parametrize("command", ["bench", "ratio", "rooflines", "show"])
def test_a_plot_that_cannot_be_drawn_is_told_before_measuring(pysimd_cli, tmp_path, monkeypatch, command):
    pytest.importorskip("matplotlib")
    assert pysimd_cli(*WRITERS[command], tmp_path / "r.txtx")[0] == 2
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = pysimd_cli(*WRITERS[command], tmp_path / "r.png")
    assert (code, out) == (1, "")
    assert "pip install 'pysimd[plot]'" in only_error(err)


@pytest.mark.parametrize("command", ["bench", "ratio"])
def test_what_was_measured_is_printed_whatever_happens_after(pysimd_cli, tmp_path, monkeypatch, command):
    pytest.importorskip("matplotlib")

    def full(*_, **__):
        raise OSError(28, "No space left on device", "plot.png")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    code, out, err = pysimd_cli(*WRITERS[command], tmp_path / "plot.png")
    assert code == 1
    assert "No space left" in err
    assert "GFLOP/s" in out


@pytest.mark.parametrize("types", ["f32", "f64", "bf16f32", "f16f32", "i8i32", "u8i8i32"])
def test_bench_against_numpy(document, types):
    (row,) = document("bench", "--types", types, "--sizes", "5", "--batch", "3", *QUICK)["rows"]
    assert (row["types"], row["size"], row["batch"], row["within_bound"]) == (types, 5, 3, True)
    assert row["kernel"] in [k.name for k in pysimd.kernels(types=types, available=True)]
    assert row["numpy_over_pysimd"] == pytest.approx(
        row["numpy_median_ns_per_product"] / row["pysimd_median_ns_per_product"]
    )


def test_bench_as_text_with_progress_on_stderr(pysimd_cli, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    code, out, err = pysimd_cli("bench", "--sizes", "4,8", "--batch", "2", *QUICK)
    assert code == 0
    assert len(out.splitlines()) == 4
    assert "[2/2]" in err
    assert f"NumPy {np.__version__}" in err
    assert "warning: OPENBLAS_CORETYPE=Haswell" in err


def test_bench_a_wrong_result_is_a_failure(pysimd_cli, monkeypatch):
    monkeypatch.setattr(matmul, "verify", lambda *_: verify.Verified("float64", 1.0, 99.0, False))
    code, _, err = pysimd_cli("bench", "--sizes", "4", "--batch", "2", *QUICK)
    assert code == 1
    assert "outside the error bound" in err


def test_source_is_the_file(pysimd_cli):
    code, out, _ = pysimd_cli("source", "generic_f32_outer_4x4")
    assert code == 0
    assert out == pysimd.kernel("generic_f32_outer_4x4").source


def test_source_with_the_headers_it_includes(document):
    files = document("source", "generic_f32_outer_4x4", "--with-includes")["files"]
    paths = [f["path"] for f in files]
    assert paths[0] == "cpu_kernels/generic/generic_f32_outer_4x4.c"
    assert {f"cpu_kernels/{x}" for x in ("templates/outer.h", "templates/kernel.h", "core/pysimd.h")} <= set(paths)
    assert len(set(paths)) == len(paths)


# --- the process ---


def test_version():
    done = in_a_process("--version")
    assert (done.returncode, done.stdout) == (0, f"pysimd {pysimd.__version__}\n")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_closed_standard_output_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pysimd", "source", "generic_f32_outer_4x4", "--with-includes"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(write)
    assert done.returncode == 141
    assert done.stderr == ""


def test_ctrl_c_is_no_traceback(pysimd_cli, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(matmul, "against_numpy", interrupted)
    code, out, _ = pysimd_cli("bench", "--sizes", "4", "--batch", "2")
    assert (code, out) == (130, "")


# --- ladder ---


@pytest.mark.parametrize("backend", ["cpu", "cuda", "hip"])
def test_ladder_lists_the_rungs_without_a_gpu(backend, pysimd_cli, document):
    code, out, _ = pysimd_cli("ladder", "--backend", backend, "--list")
    assert code == 0
    rungs = pysimd.rungs(backend)
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [[r.number, r.name] for r in rungs]
    rows = document("ladder", "--backend", backend, "--list")["rows"]
    assert [row["ratio"] for row in rows] == [r.ratio.value for r in rungs]


def test_ladder_of_the_cpu_measured(pysimd_cli, document, tmp_path):
    pytest.importorskip("threadpoolctl")
    few = ("ladder", "--backend", "cpu", "--sizes", "16,24", "--threads", "1", "--seconds", "0.001")
    rows = document(*few)["rows"]
    names = [*(rung.name for rung in pysimd.rungs("cpu")), "NumPy"]
    assert [(row["name"], row["size"]) for row in rows] == [(name, size) for size in (16, 24) for name in names]
    assert all(row["within_bound"] and row["gflops"] > 0 for row in rows)
    assert [row["gain"] is None for row in rows] == [name in ("ijk", "NumPy") for name in names] * 2
    assert rows[1]["gain"] == pytest.approx(rows[1]["gflops"] / rows[0]["gflops"])
    assert rows[1]["over_numpy"] == pytest.approx(rows[1]["gflops"] / rows[len(names) - 1]["gflops"])
    code, out, _ = pysimd_cli(*few)
    assert code == 0
    assert len(out.splitlines()) == 2 + len(rows)
    if importlib.util.find_spec("matplotlib"):
        assert pysimd_cli(*few, "--plot", tmp_path / "ladder.png")[0] == 0
        assert (tmp_path / "ladder.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--backend", "cpu", "--types", "f32"], "--types is for --backend cuda"),
        (["--backend", "hip", "--types", "f32"], "--types is for --backend cuda"),
        (["--threads", "2"], "--threads is for --backend cpu"),
        (["--backend", "hip", "--threads", "2"], "--threads is for --backend cpu"),
    ],
)
def test_ladder_options_that_exclude_each_other(pysimd_cli, argv, words):
    code, out, err = pysimd_cli("ladder", *argv)
    assert (code, out) == (2, "")
    assert words in only_error(err)


@pytest.mark.parametrize("backend", [1, 2])
def test_ladder_without_a_gpu_says_why(backend, pysimd_cli):
    name, reason = pysimd.backends()[backend].name, pysimd.backends()[backend].reason
    if not reason:
        pytest.skip(f"{name} is available here")
    code, out, err = pysimd_cli("ladder", "--backend", name)
    assert (code, out) == (1, "")
    assert reason in only_error(err)


def test_ladder_has_nothing_to_draw_in_a_list(pysimd_cli, tmp_path):
    code, _, err = pysimd_cli("ladder", "--list", "--plot", tmp_path / "plot.png")
    assert code == 2
    assert "leave --list out" in only_error(err)


@pytest.fixture
def measured(monkeypatch):
    """Invented measurements of the ladder."""
    from pysimd.bench import cuda_ladder as ladder_report

    def made(sizes, seconds, say, types, backend):
        say("measuring")
        rows, peaks = [], {}
        for family in types:
            peaks[family] = None if family == "bf16f32" else 60.0
            for size in sizes:
                rungs = [rung for rung in pysimd.rungs() if rung.types == family]
                rows += [
                    ladder_report._row(rung, size=size, tflops=1.0 + i, percent_of_cublas=50.0, percent_of_peak=25.0)
                    for i, rung in enumerate(rungs)
                ]
                rows.append(ladder_report.Row(None, "cuBLAS", None, None, None, None, family, size=size, tflops=50.0))
        return rows, peaks

    monkeypatch.setattr(ladder_report, "measure", made)


def test_ladder_measured(pysimd_cli, document, measured):
    code, out, err = pysimd_cli("ladder", "--sizes", "64,128")
    assert code == 0
    assert err == "measuring\n"
    lines = out.splitlines()
    assert len(lines) == 2 + 2 * (sum(rung.types == "f32" for rung in pysimd.rungs()) + 1)
    assert lines[1].split() == ["64", "S0", "naive_uncoalesced", "1.00", "50.0", "25.0", "0.50", *lines[1].split()[7:]]
    assert "peak: 60.0 TFLOP/s" in lines[-1]
    data = document("ladder", "--sizes", "64")
    assert data["peak_tflops"] == {"f32": 60.0}
    assert data["rows"][-1]["name"] == "cuBLAS"


def test_ladder_of_several_families(pysimd_cli, document, measured):
    code, out, _ = pysimd_cli("ladder", "--sizes", "64", "--types", "f16f32,bf16f32")
    assert code == 0
    float16, bfloat16 = out.split("\n\n")
    assert "wmma_naive" in float16
    assert "peak: 60.0" in float16
    assert "bf16_best" in bfloat16
    assert "peak:" not in bfloat16
    data = document("ladder", "--sizes", "64", "--types", "f16f32,bf16f32")
    assert data["peak_tflops"] == {"f16f32": 60.0, "bf16f32": None}
    assert {row["types"] for row in data["rows"]} == {"f16f32", "bf16f32"}
    code, _, err = pysimd_cli("ladder", "--types", "f32,f16f32", "--plot", "x.png")
    assert code == 2
    assert "--plot draws one family" in only_error(err)


def test_ladder_plot(pysimd_cli, measured, tmp_path):
    pytest.importorskip("matplotlib")
    code, _, err = pysimd_cli("ladder", "--sizes", "64,128", "--plot", tmp_path / "ladder.png")
    assert code == 0
    assert (tmp_path / "ladder.png").read_bytes().startswith(b"\x89PNG")
    assert "ladder.png" in err


def test_source_of_a_rung(pysimd_cli):
    code, out, _ = pysimd_cli("source", "smem_dbuf")
    assert code == 0
    assert out == pysimd.rung("smem_dbuf").source


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--types", "f16"], "--types f16 is for --backend cuda"),
        (["--backend", "cuda", "--types", "u8i8i32"], "--types u8i8i32 is not for --backend cuda: give any of f32"),
        (["--backend", "cuda", "--threads", "2"], "--plot and --threads are for --backend cpu"),
    ],
)
def test_bench_options_that_exclude_each_other(pysimd_cli, argv, words):
    code, out, err = pysimd_cli("bench", *argv)
    assert (code, out) == (2, "")
    assert words in err


def test_bench_on_a_gpu_or_why_not(pysimd_cli):
    code, out, err = pysimd_cli("bench", "--backend", "cuda", "--sizes", "4", "--batch", "100", *QUICK)
    backend = next(b for b in pysimd.backends() if b.name == "cuda")
    if backend.available:
        assert code == 0
        assert "cublas/pysimd" in out
    else:
        assert (code, out) == (1, "")
        assert " ".join(backend.reason.split()) in err
