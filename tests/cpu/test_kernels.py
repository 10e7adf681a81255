"""Every kernel of the table that this machine can run, through every way to call it, against the exact product."""

import itertools

import layouts
import numpy as np
import pytest
from cases import BATCHES, QUICK, edge_sizes, few, k_lengths
from reference import adds_in_chains, check, operands, random_operand, random_result

import pysimd

K_OF_LAYOUTS = 7
"""Odd, so that groups of 2 and 4 have a rest."""


def names(items):
    return [x.__name__ for x in items]


def result_shape(kernel, batch=()):
    return (*batch, kernel.mr, kernel.nr)


@pytest.mark.parametrize("k", k_lengths())
class TestEveryLength:
    def test_call(self, cpu_kernel, k):
        a, b = operands(cpu_kernel, k)
        check(cpu_kernel(a, b), cpu_kernel.types, a, b)

    def test_call_with_c(self, cpu_kernel, k, rng):
        a, b = operands(cpu_kernel, k)
        c = random_result(rng, cpu_kernel.c_dtype, result_shape(cpu_kernel))
        before = c.copy()
        check(cpu_kernel(a, b, c), cpu_kernel.types, a, b, before)
        np.testing.assert_array_equal(c, before)

    def test_call_with_out(self, cpu_kernel, k):
        a, b = operands(cpu_kernel, k)
        out = layouts.contiguous(np.full(result_shape(cpu_kernel), 77, cpu_kernel.c_dtype))
        assert cpu_kernel(a, b, out=out) is out
        check(out, cpu_kernel.types, a, b)

    def test_bind_one_tile(self, cpu_kernel, k, rng):
        a, b = operands(cpu_kernel, k)
        c = random_result(rng, cpu_kernel.c_dtype, result_shape(cpu_kernel))
        before = c.copy()
        run = cpu_kernel.bind(a, b, c)
        np.testing.assert_array_equal(c, before)
        run()
        check(c, cpu_kernel.types, a, b, before)
        after = c.copy()
        run()
        check(c, cpu_kernel.types, a, b, after)

    def test_bind_packed_panel(self, cpu_kernel, k):
        """A stored as the contract's packed panel, rs_a = 1 and cs_a = mr: kernels have a path of their own for it."""
        a, b = operands(cpu_kernel, k)
        a = np.asfortranarray(a)
        c = np.zeros(result_shape(cpu_kernel), cpu_kernel.c_dtype)
        cpu_kernel.bind(a, b, c)()
        check(c, cpu_kernel.types, a, b)

    def test_bind_inner_operands_in_place(self, cpu_kernel, k):
        """B stored by columns, as the inner form reads it."""
        a, b = operands(cpu_kernel, k)
        b = layouts.transposed(b)
        c = np.zeros(result_shape(cpu_kernel), cpu_kernel.c_dtype)
        cpu_kernel.bind(a, b, c)()
        check(c, cpu_kernel.types, a, b)

    def test_bind_batch(self, cpu_kernel, k, rng):
        a, b = operands(cpu_kernel, k, (2, 1), (3,))
        a, b = layouts.sliced(a), layouts.negative(b)
        c = layouts.padded_rows(random_result(rng, cpu_kernel.c_dtype, result_shape(cpu_kernel, (2, 3))))
        before = c.copy()
        cpu_kernel.bind(a, b, c)()
        check(c, cpu_kernel.types, a, b, before)

    def test_matmul_with_this_kernel(self, cpu_kernel, k, rng):
        """Sizes around one tile and two, in both directions."""
        for m, n in itertools.product(edge_sizes(cpu_kernel.mr), edge_sizes(cpu_kernel.nr)):
            a = random_operand(rng, cpu_kernel.a_dtype, (m, k))
            b = random_operand(rng, cpu_kernel.b_dtype, (k, n))
            check(pysimd.matmul(a, b, kernel=cpu_kernel), cpu_kernel.types, a, b)


