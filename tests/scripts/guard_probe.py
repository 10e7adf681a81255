"""``python guard_probe.py kernels TARGET``, ``matmul TYPES``, ``small TYPES`` or ``rung NAME``: runs products on
guarded memory, printing each before it starts; test_guard.py reads the last line if the process dies."""

import itertools
import sys

import numpy as np
from any_work import divide_any_work
from cases import QUICK, edge_sizes, k_lengths
from guard import GuardedMemory
from pysimd._cpu import lib
from reference import check, operands, random_operand, random_result

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu import dispatch
from pysimd.backends.cpu.implementation import CPU

MEMORY = [GuardedMemory(100) for _ in range(3)]  # A, B and C
PLACES = ("ending_at_guard", "starting_at_guard")
LARGE = ((50, 301, 62), (5, 333, 131), (3, 1050, 19), (40, 1050, 1))
"""m, k, n of products that are computed in blocks."""
FEW_COLUMNS = ((8, 16, 2), (9, 17, 3), (17, 31, 4), (19, 33, 3), (6, 33, 21), (10, 12, 9), (5, 9, 8), (49, 63, 65))
FEW_COLUMNS += ((33, 20, 5), (70, 30, 8), (40, 9, 6))
FEW_COLUMNS += ((12, 2, 2), (25, 3, 3), (21, 4, 3), (49, 2, 4), (2, 3, 33))
"""m, k, n of products that the kernels for a vector compute, also of rows that are shorter than a register, of operands
that are transposed in blocks of registers, of one that is large enough for blocks and is not packed, and of those that
are computed with the operands exchanged."""


def placed(place: str, *arrays: np.ndarray) -> list[np.ndarray]:
    return [getattr(memory, place)(x) for memory, x in zip(MEMORY, arrays, strict=True)]


def say(*words) -> None:
    print(*words, flush=True)


def stored_by_columns(x: np.ndarray, place: str, memory: GuardedMemory) -> np.ndarray:
    return getattr(memory, place)(np.ascontiguousarray(x.swapaxes(-1, -2))).swapaxes(-1, -2)


def stored(x: np.ndarray, place: str, memory: GuardedMemory, *, by_columns: bool, backwards: bool) -> np.ndarray:
    """``x`` in guarded memory, by rows or by columns; backwards: the last row or column has the lowest address."""
    if backwards:
        axis = -1 if by_columns else -2
        forwards = stored(np.flip(x, axis), place, memory, by_columns=by_columns, backwards=False)
        return np.flip(forwards, axis)
    return stored_by_columns(x, place, memory) if by_columns else getattr(memory, place)(x)


def kernel_calls(kernel, k: int, place: str) -> None:
    rng = np.random.default_rng(k)
    for batch in ((), (3,)):
        plain_a, plain_b = operands(kernel, k, batch, batch)
        before = random_result(rng, kernel.c_dtype, (*batch, kernel.mr, kernel.nr))
        for columns_a, columns_b in itertools.product((False, True), repeat=2):
            a, b, c = placed(place, plain_a, plain_b, before)
            if columns_a:
                a = stored_by_columns(plain_a, place, MEMORY[0])
            if columns_b:
                b = stored_by_columns(plain_b, place, MEMORY[1])
            kernel(a, b, c, out=c)
            check(c, kernel.types, plain_a, plain_b, before)
            assert MEMORY[2].untouched_around(c), "bytes around out were written"
            c[...] = before
            kernel.bind(a, b, c)()
            check(c, kernel.types, plain_a, plain_b, before)
            assert MEMORY[2].untouched_around(c), "bytes around c were written"


