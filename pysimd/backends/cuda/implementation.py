"""The CUDA backend: the tables of ``gpu_kernels`` through CuPy.

Everything that depends on shapes and strides is worked out here, once per call (``matmul``: once per arrangement), and
given to the kernel as one ``Call`` (gpu_kernels/micro/call.cuh). Kernels are compiled when they are first asked for and
kept by CuPy, in memory and on disk.
"""

from __future__ import annotations

import functools
import math
from functools import cache

import numpy as np

from pysimd import dtypes
from pysimd.backends.cuda import nvrtc
from pysimd.backends.gpu import batched, cupy_probe
from pysimd.backends.gpu.implementation import Gpu, current_device, library, tile_calls
from pysimd.backends.gpu.launches import BLOCK, Arranged, c_vector, grids, layout, tile_layouts
from pysimd.gpu_kernels import table
from pysimd.registry import Backend, MicroKernel

OFFERED = tuple(table.BATCHED_TYPES)


# --- what there is ---


@cache
def backend() -> Backend:
    """The current device when first asked; availability does not change while a process lives."""
    reason = cupy_probe.reason("cuda", want_hip=False)
    if reason:
        return Backend("cuda", False, reason, "", ())
    import cupy

    device = cupy.cuda.runtime.getDevice()
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    capability = 10 * properties["major"] + properties["minor"]
    name = properties["name"].decode()
    if capability < 75:
        return Backend("cuda", False, f"{name} is sm_{capability}: the kernels need sm_75 or newer", name, ())
    return Backend("cuda", True, "", name, (f"sm_{capability}",))


@cache
def kernels() -> tuple[MicroKernel, ...]:
    return tuple(_gpu.kernel(row, f"gpu_kernels/micro/{row.source}", why_not(row)) for row in table.KERNELS)


def why_not(row) -> str:
    """Why a row of a table cannot run here; empty if it can."""
    here = backend()
    if here.available:
        if row.requires.endswith("a") and here.features[0] != row.requires[:-1]:
            return f"{here.device} is {here.features[0]}: {row.name} needs {row.requires}, which no other device is"
        if int(here.features[0][3:]) < int(row.requires[3:].rstrip("a")):
            return f"{here.device} is {here.features[0]}: {row.name} needs {row.requires} or newer"
    return here.reason


@cache
def _function(source: str, entry: str, device: int):
    """The compiled kernel of a template instance; ``device`` is the current one."""
    import cupy

    module = cupy.RawModule(code=nvrtc.source(source), options=nvrtc.OPTIONS, name_expressions=(entry,))
    return module.get_function(entry)


# --- launches ---


def _tile_launches(kernel: MicroKernel, a, b, c0, c):
    """Functions and arguments that do ``c = c0 + a @ b`` with a kernel of the table."""
    row, arranged = table.BY_NAME[kernel.name], Arranged(a, b, c0, c)
    if arranged.empty:
        return ()
    layout_a, layout_b, edge = tile_layouts(row, arranged)
    if row.form == "batch2":
        return _pair_launches(row, arranged, edge)
    direct = row.form == "wmma" and not edge and _wmma_direct(arranged)
    entry = table.entry(row, layout_a, layout_b, edge, direct)
    vector = not edge and c_vector(arranged, (4 if row.form == "wmma" else row.nr) * arranged.sizes[3])
    return _launches(row, entry, arranged, vector)


def _launches(row, entry: str, arranged: Arranged, vector: bool, tiles: int = 1):
    function = _function(row.source, entry, current_device())
    return ((function, *launch) for launch in grids(row, arranged, vector, tiles=tiles))


def _wmma_direct(arranged: Arranged) -> bool:
    """Whether the tensor cores' loads can read the arrays: rows contiguous, 32-byte aligned tiles, whole ld units."""
    for which in (0, 1):
        x, size, (rows, columns) = arranged.operands[which], arranged.sizes[which], arranged.strides[which]
        if columns != 1 or rows <= 0 or rows * size % 32 or rows >= 1 << 31 or x.data.ptr % 32:
            return False
        if any(step[which] * size % 32 for _, step in arranged.dims):
            return False
    return True


