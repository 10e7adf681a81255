"""The source of a kernel with the project's headers that it includes."""

from __future__ import annotations

import posixpath
import re
from importlib.resources import files

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def read(path: str) -> str | None:
    """Text of a file of the kernel folders, e.g. ``cpu_kernels/outer.h``; None if there is no such file."""
    folder, _, name = path.partition("/")
    if not folder.endswith("_kernels") or not name:
        return None
    file = files(f"pysimd.{folder}").joinpath(name)
    return file.read_text() if file.is_file() else None


def with_includes(path: str) -> dict[str, str]:
    """Path and text of the file and of every project header it includes, directly or not; the file itself first.

    System headers (``<...>``) and headers that belong to somebody else are left out.
    """
    found: dict[str, str] = {}
    waiting = [path]
    while waiting:
        path = waiting.pop(0)
        text = None if path in found else read(path)
        if text is None:
            continue
        found[path] = text
        folder, top = posixpath.dirname(path), path.partition("/")[0]
        for name in _INCLUDE.findall(text):
            beside = posixpath.normpath(posixpath.join(folder, name))
            waiting.append(beside if read(beside) is not None else posixpath.join(top, name))
    return found
