"""The registry: lists, filters, fields and sources of kernels."""

import pytest
from kernel_headers import tile_of

import pysimd


def test_kernels_filters():
    everything = pysimd.kernels()
    assert pysimd.kernels("cpu", target="avx", form="outer") == [pysimd.kernel("avx_f32_outer_8x8")]
    assert {k.types for k in pysimd.kernels(types="f64")} == {"f64"}
    available = pysimd.kernels(available=True)
    assert available == [k for k in everything if k.available]
    assert pysimd.kernels(available=False) == [k for k in everything if not k.available]
    assert pysimd.kernels("no such backend") == []


@pytest.mark.parametrize("kernel", pysimd.kernels(), ids=lambda k: k.name)
def test_fields(kernel):
    assert pysimd.kernel(kernel.name) is kernel
    assert kernel.available == (kernel.unavailable_reason == "")
    assert kernel.backend in ("cpu", "cuda", "hip")
    assert min(kernel.mr, kernel.nr, kernel.k_group) >= 1
    assert kernel.name.rpartition("_")[2] == "x".join(tile_of(kernel))
    assert kernel.ratio.value == kernel.ratio.macs / kernel.ratio.loads
    assert len(kernel.source) > 200
    assert str(kernel.mr) in repr(kernel)
    assert kernel.c_dtype.itemsize >= kernel.a_dtype.itemsize


def test_ratios_of_the_classic_tiles():
    """After "Musings on GEMM": 0.5 for any inner product, 2 for 4x4, 4 for 8x8."""
    assert pysimd.kernel("generic_f32_outer_4x4").ratio.value == 2.0
    assert pysimd.kernel("generic_f32_inner_4x4").ratio.value == 0.5
    names = [k.name for k in pysimd.kernels(types="f32", form="outer") if (k.mr, k.nr) == (8, 8)]
    assert all(pysimd.kernel(name).ratio.value == 4.0 for name in names)
    assert pysimd.kernel("generic_f32_outer_4x4").ratio.per_byte == 0.5
