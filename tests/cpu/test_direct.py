"""Products of a short K, of few rows, or of few columns and a transposed A, of narrow types (core/direct.c): every
layout, edge and kernel.

The bits are those of any other route: a product of an A by rows that is added to C is computed through panels.
"""

import itertools

import numpy as np
import pytest
from cases import few
from reference import check, layouts_of, pair, random_result

import pysimd

NARROW = ("bf16f32", "f16f32", "i8i32", "u8i8i32")
KERNELS = [k for k in pysimd.kernels("cpu", available=True) if k.form == "outer" and k.types in NARROW]
SHAPES = [
    *((m, k, n) for m in (1, 3, 16, 45) for k in (1, 2, 4, 5, 16, 17, 32) for n in (65, 128, 193)),
    *((7, 3, 1400), (9, 31, 129), (5, 32, 1000), (33, 16, 700)),  # several blocks of columns
    *((6, 33, 70), (1, 100, 40), (4, 672, 39), (5, 300, 47), (2, 90, 600)),  # of few rows, B widened in registers
    *((8, 40, 70), (16, 33, 100), (12, 260, 90), (7, 600, 66)),  # of some rows
    *((2100, 4, 70), (300, 9, 130)),  # more rows than are staged at a time
    *((m, k, n) for m, k in ((8, 3), (31, 24), (300, 17)) for n in (10, 16, 17, 31, 32)),  # of some columns
    *((9, 128, 21), (16, 127, 32), (400, 24, 14), (1100, 5, 12)),
]

# rows, K and columns whose lanes are rows of C: around vectors, chunks of widened rows of B and blocks of K
COLUMNS = [
    *((m, 130, n) for m in (5, 12, 16, 17, 64, 79, 130) for n in range(2, 17)),
    *((m, k, n) for m, k in ((33, 513), (70, 1500), (20, 2100)) for n in (3, 4, 6, 7, 9, 12, 16)),
    *((m, k, n) for m, k in ((300, 2), (70, 33), (450, 40), (1100, 70)) for n in (4, 5, 8, 9, 13, 14, 15, 16)),
]


def through_panels(a, b, kernel):
    zeros = np.zeros((*a.shape[:-1], b.shape[-1]), kernel.c_dtype)
    return pysimd.gemm(a, b, zeros, beta=1, kernel=kernel, threads=1)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", few(SHAPES), ids=str)
def test_edges(kernel, shape, rng):
    """Nothing outside C is written, and all of C is."""
    m, k, n = shape
    a, b = pair(rng, kernel.types, (m, k), (k, n))
    expected = through_panels(a, b, kernel)
    check(expected, kernel.types, a, b)
    room = np.full((m + 2, n + 7), 99, kernel.c_dtype)
    for threads in (1, 3):
        out = room[1:-1, 3:-4]
        out[...] = -1
        assert pysimd.matmul(a, b, out=out, kernel=kernel, threads=threads) is out
        assert out.tobytes() == expected.tobytes()
        out[...] = 99
        assert (room == 99).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(19, 7, 140), (5, 60, 90), (18, 2, 1300)], ids=str)
def test_strides(kernel, shape, rng):
    m, k, n = shape
    a, b = pair(rng, kernel.types, (m, k), (k, n))
    expected = through_panels(a, b, kernel)
    for (name_a, x), (name_b, y) in itertools.product(layouts_of(a).items(), layouts_of(b).items()):
        assert pysimd.matmul(x, y, kernel=kernel, threads=1).tobytes() == expected.tobytes(), (name_a, name_b)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", few(SHAPES), ids=str)
def test_batches(kernel, shape, rng, cpu_limits):
    """Threads divide the batch, the columns or the rows of each product. Rows of C have room behind them."""
    cpu_limits(given_ns=0)
    m, k, n = shape
    if m * k > 40_000:
        pytest.skip("long")
    a, b = pair(rng, kernel.types, (3, m, k), (3, k, n))
    expected = through_panels(a, b, kernel)
    for threads in (1, 2, 3, 7):
        room = np.full((3, m + 1, n + 5), 99, kernel.c_dtype)
        pysimd.matmul(a, b, out=room[:, :m, :n], kernel=kernel, threads=threads)
        assert room[:, :m, :n].tobytes() == expected.tobytes(), threads
        assert (room[:, m] == 99).all()
        assert (room[:, :, n:] == 99).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(2, 9, 5, 150), (2, 6, 40, 70), (3, 10, 50, 80), (3, 2, 4, 300)], ids=str)