def kernels(target: str) -> None:
    for kernel in pysimd.kernels("cpu", target=target, available=True):
        for k, place in itertools.product(k_lengths(), PLACES):
            say(kernel.name, f"K = {k}", place)
            kernel_calls(kernel, k, place)
        # Partial tiles: every m and n up to one more than the tile.
        step = 3 if QUICK else 1
        ms, ns = range(1, kernel.mr + 2, step), range(1, kernel.nr + 2, step)
        edges = {1, 3 * kernel.nr // 4, 5 * kernel.nr // 6, kernel.nr - 1, kernel.nr + 1}
        for m, n in {*itertools.product(ms, edges), *itertools.product((1, kernel.mr), ns)}:
            for k, place in itertools.product((0, 1, 3, 4), PLACES):
                say(kernel.name, f"m = {m}, n = {n}, K = {k}", place)
                one_matmul(kernel.types, (2,), m, k, n, place, kernel)
        for (m, k, n), place in itertools.product(LARGE, PLACES):
            say(kernel.name, f"m = {m}, n = {n}, K = {k}", place)
            one_matmul(kernel.types, (), m, k, n, place, kernel, threads=2)
        strips(kernel)
        direct(kernel)


def direct(kernel) -> None:
    """Single products of a short K and many columns, or of few rows: core/direct.c takes those of narrow types."""
    shapes = [(1, 3, 200), (19, 2, 257), (33, 5, 135), (5, 15, 700), (3, 90, 77), (6, 33, 130), (17, 31, 131)]
    in_every_order(kernel, shapes if kernel.form == "outer" else (), threads=1)


def strips(kernel) -> None:
    """Few rows, B by rows and by columns; few columns, A by rows and by columns, and larger than L2."""
    size = kernel.a_dtype.itemsize
    columns = 5 * kernel.nr + 3
    shapes = [(m, (1 << 20) // (m * columns) + 9, columns) for m in (kernel.mr, 4 * kernel.mr)]
    shapes += [(lib.pysimd_caches().l2 // (150 * size) + 9, 150, kernel.nr - 1)]
    if kernel.form == "gemv":
        shapes = [(m, 150, n) for m, n in ((8, 2), (21, 3), (40, 4), (5, 4), (2, 21), (3, 40), (4, 9), (4, 4))]
    in_every_order(kernel, shapes if kernel.form != "inner" else (), threads=2)


def in_every_order(kernel, shapes, *, threads: int) -> None:
    """Products of these m, k, n, operands by rows and by columns, at each end of guarded memory."""
    for (m, k, n), place in itertools.product(shapes, PLACES):
        plain_a, plain_b = operands_of(kernel.types, m, k, n)
        memory = [GuardedMemory(x * 8 // 4096 + 1) for x in (m * k, k * n, m * n)]
        for by_columns in itertools.product((False, True), repeat=2):
            say(kernel.name, f"m = {m}, n = {n}, K = {k}, by columns: {by_columns}", place)
            a, b = (
                stored(x, place, memory[i], by_columns=by_columns[i], backwards=False)
                for i, x in enumerate((plain_a, plain_b))
            )
            out = getattr(memory[2], place)(np.zeros((m, n), kernel.c_dtype))
            pysimd.matmul(a, b, out=out, kernel=kernel, threads=threads)
            check(out, kernel.types, plain_a, plain_b)
            assert memory[2].untouched_around(out), "bytes around out were written"


def operands_of(types: str, m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    family, rng = dtypes.FAMILIES[types], np.random.default_rng((m, k, n))
    return tuple(
        random_operand(rng, dtypes.dtype_of(name), shape) for name, shape in ((family.a, (m, k)), (family.b, (k, n)))
    )


def one_matmul(types, batch, m, k, n, place, kernel=None, threads=None) -> None:
    family = dtypes.FAMILIES[types]
    rng = np.random.default_rng((m, k, n))
    plain_a = random_operand(rng, dtypes.dtype_of(family.a), (*batch, m, k))
    plain_b = random_operand(rng, dtypes.dtype_of(family.b), (*batch, k, n))
    a, b, out = placed(place, plain_a, plain_b, np.zeros((*batch, m, n), dtypes.dtype_of(family.c)))
    pysimd.matmul(a, b, out=out, kernel=kernel, threads=threads)
    check(out, types, plain_a, plain_b)
    assert MEMORY[2].untouched_around(out), "bytes around out were written"


def matmul(types: str) -> None:
    sizes = edge_sizes(8) if QUICK else sorted({*edge_sizes(4), *edge_sizes(8), *edge_sizes(16), 45})
    limits = dispatch.limits()
    for threads, stream_bytes in ((None, limits.stream_bytes), (2, limits.stream_bytes), (1, 1)):
        CPU.door.set_limits(*limits._replace(stream_bytes=stream_bytes))
        how = f"threads = {threads}, non-temporal stores from {stream_bytes} bytes on"
        for m, n, place in itertools.product(sizes, sizes, PLACES):
            for k in (0, 1, 4, 7):
                say(types, f"m = {m}, n = {n}, K = {k}", place, how)
                one_matmul(types, (2,), m, k, n, place, threads=threads)
        for tile, place in itertools.product((4, 8, 16), PLACES):
            say(types, f"a batch of {tile} x {tile}", place, how)
            one_matmul(types, (5,), tile, tile, tile, place, threads=threads)
    CPU.door.set_limits(*limits)
    vectors(types)
    views(types)
    every_other_element(types)
    other_orders(types)
    for (m, k, n), place, threads in itertools.product(LARGE, PLACES, (1, 3)):
        say(types, f"m = {m}, n = {n}, K = {k}", place, f"threads = {threads}")
        one_matmul(types, (), m, k, n, place, threads=threads)


def vectors(types: str) -> None:
    """A matrix times a vector or a few, and a vector times a matrix, stored by rows and by columns, also backwards."""
    sizes = (1, 3, 8, 17) if QUICK else (*range(1, 20), 31, 33, 300)
    ways = list(itertools.product((False, True), repeat=2))
    for size, k, place, (by_columns, backwards) in itertools.product(sizes, sizes, PLACES, ways):
        if size * k > 10_000 or (backwards and max(size, k) > 9):
            continue  # more than the memory that is guarded; backwards, short rows are enough
        for m, n in ((size, 1), (1, size)):
            one_stored(types, m, k, n, place, by_columns=by_columns, backwards=backwards)
    for (m, k, n), place, (by_columns, backwards) in itertools.product(FEW_COLUMNS, PLACES, ways):
        one_stored(types, m, k, n, place, by_columns=by_columns, backwards=backwards)


def one_stored(types: str, m: int, k: int, n: int, place: str, *, by_columns: bool, backwards: bool) -> None:
    say(types, f"m = {m}, n = {n}, K = {k}, by columns: {by_columns}, backwards: {backwards}", place)
    family = dtypes.FAMILIES[types]
    kinds = [dtypes.dtype_of(name) for name in (family.a, family.b, family.c)]
    rng = np.random.default_rng((m, k, n))
    plain_a, plain_b = (random_operand(rng, kinds[0], (2, m, k)), random_operand(rng, kinds[1], (2, k, n)))
    out = getattr(MEMORY[2], place)(np.zeros((2, m, n), kinds[2]))
    a, b = (
        stored(x, place, memory, by_columns=by_columns, backwards=backwards)
        for x, memory in ((plain_a, MEMORY[0]), (plain_b, MEMORY[1]))
    )
    pysimd.matmul(a, b, out=out)
    check(out, types, plain_a, plain_b)
    assert MEMORY[2].untouched_around(out), "bytes around out were written"


def batch_last(x: np.ndarray, place: str, memory: GuardedMemory) -> np.ndarray:
    """``x`` with the elements of all products at one place adjacent."""
    return np.moveaxis(getattr(memory, place)(np.ascontiguousarray(np.moveaxis(x, 0, -1))), -1, 0)


def rows_backwards(x: np.ndarray, place: str, memory: GuardedMemory) -> np.ndarray:
    """``x`` with rows that run backwards."""
    return np.flip(getattr(memory, place)(np.ascontiguousarray(np.flip(x, -1))), -1)


def other_orders(types: str) -> None:
    """Operands that are made dense before: in registers, of which the last of a row overlaps the one before it."""
    family = dtypes.FAMILIES[types]
    kinds = [dtypes.dtype_of(name) for name in (family.a, family.b, family.c)]
    sizes = (1, 2, 3, 4, 5, 8, 9, 17)
    for batch, k, place, order in itertools.product((2, 9, 33), sizes, PLACES, (batch_last, rows_backwards)):
        for m, n in ((1, 1), (5, 1), (1, 6), (17, 1), (3, 4), (9, 18), (8, 33)):
            say(types, f"{batch} products, m = {m}, n = {n}, K = {k}", order.__name__, place)
            rng = np.random.default_rng((batch, m, k, n))
            plain_a, plain_b = (
                random_operand(rng, kinds[0], (batch, m, k)),
                random_operand(rng, kinds[1], (batch, k, n)),
            )
            a, b = order(plain_a, place, MEMORY[0]), order(plain_b, place, MEMORY[1])
            out = getattr(MEMORY[2], place)(np.zeros((batch, m, n), kinds[2]))
            pysimd.matmul(a, b, out=out)
            check(out, types, plain_a, plain_b)
            assert MEMORY[2].untouched_around(out), "bytes around out were written"


def part_of_rows(memory: GuardedMemory, place: str, x: np.ndarray, more: int) -> tuple[np.ndarray, np.ndarray]:
    """``x`` as columns of longer rows in guarded memory, its last or its first element at a guard; and the ``more``
    other columns, which are all ones: NaN, -1 or 255."""
    width = x.shape[-1]
    whole = np.empty((*x.shape[:-1], width + more), x.dtype)
    whole.view(np.uint8)[...] = 0xFF
    whole = getattr(memory, place)(whole)
    ends = place == "ending_at_guard"
    own, others = (whole[..., more:], whole[..., :more]) if ends else (whole[..., :width], whole[..., width:])
    own[...] = x
    return own, others


def views(types: str) -> None:
    """Operands and results whose rows begin, or end, in the middle of longer ones."""
    rng = np.random.default_rng(5)
    family = dtypes.FAMILIES[types]
    kinds = [dtypes.dtype_of(name) for name in (family.a, family.b, family.c)]
    shapes = [((2,), s, 7, s) for s in (1, 3, 4, 5, 8, 9, 16, 17, 31)] + [((), *shape) for shape in LARGE]
    for (batch, m, k, n), more, place in itertools.product(shapes, (1, 5), PLACES):
        say(types, f"m = {m}, n = {n}, K = {k}, {more} other columns", place)
        plain_a, plain_b = random_operand(rng, kinds[0], (*batch, m, k)), random_operand(rng, kinds[1], (*batch, k, n))
        plain = plain_a, plain_b, np.zeros((*batch, m, n), kinds[2])
        found = [part_of_rows(memory, place, x, more) for memory, x in zip(MEMORY, plain, strict=True)]
        (a, _), (b, _), (out, others) = found
        pysimd.matmul(a, b, out=out, threads=2)
        check(out, types, plain_a, plain_b)
        assert (np.ascontiguousarray(others).view(np.uint8) == 0xFF).all(), "columns around out were written"


def spread(x: np.ndarray, place: str, memory: GuardedMemory, gap: int) -> np.ndarray:
    """``x`` as every other element of rows in guarded memory, ``gap`` elements apart; the last one is at the guard."""
    row = 2 * x.shape[-1] + gap
    flat = np.empty(x[..., 0].size * row - gap - 1, x.dtype)
    flat.view(np.uint8)[...] = 0xFF
    flat = getattr(memory, place)(flat)
    strides = (x.shape[-2] * row * x.itemsize, row * x.itemsize, 2 * x.itemsize)
    view = np.lib.stride_tricks.as_strided(flat, x.shape, strides)
    view[...] = x
    return view


def every_other_element(types: str) -> None:
    """Rows that are copied in vectors, each by itself or all as one: every remainder, between NaN, -1 or 255."""
    rng = np.random.default_rng(7)
    family = dtypes.FAMILIES[types]
    kinds = [dtypes.dtype_of(name) for name in (family.a, family.b, family.c)]
    sizes = (3, 9, 17, 35) if QUICK else (*range(1, 20), 31, 32, 33, 63, 64, 65)
    for size, (m, k), gap, place in itertools.product(sizes, ((1, 19), (2, 3), (5, 8)), (0, 3), PLACES):
        for shape in ((m, k, size), (m, size, k)):
            say(types, f"every other element, {shape}, gap {gap}", place)
            plain_a, plain_b = (
                random_operand(rng, kind, (2, *part)) for kind, part in zip(kinds, (shape[:2], shape[1:]), strict=False)
            )
            a, b = (spread(x, place, memory, gap) for x, memory in zip((plain_a, plain_b), MEMORY, strict=False))
            out = getattr(MEMORY[2], place)(np.zeros((2, m, shape[2]), kinds[2]))
            pysimd.matmul(a, b, out=out)
            check(out, types, plain_a, plain_b)
            assert MEMORY[2].untouched_around(out), "bytes around out were written"


def small(types: str) -> None:
    """Every size that is computed straight from the arrays, dense, by columns, and as a part of longer rows."""
    rng = np.random.default_rng(6)
    family = dtypes.FAMILIES[types]
    kinds = [dtypes.dtype_of(name) for name in (family.a, family.b, family.c)]
    sizes = (1, 2, 3, 7, 8, 9, 16) if QUICK else range(1, 18)
    for size, k, batch, place in itertools.product(sizes, sizes, (1, 2), PLACES):
        say(types, f"{size} x {k} x {size}, batch {batch}", place)
        one_matmul(types, (batch,), size, k, size, place, threads=1)
        plain = random_operand(rng, kinds[0], (batch, size, k)), random_operand(rng, kinds[1], (batch, k, size))
        views = [part_of_rows(memory, place, x, 3)[0] for memory, x in zip(MEMORY, plain, strict=False)]
        out, others = part_of_rows(MEMORY[2], place, np.zeros((batch, size, size), kinds[2]), 3)
        pysimd.matmul(*views, out=out)
        check(out, types, *plain)
        assert (np.ascontiguousarray(others).view(np.uint8) == 0xFF).all(), "columns around out were written"
    for size, place, ways in itertools.product((4, 8, 9, 17, 33), PLACES, itertools.product((False, True), repeat=2)):
        say(types, f"{size} x {size}, by columns: {ways}", place)
        plain = random_operand(rng, kinds[0], (2, size, size)), random_operand(rng, kinds[1], (2, size, size))
        a, b = (
            stored(x, place, memory, by_columns=way, backwards=False)
            for x, memory, way in zip(plain, MEMORY, ways, strict=False)
        )
        out = getattr(MEMORY[2], place)(np.zeros((2, size, size), kinds[2]))
        pysimd.matmul(a, b, out=out)
        check(out, types, *plain)
        assert MEMORY[2].untouched_around(out), "bytes around out were written"


def rung(name: str) -> None:
    rng, sizes = np.random.default_rng(0), (1, 7, 17, 33)
    for m, n, k, place in itertools.product(sizes, sizes, (0, 1, 5, 600), PLACES):
        for by_columns in (False, True):
            say(name, f"m = {m}, n = {n}, K = {k}, by columns: {by_columns}", place)
            plain_a, plain_b, before = (
                random_operand(rng, np.dtype(np.float32), shape) for shape in ((m, k), (k, n), (m, n))
            )
            a, b, c = placed(place, plain_a, plain_b, before)
            if by_columns:
                a, b = (
                    stored_by_columns(x, place, memory) for x, memory in ((plain_a, MEMORY[0]), (plain_b, MEMORY[1]))
                )
            pysimd.gemm(a, b, c, beta=1, out=c, kernel=name, threads=2)
            check(c, "f32", plain_a, plain_b, before)
            assert MEMORY[2].untouched_around(c), "bytes around c were written"


if __name__ == "__main__":
    divide_any_work()
    {"kernels": kernels, "matmul": matmul, "small": small, "rung": rung}[sys.argv[1]](sys.argv[2])
    say("done")
