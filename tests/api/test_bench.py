"""What every measurement uses: the timing loop, random data, the identity of the BLAS, the check of results."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pysimd
from pysimd import dtypes
from pysimd.bench import blas, cpu_ladder, matmul, timing
from pysimd.bench.calls import timed_call
from pysimd.bench.data import page_aligned, random_array, random_bytes, random_operands
from pysimd.bench.verify import verify

# --- times ---


def test_samples_are_interleaved_and_calls_are_counted():
    order = []
    runs = {name: timing.repeated(lambda name=name: order.append(name)) for name in "ab"}
    times = timing.times(runs, timing.HostClock(), seconds=1e-4, rounds=3)
    assert times["a"].best_ns <= times["a"].median_ns
    assert times["b"].calls % 3 == 0
    samples = "".join(order)
    assert samples.count("ab") >= 3  # every round takes a sample of a, then one of b
    assert samples.count("ba") >= 2


def test_rounds_of_several_timers():
    order = []

    def timer(name):
        return lambda: order.append(name) or float(len(order))

    samples = timing.interleaved({"a": timer("a"), "b": timer("b")}, {"a": 3, "b": 1})
    assert order == ["a", "b", "a", "a"]
    assert samples == {"a": [1, 3, 4], "b": [2]}
    order.clear()
    timing.interleaved({name: timer(name) for name in "abcd"}, 20, shuffle=True)
    assert len({tuple(order[i : i + 4]) for i in range(0, 80, 4)}) > 1
    assert all(sorted(order[i : i + 4]) == list("abcd") for i in range(0, 80, 4))


def test_slow_runs_have_three_samples():
    class Clock:
        most_calls, shuffles = 50, False

        def ns(self, run, calls):
            run(calls)
            return 1e9

    assert timing.times({"slow": lambda calls: None}, Clock(), seconds=0.1)["slow"].calls == 3


def test_cycled_runs_go_on_where_they_ended():
    called = []
    run = timing.cycled([lambda i=i: called.append(i) for i in range(3)])
    run(2)
    run(2)
    assert called == [0, 1, 2, 0]


def test_small_batches_on_a_gpu_are_timed_when_their_instance_is_compiled(monkeypatch):
    """It is asked for by the second call. With a stand-in for CuPy."""
    events = []
    cupy = SimpleNamespace(asarray=np.asarray, zeros=np.zeros, asnumpy=np.asarray, matmul=np.matmul)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(matmul.products, "matmul", lambda a, b, out: events.append("call") or np.matmul(a, b, out=out))
    monkeypatch.setattr(matmul, "INSTANCES", SimpleNamespace(wait=lambda: events.append("wait")))
    monkeypatch.setattr(timing, "CudaEvents", lambda: None)

    def times(runs, clock, *, seconds):
        events.append("timed")
        return {name: timing.Times(1.0, 1.0, 1) for name in runs}

    monkeypatch.setattr(timing, "times", times)
    assert matmul.against_cublas("f32", 4, 3).within_bound
    assert events == ["call", "call", "wait", "call", "timed"]


def test_run_gives_the_result_and_its_time(rng):
    kernel = pysimd.kernel("generic_f32_outer_4x4")
    a, b = random_operands(kernel, 6, 9, seed=3)
    ran = timed_call(kernel, a, b, seconds=1e-3)
    assert np.array_equal(ran.result, kernel(a, b))
    assert ran.products == 6
    assert ran.best_ns_per_product == ran.times.best_ns / 6


def test_an_inner_kernel_gets_columns_it_reads_in_place():
    _, b = random_operands(pysimd.kernel("generic_f32_inner_4x4"), 2, 5)
    assert b.shape == (2, 5, 4)
    assert b.strides[-2] == b.itemsize


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int8", "uint8"])
def test_random_arrays_are_seeded_and_not_flat(name):
    one, two = (random_array(name, (40, 50), np.random.default_rng(5)) for _ in range(2))
    assert one.tobytes() == two.tobytes()
    assert np.unique(one.view(np.uint8)).size > 100


def test_random_bytes_start_on_a_page():
    for nbytes in (1, 4096, (1 << 20) + 7):
        for found in (page_aligned(nbytes), random_bytes(nbytes)):
            assert (found.nbytes, found.ctypes.data % 4096) == (nbytes, 0)
    assert np.unique(random_bytes(1 << 16)).size == 256


def test_bfloat16_bits_and_values(rng):
    values = random_array("float32", (50,), rng)
    bits = dtypes.bits_of_float32(values)
    assert bits.dtype == np.uint16
    wide = dtypes.widened(bits, np.float64)
    assert wide.dtype == np.float64
    assert (np.abs(wide - values) < np.abs(values) / 128).all()
    assert (np.abs(wide) <= np.abs(values)).all()  # rounded towards zero
    np.testing.assert_array_equal(dtypes.widened(bits.view(dtypes.dtype_of("bfloat16")), np.float64), wide)
    np.testing.assert_array_equal(dtypes.widened(values, np.float64), values)


def test_blas_is_named():
    pytest.importorskip("threadpoolctl")
    found = blas.numpy_blas()
    assert found.name in str(found)
    assert found.architecture in (None, *str(found).replace(",", "").split())
    assert found.forced is None or isinstance(found.forced, str)


def test_blas_of_a_numpy_before_1_26(monkeypatch):
    """Its ``show_config`` has no ``mode``; it knows the library's name alone."""
    libraries = {"blas_opt_info": {}, "blas_ilp64_opt_info": {"libraries": ["openblas64_", "openblas64_"]}}
    monkeypatch.setattr(np, "__version__", "1.25.2")
    monkeypatch.setattr(np, "show_config", None)
    monkeypatch.setattr(np.__config__, "get_info", libraries.get, raising=False)
    assert blas.numpy_blas().name == "openblas64_"
    monkeypatch.setattr(np.__config__, "get_info", lambda name: {})
    assert blas.numpy_blas().name is None


