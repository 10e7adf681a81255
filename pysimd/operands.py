"""Operands: which device an array is on, its NumPy view, and the checks that every backend makes in the same words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pysimd import dtypes
from pysimd.errors import DTypeError, ShapeError

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
    """The one backend whose arrays these are; ``operands`` maps argument names to values; None is left out, but
    for ``a`` and ``b``.

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
    """A NumPy view of a CPU array, no copy. The caller has seen that ``x`` is on the CPU."""
    if isinstance(x, np.ndarray):
        return x if type(x) is np.ndarray else x.view(np.ndarray)
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


def check_tile_call(kernel, a, b, c, out, out_name: str = "out") -> tuple[int, ...]:
    """The shape of the result of ``kernel(a, b, c, out=out)``; raises unless the operands fit."""
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
        if c.dtype != kernel.c_dtype:
            raise DTypeError(f"c must be {kernel.c_dtype.name}, got {dtypes.describe(c.dtype)}")
        if c.shape[-2:] != (kernel.mr, kernel.nr):
            raise ShapeError(f"c must be (..., {kernel.mr}, {kernel.nr}), got {c.shape}")
        shapes["c"] = c.shape
    shape = (*broadcast_batch(shapes), kernel.mr, kernel.nr)
    if out is not None:
        check_out(out, shape, kernel.c_dtype, out_name)
    return shape


class Product(NamedTuple):
    """A matrix product that was checked: operands of two dimensions or more, ``out`` likewise or None.

    ``full`` is the shape (*batch, m, n) of the result, ``shape`` what the caller gets: without the dimensions that
    vectors lack.
    """

    types: str
    a: Any
    b: Any
    out: Any
    full: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype


def check_matmul(kernel, a, b, out, offered: tuple[str, ...]) -> Product:
    """The operands of ``matmul`` as matrices; raises unless they fit. ``kernel`` may be None; ``offered`` are the types
    families of the backend."""
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
    dtype = dtypes.dtype_of(family.c)
    if out is not None:
        check_out(out, shape, dtype)
        if a_vector:
            out = out[..., None] if b_vector else out[..., None, :]
        if b_vector:
            out = out[..., None]
    return Product(family.name, a, b, out, (*batch, m, n), shape, dtype)


def batch_strides(x, batch: tuple[int, ...]) -> list[int]:
    """Strides of ``x``, in bytes, along the batch dimensions ``batch``; 0 where it broadcasts."""
    missing = len(batch) - (x.ndim - 2)
    own = zip(x.shape[:-2], x.strides[:-2], strict=True)
    return [0] * missing + [0 if n == 1 else stride for n, stride in own]


def merged(shape, *strides) -> list[tuple[int, list[int]]]:
    """The batch dimensions without those of length 1, adjacent ones joined where all operands allow it: length and
    strides of each."""
    joined: list[tuple[int, list[int]]] = []
    for n, *steps in zip(shape, *strides, strict=True):
        if n == 1:
            continue
        if joined and all(outer == n * inner for outer, inner in zip(joined[-1][1], steps, strict=True)):
            joined[-1] = (joined[-1][0] * n, steps)
        else:
            joined.append((n, steps))
    return joined
