"""The most that the current CUDA device does: the chains of gpu_kernels/peaks.cu, and the loads of loads.cu from
shared memory, both caches and device memory."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pysimd import sources
from pysimd.backends.cuda import tiles as cuda_tiles
from pysimd.backends.cuda.implementation import CUDA
from pysimd.backends.gpu.plans import current_device
from pysimd.gpu_kernels import table

ROUNDS = 9
"""Turns of each, one after the other, after one to warm up; their median counts."""

_TURN_NS = 2e6
_BLOCKS, _THREADS, _UNROLL = 4, 256, 8  # for each multiprocessor, of a block, as in loads.cu
_WORDS = {"uint4": 16, "unsigned": 4}


class Timed(NamedTuple):
    """What is launched, and how many operations or bytes that is."""

    run: Callable[[], Any]
    amount: float


def identity() -> dict[str, Any]:
    """What a peak belongs to: device, driver, compiler, and the code that measures."""
    import cupy

    here, properties = CUDA.backend(), cupy.cuda.runtime.getDeviceProperties(current_device())
    texts = Path(__file__).read_text() + "".join(sources.read(f"gpu_kernels/{x}.cu") for x in ("peaks", "loads"))
    return {
        "device": here.device,
        "features": list(here.features),
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "nvrtc": list(cupy.cuda.nvrtc.getVersion()),
        "cupy": cupy.__version__,
        "build": hashlib.sha256(texts.encode()).hexdigest()[:16],
    }


#: Chain of peaks.cu that an instruction is compared with, and operations of one of its instructions in a thread.
PEAKS = {
    "FFMA": ("ffma", 2),
    "DFMA": ("dfma", 2),
    "HFMA2": ("hfma2", 4),
    "IDP.4A": ("dp4a", 8),
    "HMMA": ("hmma", 128),
    "IMMA": ("imma", 256),
}

_PEAK_INSTRUCTIONS = 128
"""Instructions of a turn in peaks.cu."""


def peak_run(name: str, operations: int, steps: int = 4000):
    """A function that runs a chain of peaks.cu on the whole device, and how many operations it does."""
    import cupy

    function = cuda_tiles.function("../peaks.cu", f"peak<{name.upper()}>", current_device())
    processors = cupy.cuda.runtime.getDeviceProperties(current_device())["multiProcessorCount"]
    halves, threads = name.startswith(("hfma2", "hmma")), 256
    values = np.random.default_rng(0).uniform(-1, 1, 512 if halves else 256)
    given = cupy.asarray(values.astype(np.float16 if halves else np.float32))
    out = cupy.zeros(4 * 8 * processors * threads, np.float32)
    run = functools.partial(function, (8 * processors,), (threads,), (given, out, np.int32(steps)))
    return run, float(8 * processors * threads * steps * _PEAK_INSTRUCTIONS * operations)


def ceiling(row: table.Kernel) -> tuple[str, int] | None:
    """Chain and operations (``PEAKS``) that a kernel is compared with; None if this device has none."""
    tensor = row.instruction in ("HMMA", "IMMA")
    return None if tensor and int(CUDA.backend().features[0][3:]) < 80 else PEAKS.get(row.instruction)


def windows() -> dict[str, int]:
    """Bytes that are walked through again and again, by memory: by each block for shared memory and L1, by all of them
    for L2 (a third of it at most) and for device memory (32 times L2, and a quarter of what is free at most)."""
    import cupy

    l2 = cupy.cuda.runtime.getDeviceProperties(current_device())["l2CacheSize"]
    free, _ = cupy.cuda.runtime.memGetInfo()
    own = _UNROLL * _THREADS * _WORDS["uint4"]
    return {"shared": own, "L1": own, "L2": _power_of_two(l2 // 3), "memory": _power_of_two(min(32 * l2, free // 4))}


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)


_FROM = {"shared": "SHARED", "L1": "L1", "L2": "L2", "memory": "L2"}


def loads_run(memory: str, word: str = "uint4") -> Timed:
    """A function that loads words (``uint4``, ``unsigned``) from a memory on the whole device for about a turn's time,
    and how many bytes it loads."""
    import cupy

    device, window = current_device(), windows()[memory]
    if memory in ("shared", "L1"):
        window = window * _WORDS[word] // _WORDS["uint4"]
    function = cuda_tiles.function("../loads.cu", f"loads<{word}, {_FROM[memory]}>", device)
    blocks = _BLOCKS * cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"]
    piece = cupy.asarray(np.random.default_rng(0).integers(0, 256, min(window, 1 << 20), np.uint8))
    buffer, out = cupy.tile(piece, window // piece.size), cupy.empty(blocks * _THREADS, np.uint32)

    def of(turns: int) -> Timed:
        given = (buffer, out, np.int64(window // _WORDS[word]), np.int32(turns))
        nbytes = float(blocks * _THREADS * _UNROLL * turns * _WORDS[word])
        return Timed(functools.partial(function, (blocks,), (_THREADS,), given), nbytes)

    short = of(100)
    short.run()
    return of(max(1, int(100 * _TURN_NS / _ns(short.run))))


def _ns(run) -> float:
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    run()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end) * 1e6


def _rates(runs: dict[Any, Timed]) -> dict[Any, float]:
    """10^9 operations or bytes in a second of each."""
    ns = [[_ns(x.run) for x in runs.values()] for _ in range(ROUNDS + 1)][1:]
    return {key: x.amount / t for (key, x), t in zip(runs.items(), np.median(ns, axis=0), strict=True)}


def measured() -> list[dict[str, Any]]:
    """The peak of each types family and instruction of the kernels that run here, and the loads of the device, which
    are the same for all; all of them turn by turn."""
    rows = [table.BY_NAME[k.name] for k in CUDA.kernels() if k.available]
    chains = {(row.types, row.instruction): found for row in rows if (found := ceiling(row))}
    runs: dict[Any, Timed] = {key: Timed(*peak_run(*found)) for key, found in chains.items()}
    runs |= {(memory, word): loads_run(memory, word) for memory in windows() for word in _WORDS}
    rates = _rates(runs)
    loads = [
        {
            "memory": memory,
            "window_bytes": window,
            "gbytes_per_s": rates[memory, "uint4"],
            "gloads_per_s": rates[memory, "unsigned"] / _WORDS["unsigned"],
        }
        for memory, window in windows().items()
    ]
    return [
        {
            "target": "cuda",
            "types": types,
            "instruction": instruction,
            "gflops": rates[types, instruction],
            "loads": loads,
        }
        for types, instruction in chains
    ]
