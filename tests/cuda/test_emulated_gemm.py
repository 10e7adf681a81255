"""The arithmetic of benchmarks/emulated_gemm.py in integers of Python: products by remainders keep their error bound.

The script imports CuPy; needs no GPU."""

import importlib.util
from itertools import combinations
from math import gcd

import numpy as np
import pytest
from benchmark_scripts import importable

if importlib.util.find_spec("cupy") is None:
    pytest.skip("CuPy is not installed", allow_module_level=True)

with importable() as imported:
    emulated = imported("emulated_gemm")


def by_remainders(a, b, count):
    """``a @ b.T`` as remainders.cu computes it."""
    m = emulated.moduli(count)[0]
    (x, rows), (y, columns) = scaled(a, m), scaled(b, m)
    total = np.full((len(a), len(b)), joined(m["offset_low"], m["offset_high"]), object)
    for p, low, high in zip(m["p"][:count], m["low"], m["high"], strict=False):
        sums = remainders(x, int(p)) @ remainders(y, int(p)).T
        assert np.abs(sums).max() < 2**31
        total += (sums.astype(object) + 2**31) * joined(low, high)
    total = (total + 2**127) % 2**128 - 2**127
    return np.ldexp(total.astype(float) * m["scale"], -(rows[:, None] + columns)).astype(a.dtype)


def joined(low, high):
    return int(high) << 64 | int(low)


def scaled(x, m):
    exponents = np.floor(m["log2_norm"] - np.log2(np.linalg.norm(x.astype(float), axis=1)) - 1e-6).astype(int)
    return np.rint(np.ldexp(x.astype(float), exponents[:, None])).astype(object), exponents


def remainders(x, p):
    found = np.vectorize(int)(x) % p
    return np.where(found > (p - 1) // 2, found - p, found).astype(np.int8).astype(np.int64)


def test_moduli_are_coprime():
    assert all(gcd(x, y) == 1 for x, y in combinations(emulated.MODULI, 2))


@pytest.mark.parametrize("graded", [False, True], ids=["normal", "graded"])
@pytest.mark.parametrize(("dtype", "count"), [(np.float32, 6), (np.float32, 7), (np.float64, 14), (np.float64, 15)])
def test_error_bound(dtype, count, graded, rng):
    """That of docs/ladder_tensor_cores.md; of graded columns u |A||B| is far below it, and not kept."""
    m, n, k = 5, 4, 300
    grades = 2.0 ** rng.uniform(-10, 10, k) if graded else 1.0
    a, b = (rng.standard_normal((m, k)) * grades).astype(dtype), (rng.standard_normal((n, k)) / grades).astype(dtype)
    exact = (a[:, None].astype(np.longdouble) * b.astype(np.longdouble)).sum(-1)
    error = np.abs(by_remainders(a, b, count) - exact)
    u, log2_norm = np.finfo(dtype).eps / 2, emulated.moduli(count)["log2_norm"][0]
    norms = np.outer(np.linalg.norm(a.astype(float), axis=1), np.linalg.norm(b.astype(float), axis=1))
    assert (error <= (k**0.5 * 2 ** (2 - log2_norm) + k * 2 ** (-2 * log2_norm)) * norms + u * np.abs(exact)).all()
    elementwise = (k + 3) * u * (np.abs(a).astype(float) @ np.abs(b).astype(float).T)
    assert (error <= elementwise).all() == (not graded)
