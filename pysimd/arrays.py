"""Operands: which device an array is on, its NumPy view, and the checks that every backend makes in the same words."""

from __future__ import annotations

import numpy as np

from .errors import DTypeError, ShapeError

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
    """The one backend whose arrays these are; ``operands`` maps argument names to values, None left out.

    Raises:
        DTypeError: something is no array, or the arrays are on different devices; the message says which is which.
    """
    devices = {name: device_of(x) for name, x in operands.items() if x is not None}
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
    try:
        return np.broadcast_shapes(*(shape[:-2] for shape in shapes.values()))
    except ValueError:
        listed = ", ".join(f"{name} {shape[:-2]} (of {shape})" for name, shape in shapes.items())
        raise ShapeError(f"batch dimensions do not broadcast: {listed}") from None


def check_out(out, shape: tuple[int, ...], dtype: np.dtype, name: str = "out") -> None:
    """Raise unless ``out`` has exactly this shape and dtype and can be written."""
    if out.shape != shape:
        raise ShapeError(f"{name} must have shape {shape}, the shape of the result, got {out.shape}")
    if out.dtype != dtype:
        raise DTypeError(f"{name} must be {dtype.name}, the type of the result, got {out.dtype.name}")
    flags = getattr(out, "flags", None)
    if flags is not None and not getattr(flags, "writeable", True):
        raise ShapeError(f"{name} is read-only: pass a writable array, or none to get a new one")
