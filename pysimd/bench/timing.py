"""The timing loop. Runs that are compared take their samples in interleaved rounds of one process, because the clock of
a busy machine moves."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Protocol, TypeVar

import numpy as np

Key = TypeVar("Key", bound=Hashable)

Run = Callable[[int], object]
"""Repeats its work as many times as its argument says."""

ROUNDS = 9
LEAST_ROUNDS = 3


class Clock(Protocol):
    """Times calls.

    Attributes:
        most_calls: calls in one sample, at most.
        shuffles: whether the order of the runs changes from round to round.
    """

    most_calls: int
    shuffles: bool

    def ns(self, run: Run, calls: int) -> float:
        """Nanoseconds of a call, the mean of ``calls`` calls in a row."""


class HostClock:
    """The host's monotonic clock."""

    most_calls = 1 << 31
    shuffles = False

    def ns(self, run: Run, calls: int) -> float:
        start = time.perf_counter_ns()
        run(calls)
        return (time.perf_counter_ns() - start) / calls


class CudaEvents:
    """Two events on CuPy's current stream.

    A GPU at its power limit runs slower after a kernel that drew more power, until its clock has settled. So the first
    third of the calls of a sample is not timed, and the order of the runs changes from round to round.
    """

    most_calls = 50
    shuffles = True

    def __init__(self):
        import cupy

        self._elapsed_ms = cupy.cuda.get_elapsed_time
        self._begin, self._end = cupy.cuda.Event(), cupy.cuda.Event()

    def ns(self, run: Run, calls: int) -> float:
        untimed = calls // 3
        run(untimed)
        self._begin.record()
        run(calls - untimed)
        self._end.record()
        self._end.synchronize()
        return self._elapsed_ms(self._begin, self._end) * 1e6 / (calls - untimed)


class QueuedCudaEvents(CudaEvents):
    """The same, with the calls queued while a kernel occupies the stream: the time of the GPU alone, also where the
    host takes longer to launch a call than the GPU to execute it."""

    def __init__(self):
        super().__init__()
        import cupy

        self._wait = cupy.RawKernel(_WAIT, "wait")

    def ns(self, run: Run, calls: int) -> float:
        untimed = max(1, calls // 3)
        start = time.perf_counter_ns()
        run(untimed)
        host = (time.perf_counter_ns() - start) / untimed
        calls = max(1, calls - untimed)
        self._wait((1,), (1,), (np.int64(_MOST_WAIT_NS if host * calls > _MOST_WAIT_NS / 2 else 2 * host * calls),))
        self._begin.record()
        run(calls)
        self._end.record()
        self._end.synchronize()
        return self._elapsed_ms(self._begin, self._end) * 1e6 / calls


_MOST_WAIT_NS = 3_000_000

_WAIT = """
extern "C" __global__ void wait(long long ns) {
    long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < ns);
}
"""


@dataclass(frozen=True)
class Times:
    """Nanoseconds per call: the best sample and the median of the samples, and how many calls were timed for them."""

    best_ns: float
    median_ns: float
    calls: int


def repeated(function: Callable[[], object]) -> Run:
    """A run that calls ``function``."""

    def run(calls: int) -> None:
        for _ in range(calls):
            function()

    return run


def cycled(functions: Sequence[Callable[[], object]]) -> Run:
    """A run that calls one of ``functions`` after the other and goes on where the run before ended: the same work on
    several sets of operands, which together do not fit a cache."""
    endless = itertools.cycle(functions)

    def run(calls: int) -> None:
        for function in itertools.islice(endless, calls):
            function()

    return run


def interleaved(
    timers: Mapping[Key, Callable[[], float]], rounds: int | Mapping[Key, int], *, shuffle: bool = False
) -> dict[Key, list[float]]:
    """Samples of each timer: a round takes one of every timer that has rounds left.

    Args:
        timers: functions that take one sample, in nanoseconds.
        rounds: how many samples each timer takes; one number for all, or a number for each.
        shuffle: change the order of the timers from round to round, by a fixed seed.
    """
    wanted = dict.fromkeys(timers, rounds) if isinstance(rounds, int) else rounds
    samples: dict[Key, list[float]] = {key: [] for key in timers}
    generator = random.Random(0)
    for i in range(max(wanted.values(), default=0)):
        order = [key for key in timers if i < wanted[key]]
        if shuffle:
            generator.shuffle(order)
        for key in order:
            samples[key].append(timers[key]())
    return samples


def times(runs: Mapping[Key, Run], clock: Clock, *, seconds: float, rounds: int = ROUNDS) -> dict[Key, Times]:
    """Times of a call of each run, after one call to warm up.

    Args:
        runs: what is compared.
        clock: a ``HostClock``, or ``CudaEvents``.
        seconds: time given to each run in all.
        rounds: samples of each run; a run whose calls take longer than its time for one has fewer, but three at least.
    """
    calls, wanted = {}, {}
    for key, run in runs.items():
        run(1)
        once = max(1.0, clock.ns(run, 2))
        calls[key] = max(1, min(clock.most_calls, int(seconds * 1e9 / rounds / once)))
        wanted[key] = min(rounds, max(LEAST_ROUNDS, math.ceil(seconds * 1e9 / (calls[key] * once))))
    timers = {key: partial(clock.ns, run, calls[key]) for key, run in runs.items()}
    samples = interleaved(timers, wanted, shuffle=clock.shuffles)
    return {key: Times(min(ns), median(ns), len(ns) * calls[key]) for key, ns in samples.items()}
