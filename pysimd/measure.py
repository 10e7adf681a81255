"""Speed of one tile in cache beside the peak of its instructions, timed in C, the two turn by turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .registry import MicroKernel

K = 256
"""Length of the panels, in k."""


@dataclass(frozen=True)
class Speed:
    """GFLOP/s (GOP/s for integers), two per multiply-add, of a kernel and of its target's peak."""

    gflops: float | None = None
    peak_gflops: float | None = None
    percent_of_peak: float | None = None


def tile_speed(kernel: MicroKernel, *, rounds: int = 7, seconds: float = 0.02) -> Speed:
    """Time ``kernel`` on packed panels in cache (K = 256) and the multiply-add chain of its target and type.

    The two are timed turn by turn, because the clock of a busy machine moves; the best round of each counts.
    """
    from .backends import cpu

    if kernel.backend != "cpu":
        return Speed()
    ffi, lib = cpu.ffi, cpu.lib
    row = cpu._row(kernel.name)
    groups = K // kernel.k_group
    rng = np.random.default_rng(0)
    # Wide panels hold two bytes per value and a correction row may follow: room for both.
    room = 4 * (K + 8) * max(kernel.mr, kernel.nr) * max(kernel.a_dtype.itemsize, 2)
    a, b, c = (rng.integers(0, 64, room, np.uint8) for _ in range(3))
    if kernel.types in ("f32", "f64"):
        a, b = (rng.standard_normal(room // kernel.a_dtype.itemsize).astype(kernel.a_dtype) for _ in range(2))
    c = np.zeros(kernel.mr * kernel.nr, kernel.c_dtype)
    pointers = [ffi.from_buffer(x) for x in (a, b, c)]
    macs = kernel.mr * kernel.nr * K

    peak = next(
        i
        for i in range(lib.pysimd_peak_count)
        if (lib.pysimd_peaks[i].target, lib.pysimd_peaks[i].types) == (row.target, row.types)
    )
    peak_macs = lib.pysimd_peaks[peak].macs
    one = lib.pysimd_time_tile(row, groups, *pointers, 10, 2)
    calls = max(1, int(seconds / rounds * 0.5e9 / one))
    steps = max(1, int(seconds / rounds * 0.5e9 / lib.pysimd_time_peak(peak, 1000, 2)))
    tile_ns = peak_ns = float("inf")
    for _ in range(rounds):
        tile_ns = min(tile_ns, lib.pysimd_time_tile(row, groups, *pointers, calls, 1))
        peak_ns = min(peak_ns, lib.pysimd_time_peak(peak, steps, 1))
    gflops, peak_gflops = 2 * macs / tile_ns, 2 * peak_macs / peak_ns
    return Speed(gflops, peak_gflops, 100 * gflops / peak_gflops)