def test_blas_without_threadpoolctl(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    found = blas.numpy_blas()
    assert found.name
    assert (found.architecture, found.threads) == (None, None)
    assert "pip install 'pysimd[bench]'" in blas.missing()


# --- the check of results: what it must refuse ---


@pytest.fixture
def product(rng):
    a, b = rng.standard_normal((3, 4, 20), np.float32), rng.standard_normal((3, 20, 4), np.float32)
    return a, b, a @ b


def test_verify_accepts_a_right_product(product):
    a, b, c = product
    checked = verify("f32", a, b, None, c)
    assert checked.holds
    assert checked.reference == "float64"
    assert 0 <= checked.max_error_over_bound < 1


@pytest.mark.parametrize("fault", ["one element", "nan", "inf", "transposed", "shifted batch"])
def test_verify_refuses_a_wrong_product(product, fault):
    a, b, c = product
    wrong = c.copy()
    if fault == "one element":
        wrong[1, 2, 3] += 1e-3
    elif fault == "nan":
        wrong[2, 0, 0] = np.nan
    elif fault == "inf":
        wrong[0, 3, 3] = np.inf
    elif fault == "transposed":
        wrong = c.swapaxes(-1, -2)
    else:
        wrong = np.roll(c, 1, axis=0)
    assert not verify("f32", a, b, None, wrong).holds


def test_verify_adds_c_and_broadcasts(product):
    a, b, _ = product
    c = np.full((4, 4), 3, np.float32)
    assert verify("f32", a, b[0], c, a @ b[0] + c).holds
    assert not verify("f32", a, b[0], None, a @ b[0] + c).holds


def test_verify_takes_nan_and_infinity_where_they_belong(product):
    a, b, _ = product
    a[0, 0, 0], a[1, 1, 1] = np.nan, np.inf
    with np.errstate(all="ignore"):
        c = a @ b
    assert verify("f32", a, b, None, c).holds
    c[0, 0, 0] = 0
    assert not verify("f32", a, b, None, c).holds


@pytest.mark.parametrize(("types", "large"), [("f32", 1e30), ("f64", 1e300)])
def test_verify_takes_infinity_where_the_type_has_no_more(types, large):
    """The reference is finite in its wider type."""
    dtype = np.float32 if types == "f32" else np.float64
    a, b = np.full((2, 3), large, dtype), np.full((3, 2), large, dtype)
    b[:, 1] *= -1
    right = np.array([[np.inf, -np.inf]] * 2, dtype)
    checked = verify(types, a, b, None, right)
    assert checked.holds
    assert checked.max_abs_error == 0
    for wrong in (-right, np.full_like(right, np.nan), np.full_like(right, np.finfo(dtype).max)):
        assert not verify(types, a, b, None, wrong).holds
    assert not verify(types, np.ones_like(a), np.ones_like(b), None, np.full_like(right, np.inf)).holds


def test_verify_integers_are_exact_and_wrap(rng):
    a, b = rng.integers(-128, 128, (2, 4, 9), np.int8), rng.integers(-128, 128, (2, 9, 4), np.int8)
    c = np.full((2, 4, 4), 2**31 - 1, np.int32)
    with np.errstate(over="ignore"):
        right = a.astype(np.int32) @ b.astype(np.int32) + c
    assert verify("i8i32", a, b, c, right).holds
    right[1, 1, 1] += 1
    assert not verify("i8i32", a, b, c, right).holds


def test_verify_f64_against_a_wider_type(rng):
    a, b = rng.standard_normal((2, 4, 9)), rng.standard_normal((2, 9, 4))
    checked = verify("f64", a, b, None, a @ b)
    assert checked.holds
    assert checked.reference == "longdouble"


@pytest.mark.parametrize(("batch", "k"), [((), 3), ((2,), 0), ((0,), 3), ((2, 0), 0), ((2, 3), 1)])
def test_verify_any_batch_and_k(batch, k):
    a, b = np.ones((*batch, 4, k), np.float32), np.ones((*batch, k, 4), np.float32)
    assert verify("f32", a, b, None, a @ b).holds
    assert verify("f32", a, b, None, a @ b + 1).holds == (0 in batch)


def test_verify_in_pieces_is_the_same(product, monkeypatch):
    from pysimd.bench import verify as module

    a, b, c = product
    whole = verify("f32", a, b, None, c)
    monkeypatch.setattr(module, "_PIECE_MACS", 1)
    assert verify("f32", a, b, None, c) == whole


# --- the CPU ladder ---


def test_the_ladder_runs_every_size_on_every_number_of_threads(monkeypatch):
    """And a row is a percentage of the peak of as many threads."""
    taken = []

    def at_size(names, size, threads, seconds):
        taken.append((size, threads, seconds))
        times = dict.fromkeys((*names, cpu_ladder.NUMPY), SimpleNamespace(best_ns=1024.0, median_ns=2048.0))
        return times, 64.0 * threads, dict.fromkeys(times, True)

    pytest.importorskip("threadpoolctl")
    monkeypatch.setattr(cpu_ladder, "_at_size", at_size)
    rows, peaks = cpu_ladder.measure([16, 8], 0.5, lambda line: None, (2, 1))
    assert taken == [(8, 1, 0.5), (8, 2, 0.5), (16, 1, 0.5), (16, 2, 0.5)]
    assert peaks == {1: 64.0, 2: 128.0}
    for row in rows:
        assert row.gflops == 2 * row.size**3 / 1024
        assert row.percent_of_peak == 100 * row.gflops / (64 * row.threads)
