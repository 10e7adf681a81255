"""xarray and pandas, as docs/interop.md describes them; the array-API namespaces of NumPy, CuPy and torch; arrays of
two libraries."""

import cuda_arrays
import numpy as np
import pytest

import pysimd


def test_xarray(rng):
    xr = pytest.importorskip("xarray")
    pose = xr.DataArray(rng.integers(-9, 9, (10, 4, 4)).astype("float32"), dims=("time", "row", "k"))
    point = xr.DataArray(rng.integers(-9, 9, (4, 7)).astype("float32"), dims=("k", "point"))
    dims = {"input_core_dims": [["row", "k"], ["k", "point"]], "output_core_dims": [["row", "point"]]}
    moved = xr.apply_ufunc(pysimd.matmul, pose, point, **dims)
    assert moved.dims == ("time", "row", "point")
    np.testing.assert_array_equal(moved, pose.values @ point.values)
    pytest.importorskip("dask.array")
    lazy = xr.apply_ufunc(pysimd.matmul, pose.chunk(time=3), point, dask="allowed", **dims)
    assert lazy.chunks == ((3, 3, 3, 1), (4,), (7,))
    np.testing.assert_array_equal(lazy.compute(), moved)


def test_pandas(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.integers(-9, 9, (50, 3)).astype("float32"), columns=list("xyz"))
    turn = rng.integers(-9, 9, (3, 3)).astype("float32")
    turned = pd.DataFrame(pysimd.matmul(frame.to_numpy(), turn), index=frame.index, columns=frame.columns)
    np.testing.assert_array_equal(turned, frame.to_numpy() @ turn)
    with pytest.raises(pysimd.DTypeError, match="must be an array"):
        pysimd.matmul(frame, turn)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_array_api_namespaces(library, rng):
    compat = pytest.importorskip("array_api_compat")
    pytest.importorskip(library)
    x = rng.integers(-9, 9, (9, 4, 4)).astype("float32")
    given = compat.array_namespace(np.zeros(0)).asarray(x)
    if library == "torch":
        given = pytest.importorskip("torch").asarray(x)
    xp = compat.array_namespace(given)
    product = pysimd.matmul(xp.asarray(given), xp.matrix_transpose(given))
    assert compat.array_namespace(product) is xp
    assert type(product) is type(given)
    np.testing.assert_array_equal(np.asarray(product), x @ x.swapaxes(-1, -2))


@pytest.mark.cuda
@pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")
def test_array_api_namespace_of_cupy(rng):
    compat = pytest.importorskip("array_api_compat")
    import cupy

    x = cupy.asarray(rng.integers(-9, 9, (9, 4, 4)).astype("float32"))
    xp = compat.array_namespace(x)
    product = pysimd.matmul(x, xp.matrix_transpose(x))
    assert compat.array_namespace(product) is xp
    np.testing.assert_array_equal(product.get(), x.get() @ x.get().swapaxes(-1, -2))


def test_arrays_of_two_libraries_are_refused():
    torch, jnp, da = (pytest.importorskip(name) for name in ("torch", "jax.numpy", "dask.array"))
    given = [torch.ones(4, 4), jnp.ones((4, 4), np.float32), da.ones((4, 4), chunks=2, dtype=np.float32)]
    for a in given:
        for b in given:
            if a is not b:
                with pytest.raises(pysimd.DTypeError, match=r"a is an array of .*, b one of .*: convert one"):
                    pysimd.matmul(a, b)
                with pytest.raises(pysimd.DTypeError, match=r"a is an array of .*, c one of .*: convert one"):
                    pysimd.gemm(a, np.ones((4, 4), np.float32), b, beta=1)
        assert type(pysimd.matmul(a, np.ones((4, 4), np.float32))) is type(a)
