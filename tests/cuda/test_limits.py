"""Sizes that kernels count in 32 bits: what goes beyond is right by another kernel, or an error. No GPU."""

import types

import pytest
from pysimd.gpu_kernels import table

import pysimd
from pysimd.backends.cuda import device, dispatch, tensor_maps
from pysimd.backends.gpu.launches import CallOperands, tile_layouts

OUTER, INNER = table.BY_NAME["cuda_f32_outer_4x4"], table.BY_NAME["cuda_f32_inner_4x4"]
WMMA, DP4A = table.BY_NAME["cuda_f16f32_wmma_16x16"], table.BY_NAME["cuda_i8i32_outer_4x4"]


class Matrix:
    """Shape, strides and address: what an array of CuPy is to ``CallOperands``."""

    def __init__(self, shape, strides, itemsize=4):
        self.shape, self.strides, self.itemsize = shape, strides, itemsize
        self.ndim, self.data = len(shape), types.SimpleNamespace(ptr=4096)


def operands(row, k, along_k=0, itemsize=4):
    """A tile of operands in which one step of k lies ``along_k`` bytes after the other: 0 is the same element again."""
    a = Matrix((row.mr, k), (along_k * k, along_k), itemsize)
    b = Matrix((k, row.nr), (along_k, along_k * k), itemsize)
    return CallOperands(a, b, None, Matrix((row.mr, row.nr), (4 * row.nr, 4)))


@pytest.mark.parametrize("row", [OUTER, INNER, DP4A], ids=lambda row: row.name)
def test_steps_of_k_fit_32_bits(row):
    assert tile_layouts(row, operands(row, (1 << 32) - 1)) == ("ANY", "ANY", False)
    with pytest.raises(pysimd.ShapeError, match=f"{row.name} takes fewer than 4294967296 k"):
        tile_layouts(row, operands(row, 1 << 32))


def test_a_step_may_hold_several_k():
    """As long as memory can be."""
    k = (1 << 33) - 16
    assert tile_layouts(DP4A, operands(DP4A, k, 1, 1)) == ("K_MAJOR", "K_MAJOR", False)
    assert tile_layouts(OUTER, operands(OUTER, k, 4)) == ("K_MAJOR", "K_MAJOR", False)


def test_the_tensor_core_kernels_count_in_64_bits():
    assert tile_layouts(WMMA, operands(WMMA, 1 << 40))[:2] == ("ANY", "ANY")


@pytest.mark.parametrize("extents", [(1 << 31, 64, 1), (64, 1 << 31, 1), (64, 64, 1 << 31)])
def test_coordinates_of_the_tensor_memory_accelerator(extents, monkeypatch):
    monkeypatch.setattr(tensor_maps.driver, "function", lambda name: lambda *_: 0)
    with pytest.raises(pysimd.ShapeError, match="fewer than 2147483648 rows, columns and products"):
        tensor_maps.tensor_map(4096, 2, extents, (128, 128), (64, 64), 128)
    fewer = tuple(n - 1 if n > 64 else n for n in extents)
    assert tensor_maps.tensor_map(4096, 2, fewer, (128, 128), (64, 64), 128).itemsize == 128


def test_matmul_takes_a_kernel_without_coordinates(monkeypatch):
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    most = tensor_maps.MOST
    assert dispatch.choose("bf16f32", most - 1, 8, 8, 1).way is dispatch.Way.LIBRARY
    assert dispatch.choose("bf16f32", most - 1, 8, 8, 2).way is dispatch.Way.LIBRARY
    assert dispatch.choose("bf16f32", most, 8, 8, 1).name == "cuda_bf16f32_wmma_16x16"
    for count in (1, 2):
        assert dispatch.choose("bf16f32", 8, most, 8, count).name == "cuda_bf16f32_wmma_16x16"
