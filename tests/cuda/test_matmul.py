"""``matmul`` on the GPU: every shape, type and layout, its streams and devices, and other libraries' arrays."""

import contextlib

import cuda_arrays
import layouts
import numpy as np
import pytest
from cases import BATCHES, PRODUCTS
from cuda_arrays import on_gpu, on_host
from reference import check, moderate

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda.implementation import CUDA

pytestmark = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")

TYPES = CUDA.offered
every_type = pytest.mark.parametrize("types", TYPES)
SIZES = (*range(1, 34), 40)


def operands(types, m, k, n, rng, batch_a=(), batch_b=()):
    family = dtypes.FAMILIES[types]
    a = moderate(rng, dtypes.dtype_of(family.a), (*batch_a, m, k))
    return a, moderate(rng, dtypes.dtype_of(family.b), (*batch_b, k, n))


@every_type
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: f"{p.batch}x{p.m}x{p.k}x{p.n}")
def test_shapes(types, product, rng):
    a, b = operands(types, product.m, product.k, product.n, rng, product.batch, product.batch)
    check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b))), types, a, b)


@pytest.mark.parametrize("size", SIZES)
def test_every_size_of_float(size, rng):
    """Around a block of products, and many of them."""
    for batch in (1, 2, 129, 1000):
        a, b = operands("f32", size, size, size, rng, (batch,), (batch,))
        check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b))), "f32", a, b)


@every_type
@pytest.mark.parametrize(("m", "k", "n"), [(7, 5, 9), (3, 8, 17), (32, 1, 5), (6, 64, 6), (13, 13, 2), (9, 65, 9)])
def test_oblong(types, m, k, n, rng):
    for batch in (1, 77, 300):
        a, b = operands(types, m, k, n, rng, (batch,), (batch,))
        check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b))), types, a, b)


@every_type
@pytest.mark.parametrize("layout", layouts.OPERANDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [4, 7, 16, 40])
def test_layouts(types, layout, size, rng):
    a, b = operands(types, size, size + 1, size, rng, (70,), (70,))
    for x, y in ((layout(a), layout(b)), (layout(a), b), (a, layout(b))):
        check(on_host(pysimd.matmul(on_gpu(x), on_gpu(y))), types, x, y)


@every_type
@pytest.mark.parametrize("layout", layouts.RESULTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [4, 7, 40])
def test_out(types, layout, size, rng):
    a, b = operands(types, size, 9, size, rng, (70,), (70,))
    c = layout(np.full((70, size, size), 77, dtypes.dtype_of(dtypes.FAMILIES[types].c)))
    out = on_gpu(c)
    assert pysimd.matmul(on_gpu(a), on_gpu(b), out=out) is out
    check(on_host(out), types, a, b)


@pytest.mark.parametrize("batch", BATCHES, ids=lambda x: x.why)
@pytest.mark.parametrize("size", [4, 5, 40])
def test_broadcasting(batch, size, rng):
    a, b = operands("f32", size, 6, size, rng, batch.a, batch.b)
    result = on_host(pysimd.matmul(on_gpu(a), on_gpu(b)))
    assert result.shape == (*batch.result, size, size)
    check(result, "f32", a, b)


def test_vectors(rng):
    a, b = operands("f32", 5, 7, 3, rng, (4,), (4,))
    x, y = on_gpu(a), on_gpu(b)
    np.testing.assert_allclose(on_host(pysimd.matmul(x[0, 0], y)), a[0, 0] @ b, rtol=1e-5)
    np.testing.assert_allclose(on_host(pysimd.matmul(x, y[0, :, 0])), a @ b[0, :, 0], rtol=1e-5)
    np.testing.assert_allclose(on_host(pysimd.matmul(x[0, 0], y[0, :, 0])), a[0, 0] @ b[0, :, 0], rtol=1e-5)


def test_out_may_overlap(rng):
    a, b = operands("f32", 4, 4, 4, rng, (500,), (500,))
    for name in "ab":
        x, y = on_gpu(a), on_gpu(b)
        out = x if name == "a" else y
        assert pysimd.matmul(x, y, out=out) is out
        check(on_host(out), "f32", a, b)
    x = on_gpu(a)
    check(on_host(pysimd.matmul(x[1:], x[:-1], out=x[1:])), "f32", a[1:], a[:-1])


@pytest.mark.parametrize("types", ["f32", "f64", "f16", "bf16f32"])
def test_nan_and_infinity(types, rng):
    a, b = operands(types, 5, 6, 7, rng, (9,), (9,))
    a[0, 1, 2], b[1, 3, 4], a[2, 0, 0] = np.nan, np.inf, -np.inf
    check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b))), types, a, b)


def test_integer_extremes():
    for x, y in ((-128, -128), (-128, 127), (127, 127)):
        a, b = np.full((40, 7, 33), x, np.int8), np.full((40, 33, 5), y, np.int8)
        check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b))), "i8i32", a, b)


def test_second_call_of_an_arrangement_is_the_same(rng):
    """Arrangements seen before are replayed: with other values, other addresses, another alignment."""
    import cupy

    for size, batch in ((4, 1000), (5, 33), (16, 7)):
        for shift in (0, 0, 1, 4, 0):
            a, b = operands("f32", size, size, size, rng, (batch,), (batch,))
            room = cupy.empty(a.size + 8, np.float32)
            x = room[shift : shift + a.size].reshape(a.shape)
            x[...] = cupy.asarray(a)
            check(on_host(pysimd.matmul(x, on_gpu(b))), "f32", a, b)


