"""ozaki2_f32 and ozaki2_f64 on a GPU, against products of more precision; test_executed_remainders.py shows the same of
their kernels without one, and test_ladder.py has ozaki2_f32 among all rungs."""

import cuda_arrays
import numpy as np
import pytest
from cases import SEED

import pysimd

RUNGS = [pysimd.rung(name) for name in ("ozaki2_f32", "ozaki2_f64")]
REASON = cuda_arrays.WHY_NOT or RUNGS[0].unavailable_reason

pytestmark = [
    pytest.mark.skipif(bool(REASON), reason=REASON or "nothing"),
    pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name),
]


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)


def on_gpu(x, dtype, trans=False):
    import cupy

    x = cupy.asarray(x.astype(dtype))
    return cupy.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if trans else x


def dtype_of(rung):
    return np.dtype(pysimd.dtypes.FAMILIES[rung.types].a)


def norm_bound(rung, a, b):
    """What the headers promise."""
    root, whole, rounding = {"f32": (-25.35, -54.7, -24), "f64": (-56.39, -116.78, -51)}[rung.types]
    k, norms = a.shape[-1], np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=0))
    return (k**0.5 * 2.0**root + k * 2.0**whole) * norms + 2.0**rounding * np.abs(a @ b)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (129, 130, 67), (257, 33, 1025), (40, 300, 4100)])
@pytest.mark.parametrize("graded", [False, True])
def test_within_the_bound(rung, m, n, k, graded, rng):
    grades = 2.0 ** rng.uniform(-10, 10, k) if graded else np.ones(k)
    dtype = dtype_of(rung)
    a, b = (
        (rng.standard_normal((m, k)) * grades).astype(dtype),
        (rng.standard_normal((k, n)) / grades[:, None]).astype(dtype),
    )
    x, y = a.astype(np.longdouble), b.astype(np.longdouble)
    exact = x @ y
    for trans_a in (False, True):
        for trans_b in (False, True):
            result = rung(on_gpu(a, dtype, trans_a), on_gpu(b, dtype, trans_b)).get()
            assert result.dtype == dtype
            assert (np.abs(result - exact) <= norm_bound(rung, x, y)).all()


def test_factors_batches_and_an_out(rung, rng):
    dtype = dtype_of(rung)
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 70, 40), (40, 50), (3, 70, 50)))
    exact = -1.5 * (a.astype(np.longdouble) @ b) + 0.75 * c.astype(np.longdouble)
    bound = 50 * np.finfo(dtype).eps * (1.5 * np.abs(a) @ np.abs(b) + np.abs(c))
    x, y, out = on_gpu(a, dtype), on_gpu(b, dtype), on_gpu(np.zeros((3, 70, 50)), dtype, trans=True)
    assert rung(x, y, on_gpu(c, dtype), alpha=-1.5, beta=0.75, out=out) is out
    assert (np.abs(out.get() - exact) <= bound).all()
    assert (pysimd.gemm(x, y, on_gpu(c, dtype), alpha=-1.5, beta=0.75, kernel=rung.name) == out).all()
    assert (rung(x[1], y, on_gpu(c[1], dtype), alpha=-1.5, beta=0.75) == out[1]).all()


def test_a_long_k_is_several_products(rung, rng):
    dtype = dtype_of(rung)
    a, b = rng.standard_normal((5, 140_000)).astype(dtype), rng.standard_normal((140_000, 6)).astype(dtype)
    exact = (a[:, :, None].astype(np.longdouble) * b.astype(np.longdouble)).sum(1)
    bound = 2.0 ** (-18 if rung.types == "f32" else -47) * np.outer(
        np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=0)
    )
    assert (np.abs(rung(on_gpu(a, dtype), on_gpu(b, dtype)).get() - exact) <= bound).all()


def test_nan_and_infinity(rung, rng):
    dtype = dtype_of(rung)
    a, b = rng.standard_normal((60, 40)), rng.standard_normal((40, 70))
    a[3, 5], b[7, 9] = np.nan, np.inf
    nan = np.isnan(rung(on_gpu(a, dtype), on_gpu(b, dtype)).get())
    expected = np.zeros((60, 70), bool)
    expected[3], expected[:, 9] = True, True
    assert np.array_equal(nan, expected)
