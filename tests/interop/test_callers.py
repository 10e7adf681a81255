"""Callers from C and Cython: headers, addresses, the capsule, and the examples."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from process import run_python

import pysimd
from pysimd import _cpu

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
INCLUDE = Path(pysimd.get_include())
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

RUN = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64),
    *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64),
)
PLAIN = [
    k for k in pysimd.kernels("cpu", form="outer", available=True) if k.a_dtype == k.b_dtype == k.c_dtype
]  # f32 and f64


@pytest.fixture(params=PLAIN, ids=lambda k: k.name)
def kernel(request):
    return request.param


def operands(kernel, k, rng):
    """Whole numbers: exact in any order."""
    shapes = (kernel.mr, k), (k, kernel.nr), (kernel.mr, kernel.nr)
    return [rng.integers(-9, 9, shape).astype(kernel.c_dtype) for shape in shapes]


def test_the_address_is_that_of_the_kernel(kernel, rng):
    a, b, c = operands(kernel, 7, rng)
    expected = c + a @ b
    RUN(kernel.address)(7, a.ctypes.data, 7, 1, b.ctypes.data, kernel.nr, c.ctypes.data, kernel.nr)
    assert (c == expected).all()


def test_addresses_are_of_kernels_that_can_run_here():
    with pytest.raises(pysimd.UnavailableError):
        _ = pysimd.kernels("hip")[0].address
    for missing in [k for k in pysimd.kernels("cpu") if not k.available]:
        with pytest.raises(pysimd.UnavailableError, match="cannot run here"):
            _ = missing.address


def words(text):
    return re.findall(r"\w+|[*,()]", text)


def test_the_signature_is_that_of_the_contract():
    contract = (INCLUDE / "../core/pysimd.h").read_text()
    declared = re.search(r"typedef (void) pysimd_run_fn(\(.*?\));", contract, re.DOTALL)
    assert words(pysimd.kernels("cpu")[0].c_signature) == words(declared[1] + declared[2])


def test_the_capsule_has_the_table():
    class Api(ctypes.Structure):
        _fields_ = (("version", ctypes.c_int), ("find", ctypes.c_void_p), ("choose", ctypes.c_void_p))

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    api = Api.from_address(pointer(pysimd._c_api, b"pysimd._c_api"))
    assert api.version == int(re.search(r"PYSIMD_API_VERSION = (\d+)", (INCLUDE / "pysimd_api.h").read_text())[1])
    find = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(api.find)
    for each in pysimd.kernels("cpu"):
        assert (find(each.name.encode()) is not None) == each.available
    assert find(b"avx_f32_outer_9x9") is None
    with pytest.raises(AttributeError, match="no attribute 'c_api'"):
        _ = pysimd.c_api


@needs_gcc
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_compiles_alone(language, tmp_path):
    command = ["gcc", "-x", language, "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-fsyntax-only", "-"]
    done = subprocess.run(command, input='#include "pysimd_api.h"\n', text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


# --- a program in C ---


def libpython() -> str | None:
    """The shared library of the interpreter: some are linked without one."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    folders = (sysconfig.get_config_var("LIBDIR") or "", f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}")
    return next((str(Path(x) / name) for x in folders if ".so" in name and (Path(x) / name).exists()), None)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if libpython() is None:
        pytest.skip("this interpreter has no shared library")
    path = tmp_path_factory.mktemp("c") / "tiles"
    subprocess.run(["gcc", "-O2", "-I", INCLUDE, EXAMPLES / "c/tiles.c", "-o", path, "-ldl"], check=True)

    def run(kernel, **environment):
        command = [path, _cpu.__file__, libpython(), kernel]
        kept = {k: v for k, v in os.environ.items() if k != "PYSIMD_ISA"}
        return subprocess.run(command, env=kept | environment, capture_output=True, text=True)

    return run


@needs_gcc
def test_a_program_in_c_finds_a_kernel(program):
    for name in [k.name for k in PLAIN if k.types == "f32"]:
        done = program(name)
        assert re.fullmatch(rf"{name}: right, [\d.]+ ns a call\n", done.stdout), done.stderr


@needs_gcc
def test_a_program_in_c_is_refused_what_cannot_run(program):
    assert "is no f32 outer product of this machine" in program("avx_f32_outer_9x9").stderr
    assert "is no f32 outer product of this machine" in program("generic_f64_outer_4x4").stderr
    assert program("generic_f32_outer_4x4", PYSIMD_ISA="generic").returncode == 0
    assert program("sse_f32_outer_4x4", PYSIMD_ISA="generic").returncode == 1
    assert program("generic_f32_outer_4x4", PYSIMD_ISA="nonsense").returncode == 1


def test_a_caller_from_c_finds_what_python_started(monkeypatch):
    """The bound of the import holds; the environment is not read again."""
    monkeypatch.setenv("PYSIMD_ISA", "nonsense")
    get_api = ctypes.CDLL(_cpu.__file__).pysimd_get_api
    get_api.restype = ctypes.c_void_p
    assert get_api()


# --- Cython ---


@needs_gcc
def test_cython(tmp_path, rng):
    pytest.importorskip("Cython")
    setup = f"""
from setuptools import Extension, setup
from Cython.Build import cythonize
import pysimd
include = [pysimd.get_include()]
extension = Extension("products", [{str(tmp_path / "products.pyx")!r}], include_dirs=include)
setup(ext_modules=cythonize([extension], include_path=include, quiet=True))
"""
    shutil.copy(EXAMPLES / "cython/products.pyx", tmp_path)
    (tmp_path / "setup.py").write_text(setup)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import numpy as np, products
rng = np.random.default_rng(0)
a, b, c = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((50, 4, 6), (50, 6, 4), (50, 4, 4)))
expected = c + a @ b
products.accumulate(a, b, c)
assert (c == expected).all()
try:
    products.accumulate(a, b, c[:40])
except ValueError as error:
    print(error)
"""
    done = run_python("-c", code)
    assert done.stdout == "a (n, 4, K), b (n, K, 4) and c (n, 4, 4)\n", done.stderr
