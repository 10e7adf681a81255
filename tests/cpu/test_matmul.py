"""``pysimd.matmul``: any shape and layout, the batched fast paths, streamed results, and products left to BLAS."""

import itertools

import layouts
import numpy as np
import pytest
from cases import LARGE_BATCH, PRODUCTS, QUICK, few
from pysimd._cpu import lib
from reference import check, check_factors, pair

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu import dispatch
from pysimd.backends.cpu.implementation import CPU

TYPES = CPU.offered


@pytest.fixture(params=TYPES)
def types(request):
    return request.param


def named(types):
    """matmul takes bfloat16 bits in uint16 only where a kernel is named: the case without ml_dtypes."""
    if dtypes.dtype_of(dtypes.FAMILIES[types].a).name == "uint16":
        return {"kernel": next(k for k in pysimd.kernels("cpu", types=types, form="outer", available=True))}
    return {}


@pytest.mark.parametrize("case", few(PRODUCTS, 12), ids=lambda c: f"{c.batch}-{c.m}x{c.k}x{c.n}")
def test_shapes(types, case, rng):
    a, b = pair(rng, types, (*case.batch, case.m, case.k), (*case.batch, case.k, case.n))
    result = pysimd.matmul(a, b, **named(types))
    assert result.shape == (*case.batch, case.m, case.n)
    check(result, types, a, b)
    out = np.full_like(result, 77)
    assert pysimd.matmul(a, b, out=out, **named(types)) is out  # by the fast path, if the call fits it
    np.testing.assert_array_equal(out, result)


def test_every_square_to_65(types, rng):
    """In a batch and alone: one result for each order of A and of B, and of more than eight columns for each of A."""
    for size in few(range(1, 66), 8):
        a, b = pair(rng, types, *[(3, size, size)] * 2)
        for x in (a, layouts.transposed(a)):
            by_rows = pysimd.matmul(x, b, **named(types))
            for y in (b, layouts.transposed(b)):
                result = pysimd.matmul(x, y, **named(types))
                check(result, types, a, b)
                assert size <= 8 or result.tobytes() == by_rows.tobytes()
                assert pysimd.matmul(x[1], y[1], **named(types)).tobytes() == result[1].tobytes()


VECTORS = [
    ((5,), (5,)),
    ((5,), (5, 3)),
    ((4, 5), (5,)),
    ((2, 4, 5), (5,)),
    ((5,), (2, 5, 3)),
    ((0,), (0,)),
    ((5,), (5, 0)),
]


@pytest.mark.parametrize(("a_shape", "b_shape"), few(VECTORS, 3))
def test_vectors_as_in_numpy(types, a_shape, b_shape, rng):
    a, b = pair(rng, types, a_shape, b_shape)
    kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    expected = np.matmul(a.astype(kind), b.astype(kind))
    result = pysimd.matmul(a, b, **named(types))
    assert result.shape == expected.shape
    matrix = result.reshape((*result.shape[:-1], *((1,) if a.ndim == 1 else ()), *result.shape[-1:]))
    if b.ndim == 1:
        matrix = result.reshape((*result.shape, *((1, 1) if a.ndim == 1 else (1,))))
    check(matrix, types, a[None, :] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b)
    out = np.zeros_like(result)
    assert pysimd.matmul(a, b, out=out, **named(types)) is out
    np.testing.assert_array_equal(out, result)


SQUARES = [4, 8, 16]


