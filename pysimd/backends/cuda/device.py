"""The CUDA device: what there is, and what a row of a table needs of it."""

from __future__ import annotations

from functools import cache

from pysimd.backends.gpu import cupy_probe
from pysimd.backends.gpu.plans import current_device
from pysimd.microkernel import Backend

__all__ = ["backend", "current_device", "has_setmaxnreg", "multiprocessors", "properties", "why_not"]


@cache
def backend() -> Backend:
    """The device that is listed, the current one when first asked; availability does not change while a process
    lives."""
    reason = cupy_probe.reason("cuda", want_hip=False)
    if reason:
        return Backend("cuda", False, reason, "", ())
    name, capability = properties(current_device())
    if capability < 75:
        return Backend("cuda", False, f"{name} is sm_{capability}: the kernels need sm_75 or newer", name, ())
    return Backend("cuda", True, "", name, (f"sm_{capability}",))


@cache
def properties(device: int) -> tuple[str, int]:
    """Name and compute capability, e.g. 90, of a device."""
    import cupy

    found = cupy.cuda.runtime.getDeviceProperties(device)
    return found["name"].decode(), 10 * found["major"] + found["minor"]


def why_not(row, device: int | None = None) -> str:
    """Why a row of a table cannot run on a device, by default the listed one; empty if it can."""
    here = backend()
    if not here.available:
        return here.reason
    name, capability = (here.device, int(here.features[0][3:])) if device is None else properties(device)
    needed = int(row.requires[3:].rstrip("a"))
    if row.requires.endswith("a") and capability != needed:
        return f"{name} is sm_{capability}: {row.name} needs {row.requires}, which no other device is"
    if capability < needed:
        return f"{name} is sm_{capability}: {row.name} needs {row.requires} or newer"
    return ""


def has_setmaxnreg(device: int) -> bool:
    """Whether warps can reallocate registers (setmaxnreg): exactly on sm_90, compiled as sm_90a."""
    return properties(device)[1] == 90


@cache
def multiprocessors(device: int) -> int:
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"]
