"""The tests can fail: kernels broken on purpose, compiled from a mutated copy of the sources, must be refused by the
check that accepts the unchanged copy.

The mutants are in the plain C and SSE kernels, which need no compiler flags and run everywhere the other tests do."""

import ctypes
import platform
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import panels
import pytest
from reference import check, operands, random_result

import pysimd

GCC = shutil.which("gcc")
pytestmark = pytest.mark.skipif(GCC is None, reason="needs gcc")

# what: (kernel, file, text, its replacement)
MUTANTS = {
    "rows stored twice": (
        "sse_f32_outer_6x8",
        "templates/outer.h",
        "V(store)(cij, acc[i][j])",
        "V(store)(cij, acc[i % 4][j])",
    ),
    "last row forgotten": (
        "generic_f32_outer_4x4",
        "templates/outer.h",
        "V(elem_c) *ci = c + i * rs_c;",
        "V(elem_c) *ci = c + (i < 3 ? i : 2) * rs_c;",
    ),
    "C overwritten": ("generic_f64_outer_4x4", "generic/vec_generic.h", "{ return a + b; }", "{ return b; }"),
    "a product subtracted": (
        "generic_f32_outer_4x4",
        "generic/vec_generic.h",
        "return a * b + c;",
        "return c - a * b;",
    ),
    "one k too few": ("generic_f32_outer_4x4", "templates/outer.h", "int64_t p = k;", "int64_t p = k - (k > 1);"),
    "uint8 read as int8": (
        "generic_u8i8i32_outer_4x4",
        "generic/vec_generic.h",
        "u8i8x4, generic_i32, uint8_t",
        "u8i8x4, generic_i32, int8_t",
    ),
    "inner sum without its rest": ("generic_f32_inner_4x4", "templates/inner.h", "if (p < k) {", "if (p < k - 4) {"),
}

INT, POINTER = ctypes.c_int64, ctypes.c_void_p
SIGNATURE = ctypes.CFUNCTYPE(None, INT, POINTER, INT, INT, POINTER, INT, POINTER, INT)


def compiled(tmp_path, kernel, file="", old="", new=""):
    """``run`` of a kernel built from a copy of the sources in which ``old`` is replaced, in ``file``, by ``new``."""
    sources = tmp_path / "cpu_kernels"
    shutil.copytree(str(files("pysimd.cpu_kernels")), sources, dirs_exist_ok=True)
    if file:
        text = (sources / file).read_text()
        assert old in text, f"{file} has changed: no {old!r} to mutate; choose another place for this mutant"
        (sources / file).write_text(text.replace(old, new))
    library = tmp_path / f"{kernel.name}.so"
    subprocess.run(
        [GCC, "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / kernel.source_path], check=True
    )
    return SIGNATURE((kernel.name, ctypes.CDLL(str(library))))


def accepted(run, kernel) -> None:
    """The check that a right kernel passes, on lengths that reach every part of it."""
    for k in (1, 2, 9, 17):
        a, b = operands(kernel, k)
        c = random_result(np.random.default_rng(k), kernel.c_dtype, (kernel.mr, kernel.nr))
        before = c.copy()
        at = panels.tile(kernel, a, b, packed=True)
        pointers = [x.__array_interface__["data"][0] for x in (at.a, at.b, c)]
        run(at.groups, pointers[0], at.rs_a, at.cs_a, pointers[1], at.rs_b, pointers[2], kernel.nr)
        check(c, kernel.types, a, b, before)


def kernel_of(name):
    if name.startswith("sse") and platform.machine() != "x86_64":
        pytest.skip("an x86-64 kernel")
    return pysimd.kernel(name)


@pytest.mark.parametrize("name", sorted({mutant[0] for mutant in MUTANTS.values()}))
def test_the_unchanged_copy_is_accepted(name, tmp_path):
    kernel = kernel_of(name)
    accepted(compiled(tmp_path, kernel), kernel)


@pytest.mark.parametrize("what", MUTANTS)
def test_a_broken_kernel_is_refused(what, tmp_path):
    name, *mutation = MUTANTS[what]
    kernel = kernel_of(name)
    run = compiled(tmp_path, kernel, *mutation)
    with pytest.raises(AssertionError, match="elements are wrong"):
        accepted(run, kernel)
