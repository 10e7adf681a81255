"""Large products (core/gemm.c): every microkernel, shape, stride, factor and number of threads through its loops."""

import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from cases import QUICK, few
from process import SANITIZED
from reference import check, check_factors, layouts_of, random_operand, random_result, same_bits

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

KERNELS = [k for k in pysimd.kernels("cpu", available=True) if k.form == "outer"]
LONG_K = 2100  # longer than a block of k for all but the smallest tiles
SHAPES = [  # m, k, n
    (64, 64, 64),
    (61, 71, 67),
    (1, LONG_K, 333),
    (7, 1300, 1033),
    (13, LONG_K, 65),
    (300, LONG_K, 1),
    (131, 300, 9),
    (97, 1, 1300),
    (200, 1030, 257),
    (3, LONG_K, 3),
    (300, 7, 300),
    *((11, LONG_K, n) for n in (43, 44, 45, 46)),  # edge tiles whose last columns fill half a vector, or a part of it
]


def pair(rng, types, m, k, n, batch=()):
    family = dtypes.FAMILIES[types]
    return tuple(
        random_operand(rng, dtypes.dtype_of(name), shape)
        for name, shape in ((family.a, (*batch, m, k)), (family.b, (*batch, k, n)))
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", few(SHAPES, 3), ids=str)
def test_every_microkernel(kernel, shape, rng):
    a, b = pair(rng, kernel.types, *shape)
    one = pysimd.matmul(a, b, kernel=kernel, threads=1)
    check(one, kernel.types, a, b)
    for threads in (2, 3, 8):
        assert pysimd.matmul(a, b, kernel=kernel, threads=threads).tobytes() == one.tobytes(), threads


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_bits_depend_on_row_column_and_k_alone(kernel, rng):
    """The route changes with m, n and strides; the bits do not, K longer than a block or not."""
    for k in (100, LONG_K):
        a, b = pair(rng, kernel.types, 80, k, 150)
        whole = pysimd.matmul(a, b, kernel=kernel)
        for rows, columns in ((80, 7), (1, 150), (5, 150), (9, 100), (1, 1), (kernel.mr, kernel.nr), (33, 33)):
            part = pysimd.matmul(a[:rows], b[:, :columns], kernel=kernel)
            assert part.tobytes() == whole[:rows, :columns].tobytes(), (rows, columns)
        turned = pysimd.matmul(np.asfortranarray(a), np.asfortranarray(b), kernel=kernel)
        assert turned.tobytes() == whole.tobytes()
        tile_a, tile_b = a[: kernel.mr], np.ascontiguousarray(b[:, : kernel.nr])
        tile = whole[: kernel.mr, : kernel.nr]
        assert kernel(tile_a, tile_b).tobytes() == tile.tobytes()
        c = np.zeros((kernel.mr, kernel.nr), whole.dtype)
        kernel.bind(tile_a, tile_b, c)()
        assert c.tobytes() == tile.tobytes()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(530, 37, 400), (512, 300, 200), (65, LONG_K, 70), (300, 17, 1000)], ids=str)
def test_transposed_a(kernel, shape, rng):
    """Some columns are packed at a time, the last ones again with those before, and of narrow types some rows."""
    a, b = pair(rng, kernel.types, *shape)
    expected = pysimd.matmul(a, b, kernel=kernel, threads=1)
    check(expected, kernel.types, a, b)
    for threads in (1, 3):
        result = pysimd.matmul(np.asfortranarray(a), b, kernel=kernel, threads=threads)
        assert result.tobytes() == expected.tobytes(), threads


def test_sizes(rng):
    """Squares and near squares around every tile edge."""
    for size in few(range(41, 66), 4) + few([96, 127, 128, 129, 200, 255, 256, 300], 2):
        for m, k, n in ((size, size, size), (size, size + 1, size - 1), (size + 3, 2 * size, size)):
            a, b = pair(rng, "f32", m, k, n)
            check(pysimd.matmul(a, b, threads=1 + size % 3), "f32", a, b)


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("shape", [(50, 1300, 70), (5, 1300, 300), (120, 1500, 3)], ids=str)
def test_strides(types, shape, rng):
    a, b = pair(rng, types, *shape)
    if a.dtype.name == "uint16":
        pytest.skip("bfloat16 without ml_dtypes is for named kernels")
    kernel = CPU.chosen(types, shape[2], shape[0], shape[1])
    expected = pysimd.matmul(a, b, kernel=kernel, threads=1)
    check(expected, types, a, b)
    for (name_a, x), (name_b, y) in itertools.product(layouts_of(a).items(), layouts_of(b).items()):
        assert same_bits(kernel, x, y, expected, threads=2), (name_a, name_b)
        found = pysimd.matmul(x, y, threads=1)  # its kernel may depend on the layout
        check(found, types, a, b)
        assert pysimd.matmul(x, y, threads=2).tobytes() == found.tobytes(), (name_a, name_b)


