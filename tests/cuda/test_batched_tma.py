"""batched_tma.cu: what it takes, its results on the host and on a GPU, its machine code."""

import cuda_arrays
import cuda_machine_code as machine
import host_kernels
import numpy as np
import pytest
from cases import SEED
from cuda_arrays import on_gpu, on_host
from pysimd.gpu_kernels import table

import pysimd
from pysimd.backends.cuda import device, dispatch
from pysimd.backends.cuda.dispatch import Way

needs_gpu = pytest.mark.skipif(
    bool(cuda_arrays.WHY_NOT) or bool(device.why_not(table.TMA_TILES[0])),
    reason=cuda_arrays.WHY_NOT or device.why_not(table.TMA_TILES[0]) or "nothing",
)
each_tile = pytest.mark.parametrize("tile", table.TMA_TILES, ids=lambda x: f"{x.bm}x{x.bn}")


class Words:
    """An argument of a kernel: 64-bit fields, at a multiple of 64 bytes."""

    def __init__(self, fields):
        storage = np.zeros(len(fields) + 8, np.int64)
        start = -storage.ctypes.data % 64 // 8
        self.fields = storage[start : start + len(fields)]
        self.fields[:] = fields
        self.ptr = self.fields.ctypes.data


def host_map(x, box):
    """As cuda_threads.h reads a tensor map; one product where all share it."""
    products = x.shape[0] if x.strides[0] else 1
    rows, columns = x.shape[1:]
    return Words([x.ctypes.data, columns, rows, products, x.strides[1], x.strides[0], 4, *box, 0, *[0] * 5])


@pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")
@each_tile
def test_executed_on_the_host(tmp_path, rng, tile):
    """Products that fill their tiles and that do not, shared operands, a last group of products that is not full."""
    function = host_kernels.Library("micro/batched_tma.cu", [tile.entry], tmp_path).function(tile.entry)
    for count, m, n, k, shared in (
        (5, tile.bm, tile.bn, 36, ()),
        (3, tile.bm + 4, tile.bn - 4, 20, (0,)),
        (7, 4, 8, 4, (1,)),
    ):
        shapes = ((1 if i in shared else count, *s) for i, s in enumerate(((m, k), (k, n))))
        a, b = (np.array(rng.integers(-3, 4, shape), np.float32) for shape in shapes)
        a, b = (np.broadcast_to(x, (count, *x.shape[1:])) for x in (a, b))
        c = np.full((count + 1, m, n), 7, np.float32)
        across = -(-n // tile.bn)
        in_product = across * -(-m // tile.bm)
        own = [int(x.strides[0] != 0) for x in (a, b)]
        one = int(np.array([1, 0], np.float32).view(np.int64)[0])
        launched = -(-count // tile.products) * in_product
        call = Words([c.ctypes.data, count, m, n, k, n, m * n, across, in_product, launched, *own, one])
        maps = host_map(a, (tile.bk, tile.bm, tile.products)), host_map(b, (tile.bn, tile.bk, tile.products))
        function((2,), (tile.threads,), (call, *maps), tile.dynamic_shared_bytes)
        assert np.array_equal(c[:count], a @ b)
        assert (c[count] == 7).all()


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
