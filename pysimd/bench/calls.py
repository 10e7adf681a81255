"""A microkernel called on arrays: its result, and the time of the whole call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import timing
from pysimd.microkernel import MicroKernel


@dataclass(frozen=True)
class TimedCall:
    """A kernel called on arrays.

    Attributes:
        result: on the host.
        products: how many tiles it holds.
        times: of the whole call.
        threads: of the CPU that each call takes; None on a GPU.
    """

    result: np.ndarray
    products: int
    times: timing.Times
    threads: int | None

    @property
    def best_ns_per_product(self) -> float:
        """NaN without products."""
        return self.times.best_ns / self.products if self.products else float("nan")

    @property
    def median_ns_per_product(self) -> float:
        """NaN without products."""
        return self.times.median_ns / self.products if self.products else float("nan")


def timed_call(kernel: MicroKernel, a, b, c=None, *, seconds: float = 0.3) -> TimedCall:
    """Call ``kernel`` on NumPy arrays for about ``seconds``; any batch shape.

    Operands of a GPU kernel are copied to its device first, and only the calls are timed.

    Raises:
        ShapeError, DTypeError, UnavailableError: as for the call.
    """
    kernel._check_available()
    on_gpu = kernel.backend != "cpu"
    if on_gpu:
        import cupy

        a, b, c = (None if x is None else cupy.asarray(x) for x in (a, b, c))
    out = kernel(a, b, c)
    clock = timing.CudaEvents() if on_gpu else timing.HostClock()
    times = timing.times({"call": timing.repeated(lambda: kernel(a, b, c, out=out))}, clock, seconds=seconds)
    products = out.size // (kernel.mr * kernel.nr)
    threads = None if on_gpu else CPU.threads(kernel, kernel.mr, kernel.nr, a.shape[-1], products)
    return TimedCall(cupy.asnumpy(out) if on_gpu else out, products, times["call"], threads)
