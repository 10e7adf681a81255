"""The entry from Python (pysimd._door): every call gives the same bits, the GIL is kept for short work, sizes that do
not fit are MemoryError, and first use from many threads is safe."""

import contextlib
import gc
import itertools
import sys
import threading
import time

import first_use
import layouts
import numpy as np
import pytest
from cases import QUICK
from process import output_of
from pysimd._cpu import lib
from reference import check

import pysimd
from pysimd.backends.cpu import dispatch
from pysimd.backends.cpu.implementation import CPU

F32 = np.float32
KERNEL = "generic_f32_outer_4x4"


def small(rng, *shape):
    return rng.standard_normal(shape, F32)


# --- every call ---


def public_calls(a, b):
    """The same product by every public call, each as a new array."""
    m, n = a.shape[-2], b.shape[-1]
    kernel = CPU.chosen("f32", n, n)
    out = np.full((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), m, n), np.nan, F32)
    yield "matmul", pysimd.matmul(a, b)
    yield "out", pysimd.matmul(a, b, out=out).copy()
    yield "threads", pysimd.matmul(a, b, threads=2)
    yield "kernel by name", pysimd.matmul(a, b, kernel=kernel.name)
    yield "kernel", pysimd.matmul(a, b, kernel=kernel)
    yield "gemm", pysimd.gemm(a, b)
    yield "gemm of transposed views", pysimd.gemm(a.swapaxes(-1, -2), b.swapaxes(-1, -2), trans_a=True, trans_b=True)
    yield "strided", pysimd.matmul(layouts.sliced(a), layouts.sliced(b))
    yield "negative strides", pysimd.matmul(layouts.negative(a), layouts.negative(b))
    yield "overlapping out", overlapping(a, b, out.shape)
    if (m, n) == (kernel.mr, kernel.nr):
        yield "a kernel's call", kernel(a, b)
        c = np.zeros(out.shape, F32)
        kernel.bind(a, b, c)()
        yield "a bound call", c


def overlapping(a, b, shape):
    """A result in the memory of A."""
    memory = np.empty(a.size + int(np.prod(shape)), F32)
    held = memory[: a.size].reshape(a.shape)
    held[...] = a
    out = memory[a.size // 2 : a.size // 2 + int(np.prod(shape))].reshape(shape)
    return pysimd.matmul(held, b, out=out).copy()


@pytest.mark.parametrize("shape", [(4, 4, 4), (8, 8, 8), (6, 5, 16), (5, 7, 3), (17, 9, 33)])
@pytest.mark.parametrize(("batch_a", "batch_b"), [((), ()), ((3,), (3,)), ((3,), ()), ((2, 1), (1, 3))])
def test_every_call_gives_the_same_bits(shape, batch_a, batch_b, rng):
    m, k, n = shape
    a, b = small(rng, *batch_a, m, k), small(rng, *batch_b, k, n)
    found = dict(public_calls(a, b))
    check(found["matmul"], "f32", a, b)
    for name, result in found.items():
        assert result.tobytes() == found["matmul"].tobytes(), name


@pytest.mark.parametrize(("trans_a", "trans_b"), list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (1, 1), (2.5, 0), (-1, 0.5), (0, 1)])
@pytest.mark.parametrize("where", ["new", "out", "in c"])
def test_gemm_with_factors(trans_a, trans_b, alpha, beta, where, rng):
    a, b, c = small(rng, 3, 5, 7), small(rng, 3, 7, 6), small(rng, 3, 5, 6)
    x = a.swapaxes(-1, -2).copy() if trans_a else a
    y = b.swapaxes(-1, -2).copy() if trans_b else b
    product = pysimd.matmul(x.swapaxes(-1, -2) if trans_a else x, y.swapaxes(-1, -2) if trans_b else y)
    expected = (product + c) if (alpha, beta) == (1, 1) else F32(alpha) * product
    expected = expected + F32(beta) * c if beta and (alpha, beta) != (1, 1) else expected
    given = c.copy()
    out = {"new": None, "out": np.empty_like(c), "in c": given}[where]
    found = pysimd.gemm(x, y, given, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b, out=out)
    assert (found == expected).all()
    assert out is None or found is out


