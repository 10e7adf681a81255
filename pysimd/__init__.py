"""pysimd: SIMD microkernels for small matrix products behind one Python API.

A microkernel computes one tile, ``C[mr,nr] += A[mr,K] @ B[K,nr]``. Pick one by name, call it on arrays, see its
math-to-load ratio; or let ``matmul`` choose.
"""

from . import backends as _folder  # loaded first: its name in this module shall be the function imported below
from ._version import __version__
from .api import matmul
from .errors import DTypeError, OptionError, PysimdError, ShapeError, UnavailableError, UnknownKernelError
from .gemm import gemm
from .inspection import Inspection, inspect
from .ladder import Rung, rung, rungs
from .ratio import Ratio
from .registry import Backend, MicroKernel, backends, kernel, kernels
from .report import Report, compare

del _folder

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
