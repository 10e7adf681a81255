"""``gemm`` on NumPy arrays: the product of ``matmul`` with factors, an array to add, transposed operands and errors."""

import itertools

import layouts
import numpy as np
import pytest
from cases import few
from reference import random_operand, random_result

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

FACTORS = tuple(itertools.product((1.0, 0.0, -1.5, 2), (0.0, 1, 0.75)))
TYPES = CPU.offered


def operands(types, rng, m=5, k=7, n=6, batch_a=(), batch_b=(), batch_c=()):
    family = dtypes.FAMILIES[types]
    a, b = (
        random_operand(rng, dtypes.dtype_of(name), shape)
        for name, shape in ((family.a, (*batch_a, m, k)), (family.b, (*batch_b, k, n)))
    )
    return a, b, random_result(rng, dtypes.dtype_of(family.c), (*batch_c, m, n))


def check(result, types, a, b, c=None, alpha=1.0, beta=0.0):
    """Integers exactly, modulo 2**32; floats within ``(K + 3) u (|alpha| |A||B| + |beta C|)``; NaN is never right."""
    family = dtypes.FAMILIES[types]
    assert result.dtype == family.c
    number = np.int64 if family.c == "int32" else np.longdouble
    a, b = (np.asarray(x).astype(np.float32 if family.a == "bfloat16" else x.dtype).astype(number) for x in (a, b))
    if family.c == "int32":
        expected = int(alpha) * (a @ b) + (int(beta) * c.astype(number) if beta else 0)
        assert np.array_equal(result, expected.astype(np.int32))
        return
    expected, magnitude = alpha * (a @ b), abs(alpha) * (abs(a) @ abs(b))
    if beta:
        expected, magnitude = expected + beta * c.astype(number), magnitude + abs(beta * c.astype(number))
    assert result.shape == expected.shape
    assert (abs(result - expected) <= (a.shape[-1] + 3) * family.roundoff * magnitude).all()


@pytest.mark.parametrize("types", TYPES)
def test_factors(types, rng):
    a, b, c = operands(types, rng)
    for alpha, beta in FACTORS:
        if types.endswith("i32") and (alpha, beta) != (int(alpha), int(beta)):
            with pytest.raises(pysimd.OptionError, match="an int32 for a result of int32"):
                pysimd.gemm(a, b, c, alpha=alpha, beta=beta)
            continue
        check(pysimd.gemm(a, b, c, alpha=alpha, beta=beta), types, a, b, c, alpha, beta)
        out = c.copy()
        assert pysimd.gemm(a, b, out, alpha=alpha, beta=beta, out=out) is out
        check(out, types, a, b, c, alpha, beta)


@pytest.mark.parametrize("types", ["f32", "f64"])
def test_beta_0_does_not_read_c(types, rng):
    a, b, c = operands(types, rng)
    c[...] = np.nan
    for alpha in (1, 2):
        check(pysimd.gemm(a, b, c, alpha=alpha), types, a, b, None, alpha)
        assert not np.isnan(pysimd.gemm(a, b, c, alpha=alpha, out=c)).any()
        c[...] = np.nan


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
def test_transposed(turn_a, turn_b, rng):
    a, b, c = operands("f32", rng, batch_a=(3,), batch_b=(3,), batch_c=(3,))
    x = a.swapaxes(1, 2).copy() if turn_a else a
    y = b.swapaxes(1, 2).copy() if turn_b else b
    check(pysimd.gemm(x, y, c, beta=2, trans_a=turn_a, trans_b=turn_b), "f32", a, b, c, 1, 2)


@pytest.mark.parametrize("alpha", [1, 3])
@pytest.mark.parametrize("beta", [0, 0.5])
def test_batches_broadcast(alpha, beta, rng):
    """C takes part, also where it is not read."""
    shapes = (((4,), (), ()), ((), (), (4,)), ((2, 1), (3,), (1, 1)), ((), (5, 1), (2,)), ((0,), (), ()))
    for batch_a, batch_b, batch_c in shapes:
        a, b, c = operands("f32", rng, 3, 4, 2, batch_a, batch_b, batch_c)
        result = pysimd.gemm(a, b, c, alpha=alpha, beta=beta)
        full = np.broadcast_shapes(batch_a, batch_b, batch_c)
        assert result.shape == (*full, 3, 2)
        assert result.flags.writeable
        check(result, "f32", np.broadcast_to(a, (*full, 3, 4)), b, c, alpha, beta)
        out = np.empty((*full, 3, 2), np.float32)
        assert pysimd.gemm(a, b, c, alpha=alpha, beta=beta, out=out) is out
        assert np.array_equal(out, result)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("order", [layouts.contiguous, layouts.transposed], ids=lambda f: f.__name__)
