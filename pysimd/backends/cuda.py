"""The CUDA backend: not yet any kernels; it says what this machine has."""

from ..registry import Backend, MicroKernel
from . import cupy_probe


def backend() -> Backend:
    reason = cupy_probe.reason("cuda", want_hip=False)
    return Backend("cuda", False, reason or "this version of pysimd has no CUDA kernels yet", "", ())


def kernels() -> tuple[MicroKernel, ...]:
    return ()
