"""Kernels in functions that Numba compiles."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from process import run_python

import pysimd

EXAMPLES = Path(__file__).parents[2] / "examples"
PLAIN = [k for k in pysimd.kernels("cpu", form="outer", available=True) if k.types in ("f32", "f64")]

numba = pytest.importorskip("numba")
interop = importlib.import_module("pysimd.interop.numba")


@pytest.fixture(scope="module")
def tiles():
    """tile(kernel) for the smallest kernel of each type."""
    first = {k.types: k for k in sorted(PLAIN, key=lambda k: k.mr * k.nr)[::-1]}
    return {types: (kernel, interop.tile(kernel)) for types, kernel in first.items()}


@pytest.mark.parametrize("types", ["f32", "f64"])
def test_a_compiled_loop(tiles, types, rng):
    kernel, tile = tiles[types]

    @numba.njit
    def accumulate(a, b, c):
        for i in range(a.shape[0]):
            tile(a[i], b[i], c[i])

    for k in (0, 1, 9):
        a = rng.integers(-9, 9, (20, k, kernel.mr)).astype(kernel.c_dtype).swapaxes(1, 2)
        b = rng.integers(-9, 9, (20, k, 2 * kernel.nr)).astype(kernel.c_dtype)[:, :, : kernel.nr]
        c = rng.integers(-9, 9, (20, kernel.mr, kernel.nr)).astype(kernel.c_dtype)
        a.flags.writeable = False
        expected = c + a @ b
        accumulate(a, b, c)
        assert (c == expected).all()


def test_wrong_shapes_and_dtypes(tiles):
    kernel, tile = tiles["f32"]
    a, b, c = (np.zeros(shape, np.float32) for shape in ((kernel.mr, 5), (5, kernel.nr), (kernel.mr, kernel.nr)))
    tile(a, b, c)
    for wrong in ((a[:-1], b, c), (a, b[:-1], c), (a, b, c[:, :-1]), (a, b[:, :-1], c)):
        with pytest.raises(ValueError, match="not those of the kernel"):
            tile(*wrong)
    for wrong in ((a, np.asfortranarray(b), c), (a, b, np.asfortranarray(c))):
        with pytest.raises(ValueError, match="adjacent"):
            tile(*wrong)
    with pytest.raises((TypeError, numba.TypingError)):
        tile(a.astype(np.float64), b, c)


def test_kernels_that_read_panels_are_refused():
    for name in ("generic_f32_inner_4x4", "generic_bf16f32_outer_4x4"):
        with pytest.raises(pysimd.OptionError, match="reads packed panels"):
            interop.tile(name)
    with pytest.raises(pysimd.UnknownKernelError):
        interop.tile("generic_f32_outer_4x5")


def test_kernels_of_float16_are_refused():
    named = pysimd.kernels("cpu", types="f16", form="outer", available=True)
    if not named:
        pytest.skip("no kernel of float16 here")
    with pytest.raises(pysimd.OptionError, match="Numba has no float16"):
        interop.tile(named[0])


def test_example():
    done = run_python(str(EXAMPLES / "numba_tiles.py"))
    turned, expected = re.search(r"turned by (\S+), expected (\S+)\n", done.stdout).groups()
    assert abs(float(turned) - float(expected)) < 0.05
