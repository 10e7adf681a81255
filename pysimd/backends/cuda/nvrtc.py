"""CUDA sources as NVRTC takes them, a file with its project headers written into it, and their compilation by CuPy."""

from __future__ import annotations

import posixpath

from pysimd import sources
from pysimd.backends.cuda import captures
from pysimd.backends.gpu import compilation

OPTIONS = ("-std=c++17",)

_NEEDS = (
    "the NVRTC and the headers of CuPy's own CUDA version and a driver that is not older: pip install 'pysimd[cuda]'"
)


def source(name: str, folder: str = "micro") -> str:
    """Text of ``gpu_kernels/<folder>/<name>`` with its headers."""
    return sources.joined(posixpath.normpath(f"gpu_kernels/{folder}/{name}"))


def function(name: str, entry: str, folder: str = "micro", *, arch: str = "", cooperative: bool = False):
    """The compiled template instance ``entry`` of a file, a ``cupy.RawKernel`` of the current device.

    ``arch`` is for instructions of one device only (``sm_90a``), else CuPy asks for the device's own; ``cooperative``
    for launches with a grid-wide barrier. Raises UnavailableError if NVRTC or the driver does not take the source.
    """
    import cupy

    options = (*OPTIONS, f"-arch={arch}") if arch else OPTIONS
    with compilation.explained(entry, name, _NEEDS), captures.left_alone():
        module = cupy.RawModule(
            code=source(name, folder),
            options=options,
            name_expressions=(entry,),
            enable_cooperative_groups=cooperative,
        )
        return module.get_function(entry)
