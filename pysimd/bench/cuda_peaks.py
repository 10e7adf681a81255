"""Peaks of the current CUDA device: independent multiply-adds in registers (gpu_kernels/peaks.cu), and loads from
shared memory, L1, L2 and device memory (gpu_kernels/loads.cu)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pysimd import sources
from pysimd.backends.cuda import device, tiles
from pysimd.backends.cuda.device import current_device
from pysimd.backends.cuda.implementation import CUDA
from pysimd.bench import timing
from pysimd.bench.data import random_array
from pysimd.gpu_kernels import table

Key = TypeVar("Key", bound=Hashable)

ROUNDS = 9
"""Samples of each launch after one to warm up; their median counts."""

WORDS = {"uint4": 16, "unsigned": 4}
"""Bytes of the types that loads.cu loads."""

_SAMPLE_NS = 2e6
_BLOCKS, THREADS, UNROLL = 4, 256, 8  # per multiprocessor, per block, per iteration, as in loads.cu
_CACHE_OPERATORS = {"shared": "SHARED", "L1": "L1", "L2": "L2", "memory": "L2"}


class Work(NamedTuple):
    """A launch on the whole device, and how many operations or bytes it does."""

    launch: Callable[[], Any]
    amount: float


class PeakLoop(NamedTuple):
    """An instance of peaks.cu, in lower case, and operations of one of its instructions in a thread, two per
    multiply-add."""

    instance: str
    operations: int


PEAKS = {
    "FFMA": PeakLoop("ffma", 2),
    "DFMA": PeakLoop("dfma", 2),
    "HFMA2": PeakLoop("hfma2", 4),
    "IDP.4A": PeakLoop("dp4a", 8),
    "HMMA": PeakLoop("hmma", 128),
    "IMMA": PeakLoop("imma", 256),
}
"""The loop that kernels of an instruction are compared with."""

INSTRUCTIONS = 128
"""Multiply-adds of one iteration of peaks.cu."""


def identity() -> dict[str, Any]:
    """What a peak belongs to: device, driver, compiler, and the code that measures."""
    import cupy

    here, properties = device.backend(), cupy.cuda.runtime.getDeviceProperties(current_device())
    texts = [Path(file).read_text() for file in (__file__, timing.__file__)]
    texts += [sources.read(f"gpu_kernels/{name}.cu") for name in ("peaks", "loads")]
    return {
        "device": here.device,
        "features": list(here.features),
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "nvrtc": list(cupy.cuda.nvrtc.getVersion()),
        "cupy": cupy.__version__,
        "build": hashlib.sha256("".join(texts).encode()).hexdigest()[:16],
    }


def compiled(source: str, entry: str):
    """A template instance of a file of gpu_kernels, compiled for the current device."""
    return tiles.function(f"../{source}", entry, current_device())


def multiprocessors() -> int:
    """Of the current device."""
    return device.multiprocessors(current_device())


def peak_loop(row: table.Kernel) -> PeakLoop | None:
    """The loop that a kernel is compared with; None if this device has not its instruction."""
    tensor = row.instruction in ("HMMA", "IMMA")
    return None if tensor and int(device.backend().features[0][3:]) < 80 else PEAKS.get(row.instruction)


def peak_work(loop: PeakLoop, steps: int = 4000) -> Work:
    """Independent multiply-adds in registers, ``steps`` iterations of them in every thread."""
    import cupy

    half = loop.instance.startswith(("hfma2", "hmma"))
    values = np.random.default_rng(0).uniform(-1, 1, 512 if half else 256)
    given = cupy.asarray(values.astype(np.float16 if half else np.float32))
    blocks, threads = 8 * multiprocessors(), 256
    out = cupy.zeros(4 * blocks * threads, np.float32)
    function = compiled("peaks.cu", f"peak<{loop.instance.upper()}>")
    launch = functools.partial(function, (blocks,), (threads,), (given, out, np.int32(steps)))
    return Work(launch, float(blocks * threads * steps * INSTRUCTIONS * loop.operations))


def windows() -> dict[str, int]:
    """Bytes that the loads read repeatedly, by memory. Shared memory and L1: the window of each block. L2 and device
    memory: one window for all blocks, of at most a third of L2, and at most 32 times L2 and a quarter of what is free.
    """
    import cupy

    l2 = cupy.cuda.runtime.getDeviceProperties(current_device())["l2CacheSize"]
    free, _ = cupy.cuda.runtime.memGetInfo()
    own = UNROLL * THREADS * WORDS["uint4"]
    return {"shared": own, "L1": own, "L2": _power_of_two(l2 // 3), "memory": _power_of_two(min(32 * l2, free // 4))}


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)


def load_work(memory: str, word: str) -> Work:
    """Loads of words (``uint4``, ``unsigned``) from a memory, for about the time of a sample."""
    import cupy

    window = windows()[memory]
    if memory in ("shared", "L1"):
        window = window * WORDS[word] // WORDS["uint4"]
    function = compiled("loads.cu", f"loads<{word}, {_CACHE_OPERATORS[memory]}>")
    blocks = _BLOCKS * multiprocessors()
    piece = cupy.asarray(random_array("uint8", (min(window, 1 << 20),), np.random.default_rng(0)))
    buffer, out = cupy.tile(piece, window // piece.size), cupy.empty(blocks * THREADS, np.uint32)

    def iterations(count: int) -> Work:
        given = (buffer, out, np.int64(window // WORDS[word]), np.int32(count))
        nbytes = float(blocks * THREADS * UNROLL * count * WORDS[word])
        return Work(functools.partial(function, (blocks,), (THREADS,), given), nbytes)

    short = iterations(100)
    short.launch()
    ns = timing.CudaEvents().ns(timing.repeated(short.launch), 1)
    return iterations(max(1, int(100 * _SAMPLE_NS / ns)))


def rates(works: Mapping[Key, Work]) -> dict[Key, float]:
    """10^9 operations or bytes per second of each, their launches interleaved; the host's time is not in them."""
    clock = timing.QueuedCudaEvents()
    timers = {key: functools.partial(clock.ns, timing.repeated(work.launch), 1) for key, work in works.items()}
    samples = timing.interleaved(timers, ROUNDS + 1)
    return {key: work.amount / median(samples[key][1:]) for key, work in works.items()}


def measured(say: Callable[[str], Any]) -> list[dict[str, Any]]:
    """The peak of each types family and instruction of the kernels that run here, and the loads of the device, which
    are the same for all. The launches are interleaved. ``say`` is called with lines of progress."""
    say("compiling and measuring the peaks of the device ...")
    rows = [table.BY_NAME[k.name] for k in CUDA.kernels() if k.available]
    loops = {(row.types, row.instruction): loop for row in rows if (loop := peak_loop(row))}
    works: dict[Any, Work] = {key: peak_work(loop) for key, loop in loops.items()}
    works |= {(memory, word): load_work(memory, word) for memory in windows() for word in WORDS}
    found = rates(works)
    loads = [
        {
            "memory": memory,
            "window_bytes": window,
            "gbytes_per_s": found[memory, "uint4"],
            "gloads_per_s": found[memory, "unsigned"] / WORDS["unsigned"],
        }
        for memory, window in windows().items()
    ]
    return [
        {"target": "cuda", "types": types, "instruction": name, "gflops": found[types, name], "loads": loads}
        for types, name in loops
    ]
