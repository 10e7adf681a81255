"""batched_tma.cu: what it takes, its results on the host and on a GPU, its machine code."""

import ctypes
from dataclasses import replace
from functools import cache, partial

import cuda_arrays
import cuda_machine_code as machine
import fake_cupy
import host_kernels
import numpy as np
import pytest
from cases import SEED
from cuda_arrays import on_gpu, on_host
from cuda_ports import same_port
from pysimd.gpu_kernels import table

import pysimd
from pysimd import operands
from pysimd.backends.cuda import batched_tma, device, dispatch, tensor_maps
from pysimd.backends.cuda.dispatch import Way

needs_gpu = pytest.mark.skipif(
    bool(cuda_arrays.WHY_NOT) or bool(device.why_not(table.TMA_TILES[0])),
    reason=cuda_arrays.WHY_NOT or device.why_not(table.TMA_TILES[0]) or "nothing",
)


def layout(x):
    """Whether A and B are K-major."""
    return (x.a_k_major, x.b_k_major) if isinstance(x, table.MnTile) else (True, False)


INSTANCES = [
    *table.TMA_TILES,
    *(
        replace(x, a_k_major=a, b_k_major=b)
        for x in table.MN_TILES
        for a, b in ((False, False), (False, True), (True, True))
        if not b or x.bm in (80, 96, 112)
    ),
]
each_instance = pytest.mark.parametrize(
    "tile", INSTANCES, ids=lambda x: f"{x.bm}x{x.bn}-" + "".join("mk"[i] for i in layout(x))
)


def host_map(pointer, itemsize, extents, steps, box, swizzle):
    """A tensor map as cuda_threads.h reads it."""
    assert itemsize == 4
    assert all(extent == 1 or step % 16 == 0 for extent, step in zip(extents[1:], steps, strict=True))
    words = [pointer, *extents, *steps, itemsize, *box, swizzle]
    return np.array(words + [0] * (16 - len(words)), np.int64)


def replace_address(host_map, address):
    ctypes.c_int64.from_address(host_map).value = address


@pytest.fixture(scope="module")
def host_function(tmp_path_factory):
    """The kernel of a tile, compiled once for the host."""

    @cache
    def function(tile):
        folder = tmp_path_factory.mktemp("batched_tma")
        return host_kernels.Library(f"micro/{tile.source}", [tile.entry], folder).function(tile.entry)

    return function


@pytest.fixture
def on_host_threads(monkeypatch, host_function):
    """Computes the product of host arrays with a tile's kernel, executed on the host."""
    fake_cupy.install(monkeypatch, fake_cupy.module(memory=fake_cupy.HostMemory))
    monkeypatch.setattr(batched_tma, "current_device", lambda: 0)
    monkeypatch.setattr(batched_tma, "multiprocessors", lambda device: 2)
    monkeypatch.setattr(tensor_maps, "tensor_map", host_map)
    monkeypatch.setattr(tensor_maps, "replace_address", replace_address)

    def run(tile, a, b, out):
        monkeypatch.setattr(batched_tma, "_function", lambda *_: host_function(tile))
        monkeypatch.setattr(batched_tma, "_mn_tile", lambda *_: tile)
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
@each_instance
def test_executed_on_the_host(on_host_threads, rng, tile):
    """A C beyond its first tiles, a last panel that K does not fill, a last group of products that is not full."""
    m, n, k = tile.bm + 4, tile.bn - 4, 36
    a_k_major, b_k_major = layout(tile)
    a, b = (whole_numbers(rng, (5, *x)) for x in ((m, k) if a_k_major else (k, m), (n, k) if b_k_major else (k, n)))
    a, b = a if a_k_major else a.swapaxes(-1, -2), b.swapaxes(-1, -2) if b_k_major else b
    out = fake_cupy.array((5, m, n), np.float32)
    on_host_threads(tile, a, b, out)
    assert np.array_equal(np.array(out), np.array(a) @ np.array(b))


@needs_compiler
@pytest.mark.parametrize(("batch_a", "batch_b"), [((1,), (7,)), ((7,), (1,)), ((3, 1), (1, 4)), ((2, 3), (2, 3))])
@pytest.mark.parametrize("tile", [INSTANCES[0], *(x for x in INSTANCES if x.bm == 96)], ids=lambda x: x.entry)
def test_shared_operands_and_batches_of_two_dimensions_on_the_host(on_host_threads, rng, tile, batch_a, batch_b):
    a_k_major, b_k_major = layout(tile)
    a = whole_numbers(rng, (*batch_a, *((64, 20) if a_k_major else (20, 64))))
    b = whole_numbers(rng, (*batch_b, *((60, 20) if b_k_major else (20, 60))))
    a, b = a if a_k_major else a.swapaxes(-1, -2), b.swapaxes(-1, -2) if b_k_major else b
    batch = np.broadcast_shapes(batch_a, batch_b)
    out = fake_cupy.array((*batch, 64, 60), np.float32)
    on_host_threads(tile, a, b, out)
    assert np.array_equal(np.array(out), np.array(a) @ np.array(b))