@pytest.mark.parametrize("size", SQUARES)
@pytest.mark.skipif(QUICK, reason="long")
class TestLargeBatch:
    def test_dense(self, types, size, rng):
        a, b = pair(rng, types, (LARGE_BATCH, size, size), (LARGE_BATCH, size, size))
        check(pysimd.matmul(a, b), types, a, b)

    def test_one_operand_shared(self, types, size, rng):
        a, b = pair(rng, types, (LARGE_BATCH, size, size), (size, size))
        check(pysimd.matmul(a, b), types, a, b)
        b, a = pair(rng, types, (size, size), (LARGE_BATCH, size, size))
        check(pysimd.matmul(b, a), types, b, a)

    def test_transposed_views(self, types, size, rng):
        a, b = pair(rng, types, (LARGE_BATCH, size, size), (LARGE_BATCH, size, size))
        for of_a, of_b in itertools.product((layouts.contiguous, layouts.transposed), repeat=2):
            left, right = of_a(a[: LARGE_BATCH // 10]), of_b(b[: LARGE_BATCH // 10])
            check(pysimd.matmul(left, right), types, left, right)

    def test_threads_by_default(self, types, size, rng, cpu_limits):
        """The default asks for every core: work is split at places that a batch of this size has."""
        cpu_limits(thread_ns=1e-3)
        a, b = pair(rng, types, (LARGE_BATCH + 1, size, size), (LARGE_BATCH + 1, size, size))
        check(pysimd.matmul(a, b), types, a, b)


class TestStreaming:
    """Non-temporal stores, forced on small arrays, which are easier to check everywhere."""

    @pytest.fixture(autouse=True)
    def stream_everything(self, cpu_limits):
        cpu_limits(stream_bytes=1)

    @pytest.mark.parametrize("m", few([1, 4, 5, 8, 13, 16, 33]))
    @pytest.mark.parametrize("n", few([1, 4, 8, 12, 16, 20, 32, 36]))
    def test_every_kernel(self, cpu_kernel, m, n, rng):
        a, b = pair(rng, cpu_kernel.types, (3, m, 6), (3, 6, n))
        check(pysimd.matmul(a, b, kernel=cpu_kernel), cpu_kernel.types, a, b)

    @pytest.mark.parametrize("offset", few([0, 1, 4, 8, 32, 60, 16], 4))
    def test_every_alignment_of_out(self, types, offset, rng):
        for size in (4, 8, 16, 17):
            a, b = pair(rng, types, (5, size, size), (5, size, size))
            kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
            memory = np.full(5 * size * size * kind.itemsize + 192, 0xAA, np.uint8)
            start = -memory.__array_interface__["data"][0] % 64 + offset
            out = memory[start : start + 5 * size * size * kind.itemsize].view(kind).reshape(5, size, size)
            pysimd.matmul(a, b, out=out, threads=1, **named(types))
            check(out, types, a, b)
            assert (memory[:start] == 0xAA).all()
            assert (memory[start + out.nbytes :] == 0xAA).all()

    @pytest.mark.parametrize("of_out", layouts.RESULTS, ids=lambda f: f.__name__)
    def test_every_layout_of_out(self, types, of_out, rng):
        a, b = pair(rng, types, (5, 8, 8), (5, 8, 8))
        kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
        out = of_out(np.zeros((5, 8, 8), kind))
        pysimd.matmul(a, b, out=out, threads=2, **named(types))
        check(out, types, a, b)


class TestStreamingThreshold:
    """Non-temporal stores are for results of ``stream_bytes`` and more that are one sequence of whole, aligned rows."""

    KERNEL = "generic_f32_outer_4x4"

    def streams(self, out, m=4, n=4, kernel=KERNEL):
        batch = out.shape[:-2]
        a, b = np.ones((*batch, m, 3), np.float32), np.ones((*batch, 3, n), np.float32)
        return CPU.door.streams(a, b, out, pysimd.kernel(kernel))

    @staticmethod
    def aligned(*shape, offset=0):
        raw = np.zeros(4 * int(np.prod(shape)) + 128, np.uint8)
        start = -raw.ctypes.data % 64 + offset
        return raw[start : start + 4 * int(np.prod(shape))].view(np.float32).reshape(shape)

    def test_exactly_the_threshold(self, cpu_limits):
        for nbytes, expected in ((64 * 10 - 1, True), (64 * 10, True), (64 * 10 + 1, False)):
            cpu_limits(stream_bytes=nbytes)
            assert self.streams(self.aligned(10, 4, 4)) is expected, nbytes

    def test_of_this_machine(self):
        count = int(dispatch.limits().stream_bytes) // 64
        assert self.streams(self.aligned(count, 4, 4))
        assert not self.streams(self.aligned(count - 1, 4, 4))

    def test_what_is_no_sequence_of_whole_rows(self, cpu_limits):
        cpu_limits(stream_bytes=1)
        assert self.streams(self.aligned(6, 4, 4))
        assert self.streams(self.aligned(6, 4, 4)[2:])
        assert self.streams(self.aligned(2, 3, 4, 4))  # batch dimensions that merge
        assert self.streams(self.aligned(6, 7, 4), m=7)
        assert not self.streams(self.aligned(6, 4, 4, offset=4))
        assert not self.streams(self.aligned(6, 4, 4)[::2])
        assert not self.streams(self.aligned(6, 4, 4)[::-1])
        assert not self.streams(self.aligned(6, 8, 4)[:, :4])
        assert not self.streams(self.aligned(6, 4, 8)[..., :4])
        assert not self.streams(self.aligned(6, 4, 8), n=8)  # two tiles side by side
        assert not self.streams(self.aligned(6, 4, 4), kernel="generic_f32_inner_4x4")


def test_a_result_larger_than_the_streaming_threshold(rng):
    if QUICK:
        pytest.skip("a quick run")
    count = int(dispatch.limits().stream_bytes) // 64 + 3
    a, b = pair(rng, "f32", (count, 4, 4), (4, 4))
    check(pysimd.matmul(a, b), "f32", a, b)


class TestOut:
    def test_overlaps_an_operand(self, types, rng):
        kind = dtypes.dtype_of(dtypes.FAMILIES[types].c)
        a, b = pair(rng, types, (6, 4, 4), (6, 4, 4))
        if a.dtype != kind:
            pytest.skip("operand and result have different dtypes: shifted bytes are tested per kernel")
        out = a.copy()
        pysimd.matmul(out, b, out=out)
        check(out, types, a, b)
        out = b.copy()
        pysimd.matmul(a, out, out=out[::-1])
        check(out[::-1], types, a, b)
        chain = np.concatenate([a, a[:1]])
        pysimd.matmul(chain[:-1], b, out=chain[1:])
        check(chain[1:], types, a, b)

    def test_nan_in_out_does_not_leak(self, types, rng):
        a, b = pair(rng, types, (2, 5, 0), (2, 0, 6))
        out = np.full((2, 5, 6), 77, dtypes.dtype_of(dtypes.FAMILIES[types].c))
        if out.dtype.kind == "f":
            out[...] = np.nan
        pysimd.matmul(a, b, out=out, **named(types))
        assert (out == 0).all()


def test_other_exporters_of_memory(rng):
    """The buffer protocol and DLPack, not only numpy.ndarray."""
    import array

    a, b = pair(rng, "f64", (4,), (4, 3))
    exported = array.array("d", a)
    np.testing.assert_array_equal(pysimd.matmul(exported, b), pysimd.matmul(a, b))

    class Exporter:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **options):
            return self.x.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    np.testing.assert_array_equal(pysimd.matmul(Exporter(a), Exporter(b)), pysimd.matmul(a, b))


def test_subclasses_of_ndarray(rng):
    class Mine(np.ndarray):
        pass

    a, b = pair(rng, "f32", (4, 4), (4, 4))
    out = np.zeros((4, 4), np.float32).view(Mine)
    assert pysimd.matmul(a.view(Mine), b, out=out) is out
    check(np.asarray(out), "f32", a, b)


@pytest.mark.parametrize("subclass", [np.matrix, np.recarray])
def test_results_of_subclasses_are_plain_arrays(rng, subclass):
    a, b = pair(rng, "f32", (4, 4), (4, 4))
    kernel = pysimd.kernel("generic_f32_outer_4x4")
    x, y = a.view(subclass), b.view(subclass)
    for result in (pysimd.matmul(x, y), pysimd.gemm(x, y), kernel(x, y)):
        assert type(result) is np.ndarray
        check(result, "f32", a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [2, 3, 4, 6, 7, 15])
@pytest.mark.parametrize("n", [9, 17, 33, 46, 100])
def test_few_rows_with_b_transposed(dtype, m, n, rng):
    """B is packed for a tile at a time where each is used once: the bits are those of B by rows, by the same kernel."""
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((10, m, 23), (10, 23, n)))
    transposed = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
    tiles = CPU.chosen("f32" if dtype is np.float32 else "f64", n, m, 23)
    np.testing.assert_array_equal(pysimd.matmul(a, transposed, kernel=tiles), pysimd.matmul(a, b, kernel=tiles))
    c = rng.standard_normal((10, m, n)).astype(dtype)
    results = [pysimd.gemm(a, x, c, alpha=1.0, beta=1.0, kernel=tiles) for x in (transposed, b)]
    np.testing.assert_array_equal(*results)