def test_batches_of_strides(kernel, shape, rng):
    """Batches that are broadcast, in reverse and transposed."""
    count, m, k, n = shape
    a, b = pair(rng, kernel.types, (count, m, k), (count, k, n))
    turned = [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (a, b)]
    expected = through_panels(a, b, kernel)
    for x, y in itertools.product((a, turned[0]), (b, turned[1])):
        assert pysimd.matmul(x, y, kernel=kernel, threads=2).tobytes() == expected.tobytes()
        assert pysimd.matmul(x[::-1], y[::-1], kernel=kernel).tobytes() == expected[::-1].tobytes()
    for x, y in ((a, b[:1]), (a[:1], b), (a[None, :1], b[:, None])):
        found = pysimd.matmul(x, y, kernel=kernel, threads=2)
        assert found.tobytes() == through_panels(np.broadcast_to(x, (*found.shape[:-2], m, k)), y, kernel).tobytes()


def turned(x):
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.c_dtype.kind == "f"], ids=lambda k: k.name)
@pytest.mark.parametrize("shape", few(COLUMNS), ids=str)
def test_few_columns_of_a_transposed_a(kernel, shape, rng):
    """All of C is written or added to, and nothing beside it, in batches too, whatever the order of B."""
    m, k, n = shape
    a, b = pair(rng, kernel.types, (2, m, k), (2, k, n))
    expected = through_panels(a, b, kernel)
    check(expected, kernel.types, a, b)
    room = np.full((2, m + 2, n + 3), 99, kernel.c_dtype)
    out = room[:, 1:-1, 1:-2]
    for threads, y in itertools.product((1, 3), (b, turned(b), np.repeat(b, 2, -1)[..., ::2])):
        out[...] = -1
        pysimd.matmul(turned(a), y, out=out, kernel=kernel, threads=threads)
        assert out.tobytes() == expected.tobytes()
        out[...] = -1
        pysimd.matmul(turned(a)[0], y[0], out=out[0], kernel=kernel, threads=threads)
        assert out[0].tobytes() == expected[0].tobytes()
    c = random_result(rng, kernel.c_dtype, (2, m, n))
    sums = pysimd.gemm(a, b, c, beta=1, kernel=kernel, threads=1)
    for threads in (1, 2):
        out[...] = c
        pysimd.gemm(turned(a), b, out, beta=1, out=out, kernel=kernel, threads=threads)
        assert out.tobytes() == sums.tobytes()
    out[...] = 99
    assert (room == 99).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(90, 70, 7), (40, 20, 12), (120, 100, 25), (200, 24, 17)], ids=str)
def test_strides_of_some_columns(kernel, shape, rng):
    test_strides(kernel, shape, rng)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.c_dtype.kind == "f"], ids=lambda k: k.name)
def test_special_values_of_few_columns(kernel, rng):
    a, b = pair(rng, kernel.types, (40, 140), (140, 6))
    infinity = 0x7C00 if kernel.types == "f16f32" else 0x7F80
    a.view(np.uint16)[2, 1], a.view(np.uint16)[17, 139], b.view(np.uint16)[130, 5] = infinity, infinity | 1, infinity
    found = pysimd.matmul(turned(a), b, kernel=kernel)
    assert np.array_equal(found, through_panels(a, b, kernel), equal_nan=True)
    assert np.isnan(found[17]).all()
    assert np.isfinite(np.delete(np.delete(found, (2, 17), 0), 5, 1)).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_special_values(kernel, rng):
    """NaN and infinity stay in their rows and columns, and the lowest int8 are exact."""
    m, k, n = 9, 5, 150
    a, b = pair(rng, kernel.types, (m, k), (k, n))
    if kernel.c_dtype.kind == "f":
        x, y = a.view(np.uint16), b.view(np.uint16)
        infinity = 0x7C00 if kernel.types == "f16f32" else 0x7F80
        x[2, 1], x[4, 0], y[3, 70] = infinity, infinity | 1, infinity
        found, expected = pysimd.matmul(a, b, kernel=kernel), through_panels(a, b, kernel)
        assert np.array_equal(found, expected, equal_nan=True)
        assert np.isnan(found[4]).all()
        assert np.isinf(found[2]).any()
        assert np.isfinite(np.delete(np.delete(found, (2, 4), 0), 70, 1)).all()
    else:
        a[...], b[...] = 255 if a.dtype == np.uint8 else -128, -128
        check(pysimd.matmul(a, b, kernel=kernel), kernel.types, a, b)