def test_shared_rows_and_columns(rng):
    a = np.broadcast_to(random_operand(rng, np.dtype("f4"), (1, 900)), (70, 900))
    b = np.broadcast_to(random_operand(rng, np.dtype("f4"), (900, 1)), (900, 90))
    check(pysimd.matmul(a, b), "f32", a, b)


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("shape", [(70, 1300, 90), (6, 1300, 200), (100, 60, 40)], ids=str)
def test_factors(types, shape, rng):
    family = dtypes.FAMILIES[types]
    a, b = pair(rng, types, *shape)
    if a.dtype.name == "uint16":
        pytest.skip("bfloat16 without ml_dtypes is for named kernels")
    c = random_result(rng, dtypes.dtype_of(family.c), (shape[0], shape[2]))
    for alpha, beta in itertools.product((0, 1, -1, 0.5, 3), (0, 1, -1, 0.5)):
        if family.c == "int32" and (alpha != int(alpha) or beta != int(beta)):
            continue
        one = pysimd.gemm(a, b, c, alpha=alpha, beta=beta, threads=1)
        check_factors(one, types, a, b, c, alpha, beta)
        out = c.copy()
        assert pysimd.gemm(a, b, out, alpha=alpha, beta=beta, out=out, threads=3) is out
        assert out.tobytes() == one.tobytes()
        wide_out = np.full((shape[0], shape[2] + 5), 7, out.dtype)
        pysimd.gemm(a, b, c, alpha=alpha, beta=beta, out=wide_out[:, 2:-3], threads=2)
        assert wide_out[:, 2:-3].tobytes() == one.tobytes()
        assert (wide_out[:, :2] == 7).all()
        assert (wide_out[:, -3:] == 7).all()


@pytest.mark.parametrize("shape", [(70, 1300, 90), (6, 1300, 200)], ids=str)
def test_c_is_not_read_with_beta_0(shape, rng):
    a, b = pair(rng, "f32", *shape)
    c = np.full((shape[0], shape[2]), np.nan, np.float32)
    for alpha in (1, 2):
        assert not np.isnan(pysimd.gemm(a, b, c, alpha=alpha, out=c)).any()
        c[...] = np.nan
    assert not np.isnan(pysimd.matmul(a, b, out=c)).any()


@pytest.mark.parametrize("shape", [(60, 700, 90), (5, 700, 300)], ids=str)
def test_nan_and_infinity(shape, rng):
    a, b = pair(rng, "f32", *shape)
    a[1, 690], b[3, 2], b[650, 80] = np.nan, np.inf, -np.inf
    check(pysimd.matmul(a, b, threads=2), "f32", a, b)


def test_out_overlaps_operands(rng):
    a, b = pair(rng, "f32", 150, 150, 150)
    expected = pysimd.matmul(a, b)
    for out in (a.copy(), b.copy()):
        x, y = (out, b) if np.array_equal(out, a) else (a, out)
        assert pysimd.matmul(x, y, out=out) is out
        assert out.tobytes() == expected.tobytes()
    memory = np.empty((300, 150), np.float32)
    memory[:150] = a
    pysimd.matmul(memory[:150], b, out=memory[70:220])
    assert memory[70:220].tobytes() == expected.tobytes()


@pytest.mark.parametrize("batch", [2, 7])
@pytest.mark.parametrize(
    "shape", [(60, 70, 80), (130, 120, 140), (4, 600, 300), (8, 700, 600), (300, 600, 200)], ids=str
)
def test_batches(batch, shape, rng):
    """Each product by one thread, or some products by all threads: packed at once, in one step or in several."""
    if QUICK and batch > 2 and shape == (300, 600, 200):
        pytest.skip("long")
    a, b = pair(rng, "f32", *shape, (batch,))
    for x, y in ((a, b), (a, b[0]), (a[0], b), (a[::-1], b)):
        each = np.stack([pysimd.matmul(*two) for two in zip(*both(x, y, batch), strict=True)])
        for threads in (1, 2, 3, 8):
            assert pysimd.matmul(x, y, threads=threads).tobytes() == each.tobytes(), threads
    check(pysimd.matmul(a, b), "f32", a, b)


