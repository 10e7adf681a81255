"""Random shapes, dtypes and views, found and shrunk by hypothesis, against the reference."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import check, check_factors, random_operand, random_result

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

KERNELS = pysimd.kernels("cpu", available=True)
TYPES = [t for t in CPU.offered if dtypes.dtype_of(dtypes.FAMILIES[t].a).name != "uint16"]

seeds = st.integers(0, 2**32 - 1)
batches = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def views(draw, shape, dtype, rng, writable=False):
    """An array of this shape whose memory is a slice, in any order of axes and direction, of a larger one."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from((1, 1, 2, -1, -3))) for _ in shape]
    before = [draw(st.integers(0, 2)) for _ in shape]
    memory_shape = [before[i] + max(shape[i], 1) * abs(steps[i]) for i in order]
    offset = draw(st.integers(0, 3))
    whole = random_operand(rng, dtype, (int(np.prod(memory_shape)),)) if not writable else None
    raw = np.zeros(int(np.prod(memory_shape)) * dtype.itemsize + offset, np.uint8)
    memory = raw[offset:].view(dtype)
    if whole is not None:
        memory[...] = whole
    memory = memory.reshape(memory_shape).transpose(np.argsort(order))
    cuts = []
    for length, step, first in zip(shape, steps, before, strict=True):
        cut = slice(first, first + length * abs(step), abs(step))
        cuts.append(cut)
    view = memory[tuple(cuts)][tuple(slice(None, None, -1 if s < 0 else 1) for s in steps)]
    assert view.shape == tuple(shape)
    if not writable and draw(st.booleans()):
        view.flags.writeable = False
    return view


def broadcastable(draw, batch):
    """A batch shape that broadcasts to ``batch``: leading dimensions left out, lengths replaced by 1."""
    kept = batch[draw(st.integers(0, len(batch))) :]
    return tuple(1 if draw(st.booleans()) else n for n in kept)


@given(data=st.data(), types=st.sampled_from(TYPES), seed=seeds, batch=batches)
def test_matmul(data, types, seed, batch):
    rng = np.random.default_rng(seed)
    m, k, n = (data.draw(st.integers(0, 40), label=x) for x in "mkn")
    family = dtypes.FAMILIES[types]
    a = data.draw(views((*broadcastable(data.draw, batch), m, k), dtypes.dtype_of(family.a), rng))
    b = data.draw(views((*broadcastable(data.draw, batch), k, n), dtypes.dtype_of(family.b), rng))
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), m, n)
    threads = data.draw(st.sampled_from((None, 1, 2, 3)))
    out = data.draw(st.one_of(st.none(), views(shape, dtypes.dtype_of(family.c), rng, writable=True)))
    result = pysimd.matmul(a, b, out=out, threads=threads)
    assert out is None or result is out
    assert result.shape == shape
    check(result, types, a, b)


@given(data=st.data(), kernel=st.sampled_from(KERNELS), seed=seeds, batch=batches, k=st.integers(0, 70))
def test_kernel(data, kernel, seed, batch, k):
    rng = np.random.default_rng(seed)
    a = data.draw(views((*broadcastable(data.draw, batch), kernel.mr, k), kernel.a_dtype, rng))
    b = data.draw(views((*broadcastable(data.draw, batch), k, kernel.nr), kernel.b_dtype, rng))
    c = None
    if data.draw(st.booleans()):
        c = random_result(rng, kernel.c_dtype, (*broadcastable(data.draw, batch), kernel.mr, kernel.nr))
    parts = [x.shape[:-2] for x in (a, b, c) if x is not None]
    shape = (*np.broadcast_shapes(*parts), kernel.mr, kernel.nr)
    out = data.draw(st.one_of(st.none(), views(shape, kernel.c_dtype, rng, writable=True)))
    result = kernel(a, b, c, out=out)
    assert out is None or result is out
    assert result.shape == shape
    check(result, kernel.types, a, b, c)


@st.composite
def operands_of(draw, shape, dtype, rng):
    """A view of any strides, 0 among them: rows, columns or products that are one and the same."""
    repeated = [draw(st.integers(0, 5)) == 0 for _ in shape]
    own = tuple(min(n, 1) if again else n for n, again in zip(shape, repeated, strict=True))
    return np.broadcast_to(draw(views(own, dtype, rng)), shape)


