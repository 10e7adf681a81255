"""Small products that are computed straight from the arrays (core/small.h): every size and layout, and the bits of
other routes. Guard pages are in guard_probe.py, ``small``; the machine code is in test_machine_code.py."""

import itertools

import layouts
import numpy as np
import pytest
from cases import QUICK, few
from pysimd._cpu import lib
from reference import adds_in_chains, check, pair, random_result

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu import table

INTEGERS = ("i8i32", "u8i8i32")
SIZES = (1, 2, 3, 5, 8, 9, 16, 17) if QUICK else range(1, 20)
SHAPES = ((17, 33, 40), (33, 64, 64), (5, 65, 24), (40, 7, 65), (2, 18, 7), (19, 9, 6), (18, 40, 11))
FEW_COLUMNS = ((64, 31, 5), (65, 24, 8), (130, 12, 7), (40, 30, 6), (48, 1, 3), (34, 17, 2), (28, 5, 4))
"""With K and rows for which AVX-512 exchanges the operands: 16 rows of C in a register, up to 64 rows at a time."""
LAYOUTS = (
    layouts.contiguous,
    layouts.transposed,
    layouts.fortran,
    layouts.sliced,
    layouts.padded_rows,
    layouts.negative,
    layouts.misaligned,
    layouts.same_rows,
)
ORDER_OF = {layouts.transposed: layouts.transposed} | dict.fromkeys(
    (layouts.fortran, layouts.sliced, layouts.negative), layouts.sliced
)
"""A layout with the order of another, where that is not by rows."""


@pytest.mark.parametrize("types", INTEGERS)
@pytest.mark.parametrize("batch", [(), (1,), (4,)], ids=str)
def test_integers_of_every_size_are_exact(types, batch, rng):
    for m, k, n in itertools.product((1, 2, 4, 7, 8, 13), SIZES, SIZES):
        a, b = pair(rng, types, (*batch, m, k), (*batch, k, n))
        np.testing.assert_array_equal(pysimd.matmul(a, b), a.astype(np.int64) @ b.astype(np.int64), f"{m, k, n}")


@pytest.mark.parametrize("types", INTEGERS)
def test_bytes_of_a_short_k(types, rng):
    """AVX-512 VNNI keeps all of B in registers, of two to four vectors and up to eight groups of four k."""
    rows, ks = few([1, 7, 16, 17, 40, 65], 3), (1, 3, 4, 5, 8, 11, 16, 17, 20, 21, 24, 25, 32, 33)
    for m, k, n in itertools.product(rows, ks, (17, 32, 33, 48, 49, 64)):
        a, b = pair(rng, types, (3, m, k), (3, k, n))
        right = a.astype(np.int64) @ b.astype(np.int64)
        for x, y in itertools.product((a, layouts.transposed(a)), (b, layouts.transposed(b))):
            out = np.full((3, m, n + 1), 77, np.int32)
            np.testing.assert_array_equal(pysimd.matmul(x, y, out=out[..., :n]), right, f"{m, k, n}")
            assert (out[..., n] == 77).all()


PAIRS = "avx512bf16_bf16f32_outer_14x32"


@pytest.mark.skipif(not pysimd.kernel(PAIRS).available, reason="this processor does not multiply pairs of bfloat16")
@pytest.mark.parametrize("of_a", [layouts.contiguous, layouts.transposed])
def test_pairs_of_bfloat16(of_a, rng):
    """Tiles, and with a short K all of B in registers, of two to four vectors and up to eight pairs of k. The last
    value of an odd K is multiplied alone: next to it is the next row's, which is infinite."""
    rows, ks = few([1, 7, 16, 17, 40, 65], 3), (1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 13, 15, 16, 17, 31, 64)
    for m, k, n in itertools.product(rows, ks, (1, 9, 16, 17, 32, 33, 48, 49, 64)):
        plain_a, plain_b = pair(rng, "bf16f32", (3, m, k), (3, k, n))
        plain_a[:, 1::2] = np.inf
        zeros = np.zeros((3, m, n), np.float32)
        right = pysimd.gemm(plain_a, plain_b, zeros, beta=1, kernel=PAIRS)
        assert np.isfinite(right[:, ::2]).all()
        for of_b in (layouts.contiguous, layouts.transposed):
            out = np.full((3, m + 1, n + 1), 77, np.float32)
            pysimd.matmul(of_a(plain_a), of_b(plain_b), out=out[:, :m, :n], kernel=PAIRS)
            assert out[:, :m, :n].tobytes() == right.tobytes(), (m, k, n, of_b.__name__)
            assert (out[:, m:] == 77).all()
            assert (out[..., n] == 77).all()


