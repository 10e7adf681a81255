"""The GEMM ladder on a GPU: every rung against float64, at sizes that are no multiples of a tile, in every layout."""

import functools
import itertools

import cuda_arrays
import numpy as np
import pytest
from cases import SEED
from reference import narrow, wide

import pysimd

pytestmark = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")

SIZES = (1, 7, 8, 31, 33, 64, 100, 127, 129, 255, 257, 1000, 1023, 4097)
"""One; around a warp, around every tile; multiples of 4 and not; with tails of everything."""

FACTORS = tuple(itertools.product((1.0, 0.0, -1.5), (0.0, 1.0, 0.75)))
RUNGS = [rung for rung in pysimd.rungs() if pysimd.dtypes.FAMILIES[rung.types].c == "float32"]
"""Those with float32 accumulators, whatever their operands are."""


def cases(rungs):
    return [
        pytest.param(rung, id=rung.name, marks=pytest.mark.skipif(not rung.available, reason=rung.unavailable_reason))
        for rung in rungs
    ]


every_rung = pytest.mark.parametrize("rung", cases(RUNGS))


def covering(seed: int) -> list[tuple[int, int, int]]:
    """(m, n, k): every size once in each place, in a seeded order, and tiny sizes with huge ones."""
    rng = np.random.default_rng((SEED, seed))
    columns = [rng.permutation(SIZES) for _ in range(3)]
    return [tuple(int(x) for x in row) for row in zip(*columns, strict=True)] + [(1, 4097, 1), (4097, 1, 33)]


def operand_dtype(types):
    """Of CuPy arrays: bfloat16 is uint16."""
    name = pysimd.dtypes.FAMILIES[types].a
    return np.dtype("uint16" if name == "bfloat16" else name)


def random(rng, shape, types="f32"):
    """Normal floats of which no product is denormal."""
    import cupy

    x = rng.standard_normal(shape, dtype=np.float32)
    return narrow(cupy.where(cupy.abs(x) < 0.125, cupy.float32(0.625), x), operand_dtype(types))


def full(shape, value, types):
    import cupy

    return narrow(cupy.full(shape, value, np.float32), operand_dtype(types))


def check_result(roundings, result, a, b, c=None, alpha=1.0, beta=0.0):
    """Within ``(K + roundings) u (|alpha| |A||B| + |beta C|)`` of the product in float64, on the GPU; NaN is never
    right."""
    import cupy

    a, b = wide(a, np.float64), wide(b, np.float64)
    expected, magnitude = alpha * (a @ b), abs(alpha) * (abs(a) @ abs(b))
    if beta != 0:
        expected, magnitude = expected + beta * c, magnitude + abs(beta * c.astype(np.float64))
    assert result.shape == expected.shape
    assert result.dtype == np.float32
    error, bound = cupy.abs(result - expected), (a.shape[-1] + roundings) * 2.0**-24 * magnitude
    wrong = ~(error <= bound)
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} wrong, first at {cupy.argwhere(wrong)[0]}"


@pytest.fixture
def check(request):
    """``check_result`` by what the rung under test promises."""
    rung = request.node.callspec.params.get("rung") if hasattr(request.node, "callspec") else None
    return functools.partial(check_result, 3 if rung is None or rung.roundings is None else rung.roundings)


@pytest.fixture
def gpu_rng():
    import cupy

    return cupy.random.default_rng(SEED)


@every_rung
def test_sizes(rung, gpu_rng, check):
    for m, n, k in covering(RUNGS.index(rung)):
        a, b = random(gpu_rng, (m, k), rung.types), random(gpu_rng, (k, n), rung.types)
        check(rung(a, b), a, b)