@pytest.mark.parametrize("m_first", [True, False])
def test_every_partial_tile(cpu_kernel, m_first, rng):
    """Each m with a few n, and each n with a few m, up to two tiles and one. Among the few n are those whose last
    columns fill half a vector, or a part of it."""
    mr, nr = cpu_kernel.mr, cpu_kernel.nr
    others = {1, 11 * nr // 16, 3 * nr // 4, 5 * nr // 6, nr, nr + 1} if m_first else {1, mr - 1, mr, mr + 1} - {0}
    step = 7 if QUICK else 1
    for full, other in itertools.product(range(1, 2 * (mr if m_first else nr) + 2, step), others):
        m, n = (full, other) if m_first else (other, full)
        a = random_operand(rng, cpu_kernel.a_dtype, (2, m, 6))
        b = random_operand(rng, cpu_kernel.b_dtype, (2, 6, n))
        check(pysimd.matmul(a, b, kernel=cpu_kernel.name), cpu_kernel.types, a, b)


def test_c_is_added_in_every_partial_tile(cpu_kernel, rng):
    step = 5 if QUICK else 1
    for m, n in itertools.product(range(1, cpu_kernel.mr + 1, step), range(1, cpu_kernel.nr + 1, step)):
        a = random_operand(rng, cpu_kernel.a_dtype, (m, 5))
        b = random_operand(rng, cpu_kernel.b_dtype, (5, n))
        c = random_result(rng, cpu_kernel.c_dtype, (m, n))
        check(pysimd.gemm(a, b, c, beta=1, kernel=cpu_kernel), cpu_kernel.types, a, b, c)


@pytest.mark.parametrize("batch", few(BATCHES, 4), ids=lambda batch: batch.why)
def test_batch_dimensions(cpu_kernel, batch, rng):
    a, b = operands(cpu_kernel, 5, batch.a, batch.b)
    result = cpu_kernel(a, b)
    assert result.shape == result_shape(cpu_kernel, batch.result)
    check(result, cpu_kernel.types, a, b)
    c = random_result(rng, cpu_kernel.c_dtype, result_shape(cpu_kernel, batch.result[-1:]))
    check(cpu_kernel(a, b, c), cpu_kernel.types, a, b, c)


def test_c_brings_batch_dimensions_of_its_own(cpu_kernel, rng):
    a, b = operands(cpu_kernel, 3, (2,), ())
    c = random_result(rng, cpu_kernel.c_dtype, result_shape(cpu_kernel, (3, 1)))
    result = cpu_kernel(a, b, c)
    assert result.shape == result_shape(cpu_kernel, (3, 2))
    check(result, cpu_kernel.types, a, b, c)


@pytest.mark.parametrize("of_a", layouts.OPERANDS, ids=names(layouts.OPERANDS))
def test_operand_layouts(cpu_kernel, of_a):
    """Every layout of A with every layout of B, as one tile and as a batch, called and bound."""
    for of_b, batch in itertools.product(few(layouts.OPERANDS, 3), ((), (2, 3))):
        a, b = operands(cpu_kernel, K_OF_LAYOUTS, batch, batch)
        a, b = of_a(a), of_b(b)
        check(cpu_kernel(a, b), cpu_kernel.types, a, b)
        if layouts.fractional_strides not in (of_a, of_b):
            c = np.zeros(result_shape(cpu_kernel, batch), cpu_kernel.c_dtype)
            cpu_kernel.bind(a, b, c)()
            check(c, cpu_kernel.types, a, b)


@pytest.mark.parametrize("of_out", few(layouts.RESULTS, 4), ids=names(few(layouts.RESULTS, 4)))
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=["tile", "batch"])
def test_out_layouts(cpu_kernel, of_out, batch, rng):
    a, b = operands(cpu_kernel, K_OF_LAYOUTS, batch, batch)
    c = random_result(rng, cpu_kernel.c_dtype, result_shape(cpu_kernel, batch))
    out = of_out(np.zeros_like(c))
    assert cpu_kernel(a, b, out=out) is out
    check(out, cpu_kernel.types, a, b)
    assert cpu_kernel(a, b, c, out=out) is out
    check(out, cpu_kernel.types, a, b, c)
    c_view = of_out(c)
    cpu_kernel(a, b, c_view, out=c_view)
    check(c_view, cpu_kernel.types, a, b, c)
    check(cpu_kernel(a, b, of_out(c)), cpu_kernel.types, a, b, c)


def test_gaps_of_out_stay_as_they_are(cpu_kernel):
    """Around a strided result every byte keeps its value."""
    a, b = operands(cpu_kernel, 6, (3,), (3,))
    for rows, columns in ((2, 1), (1, 3), (3, 2)):
        whole = np.full((3, rows * cpu_kernel.mr + 2, columns * cpu_kernel.nr + 3), 99, cpu_kernel.c_dtype)
        place = (slice(None), slice(1, 1 + rows * cpu_kernel.mr, rows), slice(2, 2 + columns * cpu_kernel.nr, columns))
        cpu_kernel(a, b, out=whole[place])
        check(whole[place], cpu_kernel.types, a, b)
        whole[place] = 99
        assert (whole == 99).all()


