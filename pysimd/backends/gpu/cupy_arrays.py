"""CuPy arrays as the CUDA and the HIP backend need them: views of what others export, the device guard, overlap,
alignment. The functions of ``operands.ArrayModule`` are among them."""

from __future__ import annotations

import contextlib
import sys

import numpy as np

from pysimd.backends.gpu import torch_tensors
from pysimd.errors import DTypeError


def as_cupy(name: str, x):
    """A CuPy array on the same memory. The caller has seen that ``x`` is on a GPU."""
    import cupy

    if isinstance(x, cupy.ndarray):
        return x
    if torch_tensors.is_tensor(x) and x.is_neg():
        raise DTypeError(f"{name} (Tensor) is a view of negated memory: call its resolve_neg()")
    try:
        return cupy.from_dlpack(x)
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(f"{name} ({type(x).__name__}) cannot be viewed as a CuPy array: {error}") from error


def like(x, given):
    """``x``, a CuPy array, as the kind of array that ``given`` is: its library takes it through DLPack."""
    import cupy

    if isinstance(given, cupy.ndarray):
        return x
    library = sys.modules.get(type(given).__module__.partition(".")[0])
    from_dlpack = getattr(library, "from_dlpack", None) or getattr(
        getattr(library, "dlpack", None), "from_dlpack", None
    )
    return from_dlpack(x) if from_dlpack else x


@contextlib.contextmanager
def device_guard(*given):
    """Device guard: makes the device of the arrays current, and for torch tensors torch's current stream."""
    import cupy

    devices = {}
    for x in given:
        if x is not None:
            devices[x.device.id if isinstance(x, cupy.ndarray) else int(x.__dlpack_device__()[1])] = x
    if len(devices) > 1:
        raise DTypeError(f"arrays of different GPUs: {sorted(devices)}. Nothing is copied silently: move them to one")
    (device,) = devices
    with contextlib.ExitStack() as stack:
        if device != cupy.cuda.runtime.getDevice():
            stack.enter_context(cupy.cuda.Device(device))
        if type(devices[device]).__module__.partition(".")[0] == "torch":
            stack.enter_context(torch_tensors.current_stream(device))
        yield device


def aligned(x) -> bool:
    """Whether every element is aligned to its own size, as kernels need it."""
    size = x.itemsize
    return not (x.data.ptr % size or any(s % size for s, n in zip(x.strides, x.shape, strict=True) if n > 1))


def _bytes_of(x):
    """The array with its elements as bytes, in one dimension more; any alignment."""
    import cupy

    return cupy.ndarray((*x.shape, x.itemsize), np.uint8, x.data, strides=(*x.strides, 1))


def readable(x):
    """``x``, or an aligned copy."""
    if x.size == 0 or aligned(x):
        return x
    return _bytes_of(x).copy(order="C").view(x.dtype).reshape(x.shape)


def copy(to, x) -> None:
    """``to[...] = x``, whatever the alignment of ``to``."""
    if to.size == 0:
        return
    if aligned(to):
        to[...] = x
    else:
        x = x.reshape(*x.shape, 1) if x.flags.c_contiguous else x.copy().reshape(*x.shape, 1)
        _bytes_of(to)[...] = x.view(np.uint8)


def span(x) -> tuple[int, int]:
    """First byte and the one past the last."""
    low = high = x.data.ptr
    for n, stride in zip(x.shape, x.strides, strict=True):
        if n == 0:
            return low, low
        reach = (n - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + x.itemsize


def overlap(x, y) -> bool:
    """Whether the memory that the two span has a byte in common."""
    (low_x, high_x), (low_y, high_y) = span(x), span(y)
    return low_x < high_y and low_y < high_x and low_x < high_x and low_y < high_y


def empty(shape, dtype):
    """A new array in C order."""
    import cupy

    return cupy.empty(shape, dtype)


def synchronize(x) -> None:
    """Wait for the current stream of the device of ``x``."""
    import cupy

    with x.device:
        cupy.cuda.get_current_stream().synchronize()


def storable(out) -> bool:
    """Whether a kernel can store into ``out``: aligned, and no element repeated."""
    return aligned(out) and all(s != 0 or n <= 1 for s, n in zip(out.strides, out.shape, strict=True))


def same_memory(x, y) -> bool:
    """Whether the two are the same elements in the same order."""
    return (x.data.ptr, x.shape, x.strides) == (y.data.ptr, y.shape, y.strides)