@every_rung
@pytest.mark.parametrize("n", [17, 90, 259])
@pytest.mark.parametrize("m", [1, 70, 200])
def test_nothing_is_written_past_the_rows_of_c(rung, m, n, gpu_rng, check):
    """Rows of C start at multiples of 16 bytes and end elsewhere."""
    import cupy

    a, b = random(gpu_rng, (m, 40), rung.types), random(gpu_rng, (40, n), rung.types)
    room = cupy.full((m, -(-n // 4) * 4 + 8), 77, np.float32)
    rung(a, b, out=room[:, :n])
    check(room[:, :n], a, b)
    assert (room[:, n:] == 77).all()


@every_rung
@pytest.mark.parametrize(("m", "n", "k"), [(65, 130, 33), (128, 256, 64)])
def test_factors(rung, m, n, k, gpu_rng, check):
    """With beta 0, C is all NaN and must not show."""
    import cupy

    a, b = random(gpu_rng, (m, k), rung.types), random(gpu_rng, (k, n), rung.types)
    for alpha, beta in FACTORS:
        c = random(gpu_rng, (m, n)) if beta else cupy.full((m, n), np.nan, np.float32)
        check(rung(a, b, c, alpha=alpha, beta=beta), a, b, c, alpha, beta)
        out = c.copy()
        assert rung(a, b, out, alpha=alpha, beta=beta, out=out) is out
        check(out, a, b, c, alpha, beta)


def inside(rng, rows, columns, before, more, types="f32"):
    """A matrix with a leading dimension larger than its rows, at an address ``before`` elements past an aligned one;
    everything around it is NaN."""
    buffer = full(before + rows * (columns + more), np.nan, types)
    x = buffer[before:].reshape(rows, columns + more)[:, :columns]
    x[...] = random(rng, (rows, columns), types)
    return x


@every_rung
@pytest.mark.parametrize(("before", "more"), [(0, 4), (0, 1), (1, 4), (3, 5), (4, 0), (8, 8)])
def test_leading_dimensions_and_alignment(rung, before, more, gpu_rng, check):
    """NaN around operands would show if it were read, and around C if it were not left alone."""
    import cupy

    for m, n, k in ((33, 68, 40), (130, 132, 36), (65, 136, 72)):
        a, b = (inside(gpu_rng, *shape, before, more, rung.types) for shape in ((m, k), (k, n)))
        c = inside(gpu_rng, m, n, before, more)
        expected = c.copy()
        assert rung(a, b, c, alpha=2, beta=-1, out=c) is c
        check(c, a, b, expected, 2, -1)
        around = c.base
        while around.base is not None:
            around = around.base
        assert int(cupy.isnan(around).sum()) == around.size - c.size


@every_rung
@pytest.mark.parametrize(("m", "n", "k"), [(97, 66, 35), (128, 64, 32)])
def test_transposed(rung, m, n, k, gpu_rng, check):
    """Transposed operands, by flag and as views, and a column-major C, which swaps the operands."""
    import cupy

    for trans_a, trans_b, trans_c in itertools.product((False, True), repeat=3):
        a = random(gpu_rng, (k, m) if trans_a else (m, k), rung.types)
        b = random(gpu_rng, (n, k) if trans_b else (k, n), rung.types)
        x, y = a.T if trans_a else a, b.T if trans_b else b
        out = cupy.empty((n, m), np.float32).T if trans_c else cupy.empty((m, n), np.float32)
        c = random(gpu_rng, (m, n))
        for result in (
            rung(a, b, c, beta=2, trans_a=trans_a, trans_b=trans_b, out=out),
            rung(x, y, c, beta=2),
            rung(cupy.asfortranarray(x), cupy.asfortranarray(y), cupy.asfortranarray(c), beta=2),
        ):
            check(result, x, y, c, 1, 2)


@every_rung
def test_any_strides(rung, gpu_rng, check):
    """Neither dimension adjacent; backwards; all elements of a row the same."""
    import cupy

    a, b = random(gpu_rng, (60, 90), rung.types), random(gpu_rng, (90, 80), rung.types)
    out = cupy.zeros((120, 160), np.float32)
    for x, y in ((a[::2, ::3], b[::3, ::2]), (a[::-1], b[:, ::-1]), (a[:, ::-1], b[::-1])):
        check(rung(x, y), x, y)
        target = out[: 2 * x.shape[0] : 2, : 2 * y.shape[1] : 2]
        assert rung(x, y, out=target) is target
        check(target, x, y)
    same = cupy.broadcast_to(a[:, :1], (60, 90))
    check(rung(same, b), same, b)
    assert not out[1::2].any()
    assert not out[:, 1::2].any()


@every_rung
def test_batches(rung, gpu_rng, check):
    for batch_a, batch_b in (((5,), (5,)), ((5,), ()), ((), (5,)), ((2, 1, 3), (4, 1)), ((0,), (0,))):
        a, b = random(gpu_rng, (*batch_a, 34, 20), rung.types), random(gpu_rng, (*batch_b, 20, 36), rung.types)
        c = random(gpu_rng, (34, 36))
        check(rung(a, b, c, alpha=0.5, beta=2), a, b, c, 0.5, 2)
    a, b = random(gpu_rng, (70_000, 2, 3), rung.types), random(gpu_rng, (70_000, 3, 2), rung.types)
    check(rung(a, b), a, b)


@every_rung
def test_nothing_to_sum_or_to_store(rung, gpu_rng):
    c = random(gpu_rng, (5, 6))
    a, b = (full(shape, 1, rung.types) for shape in ((5, 0), (0, 6)))
    assert not rung(a, b).any()
    assert (rung(a, b, c, beta=2) == 2 * c).all()
    assert rung(full((0, 3), 1, rung.types), full((3, 6), 1, rung.types)).shape == (0, 6)


@every_rung
def test_out_may_overlap(rung, gpu_rng, check):
    """With an operand, shifted along C, and as the very C."""
    a, b = random(gpu_rng, (150, 150), rung.types), random(gpu_rng, (150, 150), rung.types)
    for which in range(3):
        x, y, c = a.copy(), b.copy(), random(gpu_rng, (150, 150))
        out, expected = c if which == 2 else random(gpu_rng, (150, 150)), c.copy()
        if which < 2:
            x, y = (out.view(z.dtype)[:, :150] if i == which else z for i, z in enumerate((x, y)))
            (x, y)[which][...] = (a, b)[which]
        assert rung(x, y, c, beta=0.5, out=out) is out
        check(out, a, b, expected, 1, 0.5)
    buffer = random(gpu_rng, (151, 150))
    expected = buffer[1:].copy()
    check(rung(a, b, buffer[1:], beta=0.5, out=buffer[:-1]), a, b, expected, 1, 0.5)


@every_rung
def test_special_values(rung, gpu_rng):
    """NaN and infinity reach exactly the elements that they must; denormals are kept."""
    import cupy

    a, b = random(gpu_rng, (70, 40), rung.types), random(gpu_rng, (40, 70), rung.types)
    for x, i, j, value in ((a, 3, 5, np.nan), (b, 7, 9, np.inf), (a, 60, 39, -np.inf)):
        x[i, j] = full((), value, rung.types)
    result, expected = rung(a, b), wide(a, np.float64) @ wide(b, np.float64)
    if rung.name in ("tf32x3", "ozaki2_f32"):  # an infinity has no parts: it may come out as NaN
        result[cupy.isinf(expected) & cupy.isnan(result)] = expected[cupy.isinf(expected) & cupy.isnan(result)]
    assert (cupy.isnan(result) == cupy.isnan(expected)).all()
    infinite = cupy.isinf(expected)
    assert (result[infinite] == expected[infinite]).all()
    assert cupy.isfinite(result[cupy.isfinite(expected)]).all()
    if rung.types == "f16f32":  # the least half; its square is far from the least float
        tiny = full((9, 1), 2.0**-24, rung.types)
        assert (rung(tiny, tiny, trans_b=True, alpha=2.0**-100) == np.float32(2.0**-148)).all()
        return
    tiny = full((9, 1), 2.0**-100, rung.types)
    assert (rung(tiny, tiny, trans_b=True, alpha=2.0**60) == 0).all()
    assert (rung(tiny, full((1, 9), 2.0**-40, rung.types)) == np.float32(2.0**-140)).all()


@every_rung
def test_same_bits_everywhere(rung, gpu_rng):
    """Whatever the index in a batch, and whichever loads the alignment allows."""
    import cupy

    a, b = random(gpu_rng, (40, 32), rung.types), random(gpu_rng, (32, 44), rung.types)
    first = rung(a, b)
    shifted = inside(gpu_rng, 40, 32, 1, 3, rung.types)
    shifted[...] = a
    assert (rung(shifted, b) == first).all()
    batch = rung(cupy.broadcast_to(a, (9, 40, 32)), b)
    assert (batch == first).all()


def test_compiled_code_fits():
    """No registers spilled, no more shared memory than every device has, two blocks of the large tiles."""
    for rung in (rung for rung in pysimd.rungs() if rung.available):
        assert rung.local_bytes == 0
        assert 0 < rung.shared_bytes <= 227 << 10
        if rung.number in {f"S{i}" for i in range(15)}:
            assert rung.shared_bytes <= 48 << 10
            assert rung.registers * rung.threads <= 65_536 // (2 if rung.tm == 8 else 1)


NARROW = ["h2_gemm", "i8_dp4a_gemm", "i8_wgmma", "i8_mma_sync"]


class TestNarrow:
    """The rungs of f16 results and of int8: edge tiles, every layout, remainders of a word."""

    SHAPES = (
        (1, 1, 1),
        (7, 5, 3),
        (64, 64, 32),
        (127, 129, 33),
        (128, 256, 64),
        (257, 100, 255),
        (33, 1000, 1030),
        (1, 17, 4097),
        (512, 384, 160),
    )

    @staticmethod
    def random(rng, types, shape):
        import cupy

        dtype = pysimd.dtypes.FAMILIES[types].a
        if types == "i8i32":
            return cupy.asarray(rng.integers(-128, 128, shape).astype(dtype))
        return random(rng, shape).astype(dtype)

    @staticmethod
    def check(result, types, a, b, c=None, alpha=1.0, beta=0.0):
        import cupy

        a, b = (x.astype(np.float64) for x in (a, b))
        expected, magnitude = alpha * (a @ b), abs(alpha) * (abs(a) @ abs(b))
        if beta:
            expected, magnitude = expected + beta * c, magnitude + abs(beta * c.astype(np.float64))
        assert result.dtype == pysimd.dtypes.FAMILIES[types].c
        unit = 2.0**-11 if types == "f16" else 0
        assert (cupy.abs(result - expected) <= (a.shape[-1] + 3) * unit * magnitude).all()

    @pytest.mark.parametrize("name", NARROW)
    @pytest.mark.parametrize(("m", "n", "k"), SHAPES)
    def test_sizes_and_layouts(self, name, m, n, k, gpu_rng):
        import cupy

        rung = pysimd.rung(name)
        if not rung.available:
            pytest.skip(rung.unavailable_reason)
        a, b = self.random(gpu_rng, rung.types, (m, k)), self.random(gpu_rng, rung.types, (k, n))
        self.check(rung(a, b), rung.types, a, b)
        at, bt = cupy.ascontiguousarray(a.T), cupy.ascontiguousarray(b.T)
        self.check(rung(at, bt, trans_a=True, trans_b=True), rung.types, a, b)
        wide_a, wide_b = self.random(gpu_rng, rung.types, (m, k + 3)), self.random(gpu_rng, rung.types, (k, n + 1))
        self.check(rung(wide_a[:, 3:], wide_b[:, 1:]), rung.types, wide_a[:, 3:], wide_b[:, 1:])
        self.check(rung(at, b, trans_a=True), rung.types, a, b)

    @pytest.mark.parametrize("name", NARROW)
    def test_factors_and_batches(self, name, gpu_rng):
        import cupy

        rung = pysimd.rung(name)
        if not rung.available:
            pytest.skip(rung.unavailable_reason)
        a, b = self.random(gpu_rng, rung.types, (3, 70, 50)), self.random(gpu_rng, rung.types, (50, 90))
        c = self.random(gpu_rng, rung.types, (3, 70, 90)).astype(pysimd.dtypes.FAMILIES[rung.types].c)
        for alpha, beta in ((1, 0), (2, -1), (0, 3)):
            self.check(rung(a, b, c, alpha=alpha, beta=beta), rung.types, a, b, c, alpha, beta)
        empty = a[:, :, :0]
        assert not rung(empty, b[:0]).any()
        out = cupy.full((70, 120), 77, c.dtype)
        rung(a[0], b, out=out[:, :90])
        self.check(out[:, :90], rung.types, a[0], b)
        assert (out[:, 90:] == 77).all()

    def test_int8_wraps_at_32_bits(self):
        import cupy

        a = cupy.full((2, 200_000), -128, np.int8)
        result = pysimd.gemm(a, a, trans_b=True)
        expected = (200_000 * 128 * 128 + 2**31) % 2**32 - 2**31
        assert (result == expected).all()

    def test_matmul_takes_them(self, gpu_rng):
        a, b = self.random(gpu_rng, "i8i32", (100, 300)), self.random(gpu_rng, "i8i32", (300, 77))
        self.check(pysimd.matmul(a, b), "i8i32", a, b)


class TestSixteenBitC:
    """Rungs that round float32 to the type of the operands, once: edge tiles, every layout, splits along k."""

    SHAPES = (
        (1, 1, 1),
        (7, 5, 3),
        (127, 129, 33),
        (200, 264, 72),
        (257, 100, 255),
        (64, 96, 4096),
        (130, 17, 5000),
        (300, 400, 2051),
        (2100, 1112, 472),
        (2100, 1096, 640),
    )

    @staticmethod
    def check(result, a, b, c=None, alpha=1.0, beta=0.0):
        import cupy

        x, y = wide(a, np.float64), wide(b, np.float64)
        expected, magnitude = alpha * (x @ y), abs(alpha) * (abs(x) @ abs(y))
        if beta:
            expected, magnitude = expected + beta * wide(c, np.float64), magnitude + abs(beta * wide(c, np.float64))
        unit = 2.0**-11 if a.dtype == np.float16 else 2.0**-8
        bound = (a.shape[-1] + 3) * 2.0**-24 * magnitude + unit * abs(expected) + 2.0**-25
        assert result.dtype == a.dtype
        assert (cupy.abs(wide(result, np.float64) - expected) <= bound).all()

    @pytest.mark.parametrize("name", ["bf16_best", "f16_best"])
    @pytest.mark.parametrize(("m", "n", "k"), SHAPES)
    def test_sizes_layouts_and_factors(self, name, m, n, k, gpu_rng):
        import cupy

        rung = pysimd.rung(name)
        if not rung.available:
            pytest.skip(rung.unavailable_reason)
        a, b, c = (random(gpu_rng, shape, rung.types) for shape in ((m, k), (k, n), (m, n)))
        out = cupy.empty_like(c)
        for trans_a, trans_b in itertools.product((False, True), repeat=2):
            x = cupy.ascontiguousarray(a.T) if trans_a else a
            y = cupy.ascontiguousarray(b.T) if trans_b else b
            out.fill(77)
            assert rung(x, y, trans_a=trans_a, trans_b=trans_b, out=out) is out
            self.check(out, a, b)
            assert (rung(x, y, trans_a=trans_a, trans_b=trans_b, out=cupy.empty_like(c)) == out).all()
        self.check(rung(a, b, c, alpha=-1.5, beta=0.75, out=out), a, b, c, -1.5, 0.75)
        room = cupy.full((n, m + 3), 77, c.dtype)
        rung(a, b, out=room[:, :m].T)
        self.check(room[:, :m].T, a, b)
        assert (room[:, m:] == 77).all()
        self.check(rung(a[:, 1:], b[1:], out=out), a[:, 1:], b[1:])

    @pytest.mark.parametrize("name", ["bf16_best", "f16_best"])
    @pytest.mark.parametrize("n", [5720, 11_640, 64 * 90])
    def test_tiles_of_one_panel(self, name, n, gpu_rng):
        """A block stores a tile as soon as it has stored the one before, of one or three boxes: exact results."""
        import cupy

        rung = pysimd.rung(name)
        if not rung.available:
            pytest.skip(rung.unavailable_reason)
        exact = [gpu_rng.integers(-2, 3, shape).astype(cupy.float32) for shape in ((3288, 8), (8, n))]
        a, b, expected = (narrow(x, operand_dtype(rung.types)) for x in (*exact, exact[0] @ exact[1]))
        out = cupy.empty_like(expected)
        for _ in range(30):
            out.fill(77)
            assert (rung(a, b, out=out) == expected).all()

    @pytest.mark.parametrize("name", ["bf16_best", "f16_best"])
    def test_a_launch_reads_what_the_one_before_wrote(self, name, gpu_rng):
        """Launches that start before the one before has ended, with and without a split along k and copies."""
        import cupy

        rung = pysimd.rung(name)
        if not rung.available:
            pytest.skip(rung.unavailable_reason)
        for size in (256, 301, 768):
            x, w = (random(gpu_rng, (size, size), rung.types) for _ in range(2))
            ways = []
            for wait in (False, True):
                buffers = [x.copy(), cupy.empty_like(x), cupy.empty_like(x)]
                for step in range(30):
                    rung(buffers[step % 3], w, alpha=0.4 * size**-0.5, out=buffers[(step + 1) % 3])
                    if wait:
                        cupy.cuda.get_current_stream().synchronize()
                ways.append(buffers)
            assert all((y == z).all() for y, z in zip(*ways, strict=True))

    @pytest.mark.parametrize("types", ["bf16f32", "f16"])
    @pytest.mark.parametrize(
        ("m", "n", "k"), [(3, 5, 4), (60, 70, 80), (300, 500, 700), (64, 96, 4096), (128, 130, 20_000)]
    )
    def test_matmul_rounds_to_the_type_of_out(self, types, m, n, k, gpu_rng):
        """By every kernel that it chooses: cuBLAS splits k of some of them."""
        self.check_calls(types, m, n, k, gpu_rng)

    @pytest.mark.parametrize("types", ["bf16f32", "f16"])
    def test_random_sizes_are_rounded_once(self, types, gpu_rng):
        """Log-uniform from 33 to 3000."""
        for shape in np.exp(np.random.default_rng(SEED).uniform(np.log(33), np.log(3000), (20, 3))).astype(int):
            self.check_calls(types, *shape.tolist(), gpu_rng)

    def check_calls(self, types, m, n, k, gpu_rng):
        import cupy

        ml_dtypes = pytest.importorskip("ml_dtypes")
        dtype = np.float16 if types == "f16" else ml_dtypes.bfloat16
        a, b, c = (random(gpu_rng, shape, types).view(dtype) for shape in ((m, k), (k, n), (m, n)))
        out = cupy.empty_like(c)
        bits = [x if types == "f16" else x.view(np.uint16) for x in (out, a, b, c)]
        assert pysimd.matmul(a, b, out=out) is out
        self.check(*bits[:3])
        assert pysimd.gemm(a, b, c, alpha=2, beta=-1, out=out) is out
        self.check(*bits, 2, -1)


def test_matmul_takes_the_best_rung(gpu_rng, check):
    a, b = random(gpu_rng, (2048, 2050)), random(gpu_rng, (2050, 2048))
    check(pysimd.matmul(a, b), a, b)
    assert (pysimd.matmul(a, b) == pysimd.rung("f32_best")(a, b)).all()


@pytest.mark.parametrize(("m", "n", "k"), [(1001, 1001, 1001), (4096, 4096, 4100), (8192, 8192, 4096)])
def test_bfloat16_takes_its_best_rung(m, n, k, gpu_rng, check):
    """By matmul and by gemm, where it is estimated to be as fast as cuBLAS."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rung = pysimd.rung("bf16_best")
    if not rung.available:
        pytest.skip(rung.unavailable_reason)
    bits = [random(gpu_rng, shape, "bf16f32") for shape in ((m, k), (k, n))]
    a, b = (x.view(ml_dtypes.bfloat16) for x in bits)
    expected = rung(a, b)
    check(expected, *bits)
    assert (pysimd.matmul(a, b) == expected).all()
    assert (pysimd.gemm(a, b) == expected).all()


@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 64, 4096), (8192, 16, 513), (16, 5000, 1001), (300, 300, 3000), (1000, 1000, 1000)]
)
def test_split_tiles(m, n, k, gpu_rng, check):
    """Shapes that the best rung splits along k, with factors; the same bits every time."""
    a, b, c = random(gpu_rng, (m, k)), random(gpu_rng, (k, n)), random(gpu_rng, (m, n))
    rung = pysimd.rung("f32_best")
    result = rung(a, b, c, alpha=2, beta=-1)
    check(result, a, b, c, 2, -1)
    assert all((rung(a, b, c, alpha=2, beta=-1) == result).all() for _ in range(5))


class TestPlans:
    """Calls like an earlier one: other arrays, the same shapes and strides."""

    SHAPES = ((100, 70, 130), (1024, 1024, 1024), (64, 64, 20_000))

    @pytest.mark.parametrize("kernel", [None, "f32_best", "smem_dbuf", "tf32x3"])
    @pytest.mark.parametrize(("m", "n", "k"), SHAPES)
    def test_every_call_is_right(self, kernel, m, n, k, gpu_rng):
        import cupy

        if kernel and not pysimd.rung(kernel).available:
            pytest.skip(pysimd.rung(kernel).unavailable_reason)
        holds = functools.partial(check_result, pysimd.rung(kernel).roundings if kernel else 3)
        for _ in range(3):
            a, b, c = random(gpu_rng, (m, k)), random(gpu_rng, (k, n)), random(gpu_rng, (m, n))
            holds(pysimd.gemm(a, b, kernel=kernel), a, b)
            holds(pysimd.gemm(a, b, kernel=kernel, alpha=-2), a, b, alpha=-2)
            transposed = cupy.ascontiguousarray(a.T), cupy.ascontiguousarray(b.T)
            holds(pysimd.gemm(*transposed, trans_a=True, trans_b=True, kernel=kernel), a, b)
            by_columns = cupy.empty((n, m), np.float32).T
            assert pysimd.gemm(a, b, out=by_columns, kernel=kernel) is by_columns
            holds(by_columns, a, b)
            out = c.copy()
            assert pysimd.gemm(a, b, out, beta=0.5, out=out, kernel=kernel) is out
            holds(out, a, b, c, 1, 0.5)
            holds(pysimd.gemm(a, b, c, beta=0.5, kernel=kernel), a, b, c, 1, 0.5)

    def test_operands_that_overlap_the_result(self, gpu_rng, check):
        """The first call has no overlap; the next one writes the result where an operand is."""
        for _ in range(2):
            a, b = random(gpu_rng, (200, 200)), random(gpu_rng, (200, 200))
            expected = a.copy()
            out = random(gpu_rng, (200, 200))
            check(pysimd.gemm(a, b, out=out), a, b)
            check(pysimd.gemm(a, b, out=a), expected, b)

    def test_one_array_twice_by_columns(self, gpu_rng, check):
        """A and B may have the same address."""
        import cupy

        a, b = random(gpu_rng, (96, 96)), random(gpu_rng, (96, 96))
        for x, y in ((a, a), (a, b), (b, a)):
            out = cupy.empty((96, 96), np.float32).T
            check(pysimd.gemm(x, y, out=out, kernel="smem_dbuf"), x, y)
            check(pysimd.matmul(x, y, out=out), x, y)

    def test_other_factors_are_another_plan(self, gpu_rng, check):
        a, b, c = (random(gpu_rng, (96, 96)) for _ in range(3))
        for _ in range(2):
            for alpha, beta in FACTORS:
                out = c.copy()
                check(pysimd.gemm(a, b, out, alpha=alpha, beta=beta, out=out), a, b, c, alpha, beta)

    def test_little_python_the_second_time(self, gpu_rng, monkeypatch):
        """No operand is checked again."""
        from pysimd.backends.cuda.ladder import rungs as cuda_ladder

        a, b = random(gpu_rng, (1024, 1024)), random(gpu_rng, (1024, 1024))
        first = pysimd.gemm(a, b)
        rung = pysimd.rung("smem_dbuf")
        by_rung = rung(a, b)
        calls = ((pysimd.gemm, first), (pysimd.matmul, first), (rung, by_rung))
        for call, expected in calls:
            assert (call(a, b) == expected).all()
        monkeypatch.setattr(cuda_ladder, "_work", None)
        for call, expected in calls:
            assert (call(a, b) == expected).all()


def test_grid_barriers_on_several_streams(gpu_rng):
    """Concurrent launches, each with its own barrier counter."""
    import threading

    import cupy

    a, b = random(gpu_rng, (128, 8192)), random(gpu_rng, (8192, 128))
    expected = pysimd.gemm(a, b)
    cupy.cuda.Device().synchronize()
    same = []

    def work():
        with cupy.cuda.Stream(non_blocking=True):
            same.extend(bool((pysimd.gemm(a, b) == expected).all()) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 300


class TestGemm:
    """``pysimd.gemm`` on CuPy arrays: a rung for float32, ``matmul`` with factors for the rest."""

    @pytest.mark.parametrize("size", [5, 32, 33, 200])
    def test_float32(self, size, gpu_rng, check):
        a, b, c = (random(gpu_rng, (3, size, size)) for _ in range(3))
        check(pysimd.gemm(a, b, c, alpha=-2, beta=0.5, trans_a=True), a.swapaxes(1, 2), b, c, -2, 0.5)
        check(pysimd.gemm(a, b), a, b)

    @pytest.mark.parametrize("name", ["cuda_f32_outer_8x8", "smem", "smem_dbuf"])
    def test_named(self, name, gpu_rng, check):
        a, b, c = (random(gpu_rng, (50, 50)) for _ in range(3))
        check(pysimd.gemm(a, b, c, alpha=3, beta=-1, kernel=name), a, b, c, 3, -1)

    @pytest.mark.parametrize("types", ["f64", "f16", "i8i32"])
    def test_other_types(self, types):
        import cupy

        family = pysimd.dtypes.FAMILIES[types]
        rng = np.random.default_rng(SEED)
        a, b = (cupy.asarray(rng.integers(-3, 4, (40, 40)).astype(family.a)) for _ in range(2))
        c = cupy.asarray(rng.integers(-3, 4, (40, 40)).astype(family.c))
        expected = 2 * (a.astype(np.float64).T @ b.astype(np.float64)) - 3 * c.astype(np.float64)
        result = pysimd.gemm(a, b, c, alpha=2, beta=-3, trans_a=True)
        assert result.dtype == family.c
        assert (result == expected).all()  # small integers are exact in every type

    def test_errors(self, gpu_rng):
        a = random(gpu_rng, (8, 8))
        with pytest.raises(pysimd.OptionError, match="threads=2 is for arrays on the CPU"):
            pysimd.gemm(a, a, threads=2)
        with pytest.raises(pysimd.DTypeError, match="smem is a cuda kernel, the arrays are on cpu"):
            pysimd.gemm(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32), kernel="smem")
        with pytest.raises(pysimd.DTypeError, match="f32 kernels take"):
            pysimd.rung("smem")(a, a.astype(np.float64))
        with pytest.raises(pysimd.ShapeError, match="same k"):
            pysimd.rung("smem")(a, a[:5])

    def test_torch_tensors(self, gpu_rng, check):
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("this build of torch sees no GPU")
        import cupy

        a, b = random(gpu_rng, (40, 50)), random(gpu_rng, (50, 60))
        result = pysimd.gemm(torch.from_dlpack(a), torch.from_dlpack(b))
        assert type(result) is torch.Tensor
        check(cupy.from_dlpack(result), a, b)
