"""What pyproject.toml cannot say: one static library of kernels per target, each with its own compiler flags.

PYSIMD_SANITIZE=1 builds with the address and undefined-behaviour sanitizers, for the tests.
"""

import os
import platform
from pathlib import Path

from setuptools import setup

AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma"]
TARGET_FLAGS = {
    "generic": [],
    "sse": [],
    "avx": ["-mavx"],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": AVX512,
    "avx512vnni": [*AVX512, "-mavx512vnni"],
    "avx512bf16": [*AVX512, "-mavx512bf16"],
}
# -O2, not -O3: the templates unroll what must be unrolled, and -O3 copies whole tiles for each value of the flags.
FLAGS = ["-std=gnu11", "-O2", "-g0", "-fvisibility=hidden", "-fPIC"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"]

KERNELS = Path("cpu_kernels")
is_x86 = platform.machine().lower() in ("x86_64", "amd64")
sanitize = SANITIZE if os.environ.get("PYSIMD_SANITIZE") == "1" else []


def sources(target):
    """The kernel files and the peak file of a target: its name is their first or last word."""
    return sorted(str(path) for path in [*KERNELS.glob(f"{target}_*.c"), KERNELS / f"peak_{target}.c"])


if sanitize:  # the cffi extension takes its flags from the environment
    os.environ["CFLAGS"] = " ".join([os.environ.get("CFLAGS", ""), *sanitize])

setup(
    libraries=[
        (
            f"pysimd_{target}",
            {
                "sources": sources(target),
                "include_dirs": [str(KERNELS)],
                "obj_deps": {"": sorted(str(p) for p in [*KERNELS.glob("*.h"), *KERNELS.glob("*.inc")])},
                "cflags": [*FLAGS, *flags, *sanitize],
            },
        )
        for target, flags in TARGET_FLAGS.items()
        if is_x86 or target == "generic"
    ],
    cffi_modules=["cpu_kernels/build_cffi.py:ffi"],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
