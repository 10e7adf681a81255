"""``out`` of any strides: kernels store adjacent columns, or C^T = B^T A^T where rows are adjacent, or an epilogue
stores the products of a batch, or the result is copied; each is the door's own work, without a check in Python."""

import itertools

import layouts
import numpy as np
import pytest
from cases import few
from reference import check, check_factors, pair, random_result

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

TYPES = [t for t in CPU.offered if dtypes.dtype_of(dtypes.FAMILIES[t].a).name != "uint16"]
SHAPES = few([(1, 3, 5), (5, 3, 1), (1, 1, 1), (4, 4, 4), (17, 9, 33), (33, 33, 17), (2, 100, 3), (64, 70, 65)], 4)
LAYOUTS = (
    layouts.transposed,
    layouts.fortran,
    layouts.sliced,
    layouts.every_other,
    layouts.padded_rows,
    layouts.negative,
    layouts.fractional_strides,
)


def gaps(out):
    """The bytes of the memory under ``out`` that are none of its elements, as they are now."""
    memory = out
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    whole = memory.copy().reshape(-1).view(np.uint8)
    size, start = out.itemsize, out.ctypes.data - memory.ctypes.data
    at = np.array(start)
    for n, stride in zip(out.shape, out.strides, strict=True):
        at = at[..., None] + stride * np.arange(n)
    whole[(at[..., None] + np.arange(size)).reshape(-1)] = 0
    return whole.tobytes()


def a_result(kind, of_out, shape):
    """NaN, or 77, in every element of an array of that layout."""
    return of_out(np.full(shape, np.nan if kind.kind == "f" else 77, kind))


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("of_out", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_layouts(types, of_out, m, k, n, rng):
    kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    for batch in ((), (3,), (2, 3)):
        a, b = pair(rng, types, (*batch, m, k), (*batch, k, n))
        for x, y in itertools.product((a, layouts.transposed(a)), (b, layouts.transposed(b))):
            out = a_result(kind, of_out, (*batch, m, n))
            before = gaps(out)
            assert CPU.door.matmul(x, y, out, None, None) is out
            check(out, types, a, b)
            assert gaps(out) == before
    for threads in (1, 2, 3):
        again = a_result(kind, of_out, out.shape)
        pysimd.matmul(x, y, out=again, threads=threads)
        assert again.tobytes() == out.tobytes()


@pytest.mark.parametrize("types", TYPES)
def test_vectors(types, rng):
    kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    a, b = pair(rng, types, (3, 7, 20), (20,))
    for x, y in ((a, b), (a[0], b), (a[0, 0], b), (b, a.swapaxes(1, 2))):
        if types == "u8i8i32" and x is b:
            continue  # a is int8
        expected = pysimd.matmul(x, y)
        for step in (2, -1, 5):
            memory = np.zeros((*expected.shape[:-1], 5 * expected.shape[-1]) if expected.ndim else (5,), kind)
            out = memory[..., ::step][..., : expected.shape[-1]] if expected.ndim else memory[0:1].reshape(())
            assert CPU.door.matmul(x, y, out, None, None) is out
            np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("of_out", LAYOUTS, ids=lambda f: f.__name__)
def test_factors(types, of_out, rng):
    """C is ``out``, or apart, or broadcasts."""
    kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    for (m, k, n), batch in itertools.product(((5, 9, 12), (1, 4, 6), (40, 70, 33)), ((), (20,))):
        a, b = pair(rng, types, (*batch, m, k), (*batch, k, n))
        c = random_result(rng, kind, (*batch, m, n))
        for alpha, beta in ((1, 1), (2, 0), (1, 3), (2, 1)):
            out = of_out(c)
            assert CPU.door.gemm(a, b, out, alpha, beta, False, False, out, None, None) is out
            check_factors(out, types, a, b, c, alpha, beta)
            for added in (layouts.transposed(c), c[..., :1, :], c[..., :1]):
                out = a_result(kind, of_out, c.shape)
                assert CPU.door.gemm(a, b, added, alpha, beta, False, False, out, None, None) is out
                check_factors(out, types, a, b, np.broadcast_to(added, c.shape), alpha, beta)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("of_out", [*LAYOUTS, layouts.contiguous], ids=lambda f: f.__name__)
def test_epilogue(types, of_out, rng):
    """Batches of products whose sums are stored some at a time: more than fit in a part of L1, and one dimension of the
    batch without an operand's."""
    family = dtypes.FAMILIES[types]
    results = [dtypes.dtype_of(family.c)] + [dtypes.dtype_of(family.a)] * (types in ("f16f32", "bf16f32"))
    for batch, m, k, n in (((70,), 9, 5, 13), ((2, 11), 17, 33, 40), ((200,), 1, 3, 7), ((3,), 60, 2, 90)):
        a, b = pair(rng, types, (*batch, m, k), (*batch[:-1], 1, k, n))
        product = pysimd.matmul(a, b)
        for kind, (alpha, beta) in itertools.product(results, ((1, 0), (2, 0), (1, 1), (2, 3))):
            c = random_result(rng, kind, product.shape)
            found = []
            for threads in (1, 2, 5):
                out = of_out(c) if beta else a_result(kind, of_out, product.shape)
                before = gaps(out)
                assert CPU.door.gemm(a, b, out, alpha, beta, False, False, out, None, threads) is out
                assert gaps(out) == before
                if kind == product.dtype:
                    check_factors(out, types, a, b, c, alpha, beta)
                else:
                    scaled = alpha * product + (beta * c.astype(np.float32) if beta else 0)
                    last_place = 2.0**-10 if types == "f16f32" else 2.0**-7  # another kernel adds in another order
                    np.testing.assert_allclose(out.astype(np.float32), scaled, rtol=last_place, atol=1e-4)
                found.append(out.tobytes())
            assert found == found[:1] * 3


def test_a_long_batch(rng):
    """More than 50 milliseconds, so that it looks for signals, which changes the route that is taken: products of a
    short K, which tiles or gemm.c may compute."""
    a, b = pair(rng, "f32", (1100, 64), (3000, 64, 7))
    room = np.full((3000, 1100, 14), 77, np.float32)
    out = room[..., ::2]
    assert CPU.door.matmul(a, b, out, pysimd.kernel("generic_f32_outer_4x4"), 1) is out
    for i in (0, 1, 1499, -1):
        check(out[i], "f32", a, b[i])
    assert (room[..., 1::2] == 77).all()


@pytest.mark.parametrize("types", ["f32", "f64"])
def test_overlap(types, rng):
    """``out`` is an operand, in its own order or in another, or shares some of its elements."""
    a, b = pair(rng, types, (6, 9, 9), (6, 9, 9))
    for turned in (False, True):
        out = a.copy()
        given = out.swapaxes(1, 2) if turned else out
        assert CPU.door.matmul(out, b, given, None, None) is given
        check(given, types, a, b)
    chain = np.concatenate([a, a[:1]])
    assert CPU.door.matmul(chain[:-1], b, chain[1:], None, None) is not NotImplemented
    check(chain[1:], types, a, b)
    a, b = a[0, :6], b[0]
    for read, written in ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:])):
        for alpha, beta in ((1.0, 1.0), (2.0, 3.0)):
            c = random_result(rng, a.dtype, (7, 9))
            expected = c[read].copy()
            found = CPU.door.gemm(a, b, c[read], alpha, beta, False, False, c[written], None, None)
            assert found is not NotImplemented
            check_factors(found, types, a, b, expected, alpha, beta)


