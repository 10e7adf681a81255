"""What compilers make of ordinary code, run on every target, against NumPy."""

import struct

import amd_waves
import numpy as np
import pytest
from hip_machine_code import missing

from pysimd import simulator

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")

THREADS = 128


@pytest.fixture(params=simulator.TARGETS)
def target(request):
    return request.param


def run(target, name, *arguments, grid=None, block=(THREADS,), lds=0):
    """Launch a probe on arrays and ints; the last int is the number of elements, from which the grid follows."""
    memory, packed = simulator.Memory(), b""
    for number, x in enumerate(arguments):
        if isinstance(x, np.ndarray):
            packed += struct.pack("<Q", memory.add(x, f"argument {number}"))
        else:
            packed += struct.pack("<i", x)
    grid = grid or (-(-arguments[-1] // block[0]),)
    return simulator.launch(amd_waves.probes(target), name, grid, block, packed, memory, lds)


def integers(rng, dtype, count):
    """Any bits, and now and then a small or an extreme number."""
    limits = np.iinfo(dtype)
    any_bits = rng.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
    special = rng.choice(np.array([0, 1, 2, 3, limits.max, limits.min, limits.max - 1], dtype), count)
    small = rng.integers(0, 100, count).astype(dtype)
    return np.choose(rng.integers(0, 3, count), [any_bits, special, small]).astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), [("divide", np.int32), ("divide_wide", np.int64)])
def test_division(name, dtype, target, rng):
    """Made of dozens of instructions from an estimate of the reciprocal."""
    n = 300
    a, b = integers(rng, dtype, n), integers(rng, dtype, n)
    b[(b == 0) | (b == -1)] = 7
    quotient, remainder = np.empty_like(a), np.empty_like(a)
    run(target, name, a, b, quotient, remainder, n)
    np.testing.assert_array_equal(quotient, [int(x) // int(y) if x * 1.0 * y >= 0 else -(-int(x) // int(y)) if y > 0
                                             else -(int(x) // -int(y)) for x, y in zip(a, b, strict=True)])  # fmt: skip
    unsigned = f"u{np.dtype(dtype).itemsize}"
    np.testing.assert_array_equal(remainder.view(unsigned), a.view(unsigned) % b.view(unsigned))


def test_wide_shifts_and_products(target, rng):
    n = 200
    a, by = integers(rng, np.int64, n), rng.integers(0, 64, n, dtype=np.int32)
    left, right = np.empty_like(a), np.empty_like(a)
    run(target, "shift_wide", a, by, left, right, n)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(left, (a << by) + 5 * a)
        np.testing.assert_array_equal(right, (a >> by) ^ a * np.int64(0x123456789ABCDEF))


def test_bytes(target, rng):
    n = 1000
    a, b = integers(rng, np.int8, n), integers(rng, np.uint8, n)
    total, low = np.empty(n, np.int16), np.empty(n, np.int8)
    run(target, "bytes", a, b, total, low, n)
    np.testing.assert_array_equal(total, (a.astype(np.int32) * b + 7).astype(np.int16))
    np.testing.assert_array_equal(low, (a.astype(np.int32) - b).astype(np.int8))


def test_halves(target, rng):
    n = 777
    a, b = rng.standard_normal((2, n)).astype(np.float16)
    total, product = np.empty(n, np.float16), np.empty(n, np.float32)
    run(target, "halves", a, b, total, product, n)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(product, (a.astype(np.float64) * b + 1).astype(np.float32))


def test_conversions(target, rng):
    n = 500
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-3, 9, n)).astype(np.float32)
    truncated, positive, narrow = np.empty(n, np.int32), np.empty(n, np.uint32), np.empty(n, np.float16)
    run(target, "convert", x, truncated, positive, narrow, n)
    np.testing.assert_array_equal(truncated, np.clip(np.trunc(x.astype(np.float64)), -(2**31), 2**31 - 1))
    np.testing.assert_array_equal(positive, np.clip(np.trunc(abs(x.astype(np.float64))), 0, 2**32 - 1))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow, x.astype(np.float16))


