"""Every kernel of the table on the GPU, through every way to call it, against the exact product."""

import itertools

import cuda_arrays
import layouts
import numpy as np
import pytest
from cases import BATCHES, K_LENGTHS, edge_sizes
from cuda_arrays import on_gpu, on_host
from reference import check, moderate, random_result

import pysimd

pytestmark = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")

KERNELS = pysimd.kernels("cuda")
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
K_OF_LAYOUTS = 23


def operands(kernel, k, rng, batch_a=(), batch_b=()):
    a = moderate(rng, kernel.a_dtype, (*batch_a, kernel.mr, k))
    return a, moderate(rng, kernel.b_dtype, (*batch_b, k, kernel.nr))


def shape_c(kernel, batch=()):
    return (*batch, kernel.mr, kernel.nr)


def test_all_kernels_can_run_here():
    """A run in which a kernel took no part proves nothing for it."""
    assert [k.name for k in KERNELS if not k.available] == []


@every_kernel
@pytest.mark.parametrize("k", K_LENGTHS)
class TestEveryLength:
    def test_call(self, kernel, k, rng):
        a, b = operands(kernel, k, rng)
        check(on_host(kernel(on_gpu(a), on_gpu(b))), kernel.types, a, b)

    def test_batch_with_c(self, kernel, k, rng):
        a, b = operands(kernel, k, rng, (5,), (5,))
        c = random_result(rng, kernel.c_dtype, shape_c(kernel, (5,)))
        given = on_gpu(c)
        check(on_host(kernel(on_gpu(a), on_gpu(b), given)), kernel.types, a, b, c)
        np.testing.assert_array_equal(on_host(given), c)

    def test_packed_panel_and_columns(self, kernel, k, rng):
        """A stored as the packed panel, B by columns: the other ways that operands are read in place."""
        a, b = operands(kernel, k, rng, (4,), (4,))
        x, y = on_gpu(layouts.transposed(a)), on_gpu(layouts.transposed(b))
        check(on_host(kernel(x, y)), kernel.types, a, b)
        check(on_host(kernel(x, on_gpu(b))), kernel.types, a, b)
        check(on_host(kernel(on_gpu(a), y)), kernel.types, a, b)

    def test_bind(self, kernel, k, rng):
        a, b = operands(kernel, k, rng, (2, 1), (3,))
        c = random_result(rng, kernel.c_dtype, shape_c(kernel, (2, 3)))
        given = on_gpu(c)
        run = kernel.bind(on_gpu(a), on_gpu(b), given)
        np.testing.assert_array_equal(on_host(given), c)
        run()
        check(on_host(given), kernel.types, a, b, c)


@every_kernel
@pytest.mark.parametrize("batch", BATCHES, ids=lambda x: x.why)
def test_broadcasting(kernel, batch, rng):
    a, b = operands(kernel, 9, rng, batch.a, batch.b)
    result = on_host(kernel(on_gpu(a), on_gpu(b)))
    assert result.shape == shape_c(kernel, batch.result)
    check(result, kernel.types, a, b)


@every_kernel
def test_many_dimensions_that_do_not_merge(kernel, rng):
    a, b = operands(kernel, 5, rng, (2, 1, 2, 1, 3, 1), (1, 3, 1, 2, 1, 2))
    check(on_host(kernel(on_gpu(a), on_gpu(b))), kernel.types, a, b)


@every_kernel
@pytest.mark.parametrize("layout", layouts.OPERANDS, ids=lambda f: f.__name__)
class TestEveryLayout:
    def test_operands(self, kernel, layout, rng):
        a, b = (layout(x) for x in operands(kernel, K_OF_LAYOUTS, rng, (3,), (3,)))
        x, y = on_gpu(a), on_gpu(b)
        check(on_host(kernel(x, y)), kernel.types, a, b)
        np.testing.assert_array_equal(on_host(x), a)

    def test_c(self, kernel, layout, rng):
        a, b = operands(kernel, K_OF_LAYOUTS, rng, (3,), (3,))
        c = layout(random_result(rng, kernel.c_dtype, shape_c(kernel, (3,))))
        check(on_host(kernel(on_gpu(a), on_gpu(b), on_gpu(c))), kernel.types, a, b, c)


@every_kernel
@pytest.mark.parametrize("layout", layouts.RESULTS, ids=lambda f: f.__name__)
def test_out_and_no_byte_around_it(kernel, layout, rng):
    """The result lies where it shall; the bytes between and around its elements keep their values."""
    import cupy

    a, b = operands(kernel, K_OF_LAYOUTS, rng, (3,), (3,))
    host = layout(np.zeros(shape_c(kernel, (3,)), kernel.c_dtype))
    low, high = np.lib.array_utils.byte_bounds(host)
    start = host.__array_interface__["data"][0] - low
    buffer = cupy.full(256 + (high - low) + 256, 0xFF, np.uint8)
    shift = 256 + low % 16
    out = cupy.ndarray(host.shape, host.dtype, buffer.data + shift + start, strides=host.strides)
    assert kernel(on_gpu(a), on_gpu(b), out=out) is out
    check(on_host(out), kernel.types, a, b)
    ours = cupy.ndarray((*host.shape, host.itemsize), np.uint8, out.data, strides=(*host.strides, 1))
    ours[...] = 0xFF
    assert bool((buffer == 0xFF).all())


