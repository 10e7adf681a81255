"""``gemm``: products with factors, an array to add and transposed operands, on the backend whose arrays they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from pysimd import dtypes, ladder, registry
from pysimd import operands as arrays
from pysimd import products as api
from pysimd.errors import DTypeError, OptionError, ShapeError


class Options(NamedTuple):
    """The arguments of ``gemm`` that are no arrays, checked."""

    alpha: float
    beta: float
    trans_a: bool
    trans_b: bool


class Operands(NamedTuple):
    """Operands of ``gemm`` that were checked: A (..., m, k) and B (..., k, n), turned where that was asked for; C
    (..., m, n), or None if nothing is added; shape and dtype of the result."""

    a: Any
    b: Any
    c: Any
    shape: tuple[int, ...]
    dtype: np.dtype


def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, trans_a=False, trans_b=False, out=None, kernel=None, threads=None):
    """``alpha * a @ b + beta * c``, with the broadcasting of ``numpy.matmul``.

    Args:
        a: (..., m, k), with ``trans_a`` (..., k, m). NumPy array, CuPy array, or an exporter of DLPack; dtypes as for
            ``matmul``; any strides, any alignment.
        b: (..., k, n), with ``trans_b`` (..., n, k), on the same device.
        c: (..., m, n), of the result's dtype; its batch dimensions broadcast with the others. Never written (unless it
            is ``out``), and not read if ``beta`` is 0: NaN there does not matter then.
        alpha, beta: real numbers, rounded to the result's dtype; whole numbers where that is int32.
        trans_a, trans_b: take the last two dimensions of ``a``, ``b`` the other way round.
        out: array of the result's shape and dtype to write into; it may overlap any operand, and may be ``c``.
        kernel: name of a kernel or of a rung of the GPU ladder, or one of these objects, that does the products; by
            default what is fastest for the shape: on a GPU the best rung for the types, if one is ahead, else what
            ``matmul`` takes. ``tf32x3`` does float32 on tensor cores, with an error of its own (``Rung.roundings``).
        threads: as for ``matmul``.

    Returns:
        ``out``, or a new array of shape (..., m, n).

    Raises:
        ShapeError, DTypeError: the operands do not fit; nothing was written.
        OptionError: ``alpha`` or ``beta`` is no number that fits, or ``beta`` is not 0 and there is no ``c``.
        UnknownKernelError, UnavailableError: ``kernel`` does not exist, or not on this machine.

    >>> import numpy as np, pysimd
    >>> a, c = np.ones((3, 4), np.float32), np.full((3, 3), 10, np.float32)
    >>> pysimd.gemm(a, a, c, alpha=2, beta=0.5, trans_b=True)[0]
    array([13., 13., 13.], dtype=float32)
    """
    options = check_options(alpha, beta, trans_a, trans_b, c)
    key = None
    if _may_be_planned(a, b, c, out, options, kernel, threads):
        key, result = ladder.replay(a, b, c, out, options, getattr(kernel, "name", kernel))
        if result is not None:
            return result
    if isinstance(kernel, str):
        kernel = ladder.kernel_or_rung(kernel)
    if kernel is not None:
        kernel._check_available()
    device = arrays.backend_for({"a": a, "b": b, "c": c, "out": out})
    if kernel is not None and kernel.backend != device:
        raise DTypeError(f"{kernel.name} is a {kernel.backend} kernel, the arrays are on {device}")
    if threads is not None and device != "cpu":
        raise OptionError(f"threads={threads} is for arrays on the CPU: leave it out for arrays on a GPU")
    given = a, out
    tools = _tools(device)
    with tools.place(a, b, c, out):
        named = (("a", a), ("b", b), ("c", c), ("out", out))
        a, b, c, out = (None if x is None else tools.view(name, x) for name, x in named)
        family = dtypes.family_of(a.dtype, b.dtype, tools.offered) if kernel is None else dtypes.FAMILIES[kernel.types]
        operands = check(family, a, b, c, out, options)
        rung = kernel if isinstance(kernel, ladder.Rung) else None
        if kernel is None and device == "cuda":
            rung = ladder.best(family.name, operands)
        if rung is not None:
            result = rung._implementation.into(rung, operands, options, out, key)
        else:
            result = _by_matmul(operands, options, out, kernel, threads, tools)
        return tools.like(result, given[0]) if given[1] is None else given[1]


class _Tools(NamedTuple):
    """What differs between NumPy's arrays and CuPy's: views of others' arrays, where to compute, elements that can be
    read, ``to[...] = x``, a result as the caller's kind of array; and the types families of ``matmul``."""

    view: Callable
    place: Callable
    readable: Callable
    copy: Callable
    like: Callable
    offered: tuple[str, ...]