def test_batch_beyond_grid_dimensions(rng):
    a, b = operands("f32", 2, 2, 2, rng, (70_000, 1), (1, 70))
    result = pysimd.matmul(on_gpu(a), on_gpu(b))
    assert result.shape == (70_000, 70, 2, 2)
    check(on_host(result[-3:]), "f32", a[-3:], b)


@pytest.mark.parametrize("name", [None, "cuda_f16_outer_4x4"])
def test_more_than_two_to_the_31_elements(name):
    """Offsets are 64-bit: what lies beyond 2**31 elements is right, and so is what lies before."""
    import cupy

    batch = (1 << 27) + 1000
    if cupy.cuda.runtime.memGetInfo()[0] < 3 * 32 * batch + (1 << 30):
        pytest.skip("not enough memory on this GPU")
    a = cupy.ones((batch, 4, 4), np.float16)
    a[-500:] = 2
    result = pysimd.matmul(a, a, kernel=name)
    assert bool((result[-500:] == 16).all())
    assert bool((result[:500] == 4).all())
    assert bool((result[(1 << 26) : (1 << 26) + 500] == 4).all())


def test_current_stream_and_no_synchronisation(rng):
    """A capture refuses anything that waits, and anything on another stream is missing in it."""
    import cupy

    a, b = operands("f32", 4, 4, 4, rng, (1000,), (1000,))
    x, y = on_gpu(a), on_gpu(b)
    out = cupy.zeros((1000, 4, 4), np.float32)
    kernel = pysimd.kernel("cuda_f32_outer_4x4")
    other = cupy.zeros_like(out)
    run = kernel.bind(x, y, other)
    pysimd.matmul(x, y, out=out)  # compiled here
    kernel(x, y, out=out)
    run()
    out.fill(0)
    other.fill(0)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        pysimd.matmul(x, y, out=out)
        run()
        graph = stream.end_capture()
        assert not bool(out.any())
        graph.launch()
        graph.launch()
        stream.synchronize()
    check(on_host(out), "f32", a, b)
    check(on_host(other / 2), "f32", a, b)


@pytest.mark.parametrize("types", ["f32", "f16", "bf16f32", "i8i32"])
def test_torch_tensors(types, rng):
    torch = pytest.importorskip("torch")
    a, b = operands(types, 4, 4, 4, rng, (300,), (300,))
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16f32": torch.bfloat16, "i8i32": torch.int8}[types]
    x, y = (torch.from_numpy(v.astype(np.float32)).to(kind).cuda() for v in (a, b))
    result = pysimd.matmul(x, y)
    assert type(result) is torch.Tensor
    assert result.is_cuda
    check(result.cpu().numpy(), types, a, b)
    out = torch.zeros_like(result)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert pysimd.matmul(x, y, out=out) is out
        total = out.sum(dtype=torch.float64)
    torch.cuda.synchronize()
    check(out.cpu().numpy(), types, a, b)
    assert float(total) == float(out.sum(dtype=torch.float64))


def test_torch_tensors_in_a_kernel_call(rng):
    torch = pytest.importorskip("torch")
    kernel = pysimd.kernel("cuda_f32_outer_8x8")
    x, y = torch.randn(10, 8, 20, device="cuda"), torch.randn(10, 20, 8, device="cuda")
    result = kernel(x, y)
    assert type(result) is torch.Tensor
    check(result.cpu().numpy(), "f32", x.cpu().numpy(), y.cpu().numpy())


ERRORS = {
    "shapes": (lambda cp: (cp.ones((4, 3)), cp.ones((4, 3))), pysimd.ShapeError, "not aligned"),
    "mixed dtypes": (lambda cp: (cp.ones((4, 4), "f4"), cp.ones((4, 4), "f8")), pysimd.DTypeError, "float32 @ float32"),
    "complex": (lambda cp: (cp.ones((4, 4), "c8"),) * 2, pysimd.DTypeError, "complex64"),
    "host and device": (lambda cp: (cp.ones((4, 4)), np.ones((4, 4))), pysimd.DTypeError, "a is on cuda, b is on cpu"),
    "batches": (lambda cp: (cp.ones((2, 4, 4)), cp.ones((3, 4, 4))), pysimd.ShapeError, "do not broadcast"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    import cupy

    make, error, words = ERRORS[case]
    a, b = make(cupy)
    with pytest.raises(error, match=words):
        pysimd.matmul(a, b)


def test_other_errors():
    import cupy

    a = cupy.ones((4, 4), np.float32)
    with pytest.raises(pysimd.OptionError, match="threads"):
        pysimd.matmul(a, a, threads=2)
    with pytest.raises(pysimd.ShapeError, match="out must have shape"):
        pysimd.matmul(a, a, out=cupy.ones((4, 5), np.float32))
    with pytest.raises(pysimd.DTypeError, match="cuda kernel"):
        pysimd.matmul(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32), kernel="cuda_f32_outer_4x4")
    with pytest.raises(pysimd.DTypeError, match="cupy"):
        pysimd.kernel("cuda_f32_outer_4x4")(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))


def test_other_device(rng):
    """Arrays on a device that is not the current one are multiplied where they are."""
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU only")
    a, b = operands("f32", 4, 4, 4, rng, (50,), (50,))
    with cupy.cuda.Device(1):
        x, y = on_gpu(a), on_gpu(b)
    result = pysimd.matmul(x, y)
    assert result.device.id == 1
    with contextlib.nullcontext() if cupy.cuda.runtime.getDevice() == 0 else pytest.fail("the device was changed"):
        check(cupy.asnumpy(result), "f32", a, b)
