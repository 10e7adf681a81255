"""CUDA sources as NVRTC takes them: a file with its project headers written into it, and the options."""

from __future__ import annotations

import posixpath

from pysimd import sources

OPTIONS = ("-std=c++17",)


def source(name: str, folder: str = "micro") -> str:
    """Text of ``gpu_kernels/<folder>/<name>`` with its headers."""
    return sources.joined(posixpath.normpath(f"gpu_kernels/{folder}/{name}"))
