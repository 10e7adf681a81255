"""How the kernels of each target are compiled: for setup.py, and for who compiles them for another machine."""

from pathlib import Path

FOLDERS = {"x86_64": "x86", "amd64": "x86", "aarch64": "arm", "arm64": "arm", "riscv64": "riscv"}
"""Machine, as Python and the system name it: the folder of its kernels."""

# Loops begin with a cache line of code. The loop of the 6x16 tile has 240 bytes, and it ran 0.95 times as fast (Zen 3,
# 1024 x 1024 x 1024) where the linker had put it over five lines instead of four.
_LOOPS = ["-falign-loops=64"]
# No vector is loaded from fields of a struct that have been written one by one: it waits for the stores before
# (build_cffi.py).
_AVX512 = [*_LOOPS, "-fno-tree-slp-vectorize"]
_AVX512 += ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma", "-mf16c"]
# Arm's features by -mcpu, not by -march of a version of the architecture, which zig does not read.
TARGETS = {  # target: (folder of its files, compiler flags)
    "generic": ("generic", []),
    "sse": ("x86", _LOOPS),
    "avx": ("x86", [*_LOOPS, "-mavx"]),
    "avx2": ("x86", [*_LOOPS, "-mavx2", "-mfma", "-mf16c"]),
    "avx512": ("x86", _AVX512),
    "avx512vnni": ("x86", [*_AVX512, "-mavx512vnni"]),
    "avx512bf16": ("x86", [*_AVX512, "-mavx512bf16"]),
    "avx512fp16": ("x86", [*_AVX512, "-mavx512fp16"]),
    "amx": ("x86", _AVX512),  # its own instructions are written in assembly
    "neon": ("arm", []),
    "neondot": ("arm", ["-mcpu=generic+dotprod"]),
    "neonmmla": ("arm", ["-mcpu=generic+dotprod+i8mm+bf16"]),
    "sve": ("arm", ["-mcpu=generic+sve"]),
    "sme": ("arm", []),  # written in assembly
    "rvv": ("riscv", ["-march=rv64gcv", "-mabi=lp64d"]),
}

OPTIONAL = ("avx512fp16",)
"""Targets that are left out where the compiler does not know their flags: gcc before 12, clang before 14."""

# -O2, not -O3: the templates unroll what must be unrolled, and -O3 copies whole tiles for each value of the flags.
FLAGS = ["-std=gnu11", "-O2", "-g0", "-fvisibility=hidden", "-fPIC"]


def built_on(machine: str) -> list[str]:
    """The targets that are built on a machine."""
    return [target for target, (folder, _) in TARGETS.items() if folder in ("generic", FOLDERS.get(machine.lower()))]


def sources(kernels: Path, target: str) -> list[str]:
    """The files of a target, whose name is their first or last word: kernels, peak, ladder, conversions of arrays."""
    folder = kernels / TARGETS[target][0]
    return sorted(map(str, [*folder.glob(f"{target}_*.c"), *folder.glob(f"*_{target}.c")]))
