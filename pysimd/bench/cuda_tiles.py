"""The speed of register tiles on the current CUDA device: of the microkernels, and of the ladder."""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from pysimd import dtypes
from pysimd.backends.gpu.launches import BLOCK
from pysimd.bench import cuda_peaks
from pysimd.bench.cuda_peaks import WORDS, Work
from pysimd.bench.data import random_array
from pysimd.gpu_kernels import table
from pysimd.microkernel import MicroKernel

K = 2048
"""Length of the panels, in k."""


def tile_work(kernel: MicroKernel, k: int = K, *, packed_a: bool = False, columns_b: bool = False) -> Work:
    """``kernel`` in 12 waves of blocks. All tiles share one panel of A and one of B, so that operands come from L1.

    Args:
        kernel: a CUDA microkernel.
        k: length of the panels.
        packed_a: A is column-major, as a packed panel; otherwise row-major.
        columns_b: B is column-major; otherwise row-major.
    """
    import cupy

    row, family, rng = table.BY_NAME[kernel.name], dtypes.FAMILIES[kernel.types], np.random.default_rng(0)
    batch = 12 * BLOCK * cuda_peaks.multiprocessors() * row.tiles // row.lanes
    a = cupy.asarray(random_array(family.a, (kernel.mr, k), rng), order="F" if packed_a else "C")
    b = cupy.asarray(random_array(family.b, (k, kernel.nr), rng), order="F" if columns_b else "C")
    operations = 2.0 * kernel.mr * kernel.nr * k * batch
    if kernel.form == "batch2":  # the two problems of a pair interleaved
        a, b = (cupy.repeat(x[..., None], 2, axis=-1) for x in (a, b))
        a, b = (cupy.broadcast_to(cupy.moveaxis(x, -1, 0), (batch // 2, 2, *x.shape[:2])) for x in (a, b))
        c = cupy.zeros((batch // 2, kernel.mr, kernel.nr, 2), kernel.c_dtype).transpose(0, 3, 1, 2)
    else:
        a, b = (cupy.broadcast_to(x, (batch, *x.shape)) for x in (a, b))
        c = cupy.zeros((batch, kernel.mr, kernel.nr), kernel.c_dtype)
    return Work(kernel.bind(a, b, c), operations)


def tile_rates(kernel: MicroKernel) -> dict[str, float]:
    """Fields of ``tiles.Speed``: of the best layout of the kernel, of the peak of its instruction where this device has
    it, and of loads from L1, all interleaved."""
    loop = cuda_peaks.peak_loop(table.BY_NAME[kernel.name])
    layouts = list(itertools.product((False, True), repeat=2))
    works: dict[Any, Work] = {x: tile_work(kernel, packed_a=x[0], columns_b=x[1]) for x in layouts}
    if loop:
        works["peak"] = cuda_peaks.peak_work(loop)
    works |= {word: cuda_peaks.load_work("L1", word) for word in WORDS}
    rates = cuda_peaks.rates(works)
    return {
        "gflops": max(rates[x] for x in layouts),
        **({"peak_gflops": rates["peak"]} if loop else {}),
        "peak_gloads_per_s": rates["unsigned"] / WORDS["unsigned"],
        "peak_load_gbytes_per_s": rates["uint4"],
    }


class RegisterTile(NamedTuple):
    """A register tile of the ladder: rows and columns of a thread, warps of the block, lanes of a warp."""

    mr: int
    nr: int
    warps_m: int
    warps_n: int
    lanes_m: int
    lanes_n: int


REGISTER_TILES = {
    "f32": (RegisterTile(8, 8, 2, 4, 8, 4), RegisterTile(16, 8, 2, 4, 4, 8), RegisterTile(8, 16, 4, 2, 4, 8)),
    "f16": (RegisterTile(8, 8, 4, 2, 4, 8), RegisterTile(8, 16, 4, 2, 4, 8)),
    "i8i32": (RegisterTile(8, 8, 4, 2, 4, 8), RegisterTile(8, 16, 4, 2, 4, 8)),
}
"""The tiles that the ladder is made of, by types family."""

_WORDS = {"f32": "F32", "f16": "F16", "i8i32": "I8"}


def register_tile_entry(types: str, tile: RegisterTile) -> str:
    """The instance of tile_rate.cu."""
    return f"tile_rate<{_WORDS[types]}, {', '.join(map(str, tile))}>"


def register_tile_work(types: str, tile: RegisterTile, k: int = 32_768) -> Work:
    """A register tile on panels in shared memory, over ``k`` words: the arithmetic of a GEMM without its traffic."""
    import cupy

    a = dtypes.FAMILIES[types].a
    group = 4 // dtypes.dtype_of(a).itemsize
    rows, columns = tile.mr * tile.warps_m * tile.lanes_m, tile.nr * tile.warps_n * tile.lanes_n
    words = cupy.asarray(random_array(a, (8 * (rows + columns) * group,), np.random.default_rng(0)))
    blocks, threads = 4 * cuda_peaks.multiprocessors(), 256
    out = cupy.empty(blocks * threads, np.uint32)
    function = cuda_peaks.compiled("tile_rate.cu", register_tile_entry(types, tile))
    launch = functools.partial(function, (blocks,), (threads,), (words, out, np.int32(k // 8)))
    return Work(launch, 2.0 * tile.mr * tile.nr * group * k * blocks * threads)
