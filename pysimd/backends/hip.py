"""The HIP backend: not yet any kernels; it says what this machine has."""

from ..registry import Backend, MicroKernel
from . import cupy_probe


def backend() -> Backend:
    reason = cupy_probe.reason("rocm", want_hip=True)
    return Backend("hip", False, reason or "this version of pysimd has no HIP kernels yet", "", ())


def kernels() -> tuple[MicroKernel, ...]:
    return ()
