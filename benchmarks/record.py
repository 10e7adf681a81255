"""What recorded figures need: the machine that they belong to, JSON files, and the Markdown tables made of them.

A record names the commit that it was measured at. Some of these are not in the history: docs/reliability.md, "Records",
says in which commits their changes are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import pysimd
from pysimd.bench import blas
from pysimd.report import plots
from pysimd.report.drawing import Drawing

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


# --- the command line ---


def parser(doc: str) -> argparse.ArgumentParser:
    """Options of a script with this docstring: ``--out``."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, metavar="FILE.json", help="write the figures here instead of printing them")
    return made


def need_cuda(made: argparse.ArgumentParser) -> None:
    """Exit with the reason if there is no CUDA device."""
    reason = pysimd.backends()[1].reason
    if reason:
        made.exit(1, f"{reason}\n")


def progress(*words: object) -> None:
    """A line on standard error."""
    print(*words, file=sys.stderr, flush=True)


# --- the machine ---


def output_of(*command: str) -> str:
    """What a command prints; empty if there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def versions() -> dict[str, Any]:
    """Of Python, NumPy and pysimd; the commit (PYSIMD_COMMIT where git is not at hand) and the date."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pysimd": pysimd.__version__,
        "commit": os.environ.get("PYSIMD_COMMIT")
        or output_of("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")
        or "unknown",
        "date": date.today().isoformat(),
    }


def cpu() -> dict[str, Any]:
    """The CPU of this machine, the BLAS of NumPy, and versions."""
    here = pysimd.backends()[0]
    return {
        "device": here.device,
        "features": list(here.features),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "numpy_blas": [str(blas.numpy_blas())],
        **versions(),
    }


def gpu() -> dict[str, Any]:
    """The CUDA device, its driver and libraries, and versions."""
    import cupy

    runtime, here = cupy.cuda.runtime, pysimd.backends()[1]
    properties = runtime.getDeviceProperties(0)
    return {
        "device": here.device,
        "capability": here.features[0],
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": runtime.driverGetVersion(),
        "cuda_runtime": runtime.runtimeGetVersion(),
        "nvrtc": list(cupy.cuda.nvrtc.getVersion()),
        "cublas": cupy.cuda.cublas.getVersion(cupy.cuda.device.get_cublas_handle()),
        "cupy": cupy.__version__,
        **versions(),
    }


def cuda_version(machine: dict[str, Any]) -> str:
    """Of the CUDA runtime, e.g. 13.2."""
    return f"{machine['cuda_runtime'] // 1000}.{machine['cuda_runtime'] % 1000 // 10}"


# --- files ---


def write(machine: dict[str, Any], out: Path | None, **sections) -> None:
    """One JSON document, into ``out`` or on standard output."""
    text = json.dumps({"schema_version": 1, "machine": machine, **sections}, indent=1) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)


def merged(old: dict[str, Any], new: dict[str, Any], keys: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """A record in which the sections of a new one have taken the place of an old one's. Of a section in ``keys`` only
    the rows with values of those fields that were measured again. Every row, and every section that is no list, names
    its commit."""
    if old["machine"]["device"] != new["machine"]["device"]:
        raise ValueError(f"{old['machine']['device']} and {new['machine']['device']} are two devices")
    old, new = _with_commits(old), _with_commits(new)
    for name, fields in (keys or {}).items():
        if name in old and name in new:
            new[name] = _replaced(old[name], new[name], fields)
    return old | new


def _replaced(old: list[dict[str, Any]], new: list[dict[str, Any]], fields: Sequence[str]) -> list[dict[str, Any]]:
    """Rows, of which the new ones stand where the old ones of the same fields stood, or at the end."""
    again: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in new:
        again.setdefault(tuple(row[x] for x in fields), []).append(row)
    found = []
    for row in old:
        key = tuple(row[x] for x in fields)
        found += again.get(key, [row])
        if key in again:
            again[key] = []
    return found + [row for rows in again.values() for row in rows]


def _with_commits(document: dict[str, Any]) -> dict[str, Any]:
    """A record whose rows name the commit that they were measured at."""
    commit = {"commit": document["machine"]["commit"]}
    found = dict(document)
    for name, section in document.items():
        if isinstance(section, list):
            found[name] = [commit | row for row in section]
        elif name != "machine" and isinstance(section, dict):
            found[name] = commit | section
    return found


def read(name: str) -> dict[str, Any]:
    """The document that is recorded under a name."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def draw(pictures: dict[str, Drawing]) -> None:
    """Write drawings under their names."""
    for name, drawing in pictures.items():
        plots.save(drawing, RESULTS / name)


# --- pages ---


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [headers, *rows]
    made = ["| " + " | ".join(line) + " |" for line in lines]
    return [made[0], "|" + "---|" * len(headers), *made[1:]]


def replaced(page: str, text: str, name: str = "bench") -> str:
    """The page with ``text`` between the lines of its markers ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``."""
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    new, count = re.subn(f"({begin}).*?({end})", lambda x: f"{x[1]}{text}\n{x[2]}", page, flags=re.DOTALL)
    if not count:
        raise ValueError(f"the page has no markers {name}:begin and {name}:end")
    return new
