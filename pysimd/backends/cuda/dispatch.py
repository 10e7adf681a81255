"""Which kernel computes a product on a CUDA device: the one place that chooses, for ``matmul`` and for ``gemm``.

Whole products go to a rung or to cuBLAS by a model of their times (estimates.py). Other limits were found by measuring
on an H200 (benchmarks/gemm_shapes.py, benchmarks/cuda_micro.py).
"""

from __future__ import annotations

from enum import Enum
from math import ceil
from typing import NamedTuple

from pysimd.backends.cuda import batched_tma, device, estimates, tensor_maps
from pysimd.backends.gpu import batched, gemm_launches
from pysimd.gpu_kernels import ladder_table, table


class Way(Enum):
    """Kinds of kernels that compute whole products."""

    BATCHED = "a batch of small products in one launch (gpu_kernels/micro/batched.cu)"
    BATCHED_MMA = "the same on tensor cores (gpu_kernels/micro/batched_mma.cu)"
    BATCHED_TMA = (
        "a batch of float32 products of a hundred a side (gpu_kernels/micro/batched_tma.cu, batched_tma_mn.cu)"
    )
    NARROW = "a C with few rows or few columns (gpu_kernels/micro/narrow.cu)"
    RUNG = "a rung of the ladder"
    TILES = "a microkernel, tile by tile"
    LIBRARY = "cuBLAS"


class Choice(NamedTuple):
    """A way, and the name of the rung or of the microkernel."""

    way: Way
    name: str = ""


_BEST = {"f32": "f32_best", "f16": "f16_best", "bf16f32": "bf16_best"}
"""The rungs that are compared with cuBLAS."""

_TMA_FILL_SMALL, _TMA_FILL = 5 / 6, 5 / 8
"""The part of its tiles that C fills at least for batched_tma.cu: where batched.cu would compute it, and where cuBLAS
would."""

_TMA_WAVES = 0.8
"""The least tiles of a batch for batched_tma.cu, as a part of the consumer warpgroups of all multiprocessors, each of
which computes a tile of its own. On an H200 it measured 0.99 to 2.1 times cuBLAS from there on, 0.8 to 1.4 for half as
many tiles, and with a few products down to 0.08."""

_TMA_LARGE = 384
"""Rows and columns beyond which batched_tma.cu takes only products whose C fills tiles of 128 a side, too: of 440 to
476 a side it measured 1.12 to 1.24 times cuBLAS on an H200."""

_TMA_MOST_MACS = 1 << 30
"""Multiply-adds of a product of a batch up to which batched_tma.cu was measured."""

_TILE = 128
"""Rows and columns of the block tile that ``f32_best`` has for such products."""

_LEAST_WAVES, _LEAST_LAST_WAVE = 2.0, 0.9
"""The least tiles of a batch for ``f32_best``, as a part of the multiprocessors, and the part of its waves that they
fill: above, whole tiles measured 0.94 to 1.22 times cuBLAS on an H200, below 0.5 to 1.09."""

_FEW_MACS = 1 << 16
"""Multiply-adds of a product from which on a batch of fewer products than multiprocessors, of more than 32 rows or
columns, goes to cuBLAS: batched.cu computes each in one block, in up to three times its time."""

MOST_K = 1 << 31
"""Rungs count panels in 32 bits."""

_TENSOR_CORES_F64 = 16_000
"""Multiply-adds of a float64 product up to 32 x 32 from which on cuBLAS is ahead: it has tensor cores for float64. It
needs multiples of 8 for them, and loses that between 33 and 48."""

_TENSOR_CORES_I8 = 1 << 28
"""Multiply-adds of an int8 product from which on tensor cores are ahead of dp4a; below, the launch that packs costs the
host more than the GPU gains. At 1000, 1000, 1000 an H200 took 15 us with ``i8_wgmma``, 21 with ``i8_mma_sync``, 43 with
dp4a. With 17 to 64 rows or columns and fewer multiply-adds no record compares them."""


_LEAST_TILES_I8 = 24
"""Tiles of C from which on ``i8_mma_sync``, which does not split k, is ahead of dp4a, which does. On an H200 as many
tiles as an eighth of the multiprocessors took as long; devices with half its rate of mma.sync need twice as many."""


class _Source(NamedTuple):
    """A file of kernels, and what it needs of a device."""

    name: str
    requires: str


BATCHED_MMA = _Source(table.BatchedMma.source, table.BatchedMma.requires)
NARROW = _Source(table.Narrow.source, table.Narrow.requires)

F32_BEST = Choice(Way.RUNG, "f32_best")
"""It has the same bits as batched.cu for every product of a batch."""


