"""Allocations and threads that the system refuses: the library of faults.c, preloaded in a process of its own."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
NOTHING, MEMORY, THREAD, HANDLER = range(4)


def missing() -> str:
    """Why nothing can be refused here; empty if it can."""
    if shutil.which("gcc") is None:
        return "gcc is not installed"
    return "" if platform.libc_ver()[0] == "glibc" else "faults.c names the functions of glibc"


def build(folder: Path) -> Path:
    """The library to preload."""
    library = folder / "faults.so"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-O1",
        "-fno-builtin",
        "-w",
        "-o",
        str(library),
        str(SOURCE),
        "-ldl",
        "-pthread",
    ]
    subprocess.run(command, check=True)
    return library


class Faults:
    """The preloaded library, in the process that it is preloaded in."""

    def __init__(self):
        self._library = ctypes.CDLL(None)
        self._library.faults_watch.argtypes = [ctypes.c_size_t] * 2
        self._library.faults_refuse.argtypes = [ctypes.c_long]
        self._library.faults_live.restype = ctypes.c_long

    def watch(self, file: str) -> None:
        """Requests from the code of this shared library are counted from now on."""
        file = os.path.realpath(file)
        for line in Path("/proc/self/maps").read_text().splitlines():
            addresses, permissions, *rest = line.split()
            if "x" in permissions and rest[-1] == file:
                self._library.faults_watch(*(int(x, 16) for x in addresses.split("-")))

    def refuse(self, nth: int) -> None:
        """Refuse the nth request from now on, counted from 1."""
        self._library.faults_refuse(nth)

    def refused(self) -> int:
        """What was refused since then: MEMORY, THREAD, HANDLER, or NOTHING where there were fewer requests."""
        return self._library.faults_refused()

    def live(self) -> int:
        """Blocks of memory that were asked for by watched code and not freed."""
        return self._library.faults_live()