def collatz(x: int) -> int:
    steps = 0
    while x != 1:
        x, steps = (3 * x + 1 if x % 2 else x // 2), steps + 1
    return steps


def test_lanes_take_different_numbers_of_turns(target, rng):
    start = rng.integers(1, 60, 150).astype(np.uint32)
    steps = np.zeros(160, np.int32)
    run(target, "collatz", start, steps, 150)
    np.testing.assert_array_equal(steps[:150], [collatz(int(x)) for x in start])
    assert (steps[150:] == 0).all()


def test_waves_take_different_numbers_of_turns(target):
    """Waves diverge at a branch, and reconverge at its end."""
    out = np.full((3, 256), -1, np.int32)
    run(target, "waves_part", out, 11, grid=(3,), block=(256,))
    wave = np.arange(256) // amd_waves.wave_size(target)
    np.testing.assert_array_equal(out, [11 * wave * (wave + 1) // 2 + (wave + 1) * b for b in range(3)])


def test_shared_memory_and_barriers(target, rng):
    x = rng.integers(-1000, 1000, (5, 256)).astype(np.int32)
    out = np.empty(5, np.int32)
    counts = run(target, "block_sum", x, out, grid=(5,), block=(256,))
    np.testing.assert_array_equal(out, x.sum(axis=1))
    assert counts.barriers == 8 * 5 * 256 // amd_waves.wave_size(target)
    assert counts.store_bytes["lds"] == 4 * 5 * (256 + 255)
    assert counts.store_bytes["global"] == 4 * 5
    assert counts.load_bytes["global"] == x.nbytes


def test_shared_memory_that_the_launch_sizes(target, rng):
    x = rng.standard_normal(100).astype(np.float32)
    y = np.empty_like(x)
    run(target, "reverse", x, y, 100, grid=(1,), block=(64,), lds=400)
    np.testing.assert_array_equal(y, x[::-1])
    with pytest.raises(simulator.AccessError, match="of LDS, of which the block has 396 bytes"):
        run(target, "reverse", x, y, 100, grid=(1,), block=(64,), lds=396)


def test_values_from_other_lanes(target, rng):
    size = amd_waves.wave_size(target)
    x = rng.integers(-(2**31), 2**31, (2, THREADS), dtype=np.int64).astype(np.int32)
    y = np.empty_like(x)
    run(target, "rotate_lanes", x, y, grid=(2,))
    np.testing.assert_array_equal(y.reshape(-1, size), np.roll(x.reshape(-1, size), -5, axis=1))


def test_three_dimensions(target):
    """Every thread knows its place, and the sizes come as hidden arguments or in the dispatch packet."""
    grid, block = (3, 2, 2), (5, 3, 2)
    out = np.full((2, 2, 3, 2, 3, 5), -1, np.int32)
    run(target, "where", out, grid=grid, block=block)
    bz, by, bx, z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(out, (bz << 20) + (by << 16) + (bx << 12) + (z << 8) + (y << 4) + x)


def test_a_tile_and_its_counts(target, rng):
    k, threads = 24, 64
    a, b = rng.standard_normal((2, threads, k, 4)).astype(np.float16)
    c = np.empty((threads, 4, 4), np.float16)
    counts = run(target, "tile", a, b, c, k, grid=(1,), block=(threads,))
    want = np.zeros((threads, 4, 4), np.float16)
    for i in range(k):
        want = (want + a[:, i, :, None].astype(np.float64) * b[:, i, None, :]).astype(np.float16)
    np.testing.assert_array_equal(c, want)
    assert counts.macs == threads * k * 16
    assert counts.lanes("v_pk_fma_f16") == threads * k * 8
    assert counts.load_bytes["global"] == a.nbytes + b.nbytes
    assert counts.store_bytes == {"global": c.nbytes}
    assert counts.macs / (counts.load_bytes["global"] / 2) == 2.0
    assert counts.to_dict()["instructions"]["v_pk_fma_f16"]["lanes"] == threads * k * 8


def test_the_same_bits_again(target, rng):
    a, b = rng.standard_normal((2, 64, 10, 4)).astype(np.float16)
    first, second = np.empty((2, 64, 4, 4), np.float16)
    for c in (first, second):
        run(target, "tile", a, b, c, 10, grid=(1,), block=(64,))
    assert first.tobytes() == second.tobytes()


def test_descriptors(target):
    kernels = amd_waves.probes(target).kernels
    assert kernels["block_sum"].lds == 1024
    assert {x.wave_size for x in kernels.values()} == {amd_waves.wave_size(target)}
    assert {x.scratch for x in kernels.values()} == {0}
    assert [(x.offset, x.size) for x in kernels["halves"].explicit_arguments] == [
        *((8 * i, 8) for i in range(4)),
        (32, 4),
    ]
    assert not kernels["tile"].denormals_f32
    assert kernels["tile"].denormals_f16
    assert 0 < kernels["tile"].vgprs < 64
