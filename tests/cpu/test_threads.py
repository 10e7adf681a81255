"""Threads: the same bits for any number of them and any place in a batch; calls from many threads; fork after use."""

import os
import threading
import warnings

import numpy as np
import pytest
from cases import QUICK, few
from reference import check, random_operand

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

CASES = [  # batch, m, k, n: split by products, by rows of tiles, and not at all
    ((7,), 4, 4, 4),
    ((3, 5), 8, 8, 8),
    ((2,), 45, 17, 33),
    ((1,), 200, 9, 50),
    ((), 131, 40, 70),
    ((), 3, 5, 3),
]


def pair(rng, types, batch, m, k, n):
    family = dtypes.FAMILIES[types]
    a = random_operand(rng, dtypes.dtype_of(family.a), (*batch, m, k))
    b = random_operand(rng, dtypes.dtype_of(family.b), (*batch, k, n))
    if a.dtype.name == "uint16":
        pytest.skip("bfloat16 without ml_dtypes is for named kernels")
    return a, b


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("case", few(CASES, 3), ids=str)
def test_same_bits_for_any_number_of_threads(types, case, rng):
    a, b = pair(rng, types, *case)
    one = pysimd.matmul(a, b, threads=1)
    check(one, types, a, b)
    for threads in (2, 3, 8, 300):
        assert pysimd.matmul(a, b, threads=threads).tobytes() == one.tobytes(), threads
    assert pysimd.matmul(a, b).tobytes() == one.tobytes()


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("size", [3, 4, 8, 16, 19])
def test_same_bits_at_any_place_in_a_batch(types, size, rng):
    a, b = pair(rng, types, (9,), size, size, size)
    whole = pysimd.matmul(a, b)
    out = np.empty_like(whole)
    for i in range(9):
        assert pysimd.matmul(a[i], b[i]).tobytes() == whole[i].tobytes()
        pysimd.matmul(a[i], b[i], out=out[i])
    assert out.tobytes() == whole.tobytes()
    assert pysimd.matmul(a[::-2], b[::-2]).tobytes() == whole[::-2].tobytes()
    assert pysimd.matmul(a[3:], b[3:]).tobytes() == whole[3:].tobytes()


@pytest.mark.parametrize("size", [4, 8, 16])
def test_streamed_results_have_the_same_bits(size, rng, cpu_limits):
    a, b = pair(rng, "f32", (11,), size, size, size)
    stored = pysimd.matmul(a, b, threads=1)
    cpu_limits(stream_bytes=1)
    assert pysimd.matmul(a, b, threads=2).tobytes() == stored.tobytes()


def test_eight_threads_call_at_once(rng):
    """Every thread its own operands, all entry points, for many rounds; each result is compared with its first."""
    rounds = 5 if QUICK else 100
    kernel = max(pysimd.kernels("cpu", types="f32", form="outer", available=True), key=lambda k: k.mr * k.nr)
    wrong = []

    def work(number):
        rng = np.random.default_rng(number)
        a = random_operand(rng, np.dtype("f4"), (50, kernel.mr, 20 + number))
        b = random_operand(rng, np.dtype("f4"), (50, 20 + number, kernel.nr))
        c = np.zeros((kernel.mr, kernel.nr), np.float32)
        expected = kernel(a, b)
        run = kernel.bind(a[0], b[0], c)
        for _ in range(rounds):
            c[...] = 0
            run()
            same = kernel(a, b).tobytes() == pysimd.matmul(a, b, threads=2, kernel=kernel).tobytes()
            if not same or not np.array_equal(kernel(a, b), expected) or not np.array_equal(c, expected[0]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_after_use(rng):
    """A child made after threads were used starts its own."""
    a, b = pair(rng, "f32", (64,), 16, 16, 16)
    expected = pysimd.matmul(a, b, threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of the threads of NumPy's BLAS
        child = os.fork()
    if child == 0:
        status = 1
        try:
            same = pysimd.matmul(a, b, threads=2).tobytes() == expected.tobytes()
            status = 0 if same and pysimd.matmul(a, b).tobytes() == expected.tobytes() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pysimd.matmul(a, b, threads=2).tobytes() == expected.tobytes()


def test_the_gil_is_released(rng):
    """While one thread multiplies, another one runs Python."""
    a, b = pair(rng, "i8i32", (), 600 if QUICK else 2000, 500, 2000)
    ticks = []
    done = threading.Event()

    def count():
        while not done.is_set():
            ticks.append(None)
            done.wait(0.0005)

    pysimd.matmul(a[:1], b)  # everything is loaded
    counter = threading.Thread(target=count)
    counter.start()
    before = len(ticks)
    pysimd.matmul(a, b, threads=1)
    during = len(ticks) - before
    done.set()
    counter.join()
    assert during > 1, "the other thread stood still"


def test_parts_of_products_stay_in_their_scratch_memory(rng):
    """Fewer products than threads, each divided by rows: a part's panels are smaller, and no more of them are packed
    together than there is memory for."""
    for m, k, n, batch, threads in ((120, 32, 40, 3, 4), (200, 16, 80, 7, 8), (500, 8, 100, 5, 16)):
        a = rng.standard_normal((batch, m, k)).astype(np.float16)
        b = rng.standard_normal((batch, k, n)).astype(np.float16)
        expected = pysimd.matmul(a, b, threads=1)
        for _ in range(20):
            np.testing.assert_array_equal(pysimd.matmul(a, b, threads=threads), expected)