def test_c_is_not_read_where_beta_is_0(rng):
    a, c = small(rng, 4, 4), np.full((4, 4), np.nan, F32)
    assert np.isfinite(pysimd.gemm(a, a, c, alpha=2.0, beta=0.0)).all()


# --- numbers of threads ---


def test_threads_follow_from_the_work(cpu_limits):
    cpu_limits(threads=8)
    kernel = CPU.chosen("f32", 16)
    assert CPU.threads(kernel, 4, 4, 4, 1) == 1
    assert CPU.threads(kernel, 4, 4, 4, 1000) == 1
    assert CPU.threads(kernel, 512, 512, 512, 1000) == 8
    counts = [CPU.threads(kernel, 16, 16, 16, 1 << i) for i in range(20)]
    assert counts == sorted(counts)


def test_a_thread_is_worth_less_work_where_there_are_many():
    for threads, expected in ((1, 8_000), (3, 8_000), (4, 6_000), (64, 6_000)):
        found = dispatch.limits_of(threads)
        assert (found.threads, found.thread_ns) == (threads, expected)


def test_threads_are_not_used_for_few_microseconds(cpu_limits):
    """Work of 6 microseconds at the rate of the kernel takes one thread, or two, whatever the types, where 16 are worth
    a thread. A rate that was measured while another thread used the same core is half of that."""
    cpu_limits(threads=8, thread_ns=16_000)
    for types in CPU.offered:
        kernel = CPU.chosen(types, 32)
        a, b = (np.ones((64, 32, 32), x) for x in (kernel.a_dtype, kernel.b_dtype))
        out = np.empty((64, 32, 32), kernel.c_dtype)
        times = []
        for _ in range(20):
            start = time.perf_counter_ns()
            pysimd.matmul(a, b, out=out, kernel=kernel, threads=1)
            times.append(time.perf_counter_ns() - start)
        ns = min(times) / 64
        assert CPU.threads(kernel, 32, 32, 32, max(1, int(6_000 / ns))) <= 2, (types, ns)


# --- the GIL ---