@pytest.mark.parametrize("types", ["f16f32", "bf16f32"])
@pytest.mark.parametrize("of_out", LAYOUTS, ids=lambda f: f.__name__)
def test_results_of_16_bits(types, of_out, rng):
    if types not in TYPES:
        pytest.skip("bfloat16 needs ml_dtypes")
    a, b = pair(rng, types, (3, 9, 9), (3, 9, 9))
    expected = pysimd.matmul(a, b).astype(a.dtype)
    out = of_out(np.zeros_like(expected))
    assert CPU.door.matmul(a, b, out, None, None) is out
    np.testing.assert_array_equal(out, expected)
    turned = a.swapaxes(1, 2)
    assert CPU.door.matmul(a, b, turned, None, None) is turned  # all is read before the first element is rounded
    np.testing.assert_array_equal(turned, expected)
    chain, b = pair(rng, types, (400, 9, 9), (9, 9))
    expected = pysimd.matmul(chain[:-1], b).astype(chain.dtype)
    assert CPU.door.matmul(chain[:-1], b, chain[1:], None, None) is not NotImplemented
    np.testing.assert_array_equal(chain[1:], expected)


def test_a_named_kernel_is_the_kernel(rng):
    """Its operands are not exchanged: the bits are those of a result by rows."""
    for name in ("generic_f32_outer_4x4", "generic_f32_inner_4x4"):
        a, b = pair(rng, "f32", (5, 4, 300), (5, 300, 4))
        expected = pysimd.matmul(a, b, kernel=name)
        for of_out in LAYOUTS:
            out = of_out(np.zeros_like(expected))
            assert CPU.door.matmul(a, b, out, pysimd.kernel(name), None) is out
            np.testing.assert_array_equal(out, expected)
            tile = of_out(np.zeros_like(expected))
            assert pysimd.kernel(name)(a, b, out=tile) is tile
            np.testing.assert_array_equal(tile, expected)


def test_bind_refuses_what_kernels_cannot_store_to(rng):
    a, b = pair(rng, "f32", (4, 4), (4, 4))
    for c in (layouts.transposed(np.zeros((4, 4), np.float32)), layouts.sliced(np.zeros((4, 4), np.float32))):
        with pytest.raises(pysimd.ShapeError, match="adjacent columns"):
            pysimd.kernel("generic_f32_outer_4x4").bind(a, b, c)
    with pytest.raises(pysimd.ShapeError, match="apart from a"):
        pysimd.kernel("generic_f32_outer_4x4").bind(a, b, a)
