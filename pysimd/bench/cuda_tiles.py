"""The speed of a register tile on the current CUDA device: the kernels of the table, and the tiles of the ladder."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from pysimd import dtypes
from pysimd.backends.cuda import tiles as cuda_tiles
from pysimd.backends.gpu.launches import BLOCK
from pysimd.backends.gpu.plans import current_device
from pysimd.bench import cuda_peaks
from pysimd.bench import tiles as measure
from pysimd.bench.cuda_peaks import Timed, loads_run
from pysimd.gpu_kernels import table
from pysimd.microkernel import MicroKernel

#: Register tiles of the ladder for tile_rate.cu: types family, and rows, columns, warps and lanes down and across.
REGISTER_TILES = {
    "f32": ("F32", ((8, 8, 2, 4, 8, 4), (16, 8, 2, 4, 4, 8), (8, 16, 4, 2, 4, 8))),
    "f16": ("F16", ((8, 8, 4, 2, 4, 8), (8, 16, 4, 2, 4, 8))),
    "i8i32": ("I8", ((8, 8, 4, 2, 4, 8), (8, 16, 4, 2, 4, 8))),
}


def register_tile_run(types: str, tile: tuple[int, ...], k: int = 32_768):
    """A function that runs a register tile on panels in shared memory on the whole device, over ``k`` words, and how
    many operations it does: the arithmetic of a GEMM without the memory behind it."""
    import cupy

    word, _ = REGISTER_TILES[types]
    entry = f"tile_rate<{word}, {', '.join(map(str, tile))}>"
    function = cuda_tiles.function("../tile_rate.cu", entry, current_device())
    rng, rows = np.random.default_rng(0), tile[0] * tile[2] * tile[4] + tile[1] * tile[3] * tile[5]
    dtype = dtypes.dtype_of(dtypes.FAMILIES[types].a)
    group = 4 // dtype.itemsize
    shape = 8 * rows * group
    values = rng.integers(-128, 128, shape) if types == "i8i32" else rng.standard_normal(shape)
    words = cupy.asarray(values.astype(dtype))
    blocks = 4 * cupy.cuda.runtime.getDeviceProperties(current_device())["multiProcessorCount"]
    out = cupy.empty(blocks * 256, np.uint32)
    run = functools.partial(function, (blocks,), (256,), (words, out, np.int32(k // 8)))
    return run, 2.0 * tile[0] * tile[1] * group * k * blocks * 256


def tile_run(kernel: MicroKernel, k: int = 2048, *, packed_a: bool = False, columns_b: bool = False):
    """A function that runs ``kernel`` on the whole device, and how many operations it does: 12 rounds of blocks, all
    tiles on the same panel of A and of B, which come from the first-level cache."""
    import cupy

    row, family, rng = table.BY_NAME[kernel.name], dtypes.FAMILIES[kernel.types], np.random.default_rng(0)
    processors = cupy.cuda.runtime.getDeviceProperties(current_device())["multiProcessorCount"]
    batch = 12 * BLOCK * processors * row.tiles // row.lanes
    a = cupy.asarray(measure.random_array(family.a, (kernel.mr, k), rng), order="F" if packed_a else "C")
    b = cupy.asarray(measure.random_array(family.b, (k, kernel.nr), rng), order="F" if columns_b else "C")
    operations = 2.0 * kernel.mr * kernel.nr * k * batch
    if kernel.form == "batch2":  # the two problems of a pair interleaved
        a, b = (cupy.repeat(x[..., None], 2, axis=-1) for x in (a, b))
        a, b = (cupy.broadcast_to(cupy.moveaxis(x, -1, 0), (batch // 2, 2, *x.shape[:2])) for x in (a, b))
        c = cupy.zeros((batch // 2, kernel.mr, kernel.nr, 2), kernel.c_dtype).transpose(0, 3, 1, 2)
    else:
        a, b = (cupy.broadcast_to(x, (batch, *x.shape)) for x in (a, b))
        c = cupy.zeros((batch, kernel.mr, kernel.nr), kernel.c_dtype)
    return kernel.bind(a, b, c), operations


def tile_rates(kernel: MicroKernel) -> tuple[float, dict[str, float] | None, dict[str, float]]:
    """GFLOP/s (GOP/s) of the kernel in the best of its layouts; of the chain of its instruction; and loads from L1. All
    turn by turn."""
    found = cuda_peaks.ceiling(table.BY_NAME[kernel.name])
    layouts = [(packed, columns) for packed in (False, True) for columns in (False, True)]
    runs: dict[Any, Timed] = {x: Timed(*tile_run(kernel, packed_a=x[0], columns_b=x[1])) for x in layouts}
    if found:
        runs["chain"] = Timed(*cuda_peaks.peak_run(*found))
    runs |= {word: loads_run("L1", word) for word in cuda_peaks._WORDS}
    rates = cuda_peaks._rates(runs)
    loads = {"gbytes_per_s": rates["uint4"], "gloads_per_s": rates["unsigned"] / cuda_peaks._WORDS["unsigned"]}
    return max(rates[x] for x in layouts), {"gflops": rates["chain"]} if found else None, loads
