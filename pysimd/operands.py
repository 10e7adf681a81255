"""Operands: which device an array is on, its NumPy view, and the checks that every backend makes in the same words.

Each call checks its operands once, by ``check_tile_call``, ``check_matmul`` or ``check_gemm``. All of them take arrays
of NumPy or of CuPy: whatever has ``shape``, ``dtype``, ``strides`` and ``swapaxes``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple, Protocol

import numpy as np

from pysimd import arguments, dtypes
from pysimd.errors import DTypeError, OptionError, ShapeError


class Array(Protocol):
    """What the arrays of every backend have in common: NumPy's and CuPy's."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def strides(self) -> tuple[int, ...]: ...


class Tile(Protocol):
    """What the checks read of a ``MicroKernel``."""

    name: str
    types: str
    mr: int
    nr: int

    @property
    def c_dtype(self) -> np.dtype: ...


class Typed(Protocol):
    """What the checks read of a ``MicroKernel`` or a ``Rung`` that takes any shape."""

    types: str


_DLPACK_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 10: "hip", 11: "cpu"}  # 3 and 11: pinned host memory


def device_of(x) -> str | None:
    """``cpu``, ``cuda`` or ``hip``; None for something that is no array. Imports nothing and touches no GPU."""
    if isinstance(x, np.ndarray):
        return "cpu"
    if type(x).__module__.partition(".")[0] == "cupy":
        import cupy  # the caller has it already: this is its array

        return "hip" if cupy.cuda.runtime.is_hip else "cuda"
    if hasattr(x, "__dlpack_device__"):
        kind = int(x.__dlpack_device__()[0])
        return _DLPACK_DEVICES.get(kind, f"DLPack device {kind}")
    try:
        memoryview(x)
    except TypeError:
        return None
    return "cpu"


def backend_for(operands: dict[str, object]) -> str:
    """The one backend whose arrays these are. ``operands`` maps argument names to values; a None is skipped, except for
    ``a`` and ``b``.

    Raises:
        DTypeError: something is no array, or the arrays are on different devices; the message says which is which.
    """
    devices = {name: device_of(x) for name, x in operands.items() if x is not None or name in ("a", "b")}
    for name, device in devices.items():
        if device is None:
            raise DTypeError(
                f"{name} must be an array (NumPy, CuPy, or an exporter of DLPack or the buffer protocol), "
                f"got {type(operands[name]).__name__}: convert with numpy.asarray(..., dtype=...)"
            )
    if len(set(devices.values())) > 1:
        where = ", ".join(f"{name} is on {device}" for name, device in devices.items())
        raise DTypeError(f"arrays of different devices: {where}. Nothing is copied silently: move them to one device")
    return next(iter(devices.values()))


def as_numpy(name: str, x) -> np.ndarray:
    """A NumPy view of a CPU array, no copy. The caller has seen that ``x`` is on the CPU.

    Raises:
        DTypeError: a masked array, or an exporter whose memory NumPy cannot view.
    """
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise DTypeError(
            f"{name} is a masked array, and kernels ignore masks: pass {name}.filled(0), where masked elements "
            f"contribute nothing, or {name}.data, where they count as stored"
        )
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray)
    try:
        if hasattr(x, "__dlpack__"):
            return np.from_dlpack(x)
        return np.asarray(memoryview(x))
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(f"{name} ({type(x).__name__}) cannot be viewed as a NumPy array: {error}") from error


def check_dimensions(name: str, shape: tuple[int, ...], least: int, meaning: str) -> None:
    """Raise unless the operand has at least ``least`` dimensions."""
    if len(shape) < least:
        raise ShapeError(f"{name} must have at least {least} dimensions {meaning}, got shape {shape}")