def test_products_in_caches_and_from_memory_have_the_same_bits(types, rng):
    """In L2 a column of tiles is one call of the kernel; of a batch larger than L2 C is computed row by row."""
    for m, k, n in ((47, 48, 48), (61, 40, 41)):
        a, b = pair(rng, types, (5, m, k), (5, k, n))
        alone = np.stack([pysimd.matmul(a[i], b[i], threads=1, **named(types)) for i in range(5)])
        check(alone, types, a, b)
        many = [np.ascontiguousarray(np.broadcast_to(x, (25, *x.shape))).reshape(-1, *x.shape[1:]) for x in (a, b)]
        assert pysimd.matmul(*many, threads=1, **named(types)).tobytes() == alone.tobytes() * 25


@pytest.mark.skipif(QUICK, reason="long")
@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (7, 5, 9), (39, 3, 1), (1, 12, 10), (24, 24, 24)])
def test_products_from_beyond_l3_have_the_same_bits(types, m, k, n, rng):
    """They are computed some at a time, and the next ones are prefetched."""
    a, b = pair(rng, types, (5, m, k), (5, k, n))
    alone = np.stack([pysimd.matmul(a[i], b[i], threads=1, **named(types)) for i in range(5)])
    each = a[0].nbytes + b[0].nbytes + alone[0].nbytes
    times = int(min(lib.pysimd_caches().l3 / 2, 64 << 20) / each / 5) + 2
    many = [np.ascontiguousarray(np.broadcast_to(x, (times, *x.shape))).reshape(-1, *x.shape[1:]) for x in (a, b)]
    for threads in (1, 2):
        result = pysimd.matmul(*many, threads=threads, **named(types)).reshape(times, *alone.shape)
        assert (result.view(np.uint8) == alone.view(np.uint8)).all()