def test_what_it_reads(monkeypatch):
    """Rows or columns at multiples of 16 bytes; a K-major B where C is one tile of 80, 96 or 112 a side."""
    fake_cupy.install(monkeypatch, fake_cupy.module(memory=fake_cupy.HostMemory))

    def product(size, transposed_a, transposed_b, apart=0, out_apart=0):
        a, b, out = (fake_cupy.array((3, size, size + x), np.float32)[..., :size] for x in (apart, 0, out_apart))
        a, b = a.swapaxes(-1, -2) if transposed_a else a, b.swapaxes(-1, -2) if transposed_b else b
        return operands.check_gemm(None, a, b, None, out, operands.GemmOptions(), ("f32",))._replace(out=out)

    for size in (64, 80, 96, 112, 128, 160, 192, 256, 288):
        for a, b in ((False, False), (True, False), (False, True), (True, True)):
            slow = b and size not in (80, 96, 112)
            assert batched_tma.reads(product(size, a, b, apart=4)) == (not slow)
            assert not batched_tma.reads(product(size, a, b, apart=1))
            assert not batched_tma.reads(product(size, a, b, out_apart=1))


def test_what_it_takes(monkeypatch):
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    squares = (64, 88, 96, 128, 160, 192, 240, 256, 288, 336, 384, 480)
    for shape in (*((size, size, size) for size in squares), (80, 80, 32)):
        assert dispatch.choose("f32", *shape, 1000).way is Way.BATCHED_TMA
        assert dispatch.choose("f32", *shape, 1).way is not Way.BATCHED_TMA
        assert dispatch.choose("f32", *shape, 1000, plain=False).way is not Way.BATCHED_TMA
    for shape in (
        (48, 48, 48),
        (63, 63, 63),
        (96, 96, 97),
        (96, 96, 16),
        (68, 68, 68),
        (100, 100, 100),
        (272, 272, 272),
        (320, 320, 320),
        (400, 400, 400),
        (448, 448, 448),
        (512, 512, 512),
    ):
        assert dispatch.choose("f32", *shape, 1000).way is not Way.BATCHED_TMA
    for read, plain in ((False, True), (True, False)):
        options = {"read": read, "plain": plain}
        assert dispatch.choose("f32", 128, 128, 128, 1000, **options) == dispatch.F32_BEST
        assert dispatch.choose("f32", 384, 384, 384, 1000, **options) == dispatch.F32_BEST
        assert dispatch.choose("f32", 160, 160, 160, 1000, **options).way is Way.LIBRARY
        assert dispatch.choose("f32", 288, 288, 288, 1000, **options).way is Way.LIBRARY
    assert dispatch.choose("f32", 96, 96, 96, 1000, read=False).way is Way.BATCHED
    assert dispatch.choose("f32", 512, 512, 512, 1000) == dispatch.F32_BEST
    monkeypatch.setattr(device, "why_not", lambda row, *_: "not sm_90a" if row.requires == "sm_90a" else "")
    assert dispatch.choose("f32", 96, 96, 96, 1000).way is Way.BATCHED


