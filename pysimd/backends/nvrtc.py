"""CUDA sources as NVRTC takes them: a file with its project headers written into it, and the options.

CuPy caches what it compiled under the text it was given; with the headers in that text an edited header is never taken
from the cache. ``#line`` keeps the compiler's messages right.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r'\s*#include "([^"]+)"')

OPTIONS = ("-std=c++17",)


@cache
def source(name: str, folder: str = "micro") -> str:
    """Text of ``gpu_kernels/<folder>/<name>`` with its headers."""
    return "\n".join(_lines(folder, name, set())) + "\n"


def _lines(folder: str, name: str, seen: set[str]) -> list[str]:
    if name in seen:
        return []
    seen.add(name)
    lines = [f'#line 1 "{name}"']
    text = files("pysimd.gpu_kernels").joinpath(folder, name).read_text()
    for number, line in enumerate(text.splitlines(), 1):
        include = _INCLUDE.match(line)
        if include:
            lines += [*_lines(folder, include[1], seen), f'#line {number + 1} "{name}"']
        else:
            lines.append(line)
    return lines
