"""pysimd: SIMD microkernels for small matrix products behind one Python API.

A microkernel computes one tile, ``C[mr,nr] += A[mr,K] @ B[K,nr]``. Pick one by name, call it on arrays, see its
math-to-load ratio; or let ``matmul`` choose.
"""

from pysimd import backends as _folder  # loaded first: its name in this module shall be the function imported below
from pysimd._version import __version__
from pysimd.errors import DTypeError, OptionError, PysimdError, ShapeError, UnavailableError, UnknownKernelError
from pysimd.inspection import Inspection, inspect
from pysimd.microkernel import Backend, MicroKernel, Rung
from pysimd.products import gemm, matmul
from pysimd.ratio import Ratio
from pysimd.registry import backends, kernel, kernels, rung, rungs
from pysimd.report.report import Report, compare

del _folder


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
    "inspect",
    "kernel",
    "kernels",
    "matmul",
    "rung",
    "rungs",
]
