"""What is right: exact products to compare with, the bound that a float result must keep, and random operands.

``check`` is the one place where a result is accepted. It is written so that NaN fails where a number is expected, and
is tested itself in test_reference.py.
"""

import numpy as np

import pysimd
from pysimd import dtypes


def adds_in_chains(kernel) -> bool:
    """Whether the kernel adds the terms in another order where the columns of A are adjacent elements: those with
    .dispatch_by_columns in kernels.inc."""
    return kernel.form == "gemv" and kernel.target in ("avx2", "avx512") and not kernel.types.endswith("i8i32")


def same_bits(kernel, x, y, expected: np.ndarray, **threads) -> bool:
    """Whether the kernel's product of x and y has these bits; if it adds the terms of another order of its operands in
    another order, those of the product on one thread, which is checked."""
    found = pysimd.matmul(x, y, kernel=kernel, **threads)
    if adds_in_chains(kernel):
        expected = pysimd.matmul(x, y, kernel=kernel, threads=1)
        check(expected, kernel.types, x, y)
    return found.tobytes() == expected.tobytes()


def family(types: str) -> dtypes.Types:
    return dtypes.FAMILIES[types]


def random_operand(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Values that hide nothing: normal floats (no zero, no denormal), integers of the whole range, extremes often."""
    if dtype.name in ("int8", "uint8"):
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max + 1, shape, dtype)
        extremes = rng.choice(np.array([limits.min, limits.max], dtype), shape)
        return np.where(rng.random(shape) < 0.25, extremes, values)
    values = rng.standard_normal(shape)
    least = 2.0**-6 if dtype.name == "float16" else 1e-6  # no product of two is denormal, in half either
    values = np.where(np.abs(values) < least, 1.0, values)
    return narrow(values.astype(np.float32), dtype) if dtype.name == "uint16" else np.asarray(values.astype(dtype))


def pair(rng: np.random.Generator, types: str, a_shape, b_shape) -> tuple[np.ndarray, np.ndarray]:
    """Random operands of the dtypes that `types` names."""
    f = family(types)
    return random_operand(rng, dtypes.dtype_of(f.a), a_shape), random_operand(rng, dtypes.dtype_of(f.b), b_shape)


def moderate(rng, dtype: np.dtype, shape) -> np.ndarray:
    """Random operands of which no product is denormal, in half either: the bound knows nothing of underflow."""
    x = random_operand(rng, dtype, shape)
    if dtype.name in ("float16", "bfloat16", "float32", "float64"):
        wide = x.astype(np.float64)
        x = np.where(np.abs(wide) < 0.125, np.copysign(0.625, wide), wide).astype(dtype)
    return x


def operands(kernel, k: int, batch_a=(), batch_b=(), seed: int = 0):
    """Random A and B for one tile of ``kernel`` per batch element."""
    rng = np.random.default_rng((seed, k, kernel.mr, kernel.nr))
    a = random_operand(rng, kernel.a_dtype, (*batch_a, kernel.mr, k))
    b = random_operand(rng, kernel.b_dtype, (*batch_b, k, kernel.nr))
    return a, b


def random_result(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """A C to add to; integers near both ends of int32, so that sums wrap."""
    if dtype.name == "int32":
        limits = np.iinfo(np.int32)
        return rng.integers(limits.min, limits.max + 1, shape, np.int32)
    return random_operand(rng, dtype, shape)


def narrow(x, dtype: np.dtype):
    """float32 values (NumPy or CuPy) as the dtype of an operand; uint16 gets the bits of bfloat16, truncated."""
    if dtype.name == "uint16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(dtype)


def wide(x, dtype):
    """The values of ``x`` (NumPy or CuPy) in a type wide enough for exact products; uint16 holds the bits of bfloat16.
    Written apart from ``pysimd.dtypes``, since ``check`` relies on it."""
    if x.dtype.name == "uint16":
        x = (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(dtype)


def check(result: np.ndarray, types: str, a, b, c=None, roundings=3) -> None:
    """Assert that ``result`` is ``c + a @ b``: integers exactly (modulo 2**32), floats within DESIGN's bound
    ``(K + roundings) u (|A||B| + |C0|)``, NaN and infinity exactly where IEEE arithmetic puts them."""
    kind = family(types)
    assert result.dtype.name == kind.c, f"result is {result.dtype.name}, expected {kind.c}"
    if kind.c == "int32":
        expected = integer_product(a, b)
        if c is not None:
            expected = expected + wide(c, np.int64)
        _same_shape(result, expected)
        wrapped = expected.astype(np.int32)
        _none_wrong(result != wrapped, result, wrapped)
        return
    # The reference of f64 needs more than float64: long double has 64 bits of mantissa on x86, 113 elsewhere.
    number = np.longdouble if kind.c == "float64" else np.float64
    with np.errstate(all="ignore"):
        expected, magnitude = wide(a, number) @ wide(b, number), magnitudes(a, b)
        if c is not None:
            c = wide(c, number)
            expected, magnitude = expected + c, magnitude + np.abs(c)
        _same_shape(result, expected)
        error = np.abs(result.astype(number) - expected)
        bound = (a.shape[-1] + roundings) * kind.roundoff * magnitude
        right = (error <= bound) & (bound < np.inf)
        if not right.all():
            special = np.where(np.isnan(expected), np.isnan(result), result == expected)
            right = np.where(np.isfinite(expected), right, special)
            _none_wrong(~right, result, expected, bound)


def integer_product(a, b) -> np.ndarray:
    """Of operands of 8 bits, exact: by BLAS, whose float64 holds each sum of fewer than 2**37 products. NumPy's own
    product of int64 takes some 30 times as long."""
    assert a.dtype.itemsize == b.dtype.itemsize == 1
    return (wide(a, np.float64) @ wide(b, np.float64)).astype(np.int64)


def magnitudes(a, b) -> np.ndarray:
    """``|A||B|`` of the bound. In float64 for f64 too: how far that is off does not matter, other than in a result."""
    return np.abs(wide(a, np.float64)) @ np.abs(wide(b, np.float64))


def _same_shape(result, expected) -> None:
    assert result.shape == expected.shape, f"result has shape {result.shape}, expected {expected.shape}"


def _none_wrong(wrong: np.ndarray, result, expected, bound=None) -> None:
    if not wrong.any():
        return
    places = np.argwhere(wrong)
    at = tuple(int(i) for i in places[0])
    allowed = "" if bound is None else f" within {bound[at]:.3g}"
    raise AssertionError(
        f"{len(places)} of {wrong.size} elements are wrong; the first at {at}: {result[at]}, "
        f"expected {expected[at]}{allowed}"
    )


def check_factors(result, types, a, b, c, alpha, beta):
    """Integers exactly modulo 2**32; floats within ``(K + 3) u (|alpha| |A||B| + |beta C|)``."""
    family = dtypes.FAMILIES[types]
    if family.c == "int32":
        expected = int(alpha) * integer_product(a, b) + (int(beta) * wide(c, np.int64) if beta else 0)
        assert np.array_equal(result, expected.astype(np.int32))
        return
    number = np.longdouble if family.c == "float64" else np.float64
    expected, magnitude = alpha * (wide(a, number) @ wide(b, number)), abs(alpha) * magnitudes(a, b)
    if beta:
        expected, magnitude = expected + beta * wide(c, number), magnitude + abs(beta * wide(c, number))
    assert (abs(result - expected) <= (a.shape[-1] + 3) * family.roundoff * magnitude).all()


def layouts_of(x):
    """The same values at other strides."""
    m, n = x.shape
    padded = np.zeros((m, n + 3), x.dtype)
    padded[:, :n] = x
    apart = np.zeros((2 * m, 3 * n), x.dtype)
    apart[::2, ::3] = x
    page = np.zeros((m, (n * x.itemsize // 4096 + 1) * 4096 // x.itemsize), x.dtype)
    page[:, :n] = x
    return {
        "rows": x,
        "columns": np.asfortranarray(x),
        "padded": padded[:, :n],
        "apart": apart[::2, ::3],
        "reversed": np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        "page": page[:, :n],
    }
