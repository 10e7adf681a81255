"""Every rung with operands, and with a C, of more than 2^31 elements: offsets have 64 bits. Needs a GPU."""

import cuda_arrays
import numpy as np
import pytest
from cases import SEED
from cuda_arrays import on_host
from reference import wide

import pysimd
from pysimd import dtypes

pytestmark = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")

SHAPES = {"A": (65_541, 8, 32_776), "B": (8, 65_541, 32_776), "C": (46_349, 46_349, 4)}
"""m, n and k; the last 16 rows of A and C, and columns of B, which is K-major, begin behind 2^31 elements."""

SCRATCH = {"tf32x3": 2, "ozaki2_f32": 7, "ozaki2_f64": 15}
"""How many matrices of float32 a rung needs besides a large operand or C, at most."""


def integers(types, shape, seed):
    """-1, 0 and 1: sums of some ten thousand products are exact in every type, float16 too."""
    import cupy

    name = dtypes.FAMILIES[types].a
    values = cupy.asarray(np.random.default_rng(SEED + seed).integers(-1, 2, 1_000_003))
    if name == "bfloat16":
        return cupy.resize((values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), shape)
    return cupy.resize(values.astype(name), shape)


def need_memory(nbytes):
    import cupy

    if cupy.cuda.runtime.memGetInfo()[0] < nbytes:
        pytest.skip(f"the device has less than {nbytes >> 30} GiB of free memory")


def check(result, a, b):
    """Exactly the product; of a few rows and columns, on the host."""
    a, b = (wide(on_host(x), np.float64) for x in (a, b))
    assert (on_host(result).astype(np.float64) == a @ b).all()


@pytest.mark.parametrize("large", SHAPES)
@pytest.mark.parametrize("rung", pysimd.rungs("cuda"), ids=lambda rung: rung.name)
def test_more_than_2_31_elements(rung, large):
    import cupy

    if not rung.available:
        pytest.skip(rung.unavailable_reason)
    m, n, k = SHAPES[large]
    family = dtypes.FAMILIES[rung.types]
    itemsize = dtypes.dtype_of(family.c if large == "C" else family.a).itemsize
    need_memory(((2 * itemsize + 4 * SCRATCH.get(rung.name, 1)) << 31) + (2 << 30))
    try:
        a, b = integers(rung.types, (m, k), 0), integers(rung.types, (n, k), 1).T
        c = rung(a, b)
        for at in (0, max(m, n) // 2, max(m, n) - 16):
            rows, columns = (slice(at, at + 16), slice(n)) if large != "B" else (slice(m), slice(at, at + 16))
            check(*(cupy.ascontiguousarray(x) for x in (c[rows, columns], a[rows], b[:, columns])))
    finally:
        a = b = c = None
        cupy.get_default_memory_pool().free_all_blocks()


def test_batches_of_larger_products():
    """float32 from 60 a side on: batched_tma.cu on sm_90."""
    import cupy

    count = (1 << 31) // 64**2 + 5
    need_memory((3 * 4 * count * 64**2) + (2 << 30))
    try:
        a, b = (integers("f32", (count, 64, 64), seed) for seed in range(2))
        c = pysimd.matmul(a, b)
        for at in (0, count // 2, count - 3):
            check(*(x[at : at + 3] for x in (c, a, b)))
    finally:
        a = b = c = None
        cupy.get_default_memory_pool().free_all_blocks()
