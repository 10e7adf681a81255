"""What fuzzing has found, again; and some seconds of it. ``tests/scripts/fuzz.py`` runs it for as long as one likes."""

import random
import time
from pathlib import Path

import fuzzing
import pytest
from cases import QUICK
from hip_machine_code import missing
from process import SANITIZED

CORPUS = Path(__file__).parents[1] / "corpus"
SECONDS = 10

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")


@pytest.fixture(scope="module", params=fuzzing.READERS)
def reader(request):
    """The name of a reader, right inputs for it, their changes, and what reads them."""
    make, change, read = fuzzing.READERS[request.param]
    return request.param, make(), change, read


def test_right_inputs_are_not_refused(monkeypatch):
    """Otherwise changed ones would not get far."""
    errors = []
    monkeypatch.setattr(fuzzing.pysimd, "PysimdError", type("NoError", (Exception,), {}))
    for make, _, read in fuzzing.READERS.values():
        for data in make():
            read(data)
    assert not errors


@pytest.mark.parametrize("path", sorted(CORPUS.glob("[ec]*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_findings(path):
    if path.parent.name in fuzzing.READERS:
        fuzzing.READERS[path.parent.name][2](path.read_bytes())


def test_for_some_seconds(reader):
    """The package's own errors alone come out; the seed is fixed, how many inputs there are is not."""
    if QUICK or SANITIZED:
        pytest.skip("a quick run")
    name, right, change, read = reader
    rng, end, count = random.Random(1), time.monotonic() + SECONDS, 0
    while time.monotonic() < end or count < 20:  # on a busy machine it takes longer
        data = change(rng.choice(right), rng)
        count += 1
        try:
            read(data)
        except Exception as error:
            raise AssertionError(f"input {count} of {name}: {error!r}: {data!r}") from error