@pytest.mark.parametrize(
    "layout", few(["plain", "A.mT", "B.mT", "one A", "one B", "every other matrix", "rows of five"], 3)
)
@pytest.mark.parametrize(("m", "k", "n"), few([(33, 33, 33), (17, 9, 40), (8, 45, 6), (53, 27, 3), (5, 31, 7)]))
def test_products_from_beyond_l2_have_the_same_bits(types, layout, m, k, n, rng):
    """The next ones are prefetched between the tiles of these."""
    a, b = pair(rng, types, (5, m, k), (5, k, n))
    a, b = a[:1] if layout == "one A" else a, b[:1] if layout == "one B" else b
    alone = np.stack([pysimd.matmul(a[i % len(a)], b[i % len(b)], threads=1, **named(types)) for i in range(5)])
    each = a[0].nbytes + b[0].nbytes + alone[0].nbytes
    times = int(1.5 * lib.pysimd_caches().l2 / each / 5) + 2
    many = [np.ascontiguousarray(np.broadcast_to(x, (times, *x.shape))).reshape(-1, *x.shape[1:]) for x in (a, b)]
    if layout == "every other matrix":
        many = [np.repeat(x, 2, axis=0)[::2] for x in many]
    if layout == "rows of five":
        rows = [x.reshape(times, 5, *x.shape[1:]) for x in many]
        spaced = [np.concatenate([x, np.full_like(x[:, :1], 99)], axis=1)[:, :5] for x in rows]
        assert pysimd.matmul(*spaced, threads=1, **named(types)).tobytes() == alone.tobytes() * times
        return
    x, y = (z[:1] if one else z for z, one in zip(many, (layout == "one A", layout == "one B"), strict=True))
    x = np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) if layout == "A.mT" else x
    y = np.ascontiguousarray(y.swapaxes(1, 2)).swapaxes(1, 2) if layout == "B.mT" else y
    result = pysimd.matmul(x, y, threads=1, **named(types))
    check(result[: 2 * 5], types, many[0][:10] if layout != "one A" else x, many[1][:10] if layout != "one B" else y)
    if layout in ("plain", "every other matrix"):
        assert result.tobytes() == alone.tobytes() * times
    else:  # few rows or columns may be computed in another order, for the layout or for one B, but all alike
        assert result.tobytes() == result[:5].tobytes() * times


LAST_COLUMNS = [
    *[(8, 12, 17), (9, 16, 25), (33, 33, 33), (20, 16, 41), (14, 100, 49), (31, 40, 65), (12, 300, 17), (40, 513, 33)],
    *[(9, 32, 18), (33, 47, 34), (8, 64, 50), (45, 40, 66), (23, 24, 9)],
    *[(13, 16, 65), (28, 40, 33), (12, 35, 34), (14, 20, 17), (26, 33, 66), (16, 30, 18), (8, 24, 25)],
]
"""m, k, n with one or two columns more than vectors of 64 bytes have, which may be computed by themselves: as dot
products (outer_dots.h), or with the rows of a transposed A in a register (outer.h). Of 13 rows by 65 columns, the last
of three threads has three rows."""


@pytest.mark.parametrize("layout", ["plain", "A.mT", "B.mT", "one A", "one B", "padded rows", "every other matrix"])
@pytest.mark.parametrize(("m", "k", "n"), few(LAST_COLUMNS, 3))
def test_the_last_of_many_columns(types, layout, m, k, n, rng):
    """Of every product of a batch, from strided arrays, on any number of threads, and into a part of a larger array."""
    a, b = pair(rng, types, (7, m, k), (7, k, n))
    a, b = a[:1] if layout == "one A" else a, b[:1] if layout == "one B" else b
    x = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2) if layout == "A.mT" else spread(a, layout)
    y = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2) if layout == "B.mT" else spread(b, layout)
    found = pysimd.matmul(x, y, **named(types))
    check(found, types, a, b)
    room = np.full((7, m + 2, n + 5), 99, found.dtype)
    for threads in (1, 3):
        out = room[:, 1:-1, 2:-3]
        out[...] = -1
        assert pysimd.matmul(x, y, out=out, threads=threads, **named(types)) is out
        assert out.tobytes() == found.tobytes()
        out[...] = 99
        assert (room == 99).all()
    for threads in (1, 2, 3):
        assert pysimd.matmul(x[-1], y[-1], threads=threads, **named(types)).tobytes() == found[-1].tobytes()


