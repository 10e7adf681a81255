"""pysimd: SIMD microkernels for small matrix products behind one Python API.

A microkernel computes one tile, ``C[mr,nr] += A[mr,K] @ B[K,nr]``. Pick one by name, call it on arrays, see its
math-to-load ratio; or let ``matmul`` choose.
"""

from pysimd import backends as _folder  # loaded first: its name in this module shall be the function imported below
from pysimd import registry
from pysimd._version import __version__
from pysimd.errors import DTypeError, OptionError, PysimdError, ShapeError, UnavailableError, UnknownKernelError
from pysimd.inspection import Inspection, inspect
from pysimd.interop import libraries
from pysimd.microkernel import Backend, MicroKernel, Rung
from pysimd.products import gemm, matmul
from pysimd.ratio import Ratio
from pysimd.registry import backends, kernel, kernels, rung, rungs
from pysimd.report.report import Report, compare
from pysimd.sources import get_include

del _folder
libraries.register()
del libraries


def __getattr__(name: str):
    """``_c_api``, the capsule for ``PyCapsule_Import`` (cpu_kernels/include/pysimd_api.h); made when asked for."""
    if name == "_c_api":
        return registry.implementation("cpu").door.c_api()
    raise AttributeError(f"module 'pysimd' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return __all__


__all__ = [
    "Backend",
    "DTypeError",
    "Inspection",
    "MicroKernel",
    "OptionError",
    "PysimdError",
    "Ratio",
    "Report",
    "Rung",
    "ShapeError",
    "UnavailableError",
    "UnknownKernelError",
    "__version__",
    "backends",
    "compare",
    "gemm",
    "get_include",
    "inspect",
    "kernel",
    "kernels",
    "matmul",
    "rung",
    "rungs",
]
