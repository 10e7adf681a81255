"""Dask arrays: lazy products, chunks in any way, the same bits from every scheduler, and what is refused."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from process import run_python

import pysimd

EXAMPLES = Path(__file__).parents[2] / "examples"

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def whole(rng, shape, dtype="float32"):
    """Whole numbers, whose products are exact in any order."""
    return rng.integers(-9, 9, shape).astype(dtype)


def lazy(x, chunks):
    return da.from_array(x, chunks=chunks)


@pytest.mark.parametrize(
    ("a", "a_chunks", "b", "b_chunks", "chunks"),
    [
        ((12, 4, 4), (5, 4, 4), (12, 4, 4), (5, 4, 4), ((5, 5, 2), (4,), (4,))),
        ((12, 4, 4), (5, 4, 4), (12, 4, 4), (4, 4, 4), ((4, 1, 3, 2, 2), (4,), (4,))),
        ((12, 4, 4), (5, 4, 4), (4, 4), (4, 4), ((5, 5, 2), (4,), (4,))),
        ((3, 1, 5, 6), (2, 1, 5, 6), (4, 6, 7), (3, 6, 4), ((2, 1), (3, 1), (5,), (4, 3))),
        ((20, 30), (8, 9), (30, 10), (9, 4), ((8, 8, 4), (4, 4, 2))),
        ((20, 30), (8, 9), (30, 10), (7, 4), ((8, 8, 4), (4, 4, 2))),
        ((2, 20, 30), (1, 20, 11), (30,), (11,), ((1, 1), (20,))),
        ((30,), (11,), (2, 30, 5), (1, 11, 2), ((1, 1), (2, 2, 1))),
        ((30,), (11,), (30,), (11,), ()),
        ((0, 4, 4), (5, 4, 4), (0, 4, 4), (5, 4, 4), ((0,), (4,), (4,))),
        ((5, 0), (2, 1), (0, 3), (1, 3), ((2, 2, 1), (3,))),
    ],
    ids=str,
)
def test_every_chunking(a, a_chunks, b, b_chunks, chunks, rng):
    x, y = whole(rng, a), whole(rng, b)
    product = pysimd.matmul(lazy(x, a_chunks), lazy(y, b_chunks))
    assert type(product) is da.Array
    assert product.chunks == chunks
    assert product.dtype == np.float32
    assert type(product._meta) is np.ndarray
    result = product.compute()
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, x @ y)
    np.testing.assert_array_equal(pysimd.matmul(lazy(x, a_chunks), y).compute(), x @ y)
    np.testing.assert_array_equal(pysimd.matmul(x, lazy(y, b_chunks)).compute(), x @ y)


def test_chunks_of_size_zero(rng):
    x, y = whole(rng, (6, 5)), whole(rng, (5, 4))
    product = pysimd.matmul(lazy(x, ((2, 0, 4), (0, 3, 0, 2))), lazy(y, ((0, 3, 0, 2), (4, 0))))
    np.testing.assert_array_equal(product.compute(), x @ y)


@pytest.mark.parametrize("k_chunk", [30, 7])
@pytest.mark.parametrize("c_shape", [(2, 20, 10), (20, 10), (10,), (20, 1), (2, 1, 1)])
def test_gemm(k_chunk, c_shape, rng):
    a, b, c = whole(rng, (2, 30, 20)), whole(rng, (10, 30)), whole(rng, c_shape)
    given = [lazy(a, (1, k_chunk, 6)), lazy(b, (4, k_chunk)), lazy(c, tuple(max(1, n // 2) for n in c_shape))]
    for scale in ({"alpha": 2, "beta": -3}, {"alpha": 2}):
        expected = pysimd.gemm(a, b, c, trans_a=True, trans_b=True, **scale)
        product = pysimd.gemm(*given, trans_a=True, trans_b=True, **scale)
        assert product.shape == expected.shape
        np.testing.assert_array_equal(product.compute(), expected)


@pytest.mark.parametrize(("dtype", "result"), [("float64", "float64"), ("float16", "float32"), ("int8", "int32")])
def test_dtypes(dtype, result, rng):
    a, b = whole(rng, (20, 30), dtype), whole(rng, (30, 10), dtype)
    for chunks in (30, 7):
        product = pysimd.matmul(lazy(a, (8, chunks)), lazy(b, (chunks, 4)))
        assert product.dtype == product._meta.dtype == result
        computed = product.compute()
        assert computed.dtype == result
        np.testing.assert_array_equal(computed, a.astype(result) @ b.astype(result))


def test_nothing_is_computed_before_it_is_asked_for():
    calls = []

    def read(block):
        calls.append(1)
        return block

    a = da.ones((40, 4, 4), chunks=(10, 4, 4), dtype=np.float32).map_blocks(read, meta=np.empty((0, 0, 0), np.float32))
    product = pysimd.matmul(a, a)
    assert calls == []
    product[:3].compute()
    assert len(calls) == 1, "one chunk of a was needed"


def test_the_same_bits_whatever_the_scheduler(rng):
    x, y = rng.standard_normal((70, 500), np.float32), rng.standard_normal((500, 60), np.float32)
    product = pysimd.matmul(lazy(x, (30, 90)), lazy(y, (90, 25)))
    once = product.compute()
    steps = [slice(i, i + 90) for i in range(0, 500, 90)]
    expected = pysimd.matmul(x[:30, steps[0]], y[steps[0], :25])
    for step in steps[1:]:
        expected = pysimd.gemm(x[:30, step], y[step, :25], expected, beta=1)
    np.testing.assert_array_equal(once[:30, :25], expected)
    for workers in (1, 4):
        with dask.config.set(scheduler="threads", num_workers=workers):
            np.testing.assert_array_equal(product.compute(), once)
    np.testing.assert_allclose(once, x @ y, rtol=1e-4, atol=1e-4)


def test_a_named_kernel_and_threads(rng):
    x = whole(rng, (9, 9))
    given = lazy(x, (4, 4))
    assert (pysimd.matmul(given, given, kernel="generic_f32_outer_4x4", threads=2).compute() == x @ x).all()
    assert pysimd.matmul(given, given).name == pysimd.matmul(given, given).name
    assert pysimd.matmul(given, given).name != pysimd.matmul(given, given, kernel="generic_f32_outer_4x4").name
    with pytest.raises(pysimd.OptionError):
        pysimd.matmul(given, given, threads=0)
    with pytest.raises(pysimd.DTypeError):
        pysimd.matmul(given, given, kernel="generic_f64_outer_4x4")


def test_what_does_not_fit_is_refused_before_anything_is_computed(rng):
    x = lazy(whole(rng, (6, 4, 5)), (2, 4, 5))
    with pytest.raises(pysimd.ShapeError, match="not aligned"):
        pysimd.matmul(x, x)
    with pytest.raises(pysimd.ShapeError, match="broadcast"):
        pysimd.matmul(x, da.ones((5, 5, 3), dtype=np.float32))
    with pytest.raises(pysimd.ShapeError, match="dimensions"):
        pysimd.matmul(x, da.ones((), dtype=np.float32))
    with pytest.raises(pysimd.DTypeError, match="no kernel multiplies float32 by float64"):
        pysimd.matmul(x, da.ones((5, 3)))
    with pytest.raises(pysimd.DTypeError, match="Dask array"):
        pysimd.matmul(x, [[1.0]])
    with pytest.raises(pysimd.OptionError, match="out"):
        pysimd.matmul(x, x.swapaxes(-1, -2), out=np.empty((6, 4, 4), np.float32))
    with pytest.raises(pysimd.ShapeError, match="compute_chunk_sizes"):
        pysimd.matmul(x[x[:, 0, 0] > 0], x.swapaxes(-1, -2))
    with pytest.raises(pysimd.OptionError, match="beta"):
        pysimd.gemm(x, x, beta=1)


def test_a_chunk_of_another_dtype_is_an_error(rng):
    """Chunks may disagree with what their array says."""
    x = da.ones((4, 5), chunks=(2, 5), dtype=np.float32)
    lies = x.map_blocks(lambda block: block.astype(np.float64), meta=np.empty((0, 0), np.float32))
    for product in (pysimd.matmul(lies, x.T), pysimd.matmul(lies.rechunk((2, 3)), x.T)):
        with pytest.raises(pysimd.DTypeError, match="a chunk of a is float64, its Dask array says float32"):
            product.compute()


# --- processes ---

needs_distributed = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="no dask.distributed")


@needs_distributed
@pytest.mark.parametrize("what", ["same_bits", "larger_than_a_worker", "killed_worker", "worker_without_pysimd"])
def test_two_worker_processes(what):
    done = run_python("-m", "dask_cluster", what, timeout=120)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    assert json.loads(lines[-1])["right"] is True, done.stdout


@needs_distributed
def test_example():
    done = run_python(str(EXAMPLES / "dask_products.py"), "--workers", "2", "--products", "200000", timeout=120)
    assert re.search(r"200000 products .* error below 1e-4", done.stdout), done.stderr
    assert "100%" in done.stdout or "Completed" in done.stdout
