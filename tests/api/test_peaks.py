"""``pysimd peaks``: what is measured, that it is kept for this machine alone, and what happens where it cannot."""

import json
import os
import re
import subprocess
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from guard import GuardedMemory
from pysimd._cpu import ffi, lib

import pysimd
from pysimd.backends.cpu import table
from pysimd.bench import cpu_peaks, peaks
from pysimd.bench.tiles import Speed
from pysimd.cli import command as cli
from pysimd.inspection import x86


@pytest.fixture(autouse=True)
def kept_in(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pysimd"


@pytest.fixture
def quick(monkeypatch):
    """Few short samples in small windows: these tests are about what happens to the figures."""
    monkeypatch.setattr(cpu_peaks, "ROUNDS", 2)
    monkeypatch.setattr(cpu_peaks, "SAMPLE_NS", 1e4)
    monkeypatch.setattr(cpu_peaks, "_CHUNK", 1 << 16)
    monkeypatch.setattr(cpu_peaks, "windows", lambda: {"L1": 4096, "L2": 1 << 16, "memory": 1 << 18})


@pytest.fixture
def counted(monkeypatch):
    """The measurements so far; every figure is the number of its measurement."""
    calls = []

    def measured(say):
        calls.append(None)
        return [{"target": "sse", "types": "f32", "instruction": "", "gflops": float(len(calls)), "loads": []}]

    monkeypatch.setattr(cpu_peaks, "measured", measured)
    return calls


# --- what is measured ---


@pytest.mark.skipif(table.FOLDER != "x86", reason="peaks.inc has the targets of x86-64")
def test_every_target_and_type_has_a_peak():
    """Also those that this machine lacks."""
    built = {(k.target, k.types) for k in pysimd.kernels("cpu") if k.target in table.BUILT and k.form == "outer"}
    assert [family for family in sorted(built) if cpu_peaks.index(*family) is None] == []


@pytest.mark.usefixtures("quick")
def test_every_target_and_type_of_this_machine_has_a_peak():
    found = peaks.peaks("cpu")
    assert {(x.target, x.types) for x in found.peaks} == {
        (k.target, k.types) for k in pysimd.kernels("cpu", available=1)
    }
    for peak in found.peaks:
        assert peak.gflops > 0
        assert [x.memory for x in peak.loads] in ([], ["L1", "L2", "memory"])
        for load in peak.loads:
            assert 0 < load.gloads_per_s < load.gbytes_per_s
            assert load.gbytes_per_s / load.gloads_per_s in (16, 32, 64)
    generic = {x.types: x for x in found.peaks if x.target == "generic"}
    assert generic["f32"].loads
    assert not generic["i8i32"].loads  # these convert what they read


def test_windows_fit_their_memories():
    sizes, windows = cpu_peaks.cache_bytes(), cpu_peaks.windows()
    assert windows["L1"] <= sizes["L1"] / 2
    if "L2" in windows:
        assert sizes["L1"] < windows["L2"] < sizes["L2"]
    if "L3" in windows:
        assert sizes["L2"] < windows["L3"] < sizes["L3"]
    assert windows["memory"] % cpu_peaks._CHUNK == 0


def test_a_container_bounds_what_is_allocated(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(cpu_peaks, "_CONTAINER_LIMITS", (str(tmp_path / "none"), str(limit)))
    limit.write_text("max\n")
    assert cpu_peaks._free_bytes() > 1 << 20
    limit.write_text("1048576\n")
    assert cpu_peaks._free_bytes() == 1 << 20


@pytest.mark.parametrize(("target", "types"), [("generic", "f32"), ("generic", "f64")])
def test_loads_read_the_whole_window_and_nothing_else(target, types):
    """The page behind the window is not mapped (guard.py): one load more would crash."""
    place = cpu_peaks.index(target, types)
    step = cpu_peaks.step_bytes(place)
    memory = GuardedMemory()
    pointer = ffi.from_buffer(memory.ending_at_guard(np.zeros(3 * step, np.uint8)))
    for steps in (1, 2, 3, 7):
        assert lib.pysimd_time_loads(place, pointer, 3 * step, steps, 1) > 0


@pytest.mark.skipif(bool(x86.missing()), reason=x86.missing() or "nothing")
@pytest.mark.parametrize(
    "place", [i for i in range(lib.pysimd_peak_count) if lib.pysimd_peaks[i].target != lib.GENERIC]
)
def test_multiply_adds_load_nothing_and_loads_multiply_nothing(place):
    peak = lib.pysimd_peaks[place]
    multiply_adds = _hot(peak.steps)
    splits = table.TARGETS[peak.target] == "amx" and peak.types == lib.F16F32
    parts = x86.PRODUCTS_OF_PARTS if splits else 1
    assert sum(x.macs for x in multiply_adds) == parts * peak.macs
    assert not {"load", "store", "spill"} & {role for x in multiply_adds for role in x.roles}
    if cpu_peaks.step_bytes(place) is not None:
        loads = _hot(peak.loads)
        assert sum("load" in x.roles for x in loads) == lib.PYSIMD_LOADS_A_STEP
        assert sum(x.load_bytes for x in loads) == cpu_peaks.step_bytes(place)
        assert not {"multiply-add", "store", "spill"} & {role for x in loads for role in x.roles}


def _hot(function):
    """The lines of the innermost loop of a C function with the most multiply-adds, or else the longest."""
    code = x86.decode(*x86.function_at(int(ffi.cast("uintptr_t", function))))
    if len(code) == 1:  # a jump to the same code under another name
        code = x86.decode(*x86.function_at(code[0].near_branch_target))
    loops = [[x86.line(i) for i in loop] for loop in x86.innermost_loops(code)]
    return max(loops, key=lambda loop: (sum(x.macs for x in loop), len(loop)))


def test_the_next_reader_of_memory_continues_where_the_last_one_ended(monkeypatch):
    """Otherwise the second would read from a cache what the first loaded."""
    monkeypatch.setattr(cpu_peaks, "_CHUNK", 1 << 16)
    buffer = cpu_peaks.Buffer(3 << 16)
    places = [buffer.next_chunk() - buffer.pointer for _ in range(5)]
    assert places == [0, 1 << 16, 2 << 16, 0, 1 << 16]


def test_a_target_that_is_not_in_the_table():
    assert cpu_peaks.index("avx512bf16", "f64") is None


def test_speed_without_peaks():
    assert Speed(2.0).percent_of_peak is None
    assert Speed(2.0, 8.0).percent_of_peak == 25


# --- what is kept ---


def test_measured_once_and_kept(counted, kept_in):
    first, second = peaks.peaks(), peaks.peaks()
    assert first == second
    assert len(counted) == 1
    (file,) = kept_in.iterdir()
    assert peaks.Peaks.from_dict(json.loads(file.read_text())) == first
    assert first.identity["build"] == cpu_peaks.identity()["build"]


def test_fresh_measures_again_and_is_kept(counted):
    peaks.peaks()
    assert peaks.peaks(fresh=True).peaks[0].gflops == 2
    assert peaks.peaks().peaks[0].gflops == 2


@pytest.mark.parametrize("what", ["device", "features", "targets", "cores", "cache_bytes", "build"])
def test_another_machine_or_build_is_measured_again(counted, monkeypatch, what, kept_in):
    peaks.peaks()
    identity = cpu_peaks.identity()
    assert what in identity
    monkeypatch.setattr(cpu_peaks, "identity", lambda: {**identity, what: "another"})
    assert peaks.peaks().peaks[0].gflops == 2
    assert len(list(kept_in.iterdir())) == 2


def test_a_file_of_another_machine_is_not_used(counted, kept_in):
    found = peaks.peaks()
    (file,) = kept_in.iterdir()
    file.write_text(json.dumps(replace(found, identity={"device": "another"}).to_dict()))
    assert peaks.peaks().peaks[0].gflops == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"schema_version": 99}', '{"schema_version": 1}', "\xff"])
def test_a_corrupt_file_is_replaced(counted, kept_in, text):
    peaks.peaks()
    (file,) = kept_in.iterdir()
    file.write_text(text)
    assert peaks.peaks().peaks[0].gflops == 2
    assert json.loads(file.read_text())["peaks"][0]["gflops"] == 2


def test_a_folder_that_cannot_be_written(counted, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [peaks.peaks().peaks[0].gflops for _ in range(2)] == [1, 2]


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 16 KiB."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def full_disk(small_disk):
    """A folder on a file system without a free byte."""
    with suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    return small_disk


def test_a_full_disk(counted, monkeypatch, full_disk):
    """Peaks are measured each time, and no piece of a file is left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(full_disk))
    assert [peaks.peaks().peaks[0].gflops for _ in range(2)] == [1, 2]
    assert [x for x in full_disk.rglob("*") if x.is_file()] == [full_disk / "filler"]


def test_results_on_a_full_disk(full_disk, capsys):
    """One line says what is missing; there, the next one works."""
    words = ["run", "generic_f32_outer_4x4", "--seconds", "0.001", "--out"]
    assert cli.main([*words, str(full_disk / "out.npy")]) == 1
    err = capsys.readouterr().err
    assert "No space left" in err or "could be written" in err or "requested" in err, err
    assert "Traceback" not in err
    assert cli.main([*words, str(full_disk.parent / "out.npy")]) == 0


def test_a_home_that_is_no_folder(counted, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", os.devnull)
    assert [peaks.peaks().peaks[0].gflops for _ in range(2)] == [1, 2]


def test_a_read_only_cache(counted, monkeypatch, tmp_path):
    """What is kept there is used; what is new is not kept."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        pytest.skip("root may write into any folder")
    peaks.peaks()
    folder = tmp_path / "pysimd"
    folder.chmod(0o500)
    try:
        check_that_nothing_is_kept()
    finally:
        folder.chmod(0o700)


def test_a_cache_on_a_read_only_disk(counted, monkeypatch, small_disk):
    """On which root may not write either."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    peaks.peaks()
    (kept,) = (x for x in small_disk.rglob("*") if x.is_file())
    text = kept.read_text()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    check_that_nothing_is_kept()
    assert kept.read_text() == text


def check_that_nothing_is_kept():
    assert peaks.peaks().peaks[0].gflops == 1
    assert [peaks.peaks(fresh=True).peaks[0].gflops for _ in range(2)] == [2, 3]
    assert peaks.peaks().peaks[0].gflops == 1


def test_a_user_without_a_home(counted, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")

    def nowhere():
        raise RuntimeError("no home")

    monkeypatch.setattr(peaks.Path, "home", nowhere)
    assert [peaks.peaks().peaks[0].gflops for _ in range(2)] == [1, 2]


def test_without_xdg_the_cache_is_in_the_home_folder(counted, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    monkeypatch.setattr(peaks.Path, "home", lambda: tmp_path)
    peaks.peaks()
    assert [x.name[:10] for x in (tmp_path / ".cache" / "pysimd").iterdir()] == ["peaks-cpu-"]


def test_no_unfinished_file_is_left(counted, monkeypatch, kept_in):
    monkeypatch.setattr(peaks.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    peaks.peaks()
    assert os.listdir(kept_in) == []


# --- refusals ---


def test_other_backends():
    with pytest.raises(pysimd.OptionError, match="cpu and cuda"):
        peaks.peaks("hip")


@pytest.mark.skipif(pysimd.backends()[1].available, reason="there is a GPU")
def test_no_gpu():
    with pytest.raises(pysimd.UnavailableError):
        peaks.peaks("cuda")


def test_json_of_something_else():
    with pytest.raises(pysimd.OptionError, match="pysimd peaks --json"):
        peaks.Peaks.from_dict({"schema_version": 1, "rows": []})


# --- the command ---


@pytest.mark.usefixtures("quick")
def test_command(capsys):
    assert cli.main(["peaks"]) == 0
    out, err = capsys.readouterr()
    families = {(k.target, k.types) for k in pysimd.kernels("cpu", available=True)}
    assert set(re.findall(r"peak of (\w+) (\w+) ...", err)) == families
    assert "memory GB/s" in out
    assert "generic" in out
    assert cli.main(["peaks", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert peaks.Peaks.from_dict(data) == peaks.peaks()


@pytest.mark.usefixtures("quick")
def test_a_counted_and_measured_report_has_them(capsys):
    pytest.importorskip("iced_x86")
    names = ["generic_f32_outer_4x4"]
    assert pysimd.compare(names, measure=True, seconds=0.001).peaks == ()
    made = pysimd.compare(names, count=True, measure=True, seconds=0.001)
    assert made.peaks == (peaks.peaks(),)
    again = pysimd.Report.from_dict(json.loads(made.to_json()))
    assert (again.peaks, again.rows) == (made.peaks, made.rows)
    page = made.html()
    assert "<h2>Peaks of" in page
    assert 'class="far"' in page
