"""The table of ``cpu_kernels`` through cffi: targets, CPU features, rows, and the threads of this process."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from pysimd._cpu import ffi, lib
from pysimd.errors import OptionError

FAMILIES = {
    lib.F32: "f32",
    lib.F64: "f64",
    lib.BF16F32: "bf16f32",
    lib.F16F32: "f16f32",
    lib.I8I32: "i8i32",
    lib.U8I8I32: "u8i8i32",
    lib.F16: "f16",
}
FORMS = {lib.OUTER: "outer", lib.INNER: "inner", lib.GEMV: "gemv"}
OFFERED = tuple(name for number, name in FAMILIES.items() if number != lib.F16)
"""The types that matmul and gemm multiply unless a kernel is named: f16 accumulates in half."""
TYPES = {name: number for number, name in FAMILIES.items()}

MOST_THREADS = 1 << 16  # within a C int; the driver's own maximum is far lower


def text(pointer) -> str:
    """A C string as a ``str``."""
    return ffi.string(pointer).decode()


def rows():
    """The rows of the C table."""
    return (lib.pysimd_kernels + i for i in range(lib.pysimd_kernel_count))


TARGETS = tuple(text(lib.pysimd_targets[i].name) for i in range(lib.TARGETS))
FOLDERS = tuple(text(lib.pysimd_targets[i].folder) for i in range(lib.TARGETS))
ARCHITECTURES = {"x86": "x86-64", "arm": "AArch64", "riscv": "RISC-V"}
"""What the processors are called whose kernels are in a folder of cpu_kernels."""
FOLDER = next((FOLDERS[row.target] for row in rows() if row.target != lib.GENERIC and row.run != ffi.NULL), "generic")
"""The folder whose kernels were built."""
ARCHITECTURE = ARCHITECTURES.get(FOLDER, platform.machine())
BUILT = tuple(name for name, folder in zip(TARGETS, FOLDERS, strict=True) if folder in ("generic", FOLDER))
"""The targets of this architecture."""
FEATURES = tuple(text(lib.pysimd_feature_names[i]) for i in range(lib.pysimd_feature_count))


def names(bits: int) -> tuple[str, ...]:
    """The CPU features whose bits are set."""
    return tuple(name for i, name in enumerate(FEATURES) if bits >> i & 1)


@cache
def start() -> str:
    """Detect the CPU and set the bound of PYSIMD_ISA; returns the bound, by default the highest target.

    Raises:
        OptionError: PYSIMD_ISA is no target of this architecture, or PYSIMD_NUM_THREADS no positive integer.
    """
    bound = os.environ.get("PYSIMD_ISA", "")
    if bound and bound not in BUILT:
        raise OptionError(f"PYSIMD_ISA={bound!r} is no target: use one of {', '.join(BUILT)}, or leave it unset")
    default_threads()  # raises for an unusable PYSIMD_NUM_THREADS now, not at the first large product
    lib.pysimd_start(TARGETS.index(bound) if bound else lib.TARGETS - 1)
    return bound or TARGETS[-1]


@cache
def default_threads() -> int:
    """PYSIMD_NUM_THREADS, or the number of cores that this process may use.

    Raises:
        OptionError: PYSIMD_NUM_THREADS is no positive integer.
    """
    text = os.environ.get("PYSIMD_NUM_THREADS", "")
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"PYSIMD_NUM_THREADS={text!r} must be a positive integer, or unset for all cores")
    return min(int(text), MOST_THREADS)


@cache
def device() -> str:
    """The processor's model name, or its architecture where the system gives none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return next((name for name in names if name), platform.processor() or platform.machine())


@cache
def features() -> tuple[str, ...]:
    """The CPU features that were detected, by the names that ``MicroKernel.requires`` uses."""
    start()
    return names(lib.pysimd_cpu_features())


@cache
def row(name: str):
    """The row (``pysimd_kernel *``) of the kernel of that name."""
    return next(row for row in rows() if text(row.name) == name)