def test_c_is_added_to_a_batch_with_the_bits_of_single_products(types, order, rng):
    """Of some batches it is added afterwards: not of single products, of large ones, and of a long K."""
    sizes = [(1, 5, 3), (4, 4, 4), (7, 3, 2), (33, 9, 12), (17, 40, 16), (16, 16, 16), (9, 1400, 8), (5, 6, 40)]
    for m, k, n in few(sizes, 4):
        a, b, c = operands(types, rng, m, k, n, (20,), (20,), (20,))
        x, y = order(a), order(b)
        apart, own = pysimd.gemm(x, y, c, beta=1), c.copy()
        pysimd.gemm(x, y, own, beta=1, out=own)
        single = np.stack([pysimd.gemm(x[i], y[i], c[i], beta=1) for i in range(20)])
        assert apart.tobytes() == own.tobytes() == single.tobytes()
        check(apart, types, a, b, c, 1, 1)


BIASES = ((), (1,), (6,), (1, 6), (5, 1), (1, 1), (4, 1, 6), (4, 5, 1), (2, 1, 1, 6))


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("shape", BIASES, ids=str)
def test_c_broadcasts_in_rows_and_columns(types, shape, rng):
    """Also where the fast path does not take it: a subclass of ndarray."""
    a, b, _ = operands(types, rng, batch_a=(4,))
    c = random_result(rng, dtypes.dtype_of(dtypes.FAMILIES[types].c), shape)
    full = np.broadcast_to(c, np.broadcast_shapes(shape, (4, 5, 6)))
    for alpha, beta in ((1, 1), (2, 1), (1, 3), (2, 3), (2, 0)):
        for x in (a, a.view(np.recarray)):
            result = pysimd.gemm(x, b, c, alpha=alpha, beta=beta)
            check(result, types, np.broadcast_to(a, (*full.shape[:-2], 5, 7)), b, full, alpha, beta)
            out = np.empty_like(result)
            assert pysimd.gemm(x, b, c, alpha=alpha, beta=beta, out=out) is out
            assert np.array_equal(out, result)


@pytest.mark.parametrize("sizes", [(1, 6), (5, 1), (1, 1), (0, 6), (5, 0)])
def test_a_bias_of_a_single_row_or_column(sizes, rng):
    m, n = sizes
    a, b, _ = operands("f32", rng, m=m, n=n)
    for shape in ((n,), (1, n), (m, 1), ()):
        c = random_result(rng, np.dtype("f4"), shape)
        check(pysimd.gemm(a, b, c, alpha=2, beta=3), "f32", a, b, np.broadcast_to(c, (m, n)), 2, 3)


def test_a_bias_that_is_part_of_out(rng):
    a, b, _ = operands("f32", rng)
    for place in (np.s_[2], np.s_[2:3], np.s_[:, 1:2], np.s_[3, 4]):
        out = random_result(rng, np.dtype("f4"), (5, 6))
        c = out[place]
        expected = np.broadcast_to(c, (5, 6)).copy()
        assert pysimd.gemm(a, b, np.asarray(c), beta=1, out=out) is out
        check(out, "f32", a, b, expected, 1, 1)


def test_a_bias_of_a_product_by_blas(rng):
    a, b, _ = operands("f32", rng, 130, 130, 130)
    for shape in ((130,), (130, 1), ()):
        c = random_result(rng, np.dtype("f4"), shape)
        check(pysimd.gemm(a, b, c, beta=1), "f32", a, b, np.broadcast_to(c, (130, 130)), 1, 1)


def test_out_may_overlap_everything(rng):
    for which in range(3):
        a, b, c = given = operands("f32", rng, 6, 6, 6)
        a, b, c = (x.copy() for x in given)
        out = given[which]
        assert pysimd.gemm(*given, alpha=2, beta=-1, out=out) is out
        check(out, "f32", a, b, c, 2, -1)
    rows = random_operand(rng, np.dtype("f4"), (7, 6))
    expected = rows[1:].copy()
    check(pysimd.gemm(a, b, rows[1:], beta=1, out=rows[:-1]), "f32", a, b, expected, 1, 1)


