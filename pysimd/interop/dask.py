"""Products of Dask arrays: lazy, a task for each block of the result and each chunk of k.

``pysimd.matmul`` and ``pysimd.gemm`` call this module for Dask arrays of NumPy or CuPy chunks. Chunks of the batch, of
m and of n are the chunks of the result. Where k has several chunks, the partial products of a block are accumulated in
ascending order of k, each into the result of the one before, so that the bits depend on the chunks alone, not on the
scheduler or the number of workers. Chunks that do not fit are rechunked, as Dask does for ``a + b``.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

from pysimd import operands, products
from pysimd.errors import DTypeError, OptionError, ShapeError
from pysimd.interop import extras
from pysimd.operands import GemmOptions

da = extras.module("dask.array", "dask")
base = extras.module("dask.base", "dask")
blockwise = extras.module("dask.blockwise", "dask")
highlevelgraph = extras.module("dask.highlevelgraph", "dask")


def matmul(a, b, out, kernel, threads):
    """``pysimd.matmul`` of Dask arrays, or of one and a NumPy or CuPy array."""
    a, b = _lazy(out, a=a, b=b)
    operands.check_dimensions("a", a.shape, 1, "(..., m, k) or (k,)")
    operands.check_dimensions("b", b.shape, 1, "(..., k, n) or (k,)")
    a_vector, b_vector = a.ndim == 1, b.ndim == 1
    a, b = a[None, :] if a_vector else a, b[:, None] if b_vector else b
    result = _product(a, b, None, 1.0, 0.0, kernel, threads)
    result = result[..., 0, :] if a_vector else result
    return result[..., 0] if b_vector else result


def gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads):
    """``pysimd.gemm`` of Dask arrays, or of some and NumPy or CuPy arrays."""
    GemmOptions.checked(alpha, beta, trans_a, trans_b, c)
    a, b, *rest = _lazy(out, a=a, b=b, **({} if c is None else {"c": c}))
    operands.check_dimensions("a", a.shape, 2, "(..., m, k)")
    operands.check_dimensions("b", b.shape, 2, "(..., k, n)")
    a, b = a.swapaxes(-1, -2) if trans_a else a, b.swapaxes(-1, -2) if trans_b else b
    c = operands.as_matrices(rest[0], (a.shape[-2], b.shape[-1])) if rest else None
    return _product(a, b, c, alpha, beta, kernel, threads)


def _lazy(out, **given):
    """The operands as Dask arrays of known sizes."""
    if out is not None:
        raise OptionError(
            "out is not for Dask arrays, which are computed later: assign the result, or store it by da.store"
        )
    found = []
    for name, x in given.items():
        if not isinstance(x, da.Array):
            if operands.device_of(x) is None:
                raise DTypeError(f"{name} must be a Dask array, or a NumPy or CuPy array, got {type(x).__name__}")
            x = da.from_array(x, chunks=-1, asarray=False)
        if any(math.isnan(n) for n in x.shape):
            raise ShapeError(f"{name} has chunks of unknown size: call {name}.compute_chunk_sizes() first")
        found.append(x)
    return found


def _product(a, b, c, alpha, beta, kernel, threads):
    """``alpha * a @ b + beta * c`` for operands with two dimensions or more."""
    operands.check_inner(a.shape, b.shape)
    shapes = {"a": a.shape, "b": b.shape} | ({} if c is None else {"c": c.shape})
    batch = operands.broadcast_batch(shapes)
    metas = [None if x is None else x._meta for x in (a, b, c)]
    meta = products.gemm(
        *metas, alpha=alpha, beta=beta, kernel=kernel
    )  # empty arrays: raises for dtypes that do not fit
    c = c if beta != 0 else None
    names = tuple(range(len(batch)))
    m, k, n = len(batch), len(batch) + 1, len(batch) + 2
    given = [(a, (*names[len(names) - (a.ndim - 2) :], m, k)), (b, (*names[len(names) - (b.ndim - 2) :], k, n))]
    if c is not None:
        given.append((c, (*names[len(names) - (c.ndim - 2) :], m, n)))
    chunks, arrays = da.core.unify_chunks(*itertools.chain.from_iterable(given))
    indices = [index for _, index in given]
    full = (*batch, a.shape[-2], b.shape[-1])
    # C's own dimensions count too: its batch may be the only one that is longer than 1, or be 1 where others are not.
    out_chunks = tuple(chunks.get(i, (length,)) for i, length in zip((*names, m, n), full, strict=True))
    dtypes = tuple(x.dtype for x in arrays)
    kernel = getattr(kernel, "name", kernel)
    options = {"alpha": alpha, "beta": beta, "kernel": kernel, "threads": 1 if threads is None else threads}
    if len(chunks[k]) == 1 and c is None:
        if all(x.npartitions == math.prod(map(len, out_chunks)) for x in arrays):
            # Without a contracted index Dask fuses the layer with others: here no block would be computed twice.
            indices = [(*index[:-2], m, n) for index in indices]
        blocks = ((x.name, index) for x, index in zip(arrays, indices, strict=True))
        name = f"pysimd-matmul-{base.tokenize(*arrays, options)}"
        layer = blockwise.blockwise(
            *(_by_name("block"), name, (*names, m, n)),
            *itertools.chain.from_iterable(blocks),
            numblocks={x.name: x.numblocks for x in arrays},
            concatenate=True,
            dtypes=dtypes,
            **options,
        )
    else:
        name = f"pysimd-gemm-{base.tokenize(*arrays, options)}"
        layer = _accumulated(name, arrays, indices, out_chunks, len(chunks[k]), dtypes, options)
    graph = highlevelgraph.HighLevelGraph.from_collections(name, layer, dependencies=arrays)
    return da.Array(graph, name, chunks=out_chunks, meta=meta, shape=full)


def _accumulated(name, arrays, indices, out_chunks, steps, dtypes, options):
    """The tasks of all blocks of the result: a chain of ``steps`` products each."""
    layer, run = {}, _by_name("step")
    partial = f"{name}-partial"
    size = len(out_chunks)
    for block in itertools.product(*(range(len(lengths)) for lengths in out_chunks)):
        for step in range(steps):
            at = {**dict(enumerate(block[:-1])), size - 1: step, size: block[-1]}
            keys = [
                (x.name, *(at[i] if count > 1 else 0 for i, count in zip(index, x.numblocks, strict=True)))
                for x, index in zip(arrays, indices, strict=True)
            ]
            key = (name, *block) if step == steps - 1 else (partial, *block, step)
            before = (partial, *block, step - 1)
            layer[key] = (
                run,
                *keys[:2],
                before if step else keys[2] if len(keys) > 2 else None,
                step == 0,
                dtypes,
                options,
            )
    return layer


@cache
def _by_name(function: str):
    """A function of this module, for tasks. It is pickled by value, as functions of ``__main__`` are: on a worker
    without pysimd the task then raises a ModuleNotFoundError, where a reference to pysimd ends the worker."""

    def call(*blocks, **options):
        import importlib

        return getattr(importlib.import_module("pysimd.interop.dask"), function)(*blocks, **options)

    call.__module__ = "__main__"
    return call


def step(a, b, c, first, dtypes, options):
    """One chunk of k: the first multiplies C by beta, the others add."""
    return block(a, b, c, dtypes=dtypes, **(options if first else {**options, "beta": 1.0}))


def block(a, b, c=None, *, dtypes, alpha, beta, kernel, threads):
    """The product of chunks, which must be of the dtypes that their arrays have."""
    for name, x, dtype in zip("ab", (a, b), dtypes, strict=False):
        if x.dtype != dtype:
            raise DTypeError(f"a chunk of {name} is {x.dtype}, its Dask array says {dtype}: convert with .astype()")
    threads = threads if operands.device_of(a) == "cpu" else None
    return products.gemm(a, b, c, alpha=alpha, beta=beta, kernel=kernel, threads=threads)
