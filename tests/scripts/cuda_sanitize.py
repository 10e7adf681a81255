"""Launches of every CUDA kernel for compute-sanitizer: ``PYTHONPATH=tests/support compute-sanitizer --tool TOOL
python tests/scripts/cuda_sanitize.py [--filled] [kernels] [narrow] [tma] [TYPES ...]``.

Shapes and layouts of the tests, fewer of them; with ``kernels`` only the microkernels, with ``narrow`` only products
with few rows or columns by narrow.cu, with ``tma`` only batches by batched_tma.cu and batched_tma_mn.cu, with types
families only ``matmul`` of these, by the instance that is compiled for each shape. Every array is an allocation of its
own, so that memcheck sees the end of each; results are compared too. TOOL: memcheck, racecheck, initcheck, synccheck.
With ``--filled``, which needs no TOOL, all memory has bytes of 255 first, so that an element of a result, or of scratch
memory, that no kernel writes makes a result wrong.
"""

import itertools
import sys

import cupy
import layouts
import numpy as np
from cuda_arrays import on_host
from pysimd.gpu_kernels import table
from reference import check, moderate, random_result

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda import batched_tma, dispatch, narrow
from pysimd.backends.cuda.dispatch import Way
from pysimd.backends.cuda.implementation import CUDA, INSTANCES
from pysimd.operands import Product

K_LENGTHS = (0, 1, 5, 17, 64)
SIZES = (
    (4, 4, 4),
    (3, 3, 3),
    (7, 5, 9),
    (8, 8, 8),
    (12, 12, 12),
    (16, 16, 16),
    (31, 17, 31),
    (32, 32, 32),
    (40, 9, 33),
    (64, 32, 64),
    (80, 36, 76),
    (92, 32, 96),
    (112, 36, 100),
    (128, 40, 124),
)
NARROW_SIZES = ((3, 700, 5), (8, 1024, 300), (600, 260, 2), (1, 2000, 1), (40, 130, 12), (5, 0, 40))
TMA_SIZES = ((64, 64, 64), (80, 36, 76), (96, 96, 96), (108, 100, 112), (124, 40, 128), (188, 44, 192), (288, 32, 480))
LAYOUTS = (layouts.contiguous, layouts.transposed, layouts.negative, layouts.same_rows)


def on_gpu(x):
    """Just the bytes of ``x``: nothing before, nothing after."""
    low, high = np.lib.array_utils.byte_bounds(x)
    buffer = cupy.empty(max(high - low, 1), np.uint8)
    flat = np.lib.stride_tricks.as_strided(x.view(np.ndarray), x.shape, x.strides)
    result = cupy.ndarray(x.shape, x.dtype, buffer.data + (x.__array_interface__["data"][0] - low), strides=x.strides)
    if x.size:
        buffer.fill(0)
        result[...] = cupy.asarray(np.ascontiguousarray(flat))
    return result


def allocator(options: list[str]):
    """None, and with ``--filled``, which is taken from the options, one of memory whose bytes are 255: NaN, or -1."""
    if "--filled" not in options:
        return None
    options.remove("--filled")

    def filled(size: int):
        pointer = cupy.cuda.memory.MemoryPointer(cupy.cuda.memory.Memory(size), 0)
        cupy.cuda.runtime.memset(pointer.ptr, 255, size)
        return pointer

    return filled


def kernels(rng) -> int:
    launches = 0
    for kernel in pysimd.kernels("cuda", available=True):
        for k in K_LENGTHS:
            a = moderate(rng, kernel.a_dtype, (3, kernel.mr, k))
            b = moderate(rng, kernel.b_dtype, (3, k, kernel.nr))
            c = random_result(rng, kernel.c_dtype, (3, kernel.mr, kernel.nr))
            for layout in LAYOUTS if k else LAYOUTS[:1]:
                x, y = layout(a), layout(b)
                check(on_host(kernel(on_gpu(x), on_gpu(y), on_gpu(c))), kernel.types, x, y, c)
                launches += 1
        a = moderate(rng, kernel.a_dtype, (2, kernel.mr + 1, 9))
        b = moderate(rng, kernel.b_dtype, (2, 9, 2 * kernel.nr - 1))
        check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b), kernel=kernel)), kernel.types, a, b)
        launches += 1
    return launches


def matmuls(rng, offered) -> int:
    launches = 0
    for types in offered:
        family = dtypes.FAMILIES[types]
        for m, k, n in SIZES:
            for batch in (1, 67):
                a = moderate(rng, dtypes.dtype_of(family.a), (batch, m, k))
                b = moderate(rng, dtypes.dtype_of(family.b), (batch, k, n))
                for layout in LAYOUTS if batch > 1 else LAYOUTS[:1]:
                    x, y = layout(a), layout(b)
                    check(on_host(pysimd.matmul(on_gpu(x), on_gpu(y))), types, x, y)
                    launches += 1
    return launches


def narrow_products(rng) -> int:
    launches = 0
    for types in table.NARROW_TYPES:
        family = dtypes.FAMILIES[types]
        for m, k, n in NARROW_SIZES:
            a = moderate(rng, dtypes.dtype_of(family.a), (m, k))
            b = moderate(rng, dtypes.dtype_of(family.b), (k, n))
            for layout in LAYOUTS[:3] if k else LAYOUTS[:1]:
                x, y = (on_gpu(layout(z)) for z in (a, b))
                for instance in (narrow.compiled, lambda *key: None):
                    out = on_gpu(np.zeros((m, n), dtypes.dtype_of(family.c)))
                    narrow.work(Product(types, x, y, None, out, out.shape, out.shape, out.dtype), instance).run()
                    check(on_host(out), types, a, b)
                    launches += 1
    return launches


def tma_batches(rng) -> int:
    """Every tile, full and with a remainder; operands row-major or transposed, and shared ones."""
    launches = 0
    for m, k, n in TMA_SIZES:
        assert dispatch.choose("f32", m, n, k, 1000).way is Way.BATCHED_TMA
        a, b = (moderate(rng, np.dtype(np.float32), (5, *shape)) for shape in ((m, k), (k, n)))
        for left, right in ((a, b), (a[:1], b), (a, b[:1])):
            for x, y in itertools.product(*((z, layouts.transposed(z)) for z in (left, right))):
                out = on_gpu(np.full((5, m, n), np.nan, np.float32))
                product = Product("f32", on_gpu(x), on_gpu(y), None, out, out.shape, out.shape, out.dtype)
                batched_tma.work(product, batched_tma.tile(m, n, k, 0)).run()
                check(on_host(out), "f32", left, right)
                launches += 1
    return launches


def main() -> None:
    chosen = sys.argv[1:]
    cupy.cuda.set_allocator(allocator(chosen))
    rng = np.random.default_rng(0)
    types = [x for x in chosen if x not in ("kernels", "narrow", "tma")]
    calls = kernels(rng) if not chosen or "kernels" in chosen else 0
    if types:
        INSTANCES.get = INSTANCES.now
    products = narrow_products(rng) if not chosen or "narrow" in chosen else 0
    products += tma_batches(rng) if not chosen or "tma" in chosen else 0
    products += matmuls(rng, types if chosen else CUDA.offered)
    print(f"{calls} calls of kernels, {products} products, all within the bound", file=sys.stderr)


if __name__ == "__main__":
    main()