@every_kernel
def test_out_may_overlap(kernel, rng):
    """``out`` over a, over b, over c, and shifted by one element over c."""
    import cupy

    k = kernel.nr
    a, b = operands(kernel, k, rng, (3,), (3,))
    c = random_result(rng, kernel.c_dtype, shape_c(kernel, (3,)))
    for which in "abc":
        given = {"a": on_gpu(a), "b": on_gpu(b), "c": on_gpu(c)}
        size = 3 * kernel.mr * kernel.nr
        if which == "c":
            out = given["c"]
        else:
            room = cupy.zeros(size * kernel.c_dtype.itemsize + given[which].nbytes, np.uint8)
            inside = room[: given[which].nbytes].view(given[which].dtype).reshape(given[which].shape)
            inside[...] = given[which]
            given[which] = inside
            out = room[: size * kernel.c_dtype.itemsize].view(kernel.c_dtype).reshape(shape_c(kernel, (3,)))
        assert kernel(given["a"], given["b"], given["c"], out=out) is out
        check(on_host(out), kernel.types, a, b, c)
    room = cupy.zeros(3 * kernel.mr * kernel.nr + 1, kernel.c_dtype)
    before, after = room[:-1].reshape(shape_c(kernel, (3,))), room[1:].reshape(shape_c(kernel, (3,)))
    before[...] = cupy.asarray(c)
    kernel(on_gpu(a), on_gpu(b), before, out=after)
    check(on_host(after), kernel.types, a, b, c)


@every_kernel
def test_without_c_nothing_is_read_from_out(kernel, rng):
    a, b = operands(kernel, 6, rng, (2,), (2,))
    out = on_gpu(np.full(shape_c(kernel, (2,)), np.nan if kernel.c_dtype.kind == "f" else 77, kernel.c_dtype))
    kernel(on_gpu(a), on_gpu(b), out=out)
    check(on_host(out), kernel.types, a, b)


@every_kernel
@pytest.mark.parametrize("k", [1, 4, 17, 33])
def test_nan_and_infinity(kernel, k, rng):
    if kernel.c_dtype.kind != "f":
        pytest.skip("integers have none")
    a, b = operands(kernel, k, rng, (3,), (3,))
    a[0, 1, k // 2], b[1, k - 1, 2], a[2, 0, 0] = np.nan, np.inf, -np.inf
    check(on_host(kernel(on_gpu(a), on_gpu(b))), kernel.types, a, b)
    x, y = on_gpu(layouts.transposed(a)), on_gpu(layouts.transposed(b))
    check(on_host(kernel(x, y)), kernel.types, a, b)


@every_kernel
def test_integer_extremes_and_wrapping(kernel):
    if kernel.c_dtype.kind != "i":
        pytest.skip("floats do not wrap")
    k = 300
    for x, y in itertools.product((-128, 127), repeat=2):
        a, b = np.full((kernel.mr, k), x, np.int8), np.full((k, kernel.nr), y, np.int8)
        for limit in (np.iinfo(np.int32).min, np.iinfo(np.int32).max):
            c = np.full(shape_c(kernel), limit, np.int32)
            check(on_host(kernel(on_gpu(a), on_gpu(b), on_gpu(c))), kernel.types, a, b, c)


@pytest.mark.parametrize("types", ["f32", "f64", "bf16f32"])
def test_denormals_are_kept(types):
    """CuPy compiles with -ftz=true; the kernels do not follow it."""
    tiny = {"f32": 2.0**-140, "f64": 2.0**-1060, "bf16f32": 2.0**-130}[types]
    for kernel in (k for k in KERNELS if k.types == types):
        a = np.full((kernel.mr, 3), tiny).astype(kernel.a_dtype)
        b = np.ones((3, kernel.nr)).astype(kernel.b_dtype)
        assert (on_host(kernel(on_gpu(a), on_gpu(b))).astype(np.float64) == 3 * tiny).all(), kernel.name


@every_kernel
@pytest.mark.parametrize("k", [0, 1, 17])
def test_as_the_tile_of_a_matmul(kernel, k, rng):
    """Every m and n around the tile: partial tiles are the kernel's own."""
    for m, n in itertools.product(edge_sizes(kernel.mr), edge_sizes(kernel.nr)):
        a, b = moderate(rng, kernel.a_dtype, (2, m, k)), moderate(rng, kernel.b_dtype, (2, k, n))
        check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b), kernel=kernel)), kernel.types, a, b)


@every_kernel
def test_same_bits_everywhere(kernel, rng):
    """At any place in a batch and in any layout."""
    a, b = operands(kernel, 37, rng)
    alone = on_host(kernel(on_gpu(a), on_gpu(b)))
    many = on_host(kernel(on_gpu(np.repeat(a[None], 301, 0)), on_gpu(b)))
    assert (many.view(np.uint8) == alone.view(np.uint8)).all()
    for layout in (layouts.transposed, layouts.sliced, layouts.negative):
        assert (on_host(kernel(on_gpu(layout(a)), on_gpu(layout(b)))).view(np.uint8) == alone.view(np.uint8)).all()


def test_batch2_on_interleaved_problems(rng):
    """The layout that it is made for: two products interleaved element by element."""
    import cupy

    kernel = pysimd.kernel("cuda_f16_batch2_4x4")
    for batch, k in itertools.product((2, 6, 1000), (1, 4, 6, 17)):
        a, b = operands(kernel, k, rng, (batch,), (batch,))
        c = random_result(rng, kernel.c_dtype, shape_c(kernel, (batch,)))
        pairs = []
        for x in (a, b, c, np.zeros_like(c)):
            y = np.ascontiguousarray(x.reshape(batch // 2, 2, *x.shape[1:]).transpose(0, 2, 3, 1))
            pairs.append(cupy.asarray(y).transpose(0, 3, 1, 2))
        x, y, z, out = pairs
        assert kernel(x, y, z, out=out) is out
        shape = shape_c(kernel, (batch,))
        check(on_host(out).reshape(shape), kernel.types, a, b, c)
