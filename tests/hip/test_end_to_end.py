"""The HIP backend through CuPy's real ROCm wheel: its imports, its compiler calls, its cache and its launches.

ROCm's libraries are replaced (rocm_stub.c), compiling is left to a real hiprtc, launches run in the simulator. What is
not real is the GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import hip_machine_code
import hiprtc
import pytest
import rocm_stub

WHY_NOT = rocm_stub.missing() or hip_machine_code.missing()
if not WHY_NOT and hiprtc.library() is None:
    WHY_NOT = "libamdhip64.so.5 is not installed: apt install libamdhip64-5"
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "nothing")

SCRIPT = Path(__file__).parents[1] / "scripts" / "rocm_end_to_end.py"


@pytest.fixture(scope="module")
def rocm(tmp_path_factory):
    return {**os.environ, **rocm_stub.build(tmp_path_factory.mktemp("rocm"))}


def run(environment, *command, **more):
    return subprocess.run(command, env={**environment, **more}, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("target", ["gfx906", "gfx90a", "gfx1030"])
def test_everything_through_cupy(rocm, target):
    done = run(rocm, sys.executable, str(SCRIPT), PYSIMD_STUB_TARGET=target)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"backend simulated {target} {target} gfx900")
    kernels = [x for x in lines if x.startswith("kernel ")]
    assert len(kernels) == (14 if target == "gfx90a" else 10)
    assert [x for x in lines if x.startswith("matmul")] == [
        "matmul f32",
        "matmul i8i32",
        "matmul f16",
        "matmul of int8, too large for the batched kernel: tiles",
    ]
    assert {"gemm without rocBLAS", "errors"} <= set(lines)


def test_faults(rocm):
    """Memory, launches, compilations and modules that fail, and a driver that goes away: an error that says which, no
    wrong result, and the next call works."""
    done = run(rocm, sys.executable, str(SCRIPT.with_name("rocm_faults.py")), PYSIMD_STUB_TARGET="gfx90a")
    assert done.returncode == 0, done.stdout + done.stderr
    found = dict(line.split(": ") for line in done.stdout.splitlines())
    assert set(found) == {"malloc", "launch", "compile", "module", "gone", "cache"}
    assert all(int(count) > 0 for count in found.values())


SHOW = "import pysimd; print(pysimd.backends()[2].reason)"
REASONS = {
    "no device": ({"PYSIMD_STUB_NO_DEVICE": "1"}, "no AMD device"),
    "no hipcc": ({"PATH": "/nowhere"}, "hipcc is not on PATH"),
    "no ROCm": ({"LD_LIBRARY_PATH": ""}, "CuPy is installed but does not import (libamdhip64.so."),
    "too old": ({"PYSIMD_STUB_TARGET": "gfx803"}, "simulated gfx803 is gfx803: the kernels need gfx9"),
}


@pytest.mark.parametrize("case", REASONS)
def test_reason(rocm, case):
    """What is missing, in the words that a person sees."""
    more, words = REASONS[case]
    done = run(rocm, sys.executable, "-c", SHOW, **more)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
