"""Peaks of one core of this machine: independent multiply-adds in registers (cpu_kernels/templates/peak.h), and
loads of the same vectors from each cache and from memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pysimd import _cpu
from pysimd._cpu import ffi, lib
from pysimd.backends.cpu import table
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import timing
from pysimd.bench.data import random_bytes

ROUNDS = 60
"""Samples of each loop. The shortest counts: the clock of a core depends on the load of its neighbours, and the highest
rate is the one that repeats. (The lower quartile differed by 7 % from one measurement to the next.)"""

SAMPLE_NS = 5e5
"""Nanoseconds of a sample, less than a scheduler's time slice."""

_LEAST_VECTOR = 16
"""Bytes of the narrowest vector: a loop that loads fewer also widens the elements, so it does not time loads alone."""

_CHUNK = 32 << 20
"""Bytes of memory that a sample reads; the next sample of any loop continues where it ended."""

_LARGEST_WINDOW = 1 << 30


def identity() -> dict[str, Any]:
    """What a peak belongs to: the processor as this process may use it, and the code that measures."""
    here, code = CPU.backend(), (_cpu.__file__, __file__, timing.__file__)
    return {
        "device": here.device,
        "features": list(here.features),
        "targets": sorted({k.target for k in CPU.kernels() if k.available}),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cache_bytes": cache_bytes(),
        "build": hashlib.sha256(b"".join(Path(file).read_bytes() for file in code)).hexdigest()[:16],
    }


