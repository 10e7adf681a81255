"""Programmatic dependent launch (sm_90; CUDA programming guide): the blocks of a kernel start while those of the kernel
before it in the stream end, and wait (griddepcontrol.wait) before they access memory.

CuPy's launches have no attributes, so the driver is called: cuLaunchKernelEx.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

from pysimd.backends.cuda import driver

_PROGRAMMATIC_STREAM_SERIALIZATION = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION of cuda.h."""


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id, and a value of 64 bytes at a multiple of 8."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((f"{what}_{axis}", ctypes.c_uint) for what in ("grid", "block") for axis in "xyz"),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


_ATTRIBUTES = ctypes.pointer(_Attribute(_PROGRAMMATIC_STREAM_SERIALIZATION, 0, (1,)))


@cache
def _launch_kernel():
    launch = driver.function("cuLaunchKernelEx")
    launch.argtypes = (ctypes.POINTER(_Config), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return launch


class DependentKernel:
    """A kernel of CuPy that executes griddepcontrol.wait, launched as a dependent of the kernel before it."""

    def __init__(self, kernel):
        self._kernel, self._handle = kernel, kernel.ptr

    def __call__(
        self,
        grid: tuple[int],
        block: tuple[int],
        arguments: Sequence,
        shared_bytes: int = 0,
        stream=None,
        cooperative: bool = False,
    ) -> None:
        """As CuPy launches a kernel, with ``arguments`` that are pointers of CuPy."""
        import cupy
        from cupy_backends.cuda.api.driver import check_status

        stream = stream or cupy.cuda.get_current_stream()
        config = _Config(grid[0], 1, 1, block[0], 1, 1, shared_bytes, stream.ptr, _ATTRIBUTES, 1)
        parameters = (ctypes.c_void_p * len(arguments))(*(argument.ptr for argument in arguments))
        check_status(_launch_kernel()(config, self._handle, parameters, None))
