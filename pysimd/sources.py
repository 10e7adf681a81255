"""The source of a kernel with the project's headers that it includes, and the labels of its first comment."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from importlib.resources import files

from pysimd.errors import OptionError

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_LABEL = re.compile(r" \* (per (?:\d+ )?k|\w+) {2,}(.*)")


def read(path: str) -> str | None:
    """Text of a file of the kernel folders, e.g. ``cpu_kernels/templates/outer.h``; None if there is no such file."""
    folder, _, name = path.partition("/")
    if not folder.endswith("_kernels") or not name:
        return None
    file = files(f"pysimd.{folder}").joinpath(name)
    return file.read_text() if file.is_file() else None


def get_include(backend: str = "cpu") -> str:
    """The folder of the headers for code of one's own.

    ``"cpu"``: ``pysimd_api.h`` (and ``pysimd_api.pxd``), for C, C++ and Cython. ``"cuda"``: ``pysimd_block.cuh``, for
    NVRTC and nvcc. Raises OptionError for other backends.

    >>> from pathlib import Path
    >>> (Path(pysimd.get_include()) / "pysimd_api.h").exists()
    True
    """
    folders = {"cpu": "cpu_kernels", "cuda": "gpu_kernels"}
    if not isinstance(backend, str) or backend not in folders:
        raise OptionError(f"backend={backend!r}: headers are there for {', '.join(map(repr, folders))}")
    return str(files(f"pysimd.{folders[backend]}").joinpath("include"))


def with_includes(path: str) -> dict[str, str]:
    """Path and text of the file and of every project header it includes, directly or not; the file itself first.

    System headers (``<...>``) and headers of other projects are left out.
    """
    found: dict[str, str] = {}
    waiting = [path]
    while waiting:
        path = waiting.pop(0)
        text = None if path in found else read(path)
        if text is None:
            continue
        found[path] = text
        waiting += [_found(path, name) for name in _INCLUDE.findall(text)]
    return found


def _found(path: str, name: str) -> str:
    """Path of a header that the file at ``path`` includes: relative to that file, else to its ``_kernels`` folder."""
    relative = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    return relative if read(relative) is not None else posixpath.join(path.partition("/")[0], name)


def labels(text: str) -> dict[str, str]:
    """Labels and words of the comment that a kernel file opens with; lines are joined, each run of spaces is one."""
    found: dict[str, str] = {}
    label = ""
    for line in text.partition("*/")[0].splitlines()[1:]:
        if match := _LABEL.match(line):
            label, found[match[1]] = match[1], match[2]
        elif label:
            found[label] += line.lstrip(" ").removeprefix("*")
    return {label: " ".join(words.split()) for label, words in found.items()}


@cache
def joined(path: str) -> str:
    """One text of the file and its headers, for compilers that are given no include path.

    Compiled code is cached by its source text; with the headers in it, an edited header is a cache miss. ``#line``
    gives the compiler's messages the right file and line.
    """
    return "\n".join(_lines(path, set())) + "\n"


def _lines(path: str, seen: set[str]) -> list[str]:
    if path in seen:
        return []
    seen.add(path)
    name = posixpath.basename(path)
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(read(path).splitlines(), 1):
        include = _INCLUDE.match(line)
        if include:
            lines += [*_lines(_found(path, include[1]), seen), f'#line {number + 1} "{name}"']
        else:
            lines.append("" if line == "#pragma once" else line)
    return lines