def test_few_products(monkeypatch):
    """A warpgroup computes a tile: of a few products cuBLAS is ahead, for a graph a kernel is named."""
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    for m, n, k, least in ((96, 96, 96, 424), (160, 160, 160, 108), (256, 256, 256, 54)):
        assert dispatch.choose("f32", m, n, k, least).way is Way.BATCHED_TMA
        assert dispatch.choose("f32", m, n, k, least // 2).way is not Way.BATCHED_TMA
        for few in (1, 2, 10):
            assert dispatch.choose("f32", m, n, k, few).way is Way.LIBRARY
    assert dispatch.choose("f32", 96, 96, 96, 2, captured=True).way is Way.BATCHED
    assert dispatch.choose("f32", 160, 160, 160, 2, captured=True) == dispatch.F32_BEST
    assert dispatch.choose("f32", 40, 40, 40, 2).way is Way.BATCHED
    assert dispatch.choose("f32", 41, 41, 41, 2).way is Way.LIBRARY
    assert dispatch.choose("f32", 128, 128, 128, 264, read=False) == dispatch.F32_BEST
    for count in (2, 130, 263, 270):  # no two waves, or the last one has few tiles
        assert dispatch.choose("f32", 128, 128, 128, count, read=False).way is Way.LIBRARY


@pytest.fixture(scope="module")
def all_compiled():
    """Every instance, in parallel."""
    machine.compile_all((x.source, x.entry, "90a") for x in INSTANCES)


@pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")
@each_instance
def test_machine_code(all_compiled, tile):
    """No local memory, which the producers' few registers lead to first; in the main loop the multiply-adds of a few k
    and the loads that they need. Few multiply-adds read two registers of one port: with too few registers for the
    producers it was up to 80 %, with vectors along k up to 55 %."""
    code = machine.compiled(tile.source, tile.entry, "90a")
    loop = min((x for x in code.loops if any(y.name.startswith("FFMA") for y in x)), key=len)
    multiply_adds, conflicts = same_port(loop)
    k = 8 if isinstance(tile, table.MnTile) else 4
    assert not code.count("LDL", "STL")
    assert multiply_adds == k * tile.tm * tile.tn
    loaded, needed = sum(x.bytes_loaded("LDS.") for x in loop), k * 4 * (tile.tm + tile.tn)
    assert needed <= loaded <= 1.1 * needed  # of a few rows the compiler loads four k for three
    assert conflicts <= multiply_adds * (0.2 if isinstance(tile, table.MnTile) else 0.22)
    beside = 1024 if isinstance(tile, table.MnTile) else 2048  # of the driver, and up to a multiple of 1024
    assert tile.dynamic_shared_bytes + beside + 24 * tile.groups * tile.stages <= 227 << 10


@needs_gpu
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (64, 64, 64),
        (80, 36, 76),
        (96, 96, 96),
        (112, 100, 112),
        (124, 40, 128),
        (192, 44, 188),
        (256, 256, 256),
        (288, 64, 480),
    ],
)
def test_same_bits_as_f32_best(m, k, n, monkeypatch):
    """Any layout of the operands that it reads, any of C, shared operands, NaN."""
    monkeypatch.setattr(dispatch, "_TMA_WAVES", 0.0)  # of so few products
    rng = np.random.default_rng(SEED)
    assert dispatch.choose("f32", m, n, k, 7).way is Way.BATCHED_TMA
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((7, m, k), (7, k, n)))
    a[3, 5, 7] = np.nan
    expected = on_host(pysimd.gemm(on_gpu(a), on_gpu(b), kernel="f32_best"))
    x, y = on_gpu(a), on_gpu(b)
    turned = y.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    columns = x.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    for left, right in ((x, y), (columns, y)):
        assert np.array_equal(on_host(pysimd.matmul(left, right)), expected, equal_nan=True)
    for left, right in ((x, turned), (columns, turned)):  # by cuBLAS, or with the same bits
        found, k_major = on_host(pysimd.matmul(left, right)), min(m, n) > 64 and max(m, n) <= 112
        same = np.array_equal if k_major else partial(np.allclose, rtol=1e-4, atol=1e-4)
        assert same(found, expected, equal_nan=True)
    wide = on_gpu(np.zeros((7, m, n + 4), np.float32))
    pysimd.matmul(x, y, out=wide[:, :, 4:])
    assert np.array_equal(on_host(wide[:, :, 4:]), expected, equal_nan=True)
    assert not on_host(wide[:, :, :4]).any()
    out = on_gpu(np.zeros((7, n, m), np.float32)).swapaxes(-1, -2)
    pysimd.matmul(x, y, out=out)
    assert np.allclose(on_host(out), expected, rtol=1e-4, atol=1e-4, equal_nan=True)
    both = pysimd.matmul(x[3], y)
    assert np.array_equal(on_host(both)[3], expected[3], equal_nan=True)
    assert np.array_equal(on_host(pysimd.matmul(x[:, None], y[None, :2]))[1, 1], expected[1], equal_nan=True)


@needs_gpu
@pytest.mark.parametrize("size", [128, 256])
def test_same_bits_where_both_are_mn_major(size):
    """batched_tma_mn.cu, and batched_tma.cu for row-major operands of the same product; prepared calls too."""
    rng = np.random.default_rng(SEED)
    a, b = (on_gpu(rng.standard_normal((300, size, size), dtype=np.float32)) for _ in range(2))
    columns = a.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    expected = on_host(pysimd.matmul(a, b))
    for _ in range(2):
        assert np.array_equal(on_host(pysimd.matmul(columns, b)), expected)
