"""bfloat16: ml_dtypes arrays, uint16 arrays of its bits, and life without ml_dtypes."""

import numpy as np
import pytest
from process import output_of
from reference import check, random_operand

import pysimd

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16 = np.dtype(ml_dtypes.bfloat16)
KERNELS = pysimd.kernels("cpu", types="bf16f32", available=True)


@pytest.fixture(params=KERNELS, ids=lambda k: k.name)
def kernel(request):
    return request.param


def operands(rng, kernel, k=9):
    return random_operand(rng, BF16, (3, kernel.mr, k)), random_operand(rng, BF16, (3, k, kernel.nr))


def test_bits_in_uint16_are_the_same_numbers(kernel, rng):
    a, b = operands(rng, kernel)
    expected = kernel(a, b)
    check(expected, "bf16f32", a, b)
    for x, y in ((a.view(np.uint16), b.view(np.uint16)), (a.view(np.uint16), b), (a, b.view(np.uint16))):
        assert kernel(x, y).tobytes() == expected.tobytes()
        assert pysimd.matmul(x, y, kernel=kernel).tobytes() == expected.tobytes()


def test_matmul_takes_uint16_only_where_a_kernel_is_named(rng):
    a, b = (random_operand(rng, BF16, (4, 4)) for _ in range(2))
    check(pysimd.matmul(a, b), "bf16f32", a, b)
    with pytest.raises(pysimd.DTypeError, match="name a kernel"):
        pysimd.matmul(a.view(np.uint16), b.view(np.uint16))


def test_products_are_exact_in_float32(kernel):
    """Two bfloat16 multiply without rounding: a result rounded to bfloat16 on the way would show."""
    a = np.full((kernel.mr, 1), 1 + 2.0**-7, BF16)
    b = np.full((1, kernel.nr), 1 + 2.0**-7, BF16)
    np.testing.assert_array_equal(kernel(a, b), np.full((kernel.mr, kernel.nr), (1 + 2.0**-7) ** 2, np.float32))


def test_denormals(kernel):
    """vdpbf16ps and tdpbf16ps take denormal operands as zero and flush denormal sums, which the bound of the other
    tests does not allow for: it is stated here. Plain C keeps them."""
    denormal = np.float32(2.0**-130)
    a, b = np.full((kernel.mr, 1), denormal, BF16), np.ones((1, kernel.nr), BF16)
    assert float(a[0, 0]) == denormal
    expected = 0 if kernel.target in ("avx512bf16", "amx") else denormal
    np.testing.assert_array_equal(kernel(a, b), np.full((kernel.mr, kernel.nr), expected, np.float32))


WITHOUT_ML_DTYPES = """
import sys
sys.modules["ml_dtypes"] = None  # import ml_dtypes raises ImportError
import numpy as np, pysimd
k = pysimd.kernel("generic_bf16f32_outer_4x4")
print(k.a_dtype.name, k.b_dtype.name, k.c_dtype.name)
one = np.full((4, 4), 0x3F80, np.uint16)
print(k(one, one).tolist() == [[4.0] * 4] * 4)
try:
    pysimd.matmul(one, one)
except pysimd.DTypeError as error:
    print(error)
print(pysimd.matmul(one, one, kernel=k)[0, 0], pysimd.matmul(np.eye(4, dtype="f4"), np.eye(4, dtype="f4"))[0, 0])
"""


def test_without_ml_dtypes():
    lines = output_of("-c", WITHOUT_ML_DTYPES).splitlines()
    assert lines[:2] == ["uint16 uint16 float32", "True"]
    assert lines[2].startswith("no kernel multiplies uint16 by uint16")
    assert lines[3] == "4.0 1.0"
