"""Not one byte outside the arrays: operands that end at an unreadable page, or start right behind one."""

from pathlib import Path

import guard_probe
import pytest
from cases import QUICK
from process import output_of, run_python

import pysimd
from pysimd.backends.cpu import table as cpu_table

TARGETS = sorted({k.target for k in pysimd.kernels("cpu", available=True)})
PROBE = str(Path(guard_probe.__file__))


def finishes(*arguments):
    """Run the probe; a crash is reported with the product that it happened in."""
    done = run_python(PROBE, *arguments)
    lines = done.stdout.splitlines()
    last = lines[-1] if lines else "before the first product"
    assert done.returncode == 0, f"exit status {done.returncode} in: {last}\n{done.stderr[-3000:]}"
    assert last == "done"


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_stay_inside(target):
    finishes("kernels", target)


@pytest.mark.parametrize("types", ["f32", "bf16f32"] if QUICK else cpu_table.OFFERED)
def test_matmul_stays_inside(types):
    finishes("matmul", types)


@pytest.mark.parametrize("types", cpu_table.OFFERED)
def test_small_products_stay_inside(types):
    finishes("small", types)


@pytest.mark.parametrize("name", [rung.name for rung in pysimd.rungs("cpu")])
def test_rungs_stay_inside(name):
    finishes("rung", name)


@pytest.mark.parametrize(("place", "offset"), [("ending_at_guard", 1), ("starting_at_guard", -1)])
def test_the_guard_bites(place, offset):
    """One byte too far ends the process: otherwise the tests above could not fail."""
    code = f"""
import ctypes, numpy as np
from guard import GuardedMemory
x = GuardedMemory().{place}(np.ones(5, np.uint8))
address = x.__array_interface__["data"][0]
print(ctypes.string_at(address, 5), flush=True)
ctypes.string_at(address + {offset}, 5)
"""
    done = run_python("-c", code)
    assert "x01" in done.stdout
    assert done.returncode != 0
    assert "Segmentation fault" in done.stderr


def test_bytes_around_a_result_are_watched():
    code = """
import numpy as np
from guard import GuardedMemory
memory = GuardedMemory()
x = memory.ending_at_guard(np.ones(5, np.uint8))
print(memory.untouched_around(x))
x.base[len(x.base) - 4096 - 6] = 1
print(memory.untouched_around(x))
"""
    assert output_of("-c", code).split() == ["True", "False"]
