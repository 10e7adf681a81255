"""hiprtc, the run-time compiler of HIP, through ctypes; it needs no GPU. Debian has version 5.2.3 (libamdhip64-5)."""

from __future__ import annotations

import ctypes
from functools import cache

TARGETS = ("gfx900", "gfx906", "gfx90a", "gfx1030")
"""Those that version 5.2.3 compiles for; newer ones make it crash."""

OPTIONS = ("-std=c++17", "-fcuda-flush-denormals-to-zero")
"""Ours, and the one that CuPy always adds."""


@cache
def library() -> ctypes.CDLL | None:
    """The library, if this machine has it."""
    try:
        return ctypes.CDLL("libamdhip64.so.5")
    except OSError:
        return None


class CompileError(Exception):
    """The compiler's own text."""


def compile_for(source: str, target: str) -> bytes:
    """The code object of a source for one target."""
    hip, program = library(), ctypes.c_void_p()
    assert hip.hiprtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.hip", 0, None, None) == 0
    try:
        options = [x.encode() for x in (*OPTIONS, f"--offload-arch={target}")]
        if hip.hiprtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
            raise CompileError(_read(hip.hiprtcGetProgramLogSize, hip.hiprtcGetProgramLog, program).decode())
        return _read(hip.hiprtcGetCodeSize, hip.hiprtcGetCode, program)
    finally:
        hip.hiprtcDestroyProgram(ctypes.byref(program))


def _read(size_of, get, program) -> bytes:
    size = ctypes.c_size_t()
    assert size_of(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert get(program, buffer) == 0
    return buffer.raw
