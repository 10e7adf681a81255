"""Captures of CUDA graphs: loading code is no part of them, and does not break them."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from functools import cache

_GLOBAL, _RELAXED = 0, 2  # CU_STREAM_CAPTURE_MODE_*: a thread begins with the first


@cache
def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None


def _exchange(mode: int) -> int:
    """Set the capture mode of this thread; the one before."""
    found = ctypes.c_int(mode)
    if _driver() is None or _driver().cuThreadExchangeStreamCaptureMode(ctypes.byref(found)):
        return _GLOBAL  # not initialized: this thread captures nothing
    return found.value


@contextlib.contextmanager
def left_alone():
    """Code may be loaded and unloaded by this thread within the block, while it or another captures in any mode."""
    before = _exchange(_RELAXED)
    try:
        yield
    finally:
        _exchange(before)
