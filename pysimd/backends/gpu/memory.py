"""Memory that launches need besides their operands: temporaries, scratch memory, counters of grid-wide barriers.

A launch allocates it and gives it back at once: CuPy's pool hands memory out again in the order of the stream. A graph
that is captured is replayed at any time, so while the current stream captures one, all of it is allocated in the graph
(stream-ordered allocation): the graph's alone, for as long as it lives.
"""

from __future__ import annotations

import contextlib
from functools import cache

from pysimd.errors import OptionError

_LEGACY = 1
"""Handles up to this one are the legacy default stream, which cannot capture."""


def capturing() -> bool:
    """Whether CuPy's current stream captures a graph."""
    import cupy

    handle = cupy.cuda.get_current_stream().ptr
    runtime = cupy.cuda.runtime
    return handle > _LEGACY and not runtime.is_hip and runtime.streamIsCapturing(handle)


@contextlib.contextmanager
def temporaries():
    """What CuPy allocates inside is freed inside, and belongs to the graph that the current stream captures, if any."""
    import cupy

    with cupy.cuda.using_allocator(_in_graph) if capturing() else contextlib.nullcontext():
        yield


def _in_graph(nbytes: int):
    import cupy

    try:
        return cupy.cuda.malloc_async(nbytes)
    except RuntimeError as error:
        raise OptionError(
            f"this product needs {nbytes} bytes besides its operands, which cannot be allocated in the graph that is "
            f"captured ({error}): capture products of aligned, row-major operands into an out that overlaps none"
        ) from error


COUNTER_BYTES = 512


def barrier_counter():
    """Memory of the words that the blocks of one launch count at. The lower 31 bits of the first, of a grid-wide
    barrier (tile_scheduler.cuh), are 0 before the launch and after it; so are all bits of the others
    (wgmma_gemm.cuh). To be called within ``temporaries``."""
    import cupy

    if not capturing():
        return _counters().malloc(COUNTER_BYTES)
    words = cupy.cuda.alloc(COUNTER_BYTES)
    cupy.cuda.runtime.memsetAsync(words.ptr, 0, COUNTER_BYTES, cupy.cuda.get_current_stream().ptr)
    return words


@cache
def _counters():
    """A pool of counters alone, so that one which is handed out again is as its last launch left it."""
    import cupy

    return cupy.cuda.MemoryPool(_zeros)


def _zeros(nbytes: int):
    import cupy

    memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(nbytes), 0)
    cupy.cuda.runtime.memsetAsync(memory.ptr, 0, nbytes, cupy.cuda.get_current_stream().ptr)
    return memory