def test_nothing_to_sum(rng):
    c = random_operand(rng, np.dtype("f4"), (3, 4))
    a, b = np.empty((3, 0), np.float32), np.empty((0, 4), np.float32)
    assert not pysimd.gemm(a, b, c).any()
    assert np.array_equal(pysimd.gemm(a, b, c, beta=2), 2 * c)


def test_named_kernel_and_threads(rng):
    a, b, c = operands("f32", rng, 40, 30, 20)
    kernel = pysimd.kernel("generic_f32_outer_4x4")
    for name in (kernel, kernel.name):
        check(pysimd.gemm(a, b, c, alpha=2, beta=3, kernel=name, threads=2), "f32", a, b, c, 2, 3)


def test_factors_of_other_kinds(rng):
    a, b, c = operands("f32", rng)
    expected = pysimd.gemm(a, b, c, alpha=2, beta=3)
    for two, three in ((np.float32(2), np.int64(3)), (np.float64(2), 3.0)):
        result = pysimd.gemm(a, b, c, alpha=two, beta=three)
        assert result.dtype == np.float32
        assert np.array_equal(result, expected)


@pytest.mark.parametrize("factor", [-(2**31), -(2.0**31), 2**31 - 1, 16777217])
def test_every_int32_is_a_factor_of_integers(factor, rng):
    a, b, c = operands("i8i32", rng)
    check(pysimd.gemm(a, b, c, alpha=factor, beta=factor), "i8i32", a, b, c, int(factor), int(factor))


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("factor", [2**31, -(2**31) - 1, 0.5, float("nan"), float("inf"), -float("inf"), 10**400])
def test_nothing_else_is(name, factor, rng):
    a, b, c = operands("i8i32", rng)
    with pytest.raises(pysimd.OptionError, match=f"{name} must be an int32 for a result of int32, got"):
        pysimd.gemm(a, b, c, **{name: factor})


ERRORS = [
    (pysimd.OptionError, "beta=1 needs an array c", {"beta": 1}),
    (pysimd.OptionError, "alpha must be a real number, got complex", {"alpha": 1j}),
    (pysimd.OptionError, "beta must be a real number, got str", {"beta": "1"}),
    (pysimd.ShapeError, r"same k: a \(5, 7\) has 5, b \(7, 6\) has 7", {"trans_a": True}),
    (pysimd.ShapeError, r"same k: a \(5, 7\) has 7, b \(7, 6\) has 6", {"trans_b": True}),
    (pysimd.ShapeError, r"c must broadcast to \(..., 5, 6\), got \(6, 5\)", {"c": np.zeros((6, 5), np.float32)}),
    (pysimd.ShapeError, r"c must broadcast to \(..., 5, 6\), got \(5,\)", {"c": np.zeros(5, np.float32)}),
    (pysimd.DTypeError, "c must be float32, the type of the result, got float64", {"c": np.zeros((5, 6))}),
    (pysimd.ShapeError, r"out must have shape \(5, 6\)", {"out": np.zeros((5, 7), np.float32)}),
    (pysimd.DTypeError, "out must be float32", {"out": np.zeros((5, 6))}),
    (pysimd.UnknownKernelError, "did you mean .*smem_dbuf", {"kernel": "smem_dbug"}),
    (pysimd.UnknownKernelError, "generic_f32_outer_4x4", {"kernel": "generic_f32_outer_4x5"}),
    (pysimd.DTypeError, "f64 kernels take", {"kernel": "generic_f64_outer_4x4"}),
    (pysimd.OptionError, "threads must be a positive integer", {"threads": 0}),
    (pysimd.DTypeError, "a must be an array", {"a": [[1.0] * 7] * 5}),
    (pysimd.ShapeError, r"a must have at least 2 dimensions \(..., m, k\)", {"a": np.zeros(7, np.float32)}),
    (pysimd.ShapeError, r"b must have at least 2 dimensions \(..., n, k\)", {"b": np.zeros(7, "f4"), "trans_b": True}),
]


@pytest.mark.parametrize(("error", "text", "arguments"), ERRORS, ids=[text[:30] for _, text, _ in ERRORS])
def test_errors(error, text, arguments, rng):
    a, b, _ = operands("f32", rng)
    arguments = {"a": a, "b": b, **arguments}
    out = arguments.get("out")
    before = None if out is None else out.copy()
    with pytest.raises(error, match=text):
        pysimd.gemm(**arguments)
    assert out is None or np.array_equal(out, before)