class TestOverlap:
    """The answer is as if ``out`` did not share memory with the operands."""

    def arrays_in_one_buffer(self, kernel, batch, shift):
        """A, B and out within the same bytes, each ``shift`` bytes further than the one before."""
        k = 9
        shapes = {"a": (batch, kernel.mr, k), "b": (batch, k, kernel.nr), "out": (batch, kernel.mr, kernel.nr)}
        sizes = {"a": kernel.a_dtype, "b": kernel.b_dtype, "out": kernel.c_dtype}
        room = max(int(np.prod(shapes[x])) * sizes[x].itemsize for x in shapes) + 2 * abs(shift)
        rng = np.random.default_rng(shift % 97)
        bytes_ = random_operand(rng, kernel.a_dtype, (room // kernel.a_dtype.itemsize + 1,)).view(np.uint8)
        views = {}
        for i, name in enumerate(shapes):
            start = i * shift if shift >= 0 else (i - 2) * shift
            count = int(np.prod(shapes[name])) * sizes[name].itemsize
            views[name] = bytes_[start : start + count].view(sizes[name]).reshape(shapes[name])
        return views["a"], views["b"], views["out"]

    @pytest.mark.parametrize("shift", few([0, 8, 64, 200, -8, -64]))
    def test_shifted_views_of_one_buffer(self, cpu_kernel, shift):
        a, b, out = self.arrays_in_one_buffer(cpu_kernel, 3, shift)
        # One byte string read as two types: the values of B may be anything, NaN included, so compare with a call
        # on copies, which the other tests have checked.
        expected = cpu_kernel(a.copy(), b.copy())
        cpu_kernel(a, b, out=out)
        np.testing.assert_array_equal(out, expected)

    def test_out_is_an_operand(self, one_dtype_kernel):
        a, b = operands(one_dtype_kernel, one_dtype_kernel.nr, (4,), (4,))
        out = a.copy()
        one_dtype_kernel(out, b, out=out)
        check(out, one_dtype_kernel.types, a, b)
        out = a.copy()
        one_dtype_kernel(out, b, out=out[::-1, ::-1, ::-1])
        check(out[::-1, ::-1, ::-1], one_dtype_kernel.types, a, b)
        a, b = operands(one_dtype_kernel, one_dtype_kernel.mr, (4,), (4,))
        out = b.copy()
        one_dtype_kernel(a, out, out=out)
        check(out, one_dtype_kernel.types, a, b)
        out = b.copy()
        one_dtype_kernel(a, out, out, out=out)
        check(out, one_dtype_kernel.types, a, b, b)

    def test_out_is_the_next_product(self, one_dtype_kernel):
        """out[i] is where a[i + 1] lies."""
        a, b = operands(one_dtype_kernel, one_dtype_kernel.nr, (5,), (4,))
        chain = a.copy()
        one_dtype_kernel(chain[:-1], b, out=chain[1:])
        check(chain[1:], one_dtype_kernel.types, a[:-1], b)
        np.testing.assert_array_equal(chain[0], a[0])

    def test_c_is_another_view_of_out(self, cpu_kernel, rng):
        a, b = operands(cpu_kernel, 5, (4,), (4,))
        c = random_result(rng, cpu_kernel.c_dtype, result_shape(cpu_kernel, (4,)))
        out = c.copy()
        cpu_kernel(a, b, out[::-1], out=out)
        check(out, cpu_kernel.types, a, b, c[::-1])
        out = c.copy()
        cpu_kernel(a, b, out[2], out=out)
        check(out, cpu_kernel.types, a, b, c[2])


class TestSpecialValues:
    def test_out_is_never_read(self, cpu_kernel):
        """NaN in an ``out`` that is overwritten does not leak, whatever part of the tile is used."""
        a, b = operands(cpu_kernel, 3, (2,), (2,))
        out = np.full(result_shape(cpu_kernel, (2,)), -1, cpu_kernel.c_dtype)
        if cpu_kernel.c_dtype.kind == "f":
            out[...] = np.nan
        cpu_kernel(a, b, out=out)
        check(out, cpu_kernel.types, a, b)

    @pytest.mark.parametrize("k", k_lengths()[1:])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=["nan", "inf", "-inf"])
    def test_stays_in_its_row_and_column(self, float_kernel, k, value):
        for place in (0, k - 1):
            a, b = operands(float_kernel, k)
            a[1, place] = value
            check(float_kernel(a, b), float_kernel.types, a, b)
            a, b = operands(float_kernel, k)
            b[place, -1] = value
            check(float_kernel(a, b), float_kernel.types, a, b)
            a[0, place] = 0  # 0 * inf is NaN: nobody may skip zeros
            check(float_kernel(a, b), float_kernel.types, a, b)

    def test_nan_in_partial_tiles(self, float_kernel, rng):
        """Lanes and rows that a partial tile leaves out must not reach those it has."""
        for m, n in ((float_kernel.mr - 1, float_kernel.nr - 1), (1, float_kernel.nr + 1), (float_kernel.mr + 1, 1)):
            a = random_operand(rng, float_kernel.a_dtype, (3, m, 5))
            b = random_operand(rng, float_kernel.b_dtype, (3, 5, n))
            if n == 0:
                continue
            a[1, m - 1, 4], b[2, 4, n - 1] = np.nan, np.inf
            check(pysimd.matmul(a, b, kernel=float_kernel), float_kernel.types, a, b)

    def test_denormals(self, float_kernel):
        """Operands, products and results below the normal range are kept, by every route, tile remainders included.
        Those of bfloat16, which some instructions take as zero, are in test_bfloat16.py."""
        if float_kernel.types == "bf16f32":
            pytest.skip("bfloat16 has a test of its own")
        denormal = {"f32": 2.0**-140, "f64": 2.0**-1060}.get(float_kernel.types, 2.0**-24)
        for m, k, n in ((float_kernel.mr, 3, float_kernel.nr), (1, 5, 37), (33, 6, 1), (19, 7, 21), (70, 5, 150)):
            a = np.full((2, m, k), denormal, float_kernel.a_dtype)
            b = np.ones((2, k, n), float_kernel.b_dtype)
            result = pysimd.matmul(a, b, kernel=float_kernel)
            assert (result.astype(np.float64) == k * denormal).all(), (m, k, n)
            result = pysimd.gemm(a, b / 2, result, alpha=2, beta=1, kernel=float_kernel)
            if float_kernel.c_dtype != np.float16:  # there, half of the denormal is rounded
                assert (result.astype(np.float64) == (2 * k) * denormal).all(), (m, k, n)

    @pytest.mark.parametrize("k", k_lengths())
    def test_integer_extremes(self, integer_kernel, k):
        """Every pair of extremes, constant: no sum may saturate or wrap at 16 bits."""
        ends = (np.iinfo(integer_kernel.a_dtype), np.iinfo(integer_kernel.b_dtype))
        for in_a, in_b in itertools.product((ends[0].min, ends[0].max), (ends[1].min, ends[1].max)):
            a = np.full((integer_kernel.mr, k), in_a, integer_kernel.a_dtype)
            b = np.full((k, integer_kernel.nr), in_b, integer_kernel.b_dtype)
            check(integer_kernel(a, b), integer_kernel.types, a, b)
            top = np.full(result_shape(integer_kernel), 2**31 - 1 if in_a * in_b > 0 else -(2**31), np.int32)
            check(integer_kernel(a, b, top), integer_kernel.types, a, b, top)

    @pytest.mark.skipif(QUICK, reason="long")
    def test_int32_wraps_in_the_sum_itself(self, integer_kernel):
        """140000 * 128 * 128 is more than 2**31."""
        k = 140_001
        extreme = np.iinfo(integer_kernel.a_dtype).max if integer_kernel.types == "u8i8i32" else -128
        a = np.full((integer_kernel.mr, k), extreme, integer_kernel.a_dtype)
        b = np.full((k, integer_kernel.nr), -128, integer_kernel.b_dtype)
        check(integer_kernel(a, b), integer_kernel.types, a, b)


def test_same_bits_for_every_layout_and_place(cpu_kernel):
    """The value of a product does not depend on strides, on its neighbours, or on the way of the call."""
    a, b = operands(cpu_kernel, 37)
    expected = cpu_kernel(a, b)
    for of_a, of_b in itertools.product((layouts.contiguous, layouts.transposed, layouts.sliced), repeat=2):
        found = cpu_kernel(of_a(a), of_b(b))
        if of_a is layouts.transposed and adds_in_chains(cpu_kernel):
            check(found, cpu_kernel.types, a, b)
            np.testing.assert_array_equal(found, cpu_kernel(of_a(a), b))
        else:
            np.testing.assert_array_equal(found, expected)
    many = cpu_kernel(np.stack([a] * 5), np.stack([b] * 5))
    np.testing.assert_array_equal(many, np.broadcast_to(expected, many.shape))
    c = np.zeros_like(expected)
    cpu_kernel.bind(a, b, c)()
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(pysimd.matmul(a, b, kernel=cpu_kernel), expected)
