"""The HIP device: what there is, and what a row of the table needs of it."""

from __future__ import annotations

import shutil
from functools import cache

from pysimd.backends.gpu import cupy_probe
from pysimd.hip_kernels import table
from pysimd.microkernel import Backend, MicroKernel, Rung


@cache
def backend() -> Backend:
    """The current device when first asked; availability does not change while a process lives."""
    reason = cupy_probe.reason("rocm", want_hip=True)
    if reason:
        return Backend("hip", False, reason, "", ())
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    name = properties["name"].decode()
    if shutil.which("hipcc") is None:
        reason = "hipcc is not on PATH, and CuPy asks it how to compile: add the bin folder of ROCm, /opt/rocm/bin"
        return Backend("hip", False, reason, name, ())
    target = properties["gcnArchName"].decode().partition(":")[0]
    features = table.features(target)
    if not features:
        return Backend("hip", False, f"{name} is {target}: the kernels need gfx9, gfx10, gfx11 or gfx12", name, ())
    return Backend("hip", True, "", name, (target, *features))


def why_not(row: table.Kernel) -> str:
    """Why a row of the table cannot run here; empty if it can."""
    here = backend()
    if here.reason or row.requires in here.features:
        return here.reason
    return f"{here.device} is {here.features[0]}: {_lacks(row.name, row.requires, here.features[0])}"


def lacks(kernel: MicroKernel | Rung, target: str) -> str:
    """Why a target cannot run a kernel or a rung; empty if it can."""
    (requires,) = kernel.requires
    return "" if requires in table.features(target) else _lacks(kernel.name, requires, target)


def _lacks(name: str, requires: str, target: str) -> str:
    return f"{name} needs {requires}, which {', '.join(table.FEATURES[requires])} have, {target} not"
