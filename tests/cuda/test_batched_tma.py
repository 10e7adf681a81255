"""batched_tma.cu: what it takes, its results on the host and on a GPU, its machine code."""

import ctypes

import cuda_arrays
import cuda_machine_code as machine
import fake_cupy
import host_kernels
import numpy as np
import pytest
from cases import SEED
from cuda_arrays import on_gpu, on_host
from pysimd.gpu_kernels import table

import pysimd
from pysimd import operands
from pysimd.backends.cuda import batched_tma, device, dispatch, tensor_maps
from pysimd.backends.cuda.dispatch import Way

needs_gpu = pytest.mark.skipif(
    bool(cuda_arrays.WHY_NOT) or bool(device.why_not(table.TMA_TILES[0])),
    reason=cuda_arrays.WHY_NOT or device.why_not(table.TMA_TILES[0]) or "nothing",
)
each_tile = pytest.mark.parametrize("tile", table.TMA_TILES, ids=lambda x: f"{x.bm}x{x.bn}")


def host_map(pointer, itemsize, extents, steps, box, swizzle):
    """A tensor map as cuda_threads.h reads it."""
    assert itemsize == 4
    assert all(extent == 1 or step % 16 == 0 for extent, step in zip(extents[1:], steps, strict=True))
    return np.array([pointer, *extents, *steps, itemsize, *box, swizzle, *[0] * 5], np.int64)


def replace_address(host_map, address):
    ctypes.c_int64.from_address(host_map).value = address


@pytest.fixture
def on_host_threads(monkeypatch, tmp_path):
    """Computes the product of host arrays with a tile's kernel, executed on the host."""
    fake_cupy.install(monkeypatch, fake_cupy.module(memory=fake_cupy.HostMemory))
    monkeypatch.setattr(batched_tma, "current_device", lambda: 0)
    monkeypatch.setattr(batched_tma, "multiprocessors", lambda device: 2)
    monkeypatch.setattr(tensor_maps, "tensor_map", host_map)
    monkeypatch.setattr(tensor_maps, "replace_address", replace_address)

    def run(tile, a, b, out):
        function = host_kernels.Library("micro/batched_tma.cu", [tile.entry], tmp_path).function(tile.entry)
        monkeypatch.setattr(batched_tma, "_function", lambda *_: function)
        product = operands.check_gemm(None, a, b, None, out, operands.GemmOptions(), ("f32",))._replace(out=out)
        batched_tma.work(product, tile).run()
        return product

    return run


def whole_numbers(rng, shape):
    x = fake_cupy.array(shape, np.float32)
    x[...] = rng.integers(-3, 4, shape)
    return x


needs_compiler = pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")


@needs_compiler
@each_tile
def test_executed_on_the_host(on_host_threads, rng, tile):
    """A C beyond its first tiles, and a last group of products that is not full."""
    m, n, k = tile.bm + 4, tile.bn - 4, 36
    a, b, out = whole_numbers(rng, (5, m, k)), whole_numbers(rng, (5, k, n)), fake_cupy.array((5, m, n), np.float32)
    product = on_host_threads(tile, a, b, out)
    assert batched_tma.reads(product)
    assert np.array_equal(np.array(out), np.array(a) @ np.array(b))


@needs_compiler
@pytest.mark.parametrize(("batch_a", "batch_b"), [((1,), (7,)), ((7,), (1,)), ((3, 1), (1, 4)), ((2, 3), (2, 3))])
def test_shared_operands_and_batches_of_two_dimensions(on_host_threads, rng, batch_a, batch_b):
    a, b = whole_numbers(rng, (*batch_a, 64, 20)), whole_numbers(rng, (*batch_b, 20, 60))
    batch = np.broadcast_shapes(batch_a, batch_b)
    out = fake_cupy.array((*batch, 64, 60), np.float32)
    assert batched_tma.reads(on_host_threads(table.TMA_TILES[0], a, b, out))
    assert np.array_equal(np.array(out), np.array(a) @ np.array(b))


def test_what_it_takes(monkeypatch):
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    for shape in ((64, 64, 64), (96, 96, 96), (80, 80, 32), (160, 160, 160), (192, 192, 192)):
        assert dispatch.choose("f32", *shape, 1000).way is Way.BATCHED_TMA
        assert dispatch.choose("f32", *shape, 1).way is not Way.BATCHED_TMA
        assert dispatch.choose("f32", *shape, 1000, plain=False).way is not Way.BATCHED_TMA
    for shape in (
        (48, 48, 48),
        (63, 63, 63),
        (96, 96, 97),
        (96, 96, 16),
        (128, 128, 128),
        (256, 256, 256),
        (68, 68, 68),
    ):
        assert dispatch.choose("f32", *shape, 1000).way is not Way.BATCHED_TMA
    assert dispatch.choose("f32", 96, 96, 96, 1000, row_major=False).way is Way.BATCHED
    assert dispatch.choose("f32", 160, 160, 160, 1000, row_major=False).way is Way.BATCHED_TMA
    monkeypatch.setattr(device, "why_not", lambda row, *_: "not sm_90a" if row.requires == "sm_90a" else "")
    assert dispatch.choose("f32", 96, 96, 96, 1000).way is Way.BATCHED


@pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")
@each_tile
def test_machine_code(tile):
    """No local memory, and in the main loop the multiply-adds of four k and the loads that they need."""
    code = machine.compiled(tile.source, tile.entry, "90a")
    loop = min((x for x in code.loops if any(y.name.startswith("FFMA") for y in x)), key=len)
    assert not code.count("LDL", "STL")
    assert sum(x.name.startswith("FFMA") for x in loop) == 4 * tile.tm * tile.tn
    assert sum(x.bytes_loaded("LDS.") for x in loop) == 4 * 4 * (tile.tm + tile.tn)
    assert tile.dynamic_shared_bytes + 1024 + 16 * tile.groups * tile.stages <= 227 << 10


@needs_gpu
@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (80, 36, 76), (96, 96, 96), (112, 100, 112), (192, 44, 188)])
def test_same_bits_as_f32_best(m, k, n):
    """Any layout of the operands and of C, shared operands, NaN."""
    rng = np.random.default_rng(SEED)
    assert dispatch.choose("f32", m, n, k, 7).way is Way.BATCHED_TMA
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((7, m, k), (7, k, n)))
    a[3, 5, 7] = np.nan
    expected = on_host(pysimd.gemm(on_gpu(a), on_gpu(b), kernel="f32_best"))
    x, y = on_gpu(a), on_gpu(b)
    turned = y.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    for left, right in ((x, y), (x, turned), (x.swapaxes(-1, -2).copy().swapaxes(-1, -2), y)):
        assert np.array_equal(on_host(pysimd.matmul(left, right)), expected, equal_nan=True)
    out = on_gpu(np.zeros((7, n, m), np.float32)).swapaxes(-1, -2)
    pysimd.matmul(x, y, out=out)
    assert np.array_equal(on_host(out), expected, equal_nan=True)
    wide = on_gpu(np.zeros((7, m, n + 1), np.float32))
    pysimd.matmul(x, y, out=wide[:, :, 1:])
    assert np.array_equal(on_host(wide[:, :, 1:]), expected, equal_nan=True)
    assert not on_host(wide[:, :, 0]).any()
    both = pysimd.matmul(x[3], y)
    assert np.array_equal(on_host(both)[3], expected[3], equal_nan=True)
    assert np.array_equal(on_host(pysimd.matmul(x[:, None], y[None, :2]))[1, 1], expected[1], equal_nan=True)
