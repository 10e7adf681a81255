"""Captured graphs: what a launch needs besides its operands is the graph's own, whatever else uses the memory pool and
on whichever streams graphs are replayed."""

import cuda_arrays
import numpy as np
import pytest

import pysimd
from pysimd.backends.cuda import dispatch

pytestmark = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")


def skip_without(name):
    if name and not pysimd.rung(name).available:
        pytest.skip(pysimd.rung(name).unavailable_reason)


@pytest.fixture
def rng():
    import cupy

    return cupy.random.default_rng(7)


def floats(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def bits(rng, *shape):
    """bfloat16, as its bits."""
    return (floats(rng, *shape).view(np.uint32) >> 16).astype(np.uint16)


def unaligned(x):
    import cupy

    room = cupy.empty(x.nbytes + 1, np.uint8)
    y = cupy.ndarray(x.shape, x.dtype, room.data + 1)
    cupy.ndarray((*x.shape, x.itemsize), np.uint8, y.data)[...] = x.view(np.uint8).reshape(*x.shape, x.itemsize)
    return y


CASES = {
    "partial tiles, added in a launch of their own": ("streamk", lambda r: (floats(r, 300, 900), floats(r, 900, 300))),
    "partial tiles, added in the same launch": ("f32_best", lambda r: (floats(r, 64, 20_000), floats(r, 20_000, 64))),
    "parts of the operands": ("tf32x3", lambda r: (floats(r, 200, 300), floats(r, 300, 100))),
    "rows padded for the tensor memory accelerator": ("bf16_best", lambda r: (bits(r, 200, 301), bits(r, 301, 99))),
    "strided operands": ("smem_dbuf", lambda r: (floats(r, 200, 300)[::2, ::3], floats(r, 200, 200)[::2, ::2])),
    "unaligned operands": (None, lambda r: (unaligned(floats(r, 50, 6, 6)), unaligned(floats(r, 50, 6, 6)))),
    "a rung in place of cuBLAS": ("f32_best", lambda r: (floats(r, 200, 200), floats(r, 200, 200))),
    "a batch of small products": (None, lambda r: (floats(r, 500, 5, 7), floats(r, 500, 7, 6))),
}


def disturb() -> list:
    """Takes what CuPy's pool has, so that it is used by somebody else, and fills it."""
    import cupy

    sizes = [1 << i for i in range(9, 25)] * 3
    return [cupy.full(size, 0x7F, np.uint8) for size in sizes]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("warm", [True, False], ids=["seen before", "first call"])
def test_replays_are_right_after_others_used_the_pool(case, warm, rng):
    import cupy

    name, make = CASES[case]
    skip_without(name)
    a, b = make(rng)
    expected = pysimd.gemm(a, b, kernel=name)
    out = cupy.zeros_like(expected)
    if warm:
        pysimd.gemm(a, b, out=out, kernel=name)
    out.fill(0)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        pysimd.gemm(a, b, out=out, kernel=name)
        graph = stream.end_capture()
    others = disturb()
    cupy.cuda.Device().synchronize()
    for _ in range(3):
        out.fill(0)
        cupy.cuda.Device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert bool((out == expected).all())
    assert all(bool((x == 0x7F).all()) for x in others)


def test_an_out_that_overlaps(rng):
    import cupy

    skip_without("f32_best")
    a, b = floats(rng, 300, 300), floats(rng, 300, 300)
    expected = pysimd.gemm(a, b, kernel="f32_best")
    operand = a.copy()
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        pysimd.gemm(operand, b, out=operand, kernel="f32_best")
        graph = stream.end_capture()
    others = disturb()
    cupy.cuda.Device().synchronize()
    for _ in range(3):
        operand[...] = a
        cupy.cuda.Device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert bool((operand == expected).all())
    assert all(bool((x == 0x7F).all()) for x in others)


@pytest.mark.parametrize("warm", [True, False], ids=["seen before", "first call"])
@pytest.mark.parametrize("step", [1, 2])
def test_cublas_is_refused(warm, step, rng):
    """CuPy does not call it while a stream captures; what was captured before is kept."""
    import cupy

    a, b = floats(rng, 200, 200 * step)[:, ::step], floats(rng, 200, 211 + step)
    small = floats(rng, 50, 4, 4)
    expected, out = pysimd.matmul(small, small), cupy.zeros((50, 4, 4), np.float32)
    result = cupy.zeros((200, 211 + step), np.float32)
    if warm:
        pysimd.gemm(a, b, out=result)
        pysimd.gemm(a, b, out=result)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        pysimd.matmul(small, small, out=out)
        with pytest.raises(pysimd.OptionError, match="cuBLAS"):
            pysimd.gemm(a, b, out=result)
        graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    assert bool((out == expected).all())
    pysimd.gemm(a, b, out=result)
    assert bool(cupy.allclose(result, a @ b, atol=1e-3))


@pytest.mark.parametrize("size", [100, 200])
@pytest.mark.parametrize("warm", [True, False], ids=["seen before", "first call"])
def test_a_batch_that_cublas_computes_elsewhere(size, warm, rng):
    """By a kernel in a graph, and by cuBLAS again afterwards."""
    import cupy

    skip_without("f32_best")
    a, b = floats(rng, 3, size, size), floats(rng, 3, size, size)
    assert dispatch.choose("f32", size, size, size, 3).way is dispatch.Way.LIBRARY
    expected = pysimd.gemm(a, b, kernel="f32_best")
    out = cupy.zeros_like(expected)
    for _ in range(2 * warm):
        pysimd.matmul(a, b, out=out)
    before = out.copy()
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        pysimd.matmul(a, b, out=out)
        graph = stream.end_capture()
    out.fill(0)
    cupy.cuda.Device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert bool((out == expected).all())
    out.fill(0)
    pysimd.matmul(a, b, out=out)
    assert bool(cupy.allclose(out, expected, atol=1e-4))
    assert not warm or bool((out == before).all())


def test_graphs_captured_on_one_stream_run_at_the_same_time_on_two(rng):
    """Their blocks wait for each other at a counter, which two launches must not share."""
    import cupy

    skip_without("f32_best")
    operands = [(floats(rng, 64, 60_000), floats(rng, 60_000, 64)) for _ in range(2)]
    expected = [pysimd.gemm(a, b, kernel="f32_best") for a, b in operands]
    outs = [cupy.zeros((64, 64), np.float32) for _ in range(2)]
    for (a, b), out in zip(operands, outs, strict=True):
        pysimd.gemm(a, b, out=out, kernel="f32_best")
    cupy.cuda.Device().synchronize()
    stream, graphs = cupy.cuda.Stream(non_blocking=True), []
    with stream:
        for (a, b), out in zip(operands, outs, strict=True):
            stream.begin_capture()
            pysimd.gemm(a, b, out=out, kernel="f32_best")
            graphs.append(stream.end_capture())
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    for _ in range(30):
        for out in outs:
            out.fill(0)
        cupy.cuda.Device().synchronize()
        for graph, each in zip(graphs * 3, streams * 3, strict=True):
            graph.launch(each)
        for each in streams:
            each.synchronize()
        assert all(bool((out == x).all()) for out, x in zip(outs, expected, strict=True))


def test_streams_that_are_gone(rng):
    """A new stream may have the handle of an old one."""
    import cupy

    skip_without("f32_best")
    a, b = floats(rng, 64, 20_000), floats(rng, 20_000, 64)
    expected = pysimd.gemm(a, b, kernel="f32_best")
    cupy.cuda.Device().synchronize()
    for _ in range(20):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            result = pysimd.gemm(a, b, kernel="f32_best")
            stream.synchronize()
        assert bool((result == expected).all())


class TestTorch:
    """In torch's own graphs, with results that torch keeps for the graph."""

    @pytest.mark.parametrize("shape", [(64, 20_000, 64), (500, 4, 4)])
    def test_replays(self, shape, rng):
        torch = pytest.importorskip("torch")
        m, k, n = shape
        if m == 500:
            x, y = torch.randn(m, k, n, device="cuda"), torch.randn(m, k, n, device="cuda")
        else:
            x, y = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
        expected = pysimd.matmul(x, y)
        for _ in range(3):
            pysimd.matmul(x, y)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = pysimd.matmul(x, y) + 1
        others = disturb(), [torch.full((1 << i,), 7.0, device="cuda") for i in range(8, 22)]
        for _ in range(3):
            result.zero_()
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(result, expected + 1)
        assert all(bool((x == 0x7F).all()) for x in others[0])
        assert all(bool((x == 7).all()) for x in others[1])
