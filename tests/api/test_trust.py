"""Files that come from anywhere: arrays never unpickle, JSON is bounded, and a corrupt file is an error of one line."""

import ast
import json
import pickle
import random
import struct
from dataclasses import replace
from pathlib import Path

import fuzzing
import numpy as np
import pytest

import pysimd
from pysimd.bench import peaks
from pysimd.cli import command as cli
from pysimd.cli import report as report_command
from pysimd.cli import run
from pysimd.report.report import Report

ROOT = Path(__file__).parents[2]
PACKAGE = Path(pysimd.__file__).parent


class Bomb:
    """Unpickled, it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "unpickled")


def npy(header: str, data: bytes = bytes(64)) -> bytes:
    text = header.encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s}"

BAD_ARRAYS = {
    "cut off": npy(HEADER % ("<f4", "(1000, 4)")),
    "16 TiB": npy(HEADER % ("<f4", "(1099511627776, 4)")),
    "more than there can be": npy(HEADER % ("<f4", "(4294967296, 4294967296, 4)")),
    "negative": npy(HEADER % ("<f4", "(-4, -4)")),
    "code in the header": npy("__import__('os').abort()"),
    "an open bracket": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4, "),
    "a zip that is none": b"PK\x03\x04" + bytes(100),
    "empty": b"",
    "text": b"1 2 3\n",
}


def refused(capsys, *words) -> str:
    code = cli.main([str(x) for x in words])
    out, err = capsys.readouterr()
    assert code in (1, 2)
    assert out == ""
    assert err.startswith("pysimd: error: ")
    assert err.count("\n") == 1
    return err


def test_arrays_are_never_unpickled(tmp_path, capsys):
    """A .npy file of objects, an .npz of them, and a bare pickle."""
    good = tmp_path / "b.npy"
    np.save(good, np.ones((4, 4), np.float32))
    bomb = np.array([[Bomb(tmp_path / "bomb")] * 4] * 4, dtype=object)
    np.save(tmp_path / "objects.npy", bomb, allow_pickle=True)
    np.savez(tmp_path / "objects.npz", bomb)
    (tmp_path / "bare.npy").write_bytes(pickle.dumps(Bomb(tmp_path / "bomb")))
    for name in ("objects.npy", "objects.npz", "bare.npy"):
        for a, b in ((tmp_path / name, good), (good, tmp_path / name)):
            refused(capsys, "run", "generic_f32_outer_4x4", "--a", a, "--b", b)
    assert not (tmp_path / "bomb").exists()
    pickle.loads((tmp_path / "bare.npy").read_bytes())
    assert (tmp_path / "bomb").exists(), "the bomb does not work: the test could not fail"


def test_nothing_loads_pickles():
    """No np.load without allow_pickle=False, and no pickle.load at all, in the package and its benchmarks."""
    found = []
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load"):
                options = {x.arg: ast.unparse(x.value) for x in node.keywords}
                assert options.get("allow_pickle") == "False", f"{path}:{node.lineno}"
                found.append(path.name)
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert name not in ("pickle.load", "pickle.loads", "eval", "exec", "os.system"), (
                f"{path}:{node.lineno}: {name}"
            )
    assert "run.py" in found


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_files_that_are_no_arrays(case, tmp_path, capsys):
    path = tmp_path / "a.npy"
    path.write_bytes(BAD_ARRAYS[case])
    assert str(path) in (said := refused(capsys, "run", "generic_f32_outer_4x4", "--a", path, "--b", path)) or (
        "not enough memory" in said
    )


def test_arrays_changed_at_random(tmp_path, recwarn):
    rng, path = random.Random(0), tmp_path / "a.npy"
    np.save(path, np.ones((4, 4), np.float32))
    good, kernel = path.read_bytes(), pysimd.kernel("generic_f32_outer_4x4")
    outcomes = set()
    for _ in range(500):
        path.write_bytes(fuzzing.mutated(good, rng))
        try:
            run._load(kernel, path)
            outcomes.add("read")
        except pysimd.PysimdError:
            outcomes.add("refused")
        except MemoryError:
            outcomes.add("too large")
    assert {"read", "refused"} <= outcomes


# --- JSON ---


@pytest.fixture(scope="module")
def document():
    pytest.importorskip("iced_x86")
    made = pysimd.compare(["generic_f32_outer_4x4", "generic_f32_inner_4x4"], count=True)
    speed = {
        "gflops": 9.0,
        "peak_gflops": 20.0,
        "percent_of_peak": 45.0,
        "peak_load_gbytes_per_s": 60.0,
        "limit": "loads",
    }
    rows = tuple(replace(row, **speed) for row in made.rows)
    loads = (peaks.Loads("L1", 1, 60.0, 3.0),)
    peak = peaks.Peaks("cpu", {"device": "a CPU"}, "today", 1.0, (peaks.Peak("generic", "f32", "", 20.0, loads),))
    return json.loads(Report(rows, made.machine, (peak,)).to_json())


def places(data, at=()):
    """The path of every value of a document."""
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield (*at, key)
        yield from places(data[key], (*at, key))


def test_reports_changed_at_random(document, tmp_path, capsys):
    """A page or an error of one line; what is a text in the document is no markup on the page."""
    rng, path, page = random.Random(0), tmp_path / "report.json", tmp_path / "page.html"
    codes = set()
    for _ in range(150):
        data = json.loads(json.dumps(document))
        *parents, last = rng.choice(list(places(data)))
        changed = data
        for key in parents:
            changed = changed[key]
        changed[last] = rng.choice([None, True, 0, -1, 1e308, 10**30, "<script>bomb()</script>", [], {}, [1]])
        path.write_text(json.dumps(data))
        codes.add(cli.main(["report", "--from", str(path), "-o", str(page)]))
        err = capsys.readouterr().err
        assert "Traceback" not in err
        assert err.count("\n") == 1
        if page.exists():
            assert "<script>bomb" not in page.read_text()
    assert codes == {0, 2}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 10, '{"schema_version": 1e999}', "1" * 5000, "\x00", '"\\ud800"']
)
def test_files_that_are_no_reports(text, tmp_path, capsys):
    path = tmp_path / "report.json"
    path.write_text(text)
    refused(capsys, "report", "--from", path, "-o", tmp_path / "page.html")


def test_a_report_that_is_too_long_is_not_read(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report_command, "_MOST_BYTES", 1000)
    path = tmp_path / "report.json"
    path.write_text("[" + "0," * 1000 + "0]")
    assert "longer than 1000 bytes" in refused(capsys, "report", "--from", path, "-o", tmp_path / "page.html")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"schema_version": 1, "peaks": ' + "[" * 50_000, " " * (2 << 20) + "{}"]
)
def test_a_cache_that_was_tampered_with_is_not_used(text, tmp_path):
    path = tmp_path / "peaks.json"
    path.write_text(text)
    assert peaks._read(path, {}) is None
