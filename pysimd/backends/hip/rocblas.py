"""rocBLAS, by way of CuPy: whether it starts on a device. Its packages leave out AMD GPUs that others support."""

from __future__ import annotations

from functools import cache

from pysimd.backends.gpu.plans import current_device


def reason() -> str:
    """Why rocBLAS cannot be used on the current device; empty if it can."""
    return _reason(current_device())


@cache
def _reason(device: int) -> str:
    from cupy.cuda.device import get_cublas_handle

    try:
        get_cublas_handle()
    except Exception as error:  # CuPy has no one class for it
        return f"{type(error).__name__}: {error}"
    return ""
