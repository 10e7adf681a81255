"""What pyproject.toml cannot say: one static library of kernels per target, each with its own compiler flags.

PYSIMD_SANITIZE=1 builds with the address and undefined-behaviour sanitizers, for the tests.
"""

import os
import platform
from pathlib import Path

from setuptools import setup

KERNELS = Path("cpu_kernels")

MACHINE = platform.machine().lower()
ANY = (MACHINE,)
X86 = ("x86_64", "amd64")
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma", "-mf16c"]
TARGETS = {  # target: (folder of its files in cpu_kernels/, machines that it is built on, compiler flags)
    "generic": ("generic", ANY, []),
    "sse": ("x86", X86, []),
    "avx": ("x86", X86, ["-mavx"]),
    "avx2": ("x86", X86, ["-mavx2", "-mfma", "-mf16c"]),
    "avx512": ("x86", X86, AVX512),
    "avx512vnni": ("x86", X86, [*AVX512, "-mavx512vnni"]),
    "avx512bf16": ("x86", X86, [*AVX512, "-mavx512bf16"]),
}
# -O2, not -O3: the templates unroll what must be unrolled, and -O3 copies whole tiles for each value of the flags.
FLAGS = ["-std=gnu11", "-O2", "-g0", "-fvisibility=hidden", "-fPIC"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"]
sanitize = SANITIZE if os.environ.get("PYSIMD_SANITIZE") == "1" else []


def library(target, folder, flags):
    """The files of a target, whose name is their first or last word: kernels, peak, ladder, and the widening of
    arrays."""
    sources = [*(KERNELS / folder).glob(f"{target}_*.c"), *(KERNELS / folder).glob(f"*_{target}.c")]
    headers = [path for room in ("core", "include", "templates", folder) for path in (KERNELS / room).glob("*.h")]
    rungs = {str(KERNELS / folder / f"ladder_{target}.c"): sorted(map(str, (KERNELS / "ladder").iterdir()))}
    return f"pysimd_{target}", {
        "sources": sorted(map(str, sources)),
        "obj_deps": {"": sorted(map(str, headers)), **rungs},
        "cflags": [*FLAGS, *flags, *sanitize],
    }


if sanitize:  # the cffi extension takes its flags from the environment
    os.environ["CFLAGS"] = " ".join([os.environ.get("CFLAGS", ""), *sanitize])

setup(
    libraries=[
        library(target, folder, flags) for target, (folder, machines, flags) in TARGETS.items() if MACHINE in machines
    ],
    cffi_modules=["cpu_kernels/build_cffi.py:ffi"],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
