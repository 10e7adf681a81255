"""As much of CuPy as allocates memory and launches kernels, without a GPU: addresses are numbers."""

from __future__ import annotations

import contextlib
import itertools
from types import SimpleNamespace


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


def module(capturing: bool = False, stream: int = 0):
    """A module that records in ``events`` what it was asked for.

    Args:
        capturing: whether the current stream captures a graph.
        stream: handle of the current stream.
    """
    events: list[tuple] = []
    allocators = [lambda nbytes: Memory(nbytes, "pool", events)]

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
        malloc_async=lambda nbytes: Memory(nbytes, "graph", events),
        using_allocator=using_allocator,
        get_current_stream=lambda: SimpleNamespace(ptr=stream),
        Memory=lambda nbytes: Memory(nbytes, "device", events),
        MemoryPointer=lambda memory, offset: memory,
        MemoryPool=Pool,
        Device=lambda device: contextlib.nullcontext(),
        function=SimpleNamespace(CPointer=Pointer),
        runtime=runtime,
    )
    return SimpleNamespace(cuda=cuda, events=events)