def choose(
    types: str,
    m: int,
    n: int,
    k: int,
    count: int,
    where: int | None = None,
    *,
    plain: bool = True,
    read: bool = True,
    captured: bool = False,
) -> Choice:
    """What computes ``count`` products of these sizes on device ``where``, by default the one that is listed.

    The choice depends on types, shape and count, and on whether the call is ``plain``, without alpha, beta and C. Only
    of batches of float32 products it depends on strides, too: operands that batched_tma.cu and batched_tma_mn.cu do not
    ``read`` as they lie, or slowly, are left to batched.cu, f32_best or cuBLAS. For a graph, which cannot have cuBLAS
    ``captured``, a kernel is named wherever there is one.
    """
    if plain and batched.takes_mma(types, m, n, k) and not device.why_not(BATCHED_MMA, where):
        return Choice(Way.BATCHED_MMA)
    small = _batched(types, m, n, k, where, plain, captured)
    if types == "f32" and plain and read and count > 1 and _tma(m, n, k, count, where, small):
        return Choice(Way.BATCHED_TMA)
    if small:
        few = types == "f32" and _few(m, n, k, count)
        return Choice(Way.LIBRARY if few and not captured else Way.BATCHED)
    if count == 1 and estimates.takes_narrow(types, m, n, k) and not device.why_not(NARROW, where):
        return Choice(Way.NARROW)
    for name in _rungs(types, m, n, k, count, captured) if k < MOST_K else ():
        row = ladder_table.BY_NAME[name]
        if device.why_not(row, where):
            continue
        if not row.tensor_blocks or max(m, n) < tensor_maps.MOST:
            return Choice(Way.RUNG, name)
        if types == "bf16f32":
            return Choice(Way.TILES, "cuda_bf16f32_wmma_16x16")
    return Choice(Way.TILES, "cuda_i8i32_outer_8x8") if types == "i8i32" else Choice(Way.LIBRARY)


def _batched(types: str, m: int, n: int, k: int, where: int | None, plain: bool, captured: bool) -> bool:
    """Whether products are small enough for batched.cu. Where one does not fit batched_any.cu, ``f32_best`` computes it
    until its instance is compiled."""
    if batched.takes(m, n, k):
        return types != "f64" or captured or m * n * k < _TENSOR_CORES_F64
    if not (plain and batched.takes_larger(types, m, n, k)):
        return False
    best = ladder_table.BY_NAME[F32_BEST.name]
    return batched.fits_static(types, m, n, k) or (types == best.types and not device.why_not(best, where))


def _few(m: int, n: int, k: int, count: int) -> bool:
    """Whether products that batched.cu could compute are too few for it, and too large."""
    return not batched.takes(m, n, k) and count < estimates.PROCESSORS and m * n * k >= _FEW_MACS


def _tma(m: int, n: int, k: int, count: int, where: int | None, small: bool) -> bool:
    """Whether batched_tma.cu is ahead of batched.cu, which computes the product otherwise if it is ``small``, or else
    of f32_best and of cuBLAS."""
    if m * n * k >= _TMA_MOST_MACS or (min(m, n) > _TMA_LARGE and not _full_tiles(m, n, k)):
        return False
    tile = batched_tma.tile(m, n, k, _TMA_FILL_SMALL if small else _TMA_FILL)
    if tile is None or device.why_not(tile, where):
        return False
    return batched_tma.tiles(tile, m, n, count) >= _TMA_WAVES * estimates.PROCESSORS * tile.groups


def _rungs(types: str, m: int, n: int, k: int, count: int, captured: bool) -> tuple[str, ...]:
    """The rungs for products too large for a batch of small ones, of which the first is taken that the device can run;
    none where cuBLAS is faster, or the only one."""
    if types == "i8i32":
        large = m * n * k >= _TENSOR_CORES_I8
        mma = large and gemm_launches.tiles(ladder_table.BY_NAME["i8_mma_sync"], m, n) * count >= _LEAST_TILES_I8
        return (*["i8_wgmma"] * large, *["i8_mma_sync"] * mma, "i8_dp4a_gemm")
    if types not in _BEST:
        return ()
    if count == 1:
        taken = estimates.takes(types, m, n, k) or (types == "f32" and _few_rows(m, n, k))
    else:
        taken = captured or (_whole_tiles(m, n, k, count) if types == "f32" else _odd_rows(m, n, k))
    beyond_cublas = types == "bf16f32" and max(m, n) >= tensor_maps.MOST
    return (_BEST[types],) if taken or beyond_cublas else ()


def _odd_rows(m: int, n: int, k: int) -> bool:
    """Whether rows of C, and of a row-major B, start at odd elements, where cuBLAS has kernels of a third of the speed,
    and C is large enough for the tiles of the rung: 96 such batches of 16-bit operands measured 1.02 to 4.5 times
    cuBLAS on an H200. With fewer rows or columns it was 0.5 to 2.8, with an even n down to 0.54, of any shape 0.21."""
    return min(m, n) >= 112 and k >= 256 and bool(n % 2)


def _whole_tiles(m: int, n: int, k: int, count: int) -> bool:
    """Whether C is made of whole block tiles of ``f32_best``, which fill the device, and operands can be loaded in
    vectors."""
    waves = m * n * count / (_TILE**2 * estimates.PROCESSORS)
    if m % _TILE or n % _TILE or k % 4 or k < 32 or waves < _LEAST_WAVES:
        return False
    return waves >= _LEAST_LAST_WAVE * ceil(waves)


def _few_rows(m: int, n: int, k: int) -> bool:
    """Whether one operand is large and the other has 8 to 16 columns or 12 to 16 rows: cuBLAS reads the large one more
    slowly. ``f32_best`` reads a B with as few rows of A in vectors only where n is a multiple of 4. With 8 rows it
    measured 0.98 and 1.25 times cuBLAS, with 4 0.89."""
    if n <= m:
        return 8 <= n <= 16 and k >= 1024 and m * k >= 1 << 22
    return 12 <= m <= 16 and n % 4 == 0 and k >= 1024 and n * k >= 1 << 24


def _full_tiles(m: int, n: int, k: int) -> bool:
    """Whether C fills block tiles of 128 x 128 to seven eighths, and rows can be loaded in vectors."""
    vectors = not (m % 4 or n % 4 or k % 4)
    padded = -(-m // _TILE) * -(-n // _TILE) * _TILE**2
    return vectors and k >= 32 and m * n >= padded * 7 / 8
