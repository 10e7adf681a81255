"""The speed of one tile in cache, compared with the peak of its instructions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

from pysimd import dtypes
from pysimd._cpu import ffi, lib
from pysimd.backends.cpu import table
from pysimd.bench import cpu_peaks, cuda_tiles, timing
from pysimd.bench.data import page_aligned, random_array
from pysimd.microkernel import MicroKernel

K = 256
"""Length of the panels of a CPU kernel, in k."""

_PADDING = 8
"""Packing rounds K up to whole groups and may append a row of corrections."""


@dataclass(frozen=True)
class Speed:
    """GFLOP/s (GOP/s for integers), two per multiply-add, of a kernel and of its peak; and what its target loads from
    L1, in 10^9 load instructions (on a GPU: of one lane) and in 10^9 bytes per second."""

    gflops: float | None = None
    peak_gflops: float | None = None
    peak_gloads_per_s: float | None = None
    peak_load_gbytes_per_s: float | None = None

    @property
    def percent_of_peak(self) -> float | None:
        """100 * gflops / peak_gflops."""
        return None if self.gflops is None or self.peak_gflops is None else 100 * self.gflops / self.peak_gflops


def tile_speed(kernel: MicroKernel, *, k: int = K, rounds: int = 41, seconds: float = 0.02) -> Speed:
    """The speed of ``kernel`` on packed panels in cache, of the multiply-adds and of the loads of its target and types.

    A CPU kernel runs on one core with panels of ``k``; each of the three takes about ``seconds`` in ``rounds``
    interleaved samples. Their medians are compared: the best samples of two may be of two clocks. Peaks are None for a
    target and types without a row in peaks.inc; those of loads also where the loads convert their elements. A CUDA
    kernel runs on the whole device (``cuda_tiles.tile_rates``). All fields are None for kernels of other GPUs.
    """
    if kernel.backend == "cuda":
        return Speed(**cuda_tiles.tile_rates(kernel))
    return _cpu_speed(kernel, k, rounds, seconds) if kernel.backend == "cpu" else Speed()


def _cpu_speed(kernel: MicroKernel, k: int, rounds: int, seconds: float) -> Speed:
    sample_ns = seconds / rounds * 1e9
    row, panels = table.row(kernel.name), _panels(kernel, k)
    pointers = [ffi.from_buffer(panel) for panel in panels]
    tile = partial(lib.pysimd_time_tile, row, k // kernel.k_group, *pointers)
    calls = max(1, int(sample_ns / tile(10, 2)))
    peak = cpu_peaks.index(kernel.target, kernel.types)
    baselines = {} if peak is None else cpu_peaks.baselines(peak, sample_ns)
    samples = timing.interleaved(
        {"tile": partial(tile, calls, 1), **{name: loop.ns for name, loop in baselines.items()}}, rounds
    )
    rates: dict[str, float] = {}
    for name, loop in baselines.items():
        rates |= loop.rates(median(samples[name]))
    return Speed(
        gflops=2 * kernel.mr * kernel.nr * k / median(samples["tile"]),
        peak_gflops=rates.get("gflops"),
        peak_gloads_per_s=rates.get("gloads_per_s"),
        peak_load_gbytes_per_s=rates.get("gbytes_per_s"),
    )


def _panels(kernel: MicroKernel, k: int) -> list[np.ndarray]:
    """Bytes of a packed panel of A, one of B, and C; as packing places them, no load straddles two cache lines."""
    rng, family = np.random.default_rng(0), dtypes.FAMILIES[kernel.types]
    # Wide panels hold two bytes per element of int8.
    nbytes = 4 * (k + _PADDING) * max(kernel.mr, kernel.nr) * max(kernel.a_dtype.itemsize, 2)
    arrays = [random_array(name, (nbytes // dtypes.dtype_of(name).itemsize,), rng) for name in (family.a, family.b)]
    arrays.append(np.zeros(kernel.mr * kernel.nr, kernel.c_dtype))
    panels = [page_aligned(x.nbytes) for x in arrays]
    for panel, x in zip(panels, arrays, strict=True):
        panel[:] = x.view(np.uint8)
    return panels
