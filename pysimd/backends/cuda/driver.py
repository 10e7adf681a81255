"""Functions of the CUDA driver that CuPy has no calls for, by ctypes."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from pysimd.errors import UnavailableError


@cache
def function(name: str):
    """A function of the driver, which returns a CUresult.

    Raises:
        UnavailableError: the driver is too old for it.
    """
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        found = getattr(ctypes.CDLL(library), name)
    except (OSError, AttributeError) as problem:
        raise UnavailableError(f"{library} has no {name}: update the driver to CUDA 12 or newer") from problem
    found.restype = ctypes.c_int
    return found