SIZES = st.one_of(st.integers(0, 40), st.integers(41, 130), st.sampled_from((512, 600, 1100)))
"""Of tiles, of blocks, and longer than a block of K."""


@given(data=st.data(), types=st.sampled_from(TYPES), seed=seeds, batch=batches, sizes=st.tuples(SIZES, SIZES, SIZES))
def test_gemm(data, types, seed, batch, sizes):
    """alpha * A @ B + beta * C of any shapes, strides, kernel and threads, and an ``out`` that may be C or overlap A;
    nothing but ``out`` is written."""
    draw, rng = data.draw, np.random.default_rng(seed)
    m, k, n = sizes
    assume(m * k * n * max(1, int(np.prod(batch))) <= 3_000_000)
    family = dtypes.FAMILIES[types]
    kinds = [dtypes.dtype_of(x) for x in (family.a, family.b, family.c)]
    trans_a, trans_b = draw(st.booleans()), draw(st.booleans())
    a = draw(operands_of((*broadcastable(draw, batch), m, k), kinds[0], rng))
    b = draw(operands_of((*broadcastable(draw, batch), k, n), kinds[1], rng))
    factors = (0, 1, -1, 2, -3) if family.c == "int32" else (0, 1, -1, 0.5, 2.25)
    alpha, beta = draw(st.sampled_from(factors), label="alpha"), draw(st.sampled_from(factors), label="beta")
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), m, n)
    c = None
    if beta or draw(st.booleans()):
        rows, columns = (draw(st.sampled_from((x, 1))) for x in (m, n))
        c = random_result(rng, kinds[2], (*broadcastable(draw, shape[:-2]), rows, columns))
        c = c if beta else np.full_like(c, np.nan if c.dtype.kind == "f" else 7)
    out = draw(st.sampled_from(("none", "other", "c", "overlaps")))
    if out == "c" and (c is None or c.shape != shape):
        out = "other"
    kernel = draw(st.sampled_from([None, *(x for x in KERNELS if x.types == types)]))
    threads = draw(st.sampled_from((None, 1, 2, 5)))
    start = None if c is None else c.copy()
    target = None if out == "none" else draw(views(shape, kinds[2], rng, writable=True))
    if out == "c":
        target = c
    elif out == "overlaps" and a.dtype == kinds[2] and a.size and target.size:
        memory = np.zeros(target.size + a.size, kinds[2])
        at = draw(st.integers(0, a.size))
        target = memory[at : at + target.size].reshape(shape)
        copied = memory[: a.size].reshape(a.shape)
        copied[...] = a
        a = copied
    keep = a.copy(), b.copy()
    x, y = (z.swapaxes(-1, -2) if turned else z for z, turned in ((a, trans_a), (b, trans_b)))
    options = {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b}
    result = pysimd.gemm(x, y, c, out=target, kernel=kernel, threads=threads, **options)
    assert target is None or result is target
    assert result.shape == shape
    check_factors(result, types, *keep, start, alpha, beta)
    for before, after in ((keep[1], b), (start, c)):
        if after is not None and after is not target:
            assert after.tobytes() == before.tobytes(), "an operand was written"


@given(kernel=st.sampled_from(KERNELS), seed=seeds, start=st.tuples(*[st.integers(0, 60)] * 3), k=st.integers(0, 9))
def test_overlap_in_one_buffer(kernel, seed, start, k):
    """A, B and out anywhere in the same few bytes: as if out were elsewhere."""
    rng = np.random.default_rng(seed)
    shapes = ((2, kernel.mr, k), (2, k, kernel.nr), (2, kernel.mr, kernel.nr))
    kinds = (kernel.a_dtype, kernel.b_dtype, kernel.c_dtype)
    sizes = [int(np.prod(s)) * d.itemsize for s, d in zip(shapes, kinds, strict=True)]
    raw = rng.integers(0, 128, max(sizes) + 64, np.uint8)  # below 128: no NaN, whose payload may differ
    views_ = [
        raw[at : at + size].view(d).reshape(s) for at, size, d, s in zip(start, sizes, kinds, shapes, strict=True)
    ]
    a, b, out = views_
    with np.errstate(all="ignore"):
        expected = kernel(a.copy(), b.copy())
        kernel(a, b, out=out)
    np.testing.assert_array_equal(out, expected)
