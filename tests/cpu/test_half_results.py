"""Results of the operands' 16-bit type, which ``out`` asks for: the float32 result, rounded once."""

import itertools

import layouts
import numpy as np
import pytest
from cases import few
from guard import GuardedMemory
from reference import pair, random_operand

import pysimd
from pysimd import DTypeError, dtypes
from pysimd.backends.cpu import table

TYPES = [t for t in ("f16f32", "bf16f32") if dtypes.dtype_of(dtypes.FAMILIES[t].a).name != "uint16"]
OUTS = (
    layouts.contiguous,
    layouts.transposed,
    layouts.sliced,
    layouts.every_other,
    layouts.padded_rows,
    layouts.negative,
    layouts.misaligned,
)


@pytest.fixture(params=TYPES)
def types(request):
    return request.param


@pytest.fixture
def half(types):
    return dtypes.dtype_of(dtypes.FAMILIES[types].a)


def kernels(types):
    """The conversion depends on the target of the kernel."""
    return [None, *(k for k in pysimd.kernels("cpu", types=types, form="outer", available=True))]


def pieces(x: np.ndarray, half: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """a (N, 1, 3) and b (N, 3, 1) of 16 bits whose exact product is ``x``: 8 bits of its 24 at a time, times a power of
    two, of which A has what is too small for float16."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    whole = np.abs(np.ldexp(mantissa, 24)).astype(np.int64)
    shifts = np.array([16, 8, 0])
    powers = (exponent - 24)[:, None] + shifts
    of_b = np.clip(powers, -24, 15)
    a = np.ldexp(np.sign(x)[:, None] * (whole[:, None] >> shifts & 255), powers - of_b).astype(half)
    b = np.ldexp(1.0, of_b).astype(half)
    assert np.array_equal((a.astype(np.float64) * b.astype(np.float64)).sum(-1), x)
    return a[:, None, :], b[:, :, None]


def values(rng, half: np.dtype) -> np.ndarray:
    """float32: ties and their neighbours, numbers of any exponent of the type, what overflows, and denormals."""
    lowest, highest = (-24, 16) if half.name == "float16" else (-30, 30)
    bits = np.arange(np.array(2.0**lowest, half).view(np.uint16), np.array(2.0 ** (highest - 1), half).view(np.uint16))
    below, above = (x.astype(np.uint16).view(half).astype(np.float32) for x in (bits, bits + 1))
    ties = (below + above) / 2
    near = [np.nextafter(ties, np.float32(to)) for to in (0, np.inf)]
    numbers = np.ldexp(1 + rng.random(4000, np.float32), rng.integers(lowest - 1, highest, 4000))
    extremes = np.array([65504, 65519.996, 65520, 65536, 70000, 2.0**-25, 0], np.float32)
    found = np.concatenate([ties, *near, numbers, extremes]).astype(np.float32)
    return np.where(rng.random(found.shape) < 0.5, found, -found)


def test_rounding(types, half, rng):
    """To nearest, ties to even, with infinity and denormals, as NumPy and ml_dtypes convert."""
    x = values(rng, half)
    a, b = pieces(x, half)
    with np.errstate(over="ignore"):
        expected = x.astype(half)
    expected[x == 0] = 0
    for kernel in kernels(types):
        if kernel and table.row(kernel.name).panel == table.lib.SPLIT:
            continue  # sums of its parts are exact to 22 bits
        out = np.ones((len(x), 1, 1), half)
        assert pysimd.matmul(a, b, out=out, kernel=kernel) is out
        wrong = out[:, 0, 0].view(np.uint16) != expected.view(np.uint16)
        assert not wrong.any(), (kernel, x[wrong][:5], out[wrong][:5], expected[wrong][:5])


def test_infinity_and_nan(types, half):
    a = np.array([np.inf, -np.inf, np.nan, 3], half)[:, None]
    for kernel in kernels(types):
        out = np.ones((4, 9), half)
        pysimd.matmul(a, np.ones((1, 9), half), out=out, kernel=kernel)
        assert np.isposinf(out[0]).all()
        assert np.isneginf(out[1]).all()
        assert np.isnan(out[2]).all()
        assert (out[3] == 3).all()


@pytest.mark.parametrize("layout", OUTS)
def test_layouts_and_sizes(types, half, layout, rng):
    for m, k, n in itertools.product(few([1, 3, 4, 8, 17], 3), few([0, 1, 5, 16], 3), few([1, 4, 7, 16, 33], 3)):
        a, b = pair(rng, types, (3, m, k), (3, k, n))
        out = layout(np.ones((3, m, n), half))
        assert pysimd.matmul(a, b, out=out) is out
        assert np.array_equal(out, pysimd.matmul(a, b).astype(half))


def test_large_and_threads(types, half, rng):
    a, b = pair(rng, types, (150, 700), (700, 210))
    expected = pysimd.matmul(a, b).astype(half)
    for threads in (1, 2, 3):
        assert np.array_equal(pysimd.matmul(a, b, out=np.empty((150, 210), half), threads=threads), expected)


def test_vectors(types, half, rng):
    a, b = pair(rng, types, (5, 6, 9), (9,))
    assert np.array_equal(pysimd.matmul(a, b, out=np.empty((5, 6), half)), pysimd.matmul(a, b).astype(half))
    assert np.array_equal(pysimd.matmul(b, b, out=np.empty((), half)), pysimd.matmul(b, b).astype(half))
    a, b = pair(rng, types, (9,), (5, 9, 300))
    assert np.array_equal(pysimd.matmul(a, b, out=np.empty((5, 300), half)), pysimd.matmul(a, b).astype(half))


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, 2), (-1, 0.25), (2, 0), (0, 1)])
def test_gemm(types, half, alpha, beta, rng):
    """C has the type of the result; it is widened, and the sum rounded once."""
    for m, k, n in ((3, 5, 7), (4, 4, 4), (65, 300, 70)):
        a, b = pair(rng, types, (2, m, k), (2, k, n))
        for c_shape in ((2, m, n), (n,), (m, 1)):
            c = random_operand(rng, half, c_shape)
            expected = pysimd.matmul(a, b) * np.float32(alpha)
            if beta:
                expected = expected + c.astype(np.float32) * np.float32(beta)
            else:
                c[...] = np.nan
            got = pysimd.gemm(a, b, c, alpha=alpha, beta=beta, out=np.empty((2, m, n), half))
            assert np.array_equal(got, expected.astype(half))
            if c.shape == got.shape:
                pysimd.gemm(a, b, c, alpha=alpha, beta=beta, out=c)
                assert np.array_equal(c, got)


def test_out_overlaps(types, half, rng):
    a, b = pair(rng, types, (40, 8, 8), (8, 8))
    expected = pysimd.matmul(a, b).astype(half)
    assert np.array_equal(pysimd.matmul(a, b, out=a), expected)


def test_nothing_outside(types, half, rng):
    memory = GuardedMemory()
    a, b = pair(rng, types, (3, 5, 4), (3, 4, 7))
    for place in (memory.ending_at_guard, memory.starting_at_guard):
        for n in range(1, 8):
            out = place(np.zeros((3, 5, n), half))
            pysimd.matmul(a, b[..., :n], out=out)
            assert np.array_equal(out, pysimd.matmul(a, b[..., :n]).astype(half))
            assert memory.untouched_around(out)


def test_what_is_refused(types, half, rng):
    a, b = pair(rng, types, (4, 4), (4, 4))
    single = np.ones((4, 4), np.float32)
    other = np.float64 if len(TYPES) < 2 else next(x for x in (np.float16, dtypes.dtype_of("bfloat16")) if x != half)
    with pytest.raises(DTypeError, match="out must be float32"):
        pysimd.matmul(a, b, out=single.astype(other))
    with pytest.raises(DTypeError, match="out must be float32"):
        pysimd.matmul(single, single, out=np.empty((4, 4), half))
    with pytest.raises(DTypeError, match=f"c must be {half.name}"):
        pysimd.gemm(a, b, single, beta=1, out=np.empty((4, 4), half))
    with pytest.raises(DTypeError, match="c must be float32"):
        pysimd.gemm(a, b, a, beta=1)
    tile = pysimd.kernel(f"generic_{types}_outer_4x4")
    with pytest.raises(DTypeError, match="out must be float32"):
        tile(a, b, out=np.empty((4, 4), half))
