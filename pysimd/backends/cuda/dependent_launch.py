"""Programmatic dependent launch (sm_90; CUDA programming guide): the blocks of a kernel start while those of the kernel
before it in the stream end, and wait (griddepcontrol.wait) before they access memory.

CuPy's launches have no attributes, so the driver is called: cuLaunchKernelEx.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

from pysimd.backends.cuda import driver

_CLUSTER_DIMENSION, _PROGRAMMATIC_STREAM_SERIALIZATION = 4, 6
"""CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION and CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION of cuda.h."""


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


@cache
def _attributes(cluster: int) -> tuple[ctypes.Array, int]:
    """Those of a launch, and how many; ``cluster`` is the blocks of a cluster, 0 where the kernel itself says it."""
    found = [_Attribute(_PROGRAMMATIC_STREAM_SERIALIZATION, 0, (1,))]
    if cluster:
        found.append(_Attribute(_CLUSTER_DIMENSION, 0, (cluster, 1, 1)))
    return (_Attribute * len(found))(*found), len(found)


@cache
def _current_stream():
    import cupy

    return cupy.cuda.get_current_stream


@cache
def _launch_kernel():
    launch = driver.function("cuLaunchKernelEx")
    launch.argtypes = (ctypes.POINTER(_Config), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return launch


class _Arguments:
    """Arguments of a kernel at host addresses that stay, and the configuration of their launch."""

    def __init__(self, addresses: Sequence[int]):
        self.parameters = (ctypes.c_void_p * len(addresses))(*addresses)
        self.config = _Config(0, 1, 1, 0, 1, 1, 0, None, None, 0)


class DependentKernel:
    """A kernel of CuPy that executes griddepcontrol.wait, launched as a dependent of the kernel before it. It is called
    as CuPy's function is, with what ``arguments`` makes of the host addresses of its arguments; ``cluster``: blocks of
    a cluster, 0 where the kernel itself says it."""

    arguments = _Arguments

    def __init__(self, kernel, cluster: int = 0):
        self._kernel, self._handle = kernel, kernel.ptr
        self._attributes = _attributes(cluster)

    def __call__(
        self,
        grid: tuple[int],
        block: tuple[int],
        arguments: _Arguments,
        shared_bytes: int = 0,
        stream=None,
        cooperative: bool = False,
    ) -> None:
        config = arguments.config
        (config.grid_x,), (config.block_x,), config.shared_bytes = grid, block, shared_bytes
        config.attributes, config.attribute_count = self._attributes
        config.stream = (stream or _current_stream()()).ptr
        status = _launch_kernel()(config, self._handle, arguments.parameters, None)
        if status:
            raise RuntimeError(f"cuLaunchKernelEx returned {status}")
