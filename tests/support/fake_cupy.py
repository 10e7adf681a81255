"""As much of CuPy as allocates memory and launches kernels, without a GPU: addresses are numbers, or of host memory."""

from __future__ import annotations

import contextlib
import itertools
import sys
from types import SimpleNamespace

import numpy as np


class Array(np.ndarray):
    """A NumPy array with the address where a CuPy array has it."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


def array(shape, dtype=np.float32, before=0):
    """Zeros, ``before`` elements past an address divisible by 64."""
    size, itemsize = int(np.prod(shape, dtype=np.int64)), np.dtype(dtype).itemsize
    buffer = np.zeros(size + before + 64, dtype)
    start = -buffer.__array_interface__["data"][0] % 64 // itemsize + before
    return buffer[start : start + size].reshape(shape).view(Array)


class Pointer:
    """What CuPy takes as a parameter of a kernel: where it lies on the host."""

    def __init__(self, ptr=0):
        self.ptr = ptr


class Memory:
    """What CuPy's allocators give: an address, and who gave it."""

    addresses = itertools.count(1 << 40, 1 << 20)

    def __init__(self, nbytes: int, source: str, events: list):
        self.ptr, self.nbytes, self.source, self._events = next(Memory.addresses), nbytes, source, events
        events.append(("alloc", source, self.ptr))

    def __del__(self):
        self._events.append(("free", self.source, self.ptr))


class HostMemory(Memory):
    """Memory that kernels executed on the host can use: zeros."""

    def __init__(self, nbytes: int, source: str, events: list):
        super().__init__(nbytes, source, events)
        self._array = array(nbytes, np.uint8)
        self.ptr = self._array.data.ptr


class Pool:
    """A memory pool that hands out what was freed last, as CuPy's does for one stream."""

    def __init__(self, allocator):
        self._allocator, self._free = allocator, []

    def malloc(self, nbytes: int):
        memory = self._free.pop() if self._free else self._allocator(nbytes)
        pool = self._free

        class Borrowed:
            ptr = memory.ptr

            def __del__(self):
                pool.append(memory)

        return Borrowed()


def module(capturing: bool = False, stream: int = 0, memory: type[Memory] = Memory):
    """A module that records in ``events`` what it was asked for.

    Args:
        capturing: whether the current stream captures a graph.
        stream: handle of the current stream.
        memory: what the allocators give.
    """
    events: list[tuple] = []
    allocators = [lambda nbytes: memory(nbytes, "pool", events)]

    @contextlib.contextmanager
    def using_allocator(allocator):
        allocators.append(allocator)
        try:
            yield
        finally:
            allocators.pop()

    runtime = SimpleNamespace(
        is_hip=False,
        getDevice=lambda: 0,
        streamIsCapturing=lambda handle: capturing,
        memsetAsync=lambda *given: events.append(("memset", *given)),
    )
    cuda = SimpleNamespace(
        alloc=lambda nbytes: allocators[-1](nbytes),
        malloc_async=lambda nbytes: memory(nbytes, "graph", events),
        using_allocator=using_allocator,
        get_current_stream=lambda: SimpleNamespace(ptr=stream),
        Memory=lambda nbytes: memory(nbytes, "device", events),
        MemoryPointer=lambda memory, offset: memory,
        MemoryPool=Pool,
        Device=lambda device: contextlib.nullcontext(),
        function=SimpleNamespace(CPointer=Pointer),
        runtime=runtime,
    )
    return SimpleNamespace(cuda=cuda, events=events)


def install(monkeypatch, module):
    """``import cupy`` gives ``module`` until the end of the test. What compiles in the background ends first, for it
    imports CuPy too."""
    from pysimd.backends.cuda import implementation

    implementation.INSTANCES.wait()
    monkeypatch.setitem(sys.modules, "cupy", module)
