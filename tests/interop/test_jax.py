"""JAX arrays in, JAX arrays out; and what other array libraries do with pysimd as it is."""

import warnings

import cuda_arrays
import numpy as np
import pytest

import pysimd

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    jax = pytest.importorskip("jax")
    jnp = pytest.importorskip("jax.numpy")


@pytest.fixture(autouse=True)
def on_cpu():
    """Arrays are made on the CPU, also where JAX has a GPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def whole(rng, shape, dtype=np.float32):
    return jnp.asarray(rng.integers(-9, 9, shape), dtype=dtype)


def gpu():
    """JAX's first GPU."""
    if cuda_arrays.WHY_NOT:
        pytest.skip(cuda_arrays.WHY_NOT)
    try:
        return jax.devices("cuda")[0]
    except RuntimeError as error:
        pytest.skip(f"JAX has no GPU: {error}")


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("dtype", "result"),
    [("float32", "float32"), ("bfloat16", "float32"), ("float16", "float16"), ("int8", "int32")],
)
def test_arrays_on_a_gpu_give_arrays_there(dtype, result, rng):
    device = gpu()
    a, b, c = (whole(rng, shape, kind) for shape, kind in (((9, 4, 6), dtype), ((6, 5), dtype), ((5,), result)))
    expected = np.asarray(a).astype(np.float64) @ np.asarray(b).astype(np.float64)
    a, b, c = (jax.device_put(x, device) for x in (a, b, c))
    products = pysimd.matmul(a, b), pysimd.gemm(a, b.T, c, alpha=2, beta=-1, trans_b=True)
    for product, values in zip(products, (expected, 2 * expected - np.asarray(c).astype(np.float64)), strict=True):
        assert isinstance(product, jax.Array)
        assert product.devices() == {device}
        assert product.dtype == result
        np.testing.assert_array_equal(np.asarray(product).astype(np.float64), values)
    assert pysimd.matmul(a[:0], b).shape == (0, 4, 5)
    with pytest.raises(pysimd.DTypeError, match="different devices"):
        pysimd.matmul(a, np.asarray(b))
    with pytest.raises(pysimd.OptionError, match="immutable"):
        pysimd.matmul(a, b, out=np.empty((9, 4, 5), np.float32))


@pytest.mark.cuda
def test_memory_of_operands_on_a_gpu_is_used_again(rng):
    """Operands that live no longer than the call, of a product that takes longer than the call."""
    device = gpu()
    a = jax.device_put(jnp.full((2048, 2048), 2, np.float32), device)
    for i in range(20):
        product = pysimd.matmul(a + i, a)
        spoiled = [(a * 0).block_until_ready() for _ in range(3)]
        assert float(jnp.abs(product - (2 + i) * 2 * 2048).max()) == 0, i
        del spoiled


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("float32", "float32"), ("bfloat16", "float32"), ("float16", "float32"), ("int8", "int32")],
)
def test_jax_arrays_give_jax_arrays(dtype, result, rng):
    a, b = whole(rng, (9, 4, 6), dtype), whole(rng, (6, 5), dtype)
    expected = np.asarray(a).astype(np.float64) @ np.asarray(b).astype(np.float64)
    for product in (pysimd.matmul(a, b), pysimd.matmul(a, np.asarray(b)), pysimd.matmul(np.asarray(a), b)):
        assert isinstance(product, jax.Array)
        assert product.dtype == result
        np.testing.assert_array_equal(product, expected)
    c = whole(rng, (5,), result)
    product = pysimd.gemm(a, b.T, c, alpha=2, beta=-1, trans_b=True, threads=1)
    assert isinstance(product, jax.Array)
    np.testing.assert_array_equal(product, 2 * expected - np.asarray(c))


def test_the_arrays_are_not_changed(rng):
    a = whole(rng, (5, 5))
    before = np.array(a)
    pysimd.gemm(a, a, a, beta=1)
    np.testing.assert_array_equal(a, before)
    with pytest.raises(pysimd.OptionError, match="immutable"):
        pysimd.matmul(a, a, out=np.empty((5, 5), np.float32))


def test_traced_arrays(rng):
    a, b = whole(rng, (7, 4, 6)), whole(rng, (6, 5))
    for transform in (jax.jit, jax.vmap, lambda f: jax.grad(lambda a, b: f(a, b).sum())):
        with pytest.raises(pysimd.DTypeError, match=r"jax\.pure_callback"):
            transform(pysimd.matmul)(a, jnp.broadcast_to(b, (7, 6, 5)))

    @jax.jit
    def call(a, b):
        result = jax.ShapeDtypeStruct((*a.shape[:-1], b.shape[-1]), a.dtype)
        host = lambda a, b: np.asarray(pysimd.matmul(a, b))  # noqa: E731
        return jax.pure_callback(host, result, a, b, vmap_method="broadcast_all") + 1

    np.testing.assert_array_equal(call(a, b), np.asarray(a @ b) + 1)


def test_what_does_not_fit_is_refused(rng):
    a = whole(rng, (5, 6))
    with pytest.raises(pysimd.ShapeError):
        pysimd.matmul(a, a)
    with pytest.raises(pysimd.DTypeError, match="no kernel multiplies"):
        pysimd.matmul(a, whole(rng, (6, 5), "int8"))
