"""The CUDA device: what there is, and what a row of a table needs of it."""

from __future__ import annotations

from functools import cache

from pysimd.backends.gpu import cupy_probe
from pysimd.backends.gpu.plans import current_device
from pysimd.microkernel import Backend

__all__ = ["backend", "current_device", "has_setmaxnreg", "multiprocessors", "why_not"]


@cache
def backend() -> Backend:
    """The current device when first asked; availability does not change while a process lives."""
    reason = cupy_probe.reason("cuda", want_hip=False)
    if reason:
        return Backend("cuda", False, reason, "", ())
    import cupy

    device = cupy.cuda.runtime.getDevice()
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    capability = 10 * properties["major"] + properties["minor"]
    name = properties["name"].decode()
    if capability < 75:
        return Backend("cuda", False, f"{name} is sm_{capability}: the kernels need sm_75 or newer", name, ())
    return Backend("cuda", True, "", name, (f"sm_{capability}",))


def why_not(row) -> str:
    """Why a row of a table cannot run here; empty if it can."""
    here = backend()
    if here.available:
        if row.requires.endswith("a") and here.features[0] != row.requires[:-1]:
            return f"{here.device} is {here.features[0]}: {row.name} needs {row.requires}, which no other device is"
        if int(here.features[0][3:]) < int(row.requires[3:].rstrip("a")):
            return f"{here.device} is {here.features[0]}: {row.name} needs {row.requires} or newer"
    return here.reason


def has_setmaxnreg() -> bool:
    """Whether warps can reallocate registers (setmaxnreg): exactly on sm_90, compiled as sm_90a."""
    return backend().features == ("sm_90",)


@cache
def multiprocessors(device: int) -> int:
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"]
