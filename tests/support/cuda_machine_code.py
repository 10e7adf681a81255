"""CUDA machine code for the tests: ``pysimd.inspection.nvidia`` in parallel, and the instances that are read."""

import os
from concurrent.futures import ThreadPoolExecutor

from pysimd.gpu_kernels import table

from pysimd.inspection.nvidia import compile_together, compiled, fast_entry, macs, missing

__all__ = [
    "ARCHITECTURES",
    "compile_all",
    "compile_together",
    "compiled",
    "entries_to_check",
    "fast_entry",
    "macs",
    "missing",
]

ARCHITECTURES = (75, 80, 90, 100)


def compile_all(wanted) -> None:
    """Compile (source, entry, arch) or (source, entry, arch, folder), all of a source and an architecture in one
    program; ``compiled`` then has them. NVRTC compiles one program at a time, disassemblers run meanwhile."""
    programs = {}
    for source, entry, arch, *folder in wanted:
        programs.setdefault((source, arch, *folder), []).append(entry)
    largest_first = sorted(programs.items(), key=lambda program: -len(program[1]))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda x: compile_together(x[0][0], x[1], *x[0][1:]), largest_first))


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
