"""The most that one core of this machine does: the multiply-add chains of cpu_kernels/peak.h, and loads of the same
vectors from each cache and from memory."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pysimd import _cpu
from pysimd._cpu import ffi, lib
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU

ROUNDS = 60
"""Turns of each, one after the other. The shortest counts: a core's clock follows what its neighbours do, and the most
that it does is what comes again. (The lower quartile differed by 7 % from one measurement to the next.)"""

TURN_NS = 5e5
"""Nanoseconds of a turn, shorter than what a scheduler gives to a process at a time."""

_LEAST_VECTOR = 16
"""Bytes of the narrowest vector: a load of less widens its elements, and is no load alone."""

_CHUNK = 32 << 20
"""Bytes of memory that are read in a turn; the next turn, whosever it is, goes on where it ended."""

_MOST_WINDOW = 1 << 30


def identity() -> dict[str, Any]:
    """What a peak belongs to: the processor as this process may use it, and the code that measures."""
    here = CPU.backend()
    return {
        "device": here.device,
        "features": list(here.features),
        "targets": sorted({k.target for k in CPU.kernels() if k.available}),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cache_bytes": cache_bytes(),
        "build": hashlib.sha256(Path(_cpu.__file__).read_bytes() + Path(__file__).read_bytes()).hexdigest()[:16],
    }


@cache
def cache_bytes() -> dict[str, int]:
    """Sizes of the caches that hold data, by name, as the system tells them; 32 KiB and 512 KiB where it does not."""
    found: dict[str, int] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind in ("Data", "Unified") and size[-1:] in ("K", "M"):
            found[f"L{level}"] = int(size[:-1]) << (10 if size[-1] == "K" else 20)
    return found or {"L1": 32 << 10, "L2": 512 << 10}


@cache
def windows() -> dict[str, int]:
    """Bytes that are walked through again and again, by the memory that they come from.

    A page for L1. An eighth of L2, or three times L1: pages lie in L2 as chance has it, and more of them would push
    each other out. Four times L2 where L3 is larger than twice that. Twice L3 for memory: 256 MiB at least, 1 GiB and a
    quarter of what is free at most.
    """
    sizes = cache_bytes()
    found = {"L1": 4096}
    if "L2" in sizes:
        found["L2"] = min(max(sizes["L2"] // 8, 3 * sizes.get("L1", 0)), sizes["L2"] // 2)
    largest = max(sizes.values())
    if sizes.get("L3", 0) >= 8 * sizes.get("L2", largest):
        found["L3"] = 4 * sizes["L2"]
    found["memory"] = min(max(2 * largest, 256 << 20), _MOST_WINDOW, _free_bytes() // 4) // _CHUNK * _CHUNK
    return {memory: nbytes for memory, nbytes in found.items() if nbytes}


def _free_bytes() -> int:
    """Memory that is free, and not more than a container has in all."""
    found = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            found.append(int(Path(path).read_text()))
    return min(found)


_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def index(target: str, types: str) -> int | None:
    """Place of a target and types family in peaks.inc; None if it is not there."""
    numbers = cpu_table.TARGETS.index(target), cpu_table.TYPES[types]
    rows = (lib.pysimd_peaks[i] for i in range(lib.pysimd_peak_count))
    return next((i for i, row in enumerate(rows) if (row.target, row.types) == numbers), None)


def step_bytes(place: int) -> int | None:
    """Bytes of a step of loads; None where a load converts what it reads, and so is no load alone."""
    nbytes = lib.pysimd_peaks[place].loads(ffi.NULL, 0, 0)
    return nbytes if nbytes >= lib.PYSIMD_LOADS_A_STEP * _LEAST_VECTOR else None


def aligned(nbytes: int) -> np.ndarray:
    """New bytes that start on a page."""
    room = np.empty(nbytes + 4096, np.uint8)
    start = -room.ctypes.data % 4096
    return room[start : start + nbytes]


def random_bytes(nbytes: int) -> np.ndarray:
    """A random piece again and again, since zeros would cost less power; on a page."""
    found = aligned(nbytes)
    piece = np.random.default_rng(0).integers(0, 256, min(nbytes, 1 << 20), np.uint8)
    for at in range(0, nbytes, len(piece)):
        found[at : at + len(piece)] = piece[: nbytes - at]
    return found


class Chain:
    """The chain of multiply-adds of one target and types family, in turns of about ``turn_ns``."""

    def __init__(self, place: int, turn_ns: float = TURN_NS):
        self.place = place
        self.steps = max(1, int(turn_ns / lib.pysimd_time_peak(place, 1000, 2)))

    def ns(self) -> float:
        """Nanoseconds of a step: the better of two, for a core changes its clock when other instructions come."""
        return lib.pysimd_time_peak(self.place, self.steps, 2)

    def rates(self, ns: float) -> dict[str, float]:
        """10^9 operations in a second, two per multiply-add, where a step takes ``ns``."""
        return {"gflops": 2 * lib.pysimd_peaks[self.place].macs / ns}


class Buffer:
    """Random bytes that all loads share, and how far memory was read in them."""

    def __init__(self, nbytes: int):
        self._kept = random_bytes(nbytes)
        self.nbytes, self.pointer, self._at = nbytes, ffi.from_buffer(self._kept), 0

    def next_chunk(self):
        """Where the part of the window lies that was not read for longest."""
        at, self._at = self._at, self._at + _CHUNK
        if self._at + _CHUNK > self.nbytes:
            self._at = 0
        return self.pointer + at


class Loads:
    """Vector loads of one target and types family from one memory, in turns of about ``turn_ns``."""

    def __init__(self, place: int, memory: str, buffer: Buffer, turn_ns: float = TURN_NS):
        self.place, self.step, self.buffer = place, step_bytes(place), buffer
        self.window = windows()[memory] // self.step * self.step
        self.passes_caches = memory == "memory"
        self.steps = (_CHUNK if self.passes_caches else self.window) // self.step
        if not self.passes_caches:
            self.steps = max(self.steps, int(turn_ns / self.ns()))

    def ns(self) -> float:
        """Nanoseconds of a step: of a cache after a walk that fills it, the better of two; of memory further on."""
        if self.passes_caches:
            return lib.pysimd_time_loads(self.place, self.buffer.next_chunk(), _CHUNK, self.steps, 1)
        lib.pysimd_time_loads(self.place, self.buffer.pointer, self.window, self.window // self.step, 1)
        return lib.pysimd_time_loads(self.place, self.buffer.pointer, self.window, self.steps, 2)

    def rates(self, ns: float) -> dict[str, float]:
        """10^9 bytes and 10^9 load instructions in a second, where a step takes ``ns``."""
        return {"gbytes_per_s": self.step / ns, "gloads_per_s": lib.PYSIMD_LOADS_A_STEP / ns}


def beside(place: int, turn_ns: float) -> list[Chain | Loads]:
    """Chain and, if they are loads alone, loads from L1: what a tile in cache is timed beside, turn by turn."""
    chain = Chain(place, turn_ns)
    return [chain] if step_bytes(place) is None else [chain, Loads(place, "L1", Buffer(windows()["L1"]), turn_ns)]


def measured() -> list[dict[str, Any]]:
    """The peak of each target and types family of the kernels that run here: one after the other, because a core has
    another clock for each instruction set; chain and loads of one turn by turn."""
    families = dict.fromkeys((k.target, k.types) for k in CPU.kernels() if k.available)
    places = {family: place for family in families if (place := index(*family)) is not None}
    buffer = Buffer(max(windows().values()))
    return [{"target": target, "types": types, **_measured(place, buffer)} for (target, types), place in places.items()]


def _measured(place: int, buffer: Buffer) -> dict[str, Any]:
    chain, memories = Chain(place), windows() if step_bytes(place) is not None else ()
    loads = [Loads(place, memory, buffer) for memory in memories]
    ns = [[x.ns() for x in (chain, *loads)] for _ in range(ROUNDS)]
    chain_ns, *loads_ns = map(float, np.min(ns, axis=0))
    return {
        "instruction": "",
        **chain.rates(chain_ns),
        "loads": [
            {"memory": memory, "window_bytes": load.window, **load.rates(each)}
            for memory, load, each in zip(memories, loads, loads_ns, strict=True)
        ],
    }