def _tools(device: str) -> _Tools:
    if device == "cpu":
        from pysimd.backends.cpu import implementation as cpu

        def same(x, *_):
            return x

        return _Tools(arrays.as_numpy, lambda *_: nullcontext(), same, np.copyto, same, cpu.OFFERED)
    from pysimd.backends.gpu import cupy_arrays as cupy

    offered = registry.implementation(device).OFFERED
    return _Tools(cupy.as_cupy, cupy.place_of, cupy.readable, cupy.copy, cupy.like, offered)


def _may_be_planned(a, b, c, out, options: Options, kernel, threads) -> bool:
    """Whether a plan of the GPU's may be looked for: CuPy arrays, at most two of them read, ordinary factors."""
    return (
        type(a).__module__ == "cupy"
        and type(b) is type(a)
        and (out is None or type(out) is type(a))
        and (c is None or c is out)
        and type(options.alpha) in (int, float)
        and type(options.beta) in (int, float)
        and options.alpha != 0
        and threads is None
        and not isinstance(kernel, registry.MicroKernel)
    )


def check_options(alpha, beta, trans_a, trans_b, c) -> Options:
    """Raises unless the factors are real numbers, and there is a C for a beta that is not 0."""
    for name, x in (("alpha", alpha), ("beta", beta)):
        if not isinstance(x, Real):
            raise OptionError(f"{name} must be a real number, got {type(x).__name__}")
    if beta != 0 and c is None:
        raise OptionError(f"beta={beta} needs an array c to multiply: pass c, or leave beta at 0")
    return Options(alpha, beta, bool(trans_a), bool(trans_b))


def check(family: dtypes.Types, a, b, c, out, options: Options) -> Operands:
    """The operands, of NumPy or CuPy, as the product needs them; raises unless they fit."""
    dtypes.check(family, a.dtype, b.dtype)
    given = {"a": a, "b": b}
    for name, x, turned, letters in (("a", a, options.trans_a, "mk"), ("b", b, options.trans_b, "kn")):
        first, last = reversed(letters) if turned else letters
        arrays.check_dimensions(name, x.shape, 2, f"(..., {first}, {last})")
    a = a.swapaxes(-1, -2) if options.trans_a else a
    b = b.swapaxes(-1, -2) if options.trans_b else b
    if a.shape[-1] != b.shape[-2]:
        axes = {"a": -2 if options.trans_a else -1, "b": -1 if options.trans_b else -2}
        words = ", ".join(f"{name} {x.shape} has {x.shape[axes[name]]}" for name, x in given.items())
        raise ShapeError(f"a and b must have the same k: {words}")
    matrix = (a.shape[-2], b.shape[-1])
    dtype = dtypes.dtype_of(family.c)
    shapes = {"a": a.shape, "b": b.shape}
    if c is not None:
        arrays.check_dimensions("c", c.shape, 2, f"(..., {matrix[0]}, {matrix[1]})")
        if c.dtype != dtype:
            raise DTypeError(f"c must be {dtype.name}, the type of the result, got {dtypes.describe(c.dtype)}")
        if c.shape[-2:] != matrix:
            raise ShapeError(f"c must be (..., {matrix[0]}, {matrix[1]}), got {c.shape}")
        shapes["c"] = c.shape
    shape = (*arrays.broadcast_batch(shapes), *matrix)
    if out is not None:
        arrays.check_out(out, shape, dtype)
    for name in ("alpha", "beta"):
        factor = getattr(options, name)
        if dtype.kind == "i" and not (factor == int(factor) and abs(factor) < 1 << 31):
            raise OptionError(f"{name} must be a whole number of int32 for a result of {dtype.name}, got {factor}")
    return Operands(a, b, c if options.beta != 0 else None, shape, dtype)


def _by_matmul(operands: Operands, options: Options, out, kernel, threads, tools: _Tools):
    """The products by ``matmul``, then the factors and C element by element."""
    a, b, c, shape, dtype = operands
    whole = shape[:-2] == arrays.broadcast_batch({"a": a.shape, "b": b.shape})
    if options.alpha == 1 and c is None and whole:
        return api.matmul(a, b, out=out, kernel=kernel, threads=threads)
    result = api.matmul(a, b, kernel=kernel, threads=threads)
    with np.errstate(all="ignore"):  # NaN and infinity are values like others
        if options.alpha != 1:
            result *= dtype.type(options.alpha)
        if c is not None:
            result = result + tools.readable(c) * dtype.type(options.beta)
    if out is not None:
        tools.copy(out, result)
        return out
    return result if whole or c is not None else np.broadcast_to(result, shape).copy()
