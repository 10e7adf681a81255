"""CUDA machine code for the tests: ``pysimd.inspection.nvidia`` in parallel, and the instances that are read."""

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache

from pysimd.gpu_kernels import table

from pysimd.inspection import nvidia
from pysimd.inspection.nvidia import compiled, fast_entry, macs, missing

__all__ = [
    "ARCHITECTURES",
    "compile_all",
    "compiled",
    "entries_to_check",
    "fast_entry",
    "macs",
    "missing",
]

ARCHITECTURES = (75, 80, 90, 100)


MOST_INSTANCES = 8
"""Of a program, so that processes have the same amount of work."""


@cache
def processes() -> ProcessPoolExecutor:
    """Those that compile, for the whole run: in one process NVRTC compiles one program at a time. Each compiles one
    program and ends: which code NVRTC makes of a source depends on the addresses of its heap, so on what its process
    did before, and in new processes it is nearly always the same (tests/scripts/nvrtc_codes.py finds the others). They
    are copies of a process that has imported what they need; this one has threads, and cannot be forked safely."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cupy", nvidia.__name__])
    # With more than one each, Python 3.11 to 3.14 may wait for ever (CPython's issue 115634); 3.10 has no such limit.
    one_each = {"max_tasks_per_child": 1} if sys.version_info >= (3, 11) else {}
    return ProcessPoolExecutor(len(os.sched_getaffinity(0)), context, **one_each)


def compile_all(wanted) -> None:
    """Compile (source, entry, arch) or (source, entry, arch, folder) in parallel, several of a source and an
    architecture in one program; ``compiled`` then has them."""
    instances: dict[tuple, dict[str, None]] = {}
    for source, entry, arch, folder in ((*x, "micro")[:4] for x in wanted):
        if not nvidia.is_compiled(source, entry, arch, folder):
            instances.setdefault((source, arch, folder), {})[entry] = None
    programs = [
        (source, tuple(entries)[i : i + MOST_INSTANCES], arch, folder)
        for (source, arch, folder), entries in instances.items()
        for i in range(0, len(entries), MOST_INSTANCES)
    ]
    programs.sort(key=lambda program: -len(program[1]))
    for program, codes in zip(
        programs, processes().map(nvidia.compile_together, *zip(*programs, strict=True)), strict=True
    ):
        nvidia.keep(*program, codes)


def entries_to_check(row: table.Kernel) -> dict[str, str]:
    """Template instances of a row that are compiled everywhere: the fastest, any strides, edge tiles."""
    if row.form == "wmma":
        return {"fast": fast_entry(row), "any": table.entry(row, "", "", True, False)}
    found = {
        "fast": fast_entry(row),
        "any": table.entry(row, "ANY", "ANY", False, False),
        "edge": table.entry(row, "ANY", "ANY", True, False),
    }
    if row.form == "batch2":
        found["gathered"] = table.entry(row, "GATHERED", "GATHERED", False, False)
    return found