def _pair_launches(row, arranged: Arranged, edge: bool):
    """Two products at once: read as words of two halves where they lie interleaved."""
    dims = arranged.dims
    present = [w for w, x in enumerate(arranged.operands) if x is not None]
    paired = bool(dims) and dims[-1][0] % 2 == 0 and all(dims[-1][1][w] == 1 for w in present)
    for w in present:
        others = [*arranged.strides[w], *(step[w] for _, step in dims[:-1])]
        paired = paired and arranged.operands[w].data.ptr % 4 == 0 and all(s % 2 == 0 for s in others)
    if not paired:
        return _launches(row, table.entry(row, "GATHERED", "GATHERED", edge, False), arranged, False, tiles=2)
    length, step = dims[-1]
    arranged.dims = [(n, tuple(s // 2 for s in steps)) for n, steps in dims[:-1]]
    if length > 2:
        arranged.dims.append((length // 2, step))
    arranged.strides = tuple((rows // 2, columns // 2) for rows, columns in arranged.strides)
    arranged.sizes = (4, 4, 4, 4)
    layouts = ("ANY", "ANY") if edge else tuple(layout(arranged, w, 4, row.layouts) for w in (0, 1))
    entry = table.entry(row, *layouts, edge, False)
    return _launches(row, entry, arranged, not edge and c_vector(arranged, 16))


# --- matmul ---


def _matmul_launches(types: str, a, b, c):
    """Launches of a product."""
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    if batched.takes(m, n, k) and not (types == "f64" and m * n * k >= 1 << 15):  # cuBLAS: tensor cores for float64
        device = current_device()
        return tile_calls(batched.launches(types, a, b, c, lambda entry: _function(table.BATCHED, entry, device)))
    from pysimd.backends.cuda.ladder import rungs as cuda_ladder  # whose table names this module's reasons

    rung = cuda_ladder.best(types, m, n, k, math.prod(c.shape[:-2]))
    if rung is not None:
        return cuda_ladder.product(rung, a, b, c)
    if types == "i8i32":
        return tile_calls(_tile_launches(_named("cuda_i8i32_outer_8x8"), a, b, None, c))
    return (library(types),)


def _named(name: str) -> MicroKernel:
    return next(k for k in kernels() if k.name == name)


_gpu = Gpu("cuda", backend, OFFERED, _tile_launches, _matmul_launches)
matmul = _gpu.matmul
plans = _gpu.plans


# --- the speed of a tile ---

#: Chain of ceilings.cu that an instruction is compared with, and operations of one of its instructions in a thread.
CEILINGS = {
    "FFMA": ("ffma", 2),
    "DFMA": ("dfma", 2),
    "HFMA2": ("hfma2", 4),
    "IDP.4A": ("dp4a", 8),
    "HMMA": ("hmma", 128),
    "IMMA": ("imma", 256),
}

_CHAIN = 128
"""Instructions of a turn in ceilings.cu."""


def ceiling_run(name: str, operations: int, steps: int = 4000):
    """A function that runs a chain of ceilings.cu on the whole device, and how many operations it does."""
    import cupy

    function = _function("../ceilings.cu", f"chain<{name.upper()}>", current_device())
    processors = cupy.cuda.runtime.getDeviceProperties(current_device())["multiProcessorCount"]
    halves, threads = name.startswith(("hfma2", "hmma")), 256
    values = np.random.default_rng(0).uniform(-1, 1, 512 if halves else 256)
    given = cupy.asarray(values.astype(np.float16 if halves else np.float32))
    out = cupy.zeros(4 * 8 * processors * threads, np.float32)
    run = functools.partial(function, (8 * processors,), (threads,), (given, out, np.int32(steps)))
    return run, float(8 * processors * threads * steps * _CHAIN * operations)


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
    function = _function("../tile_rate.cu", entry, current_device())
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

    from pysimd.bench import tiles as measure

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
