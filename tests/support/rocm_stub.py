"""Libraries in the place of ROCm's, so that CuPy's ROCm wheel can be imported and used without ROCm and a GPU."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
WHEELS = ("cupy-rocm-7-0", "cupy-rocm-7-1")

_OURS = re.compile(r"^(__hip|hip|roc|rccl|nccl)\w*$")
_HIPCC = """#!/bin/sh
# All that CuPy asks of hipcc: which folders it includes from.
printf '#include <...> search starts here:\\n /usr/include\\nEnd of search list.\\n' >&2
"""


@cache
def missing() -> str:
    """What is not here for running CuPy's ROCm wheel on the stub; empty if all is."""
    if not any(_installed(name) for name in WHEELS):
        return f"CuPy's ROCm wheel is not installed: pip install {WHEELS[0]} (in an environment of its own)"
    for tool in ("gcc", "nm", "readelf"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    return ""


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def build(folder: Path) -> dict[str, str]:
    """Build the libraries and a hipcc into ``folder``; the environment in which CuPy finds them."""
    backends = importlib.util.find_spec("cupy_backends").submodule_search_locations[0]
    modules = [str(x) for name in ("cupy", "cupy_backends", "cupyx") for x in Path(backends, "..", name).rglob("*.so")]
    wanted = set(_output("nm", "-D", "--undefined-only", "-j", *modules).split())
    wanted = {name.partition("@")[0] for name in wanted}
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", _output("readelf", "-d", *modules)))
    runtime = next(x for x in needed if x.startswith("libamdhip64.so."))
    text = SOURCE.read_text()
    written = set(re.findall(r"^(?:FORWARD\(|int |const char\* |size_t |void )(\w+)", text, re.MULTILINE))
    rest = folder / "rest.c"
    names = sorted(x for x in wanted if _OURS.match(x) and x not in written)
    rest.write_text("".join(f"int {name}(void) {{ return 801; }}\n" for name in names))  # hipErrorNotSupported
    _library(folder / runtime, str(SOURCE), str(rest), "-ldl")
    (folder / runtime.replace("amdhip64", "hiprtc")).symlink_to(folder / runtime)
    for name in needed - {runtime}:
        if name.startswith(("libhip", "libroc", "librccl")):
            _library(folder / name)
    (folder / "bin").mkdir()
    hipcc = folder / "bin" / "hipcc"
    hipcc.write_text(_HIPCC)
    hipcc.chmod(0o755)
    return {
        "LD_LIBRARY_PATH": os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")]),
        "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]]),
        "ROCM_HOME": str(folder),
        "CUPY_CACHE_DIR": str(folder / "cache"),
        "PYSIMD_STUB": str(folder / runtime),
        "PYTHONPATH": str(SOURCE.parent),
    }


def _library(path: Path, *sources: str) -> None:
    empty = [] if sources else ["-x", "c", os.devnull]
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{path.name}", "-o", str(path), *empty, *sources]
    subprocess.run(command, check=True)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