@pytest.mark.parametrize("step", [-1, 0, 1, 2], ids=lambda s: f"columns_{s}_apart")
def test_the_last_of_many_columns_where_columns_of_a_overlap(types, step, rng):
    """Rows of A are adjacent elements, and its columns as well, or all the same."""
    m, k, n = 33, 33, 33
    a, b = pair(rng, types, (3, 1, m + 3 * k), (3, k, n))
    start = a[:, 0, k:]
    x = np.lib.stride_tricks.as_strided(start, (3, m, k), (start.strides[0], start.itemsize, step * start.itemsize))
    found = pysimd.matmul(x, b, **named(types))
    check(found, types, np.ascontiguousarray(x), b)


@pytest.mark.parametrize(
    "kernel",
    [k for k in pysimd.kernels("cpu", form="outer", available=True) if k.target == "avx512"],
    ids=lambda k: k.name,
)
def test_a_named_kernel_computes_the_last_column_too(kernel, rng):
    a, b = pair(rng, kernel.types, (20, 40), (40, 34))
    wider = pysimd.matmul(a, b, kernel=kernel)
    assert pysimd.matmul(a, b[:, :33], kernel=kernel).tobytes() == wider[:, :33].tobytes()


def spread(x, layout: str):
    """The same values with rows, or matrices, at other distances in memory."""
    if layout == "padded rows":
        return np.concatenate([x, x[..., :1]], axis=-1)[..., :-1]
    if layout == "every other matrix":
        return np.repeat(x, 2, axis=0)[::2]
    if layout == "reversed":
        return np.ascontiguousarray(x[::-1])[::-1]
    if layout == "exchanged":
        return np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)
    return x


class TestOneB:
    """A batch with one B is one product of all its rows, where that is faster and memory allows it."""

    SHAPES = ((1, 7, 9), (1, 40, 1), (9, 3, 1), (2, 8, 12), (3, 17, 40), (5, 6, 20), (12, 5, 3))

    @pytest.mark.parametrize("layout", ["dense", "padded rows", "every other matrix", "reversed", "exchanged"])
    @pytest.mark.parametrize("of", ["a", "out"])
    def test_layouts(self, types, layout, of, rng):
        for m, k, n in self.SHAPES:
            a, b = pair(rng, types, (4, 3, m, k), (k, n))
            out = np.zeros((4, 3, m, n), dtypes.dtype_of(dtypes.FAMILIES[types].c))
            a, out = (spread(a, layout), out) if of == "a" else (a, spread(out, layout))
            pysimd.matmul(a, b, out=out, **named(types))
            check(out, types, a, b)

    def test_broadcast_a(self, types, rng):
        for m, k, n in self.SHAPES:
            a, b = pair(rng, types, (3, m, k), (1, 1, k, n))
            a = np.broadcast_to(a[:, None], (3, 2, m, k))
            check(pysimd.matmul(a, b, **named(types)), types, a, b)
            b = np.concatenate([b, b])
            with pytest.raises(pysimd.ShapeError):
                pysimd.matmul(a, b, **named(types))

    @pytest.mark.parametrize(("m", "k", "n"), [(1, 51, 28), (2, 300, 57), (30, 6, 1)])
    def test_bits_are_those_of_one_product(self, m, k, n, rng):
        for types in TYPES:
            a, b = pair(rng, types, (20, 5, m, k), (k, n))
            whole = pysimd.matmul(a.reshape(-1, k), b, **named(types))
            assert pysimd.matmul(a, b, **named(types)).tobytes() == whole.tobytes()

    def test_calls_with_c_factors_or_a_kernel_are_not_changed(self, rng):
        a, b = pair(rng, "f32", (6, 2, 5), (5, 20))
        c = rng.standard_normal((6, 2, 20)).astype(np.float32)
        check_factors(pysimd.gemm(a, b, c, alpha=0.5, beta=2.0), "f32", a, b, c, 0.5, 2.0)
        check(pysimd.matmul(a, b, kernel=pysimd.kernels("cpu", available=True)[0].name), "f32", a, b)
