"""CUDA sources as NVRTC takes them, a file with its project headers written into it, and their compilation by CuPy."""

from __future__ import annotations

import posixpath

from pysimd import sources
from pysimd.backends.cuda import captures
from pysimd.errors import UnavailableError

OPTIONS = ("-std=c++17",)

_LOG_LINES = 3


def source(name: str, folder: str = "micro") -> str:
    """Text of ``gpu_kernels/<folder>/<name>`` with its headers."""
    return sources.joined(posixpath.normpath(f"gpu_kernels/{folder}/{name}"))


def function(name: str, entry: str, folder: str = "micro", *, arch: str = "", cooperative: bool = False):
    """The compiled template instance ``entry`` of a file, a ``cupy.RawKernel`` of the current device.

    ``arch`` is for instructions of one device only (``sm_90a``), else CuPy asks for the device's own; ``cooperative``
    for launches with a grid-wide barrier. Raises UnavailableError with the first lines of the log if NVRTC or the
    driver does not take the source: the installation is then one that the kernels were not written for.
    """
    import cupy

    options = (*OPTIONS, f"-arch={arch}") if arch else OPTIONS
    try:
        with captures.left_alone():
            module = cupy.RawModule(
                code=source(name, folder),
                options=options,
                name_expressions=(entry,),
                enable_cooperative_groups=cooperative,
            )
            return module.get_function(entry)
    except (cupy.cuda.compiler.CompileException, RuntimeError, OSError) as error:
        log = " ".join([line.strip() for line in str(error).splitlines() if line.strip()][:_LOG_LINES])
        raise UnavailableError(
            f"{entry} of {name} cannot be compiled here: {log or type(error).__name__}; kernels need the NVRTC and the "
            "headers of CuPy's own CUDA version and a driver that is not older: pip install 'pysimd[cuda]'"
        ) from error