def check_inner(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Raise unless the last dimension of A is the last but one of B."""
    if a[-1] != b[-2]:
        raise ShapeError(
            f"shapes {a} and {b} not aligned: {a[-1]} (dim {len(a) - 1} of a) != {b[-2]} (dim {len(b) - 2} of b)"
        )


def broadcast_batch(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of the batch dimensions (all but the last two)."""
    batches = [shape[:-2] for shape in shapes.values()]
    if all(batch == batches[0] for batch in batches):
        return batches[0]  # the common case, and np.broadcast_shapes takes microseconds
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        listed = ", ".join(f"{name} {shape[:-2]} (of {shape})" for name, shape in shapes.items())
        raise ShapeError(f"batch dimensions do not broadcast: {listed}") from None


def check_out(out, shape: tuple[int, ...], dtype: np.dtype, name: str = "out") -> None:
    """Raise unless ``out`` has exactly this shape and dtype and can be written."""
    if out.shape != shape:
        raise ShapeError(f"{name} must have shape {shape}, the shape of the result, got {out.shape}")
    if out.dtype != dtype:
        raise DTypeError(f"{name} must be {dtype.name}, the type of the result, got {dtypes.describe(out.dtype)}")
    flags = getattr(out, "flags", None)
    if flags is not None and not getattr(flags, "writeable", True):
        raise ShapeError(f"{name} is read-only: pass a writable array, or none to get a new one")


@dataclass(frozen=True)
class GemmOptions:
    """The arguments of ``gemm`` that are no arrays, checked by ``checked``."""

    alpha: float = 1.0
    beta: float = 0.0
    trans_a: bool = False
    trans_b: bool = False

    @classmethod
    def checked(cls, alpha, beta, trans_a, trans_b, c) -> GemmOptions:
        """Raises ``OptionError`` unless alpha and beta are real numbers, there is a C for a beta that is not 0, and
        the other two are True or False."""
        for name, x in (("alpha", alpha), ("beta", beta)):
            if not isinstance(x, Real):
                raise OptionError(f"{name} must be a real number, got {type(x).__name__}")
        if beta != 0 and c is None:
            raise OptionError(f"beta={beta} needs an array c to multiply: pass c, or leave beta at 0")
        return cls(alpha, beta, arguments.flag("trans_a", trans_a), arguments.flag("trans_b", trans_b))


class Product(NamedTuple):
    """One checked product, ``alpha * a @ b + beta * c``: what every call becomes before a kernel is chosen.

    Attributes:
        types: types family of the operands.
        a, b: (..., m, k) and (..., k, n); transposed views for ``trans_a`` and ``trans_b``.
        c: (..., m, n), each 1 where C broadcasts; None where nothing is added.
        out: array of the shape ``full`` to write to, or None for a new one.
        full: shape (*batch, m, n) of the result.
        shape: what the caller gets: ``full`` without the dimensions that vectors lack.
        dtype: of the result.
        alpha, beta: factors of the product and of C.
    """

    types: str
    a: Array
    b: Array
    c: Array | None
    out: Array | None
    full: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    alpha: float = 1.0
    beta: float = 0.0

    @property
    def sizes(self) -> tuple[int, int, int]:
        """m, n and k."""
        return self.full[-2], self.full[-1], self.a.shape[-1]

    @property
    def count(self) -> int:
        """Products of the batch."""
        return math.prod(self.full[:-2])


def check_threads(threads) -> None:
    """Raise unless ``threads`` is None or a positive integer."""
    if threads is not None and (not isinstance(threads, Integral) or threads < 1):
        raise OptionError(f"threads must be a positive integer, or None, got {threads!r}")


def check_tile_call(kernel: Tile, a, b, c, out, out_name: str = "out") -> Product:
    """The product of ``kernel(a, b, c, out=out)``; raises unless the operands fit."""
    check_dimensions("a", a.shape, 2, f"(..., {kernel.mr}, K)")
    check_dimensions("b", b.shape, 2, f"(..., K, {kernel.nr})")
    dtypes.check(dtypes.FAMILIES[kernel.types], a.dtype, b.dtype)
    if a.shape[-2] != kernel.mr or b.shape[-1] != kernel.nr:
        raise ShapeError(
            f"{kernel.name} takes a (..., {kernel.mr}, K) and b (..., K, {kernel.nr}), got {a.shape} and {b.shape}: "
            "pysimd.matmul takes any shape"
        )
    check_inner(a.shape, b.shape)
    shapes = {"a": a.shape, "b": b.shape}
    if c is not None:
        check_dimensions("c", c.shape, 2, f"(..., {kernel.mr}, {kernel.nr})")
        check_c_dtype(c, kernel.c_dtype)
        if c.shape[-2:] != (kernel.mr, kernel.nr):
            raise ShapeError(f"c must be (..., {kernel.mr}, {kernel.nr}), got {c.shape}")
        shapes["c"] = c.shape
    shape = (*broadcast_batch(shapes), kernel.mr, kernel.nr)
    if out is not None:
        check_out(out, shape, kernel.c_dtype, out_name)
    return Product(kernel.types, a, b, c, out, shape, shape, kernel.c_dtype, 1.0, 0.0 if c is None else 1.0)


def check_matmul(kernel: Typed | None, a, b, out, offered: tuple[str, ...], narrow: bool = False) -> Product:
    """The product of ``matmul``, vectors as matrices of one row or column; raises unless the operands fit. ``offered``
    are the types families of the backend, which also computes results of ``out``'s own 16-bit type if ``narrow``."""
    if kernel is None:
        family = dtypes.family_of(a.dtype, b.dtype, offered)
    else:
        family = dtypes.FAMILIES[kernel.types]
        dtypes.check(family, a.dtype, b.dtype)
    check_dimensions("a", a.shape, 1, "(..., m, k) or (k,)")
    check_dimensions("b", b.shape, 1, "(..., k, n) or (k,)")
    a_vector, b_vector = a.ndim == 1, b.ndim == 1
    a = a[None, :] if a_vector else a
    b = b[:, None] if b_vector else b
    check_inner(a.shape, b.shape)
    m, n = a.shape[-2], b.shape[-1]
    batch = broadcast_batch({"a": a.shape, "b": b.shape})
    shape = (*batch, *(() if a_vector else (m,)), *(() if b_vector else (n,)))
    dtype = dtypes.result_of(family, a.dtype, None if out is None else out.dtype, narrow)
    if out is not None:
        check_out(out, shape, dtype)
        if a_vector:
            out = out[..., None] if b_vector else out[..., None, :]
        if b_vector:
            out = out[..., None]
    return Product(family.name, a, b, None, out, (*batch, m, n), shape, dtype)


def check_gemm(
    kernel: Typed | None, a, b, c, out, options: GemmOptions, offered: tuple[str, ...], narrow: bool = False
) -> Product:
    """The product of ``gemm``, with ``check_matmul``'s arguments. C is left out where beta is 0."""
    if kernel is None:
        family = dtypes.family_of(a.dtype, b.dtype, offered)
    else:
        family = dtypes.FAMILIES[kernel.types]
        dtypes.check(family, a.dtype, b.dtype)
    given = {"a": a, "b": b}
    for name, x, transposed, letters in (("a", a, options.trans_a, "mk"), ("b", b, options.trans_b, "kn")):
        first, last = reversed(letters) if transposed else letters
        check_dimensions(name, x.shape, 2, f"(..., {first}, {last})")
    a = a.swapaxes(-1, -2) if options.trans_a else a
    b = b.swapaxes(-1, -2) if options.trans_b else b
    if a.shape[-1] != b.shape[-2]:
        axes = {"a": -2 if options.trans_a else -1, "b": -1 if options.trans_b else -2}
        words = ", ".join(f"{name} {x.shape} has {x.shape[axes[name]]}" for name, x in given.items())
        raise ShapeError(f"a and b must have the same k: {words}")
    matrix = (a.shape[-2], b.shape[-1])
    dtype = dtypes.result_of(family, a.dtype, None if out is None else out.dtype, narrow)
    shapes = {"a": a.shape, "b": b.shape}
    if c is not None:
        check_c_dtype(c, dtype, ", the type of the result")
        c = as_matrices(c, matrix)
        shapes["c"] = c.shape
    shape = (*broadcast_batch(shapes), *matrix)
    if out is not None:
        check_out(out, shape, dtype)
    for name, factor in (("alpha", options.alpha), ("beta", options.beta)):
        if dtype.kind == "i" and not _is_int32(factor):
            raise OptionError(f"{name} must be an int32 for a result of {dtype.name}, got {factor}")
    c = c if options.beta != 0 else None
    return Product(family.name, a, b, c, out, shape, shape, dtype, options.alpha, options.beta)


def _is_int32(x: Real) -> bool:
    try:
        whole = int(x)
    except (OverflowError, ValueError):  # infinity, NaN
        return False
    return whole == x and -(1 << 31) <= whole < 1 << 31


def check_c_dtype(c, dtype: np.dtype, meaning: str = "") -> None:
    """Raise unless C has this dtype; ``meaning``: of the dtype, for the message."""
    if c.dtype != dtype:
        raise DTypeError(f"c must be {dtype.name}{meaning}, got {dtypes.describe(c.dtype)}")


def as_matrices(c: Array, matrix: tuple[int, int]) -> Array:
    """C with rows and columns, each 1 where it broadcasts to those of ``matrix``; raises unless it does."""
    found = c[(None,) * (2 - c.ndim)] if c.ndim < 2 else c
    if any(own not in (1, n) for own, n in zip(found.shape[-2:], matrix, strict=True)):
        raise ShapeError(f"c must broadcast to (..., {matrix[0]}, {matrix[1]}), got {c.shape}")
    return found


class ArrayModule(Protocol):
    """The functions of a backend's arrays that ``write`` calls."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array: ...
    def storable(self, out: Array) -> bool: ...
    def overlap(self, x: Array, y: Array) -> bool: ...
    def same_memory(self, x: Array, y: Array) -> bool: ...
    def copy(self, to: Array, x: Array) -> None: ...


def write(product: Product, arrays: ArrayModule, compute: Callable[[Array], None]) -> Array:
    """Call ``compute(target)`` and return the result: ``out`` if there is one, else a new array.

    The target is ``out`` where kernels can store to it and it overlaps no operand (C may be the same memory), else a
    new array, which is then copied to ``out``.
    """
    out, c = product.out, product.c
    in_place = (
        out is not None
        and arrays.storable(out)
        and not arrays.overlap(out, product.a)
        and not arrays.overlap(out, product.b)
        and (c is None or arrays.same_memory(c, out) or not arrays.overlap(out, c))
    )
    target = out if in_place else arrays.empty(product.full, product.dtype)
    compute(target)
    if out is None or in_place:
        return target
    arrays.copy(out, target)
    return out


def scaled(result: Array, product: Product, readable: Callable[[Array], Array]) -> Array:
    """``alpha * result + beta * c`` element by element, rounded after each operation; overwrites ``result``.

    ``readable`` gives C, or an aligned copy of it.
    """
    with np.errstate(all="ignore"):  # NaN and infinity are values like others
        if product.alpha != 1:
            result *= product.dtype.type(product.alpha)
        if product.c is not None:
            result = result + readable(product.c) * product.dtype.type(product.beta)
    return result


def batch_strides(x, batch: tuple[int, ...]) -> list[int]:
    """Strides of ``x``, in bytes, along the batch dimensions ``batch``; 0 where it broadcasts."""
    missing = len(batch) - (x.ndim - 2)
    own = zip(x.shape[:-2], x.strides[:-2], strict=True)
    return [0] * missing + [0 if n == 1 else stride for n, stride in own]


def merged(shape, *strides) -> list[tuple[int, list[int]]]:
    """Length and strides of each batch dimension, without those of length 1 and with adjacent ones merged where the
    strides of all operands allow it."""
    joined: list[tuple[int, list[int]]] = []
    for n, *steps in zip(shape, *strides, strict=True):
        if n == 1:
            continue
        if joined and all(outer == n * inner for outer, inner in zip(joined[-1][1], steps, strict=True)):
            joined[-1] = (joined[-1][0] * n, steps)
        else:
            joined.append((n, steps))
    return joined