@pytest.mark.parametrize("types", INTEGERS)
def test_extreme_integers_do_not_saturate(types):
    """-128 * -128 and 255 * -128 in all terms: pairs of them exceed what is left of 16 bits."""
    family = dtypes.FAMILIES[types]
    of_a, of_b = np.iinfo(dtypes.dtype_of(family.a)), np.iinfo(dtypes.dtype_of(family.b))
    for size, x, y in itertools.product(SIZES, (of_a.min, of_a.max), (of_b.min, of_b.max)):
        a, b = np.full((2, size, size), x, of_a.dtype), np.full((2, size, size), y, of_b.dtype)
        assert (pysimd.matmul(a, b) == size * x * y).all(), (size, x, y)


@pytest.mark.parametrize("types", [t for t in dtypes.FAMILIES if t != "f16"])
@pytest.mark.parametrize("size", [3, 4, 8, 9, 12, 16, 20, 24])
def test_layouts_have_the_same_bits(types, size, rng):
    """Those of B and the result, and of A but for its order, of up to eight rows and columns of both but for their
    order: only some are read from the arrays."""
    plain_a, plain_b = pair(rng, types, (5, size, size), (5, size, size))
    right = pysimd.matmul(plain_a, plain_b)
    check(right, types, plain_a, plain_b)
    for of_a, of_b in itertools.product(few(LAYOUTS, 3), repeat=2):
        a, b = of_a(plain_a), of_b(plain_b)
        kept_a = ORDER_OF.get(of_a) if size <= 8 or of_a is layouts.transposed else None
        kept_b = ORDER_OF.get(of_b) if size <= 8 else None
        given_a, given_b = kept_a(a) if kept_a else a.copy(), kept_b(b) if kept_b else b.copy()
        same = (a == plain_a).all() and (b == plain_b).all() and not kept_a and not kept_b
        expected = right if same else pysimd.matmul(given_a, given_b)
        check(expected, types, a, b)
        found = pysimd.matmul(a, b)
        assert found.tobytes() == expected.tobytes(), (of_a.__name__, of_b.__name__)
        wide = np.zeros((5, size, size + 3), right.dtype)
        pysimd.matmul(a, b, out=wide[..., :size])
        assert wide[..., :size].tobytes() == expected.tobytes(), (of_a.__name__, of_b.__name__, "out")
        assert (wide[..., size:] == 0).all()


def chosen(types, shape, of_a, of_b) -> str:
    """The kernel that is taken for operands in this order: few columns of a transposed A have one of their own."""
    m, k, n = shape
    orders = (lib.PYSIMD_BY_COLUMNS if of is layouts.transposed else lib.PYSIMD_BY_ROWS for of in (of_a, of_b))
    return table.text(lib.pysimd_choose_ordered(table.TYPES[types], m, n, k, *orders).name)


@pytest.mark.parametrize("types", [t for t in dtypes.FAMILIES if t != "f16"])
@pytest.mark.parametrize("shape", SHAPES + FEW_COLUMNS, ids=str)
def test_shapes_up_to_the_limits_have_the_same_bits(types, shape, rng):
    """Several tiles of rows and of columns, what fills no group of k, by rows and by columns; with gaps between the
    elements of a row; beside C += A B, whose operands are packed."""
    m, k, n = shape
    plain_a, plain_b = pair(rng, types, (3, m, k), (3, k, n))
    zeros = np.zeros((3, m, n), dtypes.dtype_of(dtypes.FAMILIES[types].c))
    for of_a, of_b in itertools.product((layouts.contiguous, layouts.transposed, layouts.padded_rows), repeat=2):
        kernel = pysimd.kernel(chosen(types, shape, of_a, of_b))
        given_a = of_a(plain_a) if adds_in_chains(kernel) else plain_a
        given_b = of_b(plain_b) if adds_in_chains(kernel) else plain_b
        right = pysimd.gemm(given_a, given_b, zeros, beta=1, kernel=kernel)
        check(right, types, plain_a, plain_b)
        found = pysimd.matmul(of_a(plain_a), of_b(plain_b))
        assert found.tobytes() == right.tobytes(), (of_a.__name__, of_b.__name__)
        wide = np.full((3, m + 1, n + 3), 7, right.dtype)
        pysimd.matmul(of_a(plain_a), of_b(plain_b), out=wide[:, :m, :n])
        assert wide[:, :m, :n].tobytes() == right.tobytes(), (of_a.__name__, of_b.__name__, "out")
        assert (wide[:, m:] == 7).all()
        assert (wide[:, :, n:] == 7).all()
        shared = pysimd.matmul(of_a(plain_a), of_b(plain_b[:1]))
        check(shared, types, plain_a, plain_b[:1])
        if chosen(types, (3 * m, k, n), of_a, of_b) == kernel.name:  # also where their few rows are one product
            assert shared[0].tobytes() == right[0].tobytes(), (of_a.__name__, of_b.__name__, "shared")


