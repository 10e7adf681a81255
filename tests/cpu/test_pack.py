"""Panels in groups of four bytes, which only kernels of AVX-512 and Arm read, packed on any processor."""

import ctypes
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

GCC = shutil.which("gcc")
PROBE = Path(__file__).parents[1] / "support" / "pack_probe.c"
BEHIND = 0xA5


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    if GCC is None:
        pytest.skip("needs gcc")
    library = tmp_path_factory.mktemp("pack") / "probe.so"
    sources = str(files("pysimd.cpu_kernels"))
    command = [GCC, "-std=gnu11", "-O1", "-w", "-shared", "-fPIC", "-I", sources, PROBE, "-o", library]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).pack
    pointer, length = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = [ctypes.c_int, length, length, pointer, length, length, pointer]
    function.restype = length
    return function


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("m", [1, 2, 5, 14])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 16, 29])
@pytest.mark.parametrize("layout", ["dense", "every other", "by columns"])
def test_rows_of_a_and_nothing_behind_them(pack, dtype, m, k, layout, rng):
    """Each row ends in zeros where k does not fill its last group; not a byte behind the panel is written."""
    memory = rng.integers(1, 255, 2 * m * k).astype(dtype)
    a = {
        "dense": memory[: m * k].reshape(m, k),
        "every other": memory.reshape(m, 2 * k)[:, ::2],
        "by columns": memory[: m * k].reshape(k, m).T,
    }[layout]
    size, group = a.itemsize, 4 // a.itemsize
    right = np.zeros((m, -(-k // group) * group), dtype)
    right[:, :k] = a
    panel = np.full(4 * right.nbytes + 64, BEHIND, np.uint8)
    strides = (stride // size for stride in a.strides)
    written = pack(size, m, k, a.ctypes.data, *strides, panel.ctypes.data)
    assert written == right.nbytes
    np.testing.assert_array_equal(panel[:written].view(dtype).reshape(right.shape), right)
    assert (panel[written:] == BEHIND).all()