@cache
def cache_bytes() -> dict[str, int]:
    """Sizes of the data caches by name, as the system reports them; 32 KiB and 512 KiB where it does not."""
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
    """Bytes that the loads read repeatedly, by the memory that they come from.

    L1: one page. L2: an eighth of it, or three times L1; physical pages map to L2 sets at random, and more pages would
    evict each other. L3: four times L2, where L3 is at least eight times L2. Memory: twice the largest cache, at least
    256 MiB, at most 1 GiB and a quarter of the free memory.
    """
    sizes = cache_bytes()
    found = {"L1": 4096}
    if "L2" in sizes:
        found["L2"] = min(max(sizes["L2"] // 8, 3 * sizes.get("L1", 0)), sizes["L2"] // 2)
    largest = max(sizes.values())
    if sizes.get("L3", 0) >= 8 * sizes.get("L2", largest):
        found["L3"] = 4 * sizes["L2"]
    found["memory"] = min(max(2 * largest, 256 << 20), _LARGEST_WINDOW, _free_bytes() // 4) // _CHUNK * _CHUNK
    return {memory: nbytes for memory, nbytes in found.items() if nbytes}


def _free_bytes() -> int:
    """Free memory, bounded by the limit of the container."""
    found = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            found.append(int(Path(path).read_text()))
    return min(found)


_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def index(target: str, types: str) -> int | None:
    """Row of a target and types family in peaks.inc; None if it has none."""
    numbers = table.TARGETS.index(target), table.TYPES[types]
    rows = (lib.pysimd_peaks[i] for i in range(lib.pysimd_peak_count))
    return next((i for i, row in enumerate(rows) if (row.target, row.types) == numbers), None)


def step_bytes(row: int) -> int | None:
    """Bytes of a step of loads; None where the loads convert their elements, and are not timed."""
    nbytes = lib.pysimd_peaks[row].loads(ffi.NULL, 0, 0)
    return nbytes if nbytes >= lib.PYSIMD_LOADS_A_STEP * _LEAST_VECTOR else None


class MultiplyAdds:
    """The multiply-adds of one target and types family, in samples of about ``sample_ns``."""

    def __init__(self, row: int, sample_ns: float):
        self._row = row
        self._steps = max(1, int(sample_ns / lib.pysimd_time_peak(row, 1000, 2)))

    def ns(self) -> float:
        """Nanoseconds of a step: the better of two, since a core changes its clock with the instruction set."""
        return lib.pysimd_time_peak(self._row, self._steps, 2)

    def rates(self, ns: float) -> dict[str, float]:
        """10^9 operations per second, two per multiply-add, where a step takes ``ns``."""
        return {"gflops": 2 * lib.pysimd_peaks[self._row].macs / ns}


class Buffer:
    """Random bytes that all loads share, and the position that reads of memory have reached in them."""

    def __init__(self, nbytes: int):
        self._bytes = random_bytes(nbytes)
        self.nbytes, self.pointer, self._next = nbytes, ffi.from_buffer(self._bytes), 0

    def next_chunk(self):
        """Address of the chunk that was not read for longest."""
        start, self._next = self._next, self._next + _CHUNK
        if self._next + _CHUNK > self.nbytes:
            self._next = 0
        return self.pointer + start


class Loads:
    """Vector loads of one target and types family from one memory, in samples of about ``sample_ns``."""

    def __init__(self, row: int, memory: str, buffer: Buffer, sample_ns: float):
        self._row, self._step, self._buffer = row, step_bytes(row), buffer
        self.window = windows()[memory] // self._step * self._step
        self._cached = memory != "memory"
        self._steps = (self.window if self._cached else _CHUNK) // self._step
        if self._cached:
            self._steps = max(self._steps, int(sample_ns / self.ns()))

    def ns(self) -> float:
        """Nanoseconds of a step. A cache is filled by one pass before, and the better of two samples counts; memory is
        read once, chunk after chunk."""
        if not self._cached:
            return lib.pysimd_time_loads(self._row, self._buffer.next_chunk(), _CHUNK, self._steps, 1)
        pointer = self._buffer.pointer
        lib.pysimd_time_loads(self._row, pointer, self.window, self.window // self._step, 1)
        return lib.pysimd_time_loads(self._row, pointer, self.window, self._steps, 2)

    def rates(self, ns: float) -> dict[str, float]:
        """10^9 bytes and 10^9 load instructions per second, where a step takes ``ns``."""
        return {"gbytes_per_s": self._step / ns, "gloads_per_s": lib.PYSIMD_LOADS_A_STEP / ns}


def baselines(row: int, sample_ns: float) -> dict[str, MultiplyAdds | Loads]:
    """What a tile in cache is compared with: ``multiply-adds`` and, unless they convert, ``loads`` from L1."""
    found: dict[str, MultiplyAdds | Loads] = {"multiply-adds": MultiplyAdds(row, sample_ns)}
    if step_bytes(row) is not None:
        found["loads"] = Loads(row, "L1", Buffer(windows()["L1"]), sample_ns)
    return found


def measured(say: Callable[[str], Any]) -> list[dict[str, Any]]:
    """The peak of each target and types family of the kernels that run here, each announced by ``say``. Families are
    measured one after the other, because a core has another clock for each instruction set; multiply-adds and loads of
    one are interleaved."""
    families = dict.fromkeys((k.target, k.types) for k in CPU.kernels() if k.available)
    rows = {family: row for family in families if (row := index(*family)) is not None}
    say(f"peaks of one core, {len(rows)} of them; filling memory to read ...")
    buffer = Buffer(max(windows().values()))
    found = []
    for i, ((target, types), row) in enumerate(rows.items(), 1):
        say(f"[{i}/{len(rows)}] peak of {target} {types} ...")
        found.append({"target": target, "types": types, **_measured(row, buffer)})
    return found


def _measured(row: int, buffer: Buffer) -> dict[str, Any]:
    memories = windows() if step_bytes(row) is not None else ()
    multiply_adds = MultiplyAdds(row, SAMPLE_NS)
    loads = {memory: Loads(row, memory, buffer, SAMPLE_NS) for memory in memories}
    samples = timing.interleaved({"": multiply_adds.ns, **{memory: x.ns for memory, x in loads.items()}}, ROUNDS)
    return {
        "instruction": "",
        **multiply_adds.rates(min(samples[""])),
        "loads": [
            {"memory": memory, "window_bytes": x.window, **x.rates(min(samples[memory]))} for memory, x in loads.items()
        ],
    }
