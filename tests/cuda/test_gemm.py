"""``gemm`` on the GPU by what ``matmul`` takes: batches of small products, cuBLAS, integers; alpha, beta and C."""

import itertools

import cuda_arrays
import layouts
import numpy as np
import pytest
from cuda_arrays import on_gpu, on_host
from reference import moderate, random_result

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda.implementation import CUDA, INSTANCES

pytestmark = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")

every_type = pytest.mark.parametrize("types", CUDA.offered)
FACTORS = tuple(itertools.product((1.0, 0.0, -1.5, 2), (0.0, 1, 0.75)))
INTEGERS = tuple(itertools.product((1, 16777217, -(2**31), 2**31 - 1), (0, 3, 16777217, -(2**31))))


def operands(types, m, k, n, rng, batch=()):
    family = dtypes.FAMILIES[types]
    a = moderate(rng, dtypes.dtype_of(family.a), (*batch, m, k))
    b = moderate(rng, dtypes.dtype_of(family.b), (*batch, k, n))
    return a, b, random_result(rng, dtypes.dtype_of(family.c), (*batch, m, n))


def check(result, types, a, b, c, alpha, beta):
    """Integers exactly, modulo 2**32; floats within ``(K + 5) u (|alpha A B| + |beta C|)``; NaN is never right."""
    family = dtypes.FAMILIES[types]
    if family.c == "int32":
        number = np.int64
        expected = int(alpha) * (a.astype(number) @ b.astype(number)) + (int(beta) * c.astype(number) if beta else 0)
        assert np.array_equal(result, expected.astype(np.int32))
        return
    a, b = (x.astype(np.float32 if family.a == "bfloat16" else x.dtype).astype(np.longdouble) for x in (a, b))
    expected, magnitude = alpha * (a @ b), abs(alpha) * (abs(a) @ abs(b))
    if beta:
        expected, magnitude = expected + beta * c.astype(float), magnitude + abs(beta * c.astype(float))
    assert result.shape == expected.shape
    assert (abs(result - expected) <= (a.shape[-1] + 5) * family.roundoff * magnitude).all()


@every_type
@pytest.mark.parametrize("shape", [(5, 7, 6, 33), (32, 64, 32, 3), (1, 1, 1, 300), (40, 40, 40, 2), (130, 70, 90, 1)])
def test_factors(types, shape, rng):
    *sizes, batch = shape
    a, b, c = operands(types, *sizes, rng, (batch,))
    x, y, z = on_gpu(a), on_gpu(b), on_gpu(c)
    for alpha, beta in INTEGERS if types == "i8i32" else FACTORS:
        for _ in range(2):
            check(on_host(pysimd.gemm(x, y, z, alpha=alpha, beta=beta)), types, a, b, c, alpha, beta)
            out = z.copy()
            assert pysimd.gemm(x, y, out, alpha=alpha, beta=beta, out=out) is out
            check(on_host(out), types, a, b, c, alpha, beta)


@every_type
@pytest.mark.parametrize("layout", layouts.OPERANDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [5, 40])
def test_layouts(types, layout, size, rng):
    factors = (3, 2) if types == "i8i32" else (-1.5, 0.75)
    a, b, c = operands(types, size, size + 1, size, rng, (7,))
    for x, y, z in ((layout(a), b, c), (a, layout(b), c), (a, b, layout(c))):
        result = pysimd.gemm(on_gpu(x), on_gpu(y), on_gpu(z), alpha=factors[0], beta=factors[1])
        check(on_host(result), types, x, y, z, *factors)


@every_type
@pytest.mark.parametrize("size", [5, 40])
def test_c_broadcasts_and_out_has_any_strides(types, size, rng):
    factors = (3, 2) if types == "i8i32" else (-1.5, 0.75)
    a, b, c = operands(types, size, size, size, rng, (7,))
    for layout in layouts.RESULTS:
        out = on_gpu(layout(np.zeros((7, size, size), c.dtype)))
        for z in (c[:1], c[0], c, c[0, 0], c[:, :1], c[:, :, :1], c[0, :, :1], c[0, 0, 0]):
            assert pysimd.gemm(on_gpu(a), on_gpu(b), on_gpu(z), alpha=factors[0], beta=factors[1], out=out) is out
            check(on_host(out), types, a, b, np.broadcast_to(z, c.shape), *factors)


@every_type
@pytest.mark.parametrize("shape", [(4, 4, 4), (3, 5, 7), (31, 29, 30), (1, 0, 3), (32, 64, 9), (2, 1, 32)])
def test_the_kernel_for_all_shapes_gives_the_same_bits(types, shape, rng):
    """The first call, those while the instance for the shape is compiled, and those after."""
    m, k, n = shape
    for layout in (np.ascontiguousarray, layouts.transposed, layouts.sliced, layouts.negative):
        a, b, _ = operands(types, m, k, n, rng, (77,))
        x, y = on_gpu(layout(a)), on_gpu(layout(b))
        first = on_host(pysimd.matmul(x, y))
        pysimd.matmul(x, y)
        INSTANCES.wait()
        later = on_host(pysimd.matmul(x, y))
        assert (first.view(np.uint8) == later.view(np.uint8)).all()
        named = {"f32": "cuda_f32_outer_4x4", "f64": "cuda_f64_outer_4x4", "i8i32": "cuda_i8i32_outer_4x4"}.get(types)
        if named:
            assert (on_host(pysimd.matmul(x, y, kernel=named)).view(np.uint8) == first.view(np.uint8)).all()


@pytest.mark.parametrize("types", ["f32", "f64", "f16", "bf16f32"])
@pytest.mark.parametrize("size", [6, 40, 200])
def test_special_values(types, size, rng):
    """NaN in C is not read without beta; NaN in A stays NaN whatever alpha is."""
    a, b, c = operands(types, size, size, size, rng, (2,))
    c[...] = np.nan
    x, y, z = on_gpu(a), on_gpu(b), on_gpu(c)
    for alpha in (1, 2, 0):
        assert not np.isnan(on_host(pysimd.gemm(x, y, z, alpha=alpha))).any()
        assert np.isnan(on_host(pysimd.gemm(x, y, z, alpha=alpha, beta=1))).all()
    a[1, 3, 2] = np.nan
    for alpha in (1, 2, 0):
        result = on_host(pysimd.gemm(on_gpu(a), y, alpha=alpha))
        assert np.isnan(result[1, 3]).all()
        assert not np.isnan(result[0]).any()


def test_out_may_overlap_the_second_time_too(rng):
    for size in (6, 40, 200):
        a, b, c = operands("f32", size, size, size, rng)
        for which in (None, 0, 1, 2, None, 0):
            given = [on_gpu(v) for v in (a, b, c)]
            out = on_gpu(np.zeros_like(c)) if which is None else given[which]
            assert pysimd.gemm(*given, alpha=2, beta=-1, out=out) is out
            check(on_host(out), "f32", a, b, c, 2, -1)
