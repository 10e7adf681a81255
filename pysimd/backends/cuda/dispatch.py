"""Which kernel computes a product on a CUDA device: the one place that chooses, for ``matmul`` and for ``gemm``.

The limits were found by measuring on an H200 beside cuBLAS (benchmarks/gemm_shapes.py, benchmarks/cuda_micro.py).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pysimd.backends.cuda import device, tensor_maps
from pysimd.backends.gpu import batched
from pysimd.gpu_kernels import ladder_table


class Way(Enum):
    """Kinds of kernels that compute whole products."""

    BATCHED = "a batch of small products in one launch (gpu_kernels/micro/batched.cu)"
    RUNG = "a rung of the ladder"
    TILES = "a microkernel, tile by tile"
    LIBRARY = "cuBLAS"


class Choice(NamedTuple):
    """A way, and the name of the rung or of the microkernel."""

    way: Way
    name: str = ""


LARGE = 1 << 30
"""Multiply-adds from which on ``f32_best`` is ahead of cuBLAS; below, it is for some products with a long k."""

MOST_K = 1 << 31
"""Rungs count panels in 32 bits."""

_TENSOR_CORES_F64 = 1 << 15
"""Multiply-adds of a float64 product from which on cuBLAS is ahead: it has tensor cores for float64."""


def choose(types: str, m: int, n: int, k: int, count: int, where: int | None = None) -> Choice:
    """What computes ``count`` products of these sizes on device ``where``, by default the one that is listed.

    The choice depends on types and shape alone, so that the same products have the same bits whatever their strides.
    """
    if batched.takes(m, n, k) and not (types == "f64" and m * n * k >= _TENSOR_CORES_F64):
        return Choice(Way.BATCHED)
    name = _rung(types, m, n, k, count) if k < MOST_K else None
    if name and not device.why_not(ladder_table.BY_NAME[name], where):
        if name == "bf16_best" and max(m, n) >= tensor_maps.MOST:
            return Choice(Way.TILES, "cuda_bf16f32_wmma_16x16")
        return Choice(Way.RUNG, name)
    return Choice(Way.TILES, "cuda_i8i32_outer_8x8") if types == "i8i32" else Choice(Way.LIBRARY)


def _rung(types: str, m: int, n: int, k: int, count: int) -> str | None:
    """The rung for products too large for a batch of small ones; None where cuBLAS is faster, or the only one."""
    if types in ("i8i32", "bf16f32"):
        return {"i8i32": "i8_dp4a_gemm", "bf16f32": "bf16_best"}[types]
    if types != "f32":
        return None
    less, more = sorted((m, n))
    large = less >= 4 and m * n * k >= LARGE
    small_c = less >= 48 and more <= 512 and k >= 4096
    few = 4 <= less <= 16 and k >= 1024 and more * k >= 1 << 22
    return "f32_best" if large or (count == 1 and (small_c or few)) else None
