"""Accumulators in half: who gets them, and what they hold. The kernels' products are in test_kernels.py."""

import re
import shutil
import subprocess
from importlib.resources import as_file, files

import numpy as np
import pytest
from reference import check, random_operand

import pysimd
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU

KERNEL = pysimd.kernel("avx512fp16_f16_outer_16x32")
needs_fp16 = pytest.mark.skipif(not KERNEL.available, reason=KERNEL.unavailable_reason)
SIZES = [(1, 1, 1), (3, 5, 7), (14, 32, 64), (15, 33, 2), (40, 70, 301), (100, 100, 100), (70, 200, 1500)]


def halves(rng, shape):
    return random_operand(rng, np.dtype(np.float16), shape)


def small_integers(rng, shape):
    return rng.integers(-2, 3, shape).astype(np.float16)


def test_no_product_takes_them_by_itself():
    """Products of half accumulate in float32 unless a kernel is named."""
    assert "f16" not in CPU.offered
    rows = [row for row in cpu_table.rows() if row.types == cpu_table.TYPES["f16"]]
    assert rows
    assert {row.dispatch for row in rows} == {cpu_table.lib.NEVER}
    ones = np.ones((14, 8192), np.float16)
    assert pysimd.matmul(ones, ones.T).dtype == np.float32
    result = pysimd.matmul(ones, ones.T, out=np.empty((14, 14), np.float16))
    assert (result == 8192).all()  # in half 2048 + 1 is 2048


@needs_fp16
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_named(m, n, k, rng):
    a, b = halves(rng, (m, k)), halves(rng, (k, n))
    for x, y in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b)), (a[::-1], b[:, ::-1])):
        check(pysimd.matmul(x, y, kernel=KERNEL), "f16", x, y)
    c = halves(rng, (m, n))
    check(pysimd.gemm(a, b, c, beta=1.0, kernel=KERNEL.name), "f16", a, b, c)


@needs_fp16
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("c_is_read", [True, False])
def test_factors(m, n, k, c_is_read, rng):
    """Exact: integers below 2048, and a half of even ones."""
    k = min(k, 100)
    a, b, c = small_integers(rng, (m, k)), small_integers(rng, (k, n)), 2 * small_integers(rng, (m, n))
    beta = 0.5 if c_is_read else 0.0
    result = pysimd.gemm(a, b, c if c_is_read else None, alpha=-2.0, beta=beta, kernel=KERNEL)
    np.testing.assert_array_equal(result, -2 * (a.astype(int) @ b.astype(int)) + beta * c.astype(float))
    assert result.dtype == np.float16
    out = np.zeros((m, 2 * n), np.float16)[:, ::2]
    pysimd.gemm(a, b, c if c_is_read else None, alpha=-2.0, beta=beta, out=out, kernel=KERNEL)
    np.testing.assert_array_equal(out, result)


@needs_fp16
def test_sums_beyond_the_largest_half_are_infinite():
    a = np.full((20, 300), 16, np.float16)
    result = pysimd.matmul(a, a.T, kernel=KERNEL)
    assert np.isposinf(result).all()  # 76800


@needs_fp16
@pytest.mark.parametrize("size", [200, 600])
def test_any_number_of_threads_gives_the_same_bits(size, rng):
    a, b = halves(rng, (size, size)), halves(rng, (size, size))
    one, four = (pysimd.matmul(a, b, kernel=KERNEL, threads=threads) for threads in (1, 4))
    assert one.tobytes() == four.tobytes()


@pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("nm"), reason="gcc and nm are not installed")
@pytest.mark.parametrize("without", [True, False])
def test_a_compiler_without_the_target_builds_the_table(without, tmp_path):
    """The rows are there, and nothing refers to functions that were not compiled."""
    define = ["-DPYSIMD_WITHOUT_AVX512FP16"] if without else []
    with as_file(files("pysimd.cpu_kernels")) as folder:
        for name in ("registry", "measure"):
            made = tmp_path / f"{name}.o"
            subprocess.run(["gcc", "-std=gnu11", *define, "-c", folder / "core" / f"{name}.c", "-o", made], check=True)
            wanted = subprocess.run(["nm", "-u", made], check=True, capture_output=True, text=True).stdout
            assert bool(re.search("avx512fp16_f16", wanted)) != without
