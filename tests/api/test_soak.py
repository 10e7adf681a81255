"""The soak of tests/scripts/soak.py, for parts of a second: what it refuses, and the record that it writes."""

import gc
import itertools
import json

import pytest
import soak

CALLS = [soak.Call("a call", lambda: b"x")]


@pytest.fixture(autouse=True)
def what_there_was():
    """The soak collects garbage after each round; the objects of all other tests would take seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


def run(memory, calls=CALLS):
    return soak.soak(calls, 0.02, memory, threads=2)


def test_flat_memory():
    done = run(lambda: 100 << 20)
    assert soak.growth(done) == 0
    assert done["mib_between_rounds"] == [100] * soak.ROUNDS
    assert done["calls"] > 0
    assert (done["kinds"], done["threads"]) == (1, 2)


@pytest.mark.parametrize(
    ("sizes", "grown"),
    [
        ((9, 9, 9, *range(4, 13)), 8),
        ((70, 240, 60, *[7] * 5, *[8] * 4), 1),  # the pools of the first rounds do not hide what is lost later
        ((70, 240, 60, 7, *[6] * 8), 0),
        ((1, 2, *[3] * 10), 0),
    ],
)
def test_growth_after_the_first_quarter(sizes, grown):
    assert soak.growth(run(iter([x << 20 for x in sizes]).__next__)) == grown << 20


def test_another_result_is_refused():
    results = itertools.count()
    changing = soak.Call("a changing call", lambda: b"x" if next(results) < 5 else b"y")
    with pytest.raises(AssertionError, match="a changing call has given another result"):
        run(lambda: 0, [changing])


def test_record(tmp_path):
    path = tmp_path / "soak.json"
    done = run(lambda: 1 << 20)
    soak.write(done, "cpu", path)
    data = json.loads(path.read_text())
    assert data["schema_version"] == 1
    assert data["machine"]["device"]
    assert data["machine"]["commit"]
    assert data["soak"] == {"backend": "cpu", **done}


def test_calls_of_a_process_without_a_gpu():
    """Calls of every types family and route, and none twice."""
    names = [call.name for call in soak.cpu_calls()]
    assert len(set(names)) == len(names)
    assert {name.split()[0] for name in names} >= {"f32", "f64", "gemm", "bind", "an"}
