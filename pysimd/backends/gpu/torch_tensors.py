"""torch's tensors on a GPU: their types, and torch's current stream as CuPy takes it. Imports no torch."""

from __future__ import annotations

import sys
from functools import cache


def types() -> tuple[type, ...]:
    """The types of ordinary tensors; none before torch is imported."""
    torch = sys.modules.get("torch")
    return () if torch is None else (torch.Tensor, torch.nn.Parameter)


def is_tensor(x) -> bool:
    """Whether ``x`` is an ordinary tensor, not a subclass with a meaning of its own."""
    return type(x) in types()


class _ForeignStream:
    """A stream of another library as CuPy takes it."""

    def __init__(self, handle: int):
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def empty_function():
    """torch's function of shape, strides and dtype for a new tensor on the current GPU: the one of torch's own
    generated code, which takes half as long as ``torch.empty_strided``, where there is one."""
    torch = sys.modules["torch"]
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    fast = getattr(guards, "_empty_strided_cuda", None)
    return fast or (lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device="cuda"))


_STREAMS: dict[int, object] = {}
"""CuPy's views of torch's streams by their handles; torch never destroys a stream."""


def current_stream(device: int):
    """torch's current stream of a device, as CuPy's."""
    handle = _current_handle()(device)
    found = _STREAMS.get(handle)
    if found is None:
        import cupy

        found = _STREAMS[handle] = cupy.cuda.Stream.from_external(_ForeignStream(handle))
    return found


@cache
def _current_handle():
    """torch's function from a device to the handle of its current stream: the one of torch's own generated code, which
    makes no stream object, where there is one."""
    torch = sys.modules["torch"]
    fast = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return fast or (lambda device: torch.cuda.current_stream(device).cuda_stream)