def every_other(x):
    """As a part of rows that are twice as long."""
    return np.repeat(x, 2, axis=-1)[..., ::2]


def with_gaps(x):
    """The same, with another element between the rows."""
    found = np.full((*x.shape[:-1], 2 * x.shape[-1] + 1), 1, x.dtype)[..., :-1:2]
    found[...] = x
    return found


@pytest.mark.parametrize("types", [t for t in dtypes.FAMILIES if t != "f16"])
@pytest.mark.parametrize("shape", [(6, 6, 6), (8, 8, 8), (4, 4, 4), (7, 5, 3), (12, 31, 11), (40, 9, 64)], ids=str)
def test_copies_have_the_same_bits(types, shape, rng):
    """Operands whose rows and columns both have gaps, of which some products at a time are made dense, or all of an
    operand that is shared: many products, so that there are several copies of some. Their kernel may be another than
    that of operands without gaps."""
    m, k, n = shape
    last = 100 if QUICK else 300
    plain_a, plain_b = pair(rng, types, (last + 1, m, k), (last + 1, k, n))
    zeros = np.zeros((last + 1, m, n), dtypes.dtype_of(dtypes.FAMILIES[types].c))
    dense = pysimd.gemm(plain_a, plain_b, zeros, beta=1)
    copied = pysimd.gemm(every_other(plain_a), every_other(plain_b), zeros, beta=1)
    check(dense, types, plain_a, plain_b)
    check(copied, types, plain_a, plain_b)
    ways = (every_other, with_gaps, layouts.sliced, layouts.negative, layouts.contiguous)
    for of_a, of_b in itertools.product(ways, repeat=2):
        a, b = of_a(plain_a), of_b(plain_b)
        right = dense if of_a is of_b is layouts.contiguous else copied
        found = pysimd.matmul(a, b)
        assert found.tobytes() == right.tobytes(), (of_a.__name__, of_b.__name__)
        shared = pysimd.matmul(a[:1], b)
        assert shared[0].tobytes() == right[0].tobytes(), (of_a.__name__, of_b.__name__, "shared A")
        np.testing.assert_array_equal(shared[last], pysimd.matmul(a[0], b[last]))
        shared = pysimd.matmul(a, b[:1])
        assert shared[0].tobytes() == right[0].tobytes(), (of_a.__name__, of_b.__name__, "shared B")
        np.testing.assert_array_equal(shared[last], pysimd.matmul(a[last], b[0]))


@pytest.mark.parametrize("types", [t for t in dtypes.FAMILIES if t != "f16"])
@pytest.mark.parametrize("size", [4, 8, 9])
def test_routes_have_the_same_bits(types, size, rng):
    """The kernel by name, a part of a batch, a shared operand, a large batch, and C += A B where C is zero."""
    plain_a, plain_b = pair(rng, types, (300, size, size), (300, size, size))
    plain = pysimd.matmul(plain_a, plain_b, threads=1)
    zeros = np.zeros_like(plain)
    pairs = (plain_a, plain_b), (layouts.transposed(plain_a), plain_b), (plain_a, layouts.transposed(plain_b))
    for a, b in pairs:
        right = pysimd.matmul(a, b, threads=1)
        check(right, types, plain_a, plain_b)
        assert pysimd.matmul(a, b, threads=2).tobytes() == right.tobytes()
        assert pysimd.matmul(a[7], b[7]).tobytes() == right[7].tobytes()
        assert pysimd.matmul(a[3:4], b[3:4]).tobytes() == right[3:4].tobytes()
        assert pysimd.matmul(a[5], b)[5].tobytes() == right[5].tobytes()
        assert pysimd.matmul(a, b[5])[5].tobytes() == right[5].tobytes()
        np.testing.assert_array_equal(pysimd.gemm(a, b, zeros, beta=1), right)
    doubled = pysimd.gemm(plain_a[:3], plain_b[:3], plain[:3], beta=1)
    np.testing.assert_array_equal(doubled, plain[:3] + plain[:3])


@pytest.mark.parametrize("types", INTEGERS)
def test_sums_wrap(types, rng):
    a, b = pair(rng, types, (3, 8, 8), (3, 8, 8))
    c = random_result(rng, np.dtype(np.int32), (3, 8, 8))
    check(pysimd.gemm(a, b, c, beta=1), types, a, b, c)
