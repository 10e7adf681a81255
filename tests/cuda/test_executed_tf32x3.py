"""tf32x3's first kernel executed on the host: the two parts of float32 operands, and what their products are worth.
Needs neither a GPU nor NVRTC."""

import re

import fake_cupy
import host_kernels
import numpy as np
import pytest
from pysimd.gpu_kernels import ladder_table

from pysimd import sources
from pysimd.backends.cuda.ladder import tensor
from pysimd.backends.gpu.gemm_launches import FIELDS
from pysimd.backends.gpu.plans import A, Slot

pytestmark = pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")

ROW = ladder_table.BY_NAME["tf32x3"]
LAYOUTS = ("K_MAJOR", "MN_MAJOR")


def with_split(text):
    """The text of gemm.cuh, and of tf32x3.cu what needs neither TMA nor tensor cores."""
    kernel = re.search(
        r"^struct Split \{.*?(?=^/\* A stage holds)",
        sources.read("gpu_kernels/ladder/tf32x3.cu"),
        re.MULTILINE | re.DOTALL,
    )
    return text + host_kernels.translate(kernel[0])


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A function that gives the high and the low parts of rows of k elements, of several products."""
    folder = tmp_path_factory.mktemp("parts")
    library = host_kernels.Library("ladder/gemm.cuh", [f"tf32x3_split<{x}>" for x in LAYOUTS], folder, with_split)

    def run(x, layout, blocks):
        products, rows, k = x.shape
        lines = x if layout == "K_MAJOR" else np.ascontiguousarray(x.swapaxes(-1, -2))
        ld = lines.shape[-1] + 3
        given = fake_cupy.array((*lines.shape[:-1], ld))
        given[...] = np.nan
        given[..., : lines.shape[-1]] = lines
        p = dict.fromkeys(FIELDS, 0)
        p.update(k=k, a=given.data.ptr, lda=ld, a_batch=lines.shape[-2] * ld)
        made = tensor.Packed(ROW, p, "a", rows, layout, products, Slot(0, A), 0)
        parts = fake_cupy.array((products, 2, rows, made.pitch))
        parts[...] = 7
        assert parts.nbytes <= made.nbytes
        words = made.argument.words.copy()
        words[1] = parts.data.ptr
        argument = fake_cupy.Pointer(words.ctypes.data)
        library.function(f"tf32x3_split<{layout}>")((min(blocks, made.tiles),), (256,), (argument,))
        assert (parts[..., k:] == 7).all(), "written past the end of a row"
        return np.array(parts[..., :k]).swapaxes(0, 1)

    return run


def nearest_tf32(x):
    """The nearest of 11 bits, ties away from 0."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.copysign(np.floor(np.abs(fraction) * 2**11 + 0.5), fraction), exponent - 11).astype(np.float32)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("products", "rows", "k", "blocks"), [(1, 70, 67, 2), (3, 33, 40, 100), (2, 1, 5, 1)])
def test_parts(split, rng, layout, products, rows, k, blocks):
    x = (rng.standard_normal((products, rows, k)) * 2.0 ** rng.integers(-40, 40, (products, rows, k))).astype(
        np.float32
    )
    x[0, 0, :2] = 1 + 2**-11, -(1 + 2**-11)  # ties
    high, low = split(x, layout, blocks)
    assert np.array_equal(high, nearest_tf32(x))
    assert np.array_equal(low, nearest_tf32(x - high))
    assert (np.abs(x.astype(np.float64) - high - low) <= 2.0**-22 * np.abs(x)).all()


def test_three_products_are_worth_float32(split, rng):
    """Parts, without the product of the low ones, lose 12 of the k + 15 units of tf32x3's bound, the sums have the
    others; the products of high parts alone are not within it."""
    k = 96
    a, b = (rng.standard_normal((1, rows, k)).astype(np.float32) for rows in (40, 50))
    (high_a, low_a), (high_b, low_b) = (split(x, "K_MAJOR", 4).astype(np.float64)[:, 0] for x in (a, b))
    exact = a[0].astype(np.float64) @ b[0].T.astype(np.float64)
    bound = 2.0**-24 * np.abs(a[0]).astype(np.float64) @ np.abs(b[0].T).astype(np.float64)
    three = high_a @ high_b.T + (high_a @ low_b.T + low_a @ high_b.T)
    assert (np.abs(three - exact) <= 12 * bound).all()
    assert not (np.abs(high_a @ high_b.T - exact) <= (k + 15) * bound).all()