def both(x, y, batch):
    return tuple([z] * batch if z.ndim == 2 else list(z) for z in (x, y))


def test_numpy_does_not_multiply(rng, monkeypatch):
    monkeypatch.setattr(np, "matmul", None)
    for dtype in (np.float32, np.float64):
        a = np.ones((300, 300), dtype)
        assert (pysimd.matmul(a, a) == 300).all()
        assert (pysimd.gemm(a, a, a, alpha=2, beta=3) == 603).all()


def test_calls_at_the_same_time(rng):
    """They share the kept memory."""
    cases = [pair(rng, "f32", 60 + 40 * i, 700, 90 + 30 * i) for i in range(6)]
    expected = [pysimd.matmul(a, b).tobytes() for a, b in cases]
    wrong = []

    def call(i):
        for _ in range(3 if QUICK else 30):
            if pysimd.matmul(*cases[i], threads=1 + i % 3).tobytes() != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork(rng):
    a, b = pair(rng, "f32", 200, 700, 300)
    expected = pysimd.matmul(a, b, threads=2).tobytes()
    child = os.fork()
    if child == 0:
        os._exit(0 if pysimd.matmul(a, b, threads=2).tobytes() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    "call",
    [
        "pysimd.matmul(a, b, threads=2)",
        "pysimd.matmul(a[:5], b, threads=2)",
        "tile.bind(a[:4], b[:, :4], np.zeros((4, 4), 'f4'))()",
    ],
)
def test_ctrl_c(call):
    """Within a second, in a product that would take very long; all threads end with it."""
    code = f"""
import time, numpy as np, pysimd, signal, threading, os
signal.signal(signal.SIGINT, signal.default_int_handler)
a = np.broadcast_to(np.float32(1), (20000, 10**11))
b = np.broadcast_to(np.float32(1), (10**11, 20000))
tile = pysimd.kernel("generic_f32_outer_4x4")
threading.Timer(1.5, lambda: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT))).start()
sent = []
try:
    {call}
except KeyboardInterrupt:
    print(time.monotonic() - sent[0])
print((pysimd.matmul(a[:100, :1000], b[:1000, :100]) == 1000).all())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    delay, right = done.stdout.split()
    assert float(delay) < (5 if SANITIZED else 1)
    assert right == "True"


def test_out_of_memory():
    """MemoryError, and nothing is written: the limit on addresses leaves no room for the packed blocks."""
    code = """
import resource, numpy as np, pysimd
a = np.ones((2000, 3000), np.float32)
b, out = np.ones((3000, 2000), np.float32), np.full((2000, 2000), 7, np.float32)
pysimd.matmul(a[:5, :5], b[:5, :5])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
most = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), most))
try:
    pysimd.matmul(a, b, out=out, threads=1)
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print("MemoryError", (out == 7).all())
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc/self/statm")
    if SANITIZED:
        pytest.skip("the address sanitizer ends the process when an allocation fails")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["MemoryError", "True"]


@pytest.mark.parametrize("types", sorted({k.types for k in KERNELS}))
@pytest.mark.parametrize("k", [34, 70])
def test_few_terms_and_rows_of_c_that_exceed_the_caches(types, k, rng):
    """Such products have blocks of few rows. They have the bits of their parts, on any number of threads."""
    kernel = None if types in CPU.offered else next(k for k in KERNELS if k.types == types)  # taken by name alone
    a, b = pair(rng, types, 223, k, 6001)
    result = pysimd.matmul(a, b, kernel=kernel)
    check(result, types, a, b)
    for threads in (1, 2, 3):
        assert pysimd.matmul(a, b, kernel=kernel, threads=threads).tobytes() == result.tobytes()
    parts = [pysimd.matmul(a[rows], b[:, :1500], kernel=kernel) for rows in (slice(0, 90), slice(90, 223))]
    assert np.concatenate(parts).tobytes() == np.ascontiguousarray(result[:, :1500]).tobytes()