@contextlib.contextmanager
def busy_thread():
    """A Python thread that counts while the block runs; yields the list that holds its count."""
    steps, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            steps[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield steps
    finally:
        stop.set()
        thread.join()


@pytest.mark.skipif(QUICK, reason="an emulator has no times")
def test_the_gil_is_released_for_long_work_and_kept_for_short(cpu_limits, rng):
    """The interval after which a thread must give the GIL away is longer than the calls, on a slow machine too: the
    other thread counts only while a call has released the GIL, and has a processor: in one of some calls."""
    a = small(rng, 20_000, 16, 16)
    out = np.empty_like(a)
    counted = {}
    interval = sys.getswitchinterval()
    with busy_thread() as steps:
        for name, limits in {"released": {}, "kept": {"gil_ns": 1e18}}.items():
            cpu_limits(threads=1, **limits)
            sys.setswitchinterval(0.3)
            time.sleep(0.001)  # the interval begins with the acquisition of the GIL
            before = steps[0]
            for _ in range(50 if name == "released" else 1):
                pysimd.matmul(a, a, out=out)
                if steps[0] > before:
                    break
            counted[name] = steps[0] - before
            sys.setswitchinterval(interval)
    assert counted["kept"] == 0
    assert counted["released"] > 0


@pytest.mark.skipif(QUICK, reason="an emulator has no times")
def test_a_short_call_does_not_wait_for_another_thread(rng):
    """While another thread is busy, a call that releases the GIL takes 5 ms to acquire it again."""
    a, out = small(rng, 4, 4), np.empty((4, 4), F32)
    times = []
    with busy_thread():
        for _ in range(300):
            start = time.perf_counter_ns()
            pysimd.matmul(a, a, out=out)
            times.append(time.perf_counter_ns() - start)
    assert np.median(times) < 50_000


# --- sizes that do not fit, and first use ---


@pytest.mark.parametrize("threads", [1, 16, 256])
@pytest.mark.parametrize(
    ("dtype", "kernel", "m", "k", "n"),
    [
        (F32, "generic_f32_inner_4x4", 224, 1 << 38, 1 << 20),
        (F32, "generic_f32_inner_4x4", 4, 1 << 40, 1 << 20),
        (F32, None, 64, 1 << 45, 1),
    ],
)
def test_scratch_memory_that_no_machine_has(dtype, kernel, m, k, n, threads):
    """Of kernels whose operands are packed whole. The bytes of all threads together overflow 64 bits: this was an
    allocation of nothing, and a crash."""
    a, b = np.broadcast_to(dtype(1), (m, k)), np.broadcast_to(dtype(1), (k, n))
    with pytest.raises(MemoryError):
        pysimd.matmul(a, b, kernel=kernel, threads=threads)


@pytest.mark.parametrize("seed", range(2 if QUICK else 5))
def test_first_use_from_many_threads(seed):
    output_of(first_use.__file__, "--here", str(seed))


def test_detection_repeated_while_others_choose():
    """A second start is the same start: no other row is ever chosen. Calls through cffi hold no GIL."""
    stop, expected = threading.Event(), lib.pysimd_choose(lib.F32, 2, 16, 0)

    def again():
        while not stop.is_set():
            lib.pysimd_start(lib.TARGETS - 1)

    thread = threading.Thread(target=again)
    thread.start()
    seen = {lib.pysimd_choose(lib.F32, 2, 16, 0) for _ in range(200 if QUICK else 300_000)}
    stop.set()
    thread.join()
    assert seen == {expected}


def test_a_bound_call_keeps_its_operands(rng):
    a, b, c = small(rng, 4, 4), small(rng, 4, 4), np.zeros((4, 4), F32)
    run = pysimd.kernel(KERNEL).bind(a, b, c)
    assert run.operands == (a, b, c) or all(x is y for x, y in zip(run.operands, (a, b, c), strict=True))
    assert run() is None
    with pytest.raises(TypeError, match="no arguments"):
        run(1)
    check(c, "f32", a, b)


def test_the_collector_may_run_while_a_bound_call_is_freed(rng):
    """It does not see the half-freed object, which it would free once more."""

    class Collecting(np.ndarray):
        def __del__(self):
            gc.collect()

    for _ in range(5):
        a = small(rng, 4, 4).view(Collecting)
        run = pysimd.kernel(KERNEL).bind(a, small(rng, 4, 4), np.zeros((4, 4), F32))
        del a
        run()
        del run


# --- what the door takes itself ---


class Mine(np.ndarray):
    """A subclass of an array."""


@pytest.mark.parametrize("of_x", [layouts.fractional_strides, layouts.read_only, layouts.misaligned, layouts.sliced])
@pytest.mark.parametrize("subclass", [np.ndarray, np.memmap, np.matrix, Mine])
def test_arrays_of_any_kind_are_not_passed_to_python(of_x, subclass, rng):
    a, b, c = small(rng, 5, 7), small(rng, 7, 6), small(rng, 5, 6)
    x, y, z = (of_x(v).view(subclass) for v in (a, b, c))
    for result, added in (
        (CPU.door.matmul(x, y, None, None, None), None),
        (CPU.door.gemm(x, y, z, 1, 1, False, False, None, None, None), c),
    ):
        assert type(result) is np.ndarray
        check(result, "f32", a, b, added)
    out = np.zeros((5, 6), F32).view(subclass)
    assert CPU.door.matmul(x, y, out, None, None) is out
    check(np.asarray(out), "f32", a, b)


def test_masked_arrays_are_python_s(rng):
    a = np.ma.masked_array(small(rng, 3, 3), mask=np.eye(3))
    plain = np.asarray(a)
    for given in ((a, plain, None), (plain, a, None), (plain, plain, a)):
        assert CPU.door.matmul(*given, None, None) is NotImplemented


@pytest.mark.parametrize("scalar", [int, float, np.float16, np.float32, np.float64, np.longdouble, np.int8, np.int64])
def test_factors_of_any_kind(scalar, rng):
    a, b, c = small(rng, 5, 7), small(rng, 7, 6), small(rng, 5, 6)
    found = CPU.door.gemm(a, b, c, scalar(2), scalar(-3), np.bool_(False), False, None, None, np.int64(2))
    assert found.tobytes() == pysimd.gemm(a, b, c, alpha=2, beta=-3).tobytes()


@pytest.mark.parametrize("given", [2j, "2", np.complex64(2), np.float32([2, 3]), None, [2]])
def test_no_factors(given, rng):
    a = small(rng, 4, 4)
    assert CPU.door.gemm(a, a, a, given, 1, False, False, None, None, None) is NotImplemented
    assert CPU.door.gemm(a, a, a, 1, given, False, False, None, None, None) is NotImplemented


@pytest.mark.parametrize("given", [0, -1, -(1 << 80), 1.0, np.float32(2), "2", np.int8(-3)])
def test_no_number_of_threads(given, rng):
    a = small(rng, 4, 4)
    assert CPU.door.matmul(a, a, None, None, given) is NotImplemented
    with pytest.raises(pysimd.OptionError):
        pysimd.matmul(a, a, threads=given)


@pytest.mark.parametrize("given", [True, 1, np.uint8(3), np.int64(2), 1 << 80])
def test_numbers_of_threads(given, rng):
    a = small(rng, 40, 40)
    assert CPU.door.matmul(a, a, None, None, given).tobytes() == pysimd.matmul(a, a).tobytes()


def test_kept_choices_are_those_of_the_call():
    """More shapes, types and orders in turn than choices are kept; a choice of another call would have other types."""
    rng = np.random.default_rng(5)
    shapes = [tuple(rng.integers(1, 20, 3)) for _ in range(40)]
    for _ in range(2):
        for m, k, n in shapes:
            for types in (np.float32, np.float64, np.int8, np.float16):
                a, b = rng.integers(-4, 5, (2, m, k)).astype(types), rng.integers(-4, 5, (2, k, n)).astype(types)
                expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
                for x in (a, a.swapaxes(1, 2).copy().swapaxes(1, 2)):
                    for y in (b, b.swapaxes(1, 2).copy().swapaxes(1, 2)):
                        assert (pysimd.matmul(x, y) == expected).all()


def test_kept_choices_do_not_depend_on_the_calls_before():
    """Shapes that differ in one length have other kernels, and bits: the same whichever was multiplied first."""
    code = (
        "import sys, numpy as np, pysimd\n"
        "rng, found = np.random.default_rng(0), {}\n"
        "few = (1, 2, 3, 4, 20, 60)\n"
        "shapes = [(40, 30, n) for n in few] + [(m, 30, 40) for m in few]\n"
        "shapes += [(m, k, n) for m, n in ((4, 4), (2, 40), (40, 2), (20, 20)) for k in (2, 12, 30, 70, 300)]\n"
        "shapes = sorted(set(shapes))\n"
        "cases = [(s, t, rng.random(s[:2]).astype(t), rng.random(s[1:]).astype(t)) for s in shapes for t in 'fde']\n"
        "for s, t, a, b in cases[:: int(sys.argv[1])]:\n"
        "    found[s, t] = pysimd.matmul(a, b).tobytes()\n"
        "print(sorted(found.items()))\n"
    )
    assert output_of("-c", code, "1") == output_of("-c", code, "-1")
