"""Memory and threads that the system refuses, each request of a call once: MemoryError or fewer threads, nothing
written, nothing leaked, and the next call is right."""

import json
from pathlib import Path

import fault_probe
import faults
import pytest
from process import RUNNER, SANITIZED, run_python

WHY_NOT = faults.missing()
if SANITIZED:
    WHY_NOT = "the address sanitizer has its own malloc"
elif RUNNER:
    WHY_NOT = "an emulator would be preloaded as well"
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "nothing")

THREADED = (
    "blocks, threads",
    "strips",
    "strips in pieces",
    "batch, threads",
    "panels, threads",
    "gemm scales in place",
    "every other element, threads",
    "16-bit results",
    "rung threads",
    "rung gemm",
)
"""Calls that start threads."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return str(faults.build(tmp_path_factory.mktemp("faults")))


def walk(library, name):
    """What happened to the call with its first, its second, ... request refused; the last one had all it asked for."""
    done = run_python(str(Path(fault_probe.__file__)), name, LD_PRELOAD=library, OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for x in found:
        assert "failed" not in x, x["failed"]
    return found


@pytest.mark.parametrize("name", fault_probe.CASES)
def test_each_request_is_refused_once(name, library):
    *refused, last = walk(library, name)
    assert (last["refused"], last["error"]) == ("nothing", None)
    kinds = [x["refused"] for x in refused]
    assert "memory" in kinds
    assert ("thread" in kinds) == (name in THREADED)
    for x in refused:
        if x["refused"] == "memory":
            assert x["error"] is not None, "a result without the memory that it needs"
        else:
            assert x["error"] is None, "one thread less is no error"
        assert x["live"][-1] == last["live"][-1], "the refused call has leaked memory"
    assert last["live"][-1] == last["live"][-2], "each call leaks memory"
