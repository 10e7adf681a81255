"""What pyproject.toml cannot say: one static library of kernels per target, each with its own compiler flags.

PYSIMD_SANITIZE=1 builds with the address and undefined-behaviour sanitizers, for the tests. PYSIMD_PLATFORM is the
platform tag of a wheel that is cross-compiled, by the compiler that CC and LDSHARED name: tools/release.py.
"""

import os
import platform
import runpy
import shlex
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext

KERNELS = Path("cpu_kernels")
targets = runpy.run_path(str(KERNELS / "targets.py"))

# -g1, the lines alone: with -g the compiler takes up to twice as long.
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g1", "-O1"]
# Kernels, whose unrolled code takes gcc 2.6 times as long with all checks: without those of addresses that the address
# sanitizer finds when they are used, and with calls for its own.
SANITIZE_KERNELS = [
    *SANITIZE,
    "-fno-sanitize=null,object-size,pointer-overflow",
    "--param=asan-instrumentation-with-call-threshold=0",
]
sanitized = os.environ.get("PYSIMD_SANITIZE") == "1"
sanitize = SANITIZE if sanitized else []
sanitize_kernels = SANITIZE_KERNELS if sanitized else []
processor = Path("/proc/cpuinfo")
without_avx512 = processor.exists() and "avx512f" not in processor.read_text()

platform_tag = os.environ.get("PYSIMD_PLATFORM")
machine = next(x for x in targets["FOLDERS"] if platform_tag.endswith(x)) if platform_tag else platform.machine()


def library(target):
    """The kernels of a target; without the sanitizers, which are in CFLAGS too, where no test can run them on this
    processor: those of AVX-512 take gcc half of the time of all, and half of that with -O1."""
    folder, flags = targets["TARGETS"][target]
    cannot_run = without_avx512 and "-mavx512f" in flags
    checks = ["-fno-sanitize=all", "-O1"] if sanitized and cannot_run else sanitize_kernels
    headers = [path for room in ("core", "include", "templates", folder) for path in (KERNELS / room).glob("*.h")]
    rungs = {str(KERNELS / folder / f"ladder_{target}.c"): sorted(map(str, (KERNELS / "ladder").iterdir()))}
    return f"pysimd_{target}", {
        "sources": targets["sources"](KERNELS, target),
        "obj_deps": {"": sorted(map(str, headers)), **rungs},
        "cflags": [*targets["FLAGS"], *flags, *checks],
    }


def compiles(target):
    """Whether the compiler knows the flags of a target."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))
    command = [*compiler, *targets["TARGETS"][target][1], "-x", "c", "-c", os.devnull, "-o", os.devnull]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


built = targets["built_on"](machine)
missing = [target for target in built if target in targets["OPTIONAL"] and not compiles(target)]
flags_of_all = [*sanitize, *(f"-DPYSIMD_WITHOUT_{target.upper()}" for target in missing)]
if flags_of_all:  # the cffi extension takes its flags from the environment
    os.environ["CFLAGS"] = " ".join([os.environ.get("CFLAGS", ""), *flags_of_all])


def side_by_side(compiler):
    """Let a compiler compile several files at the same time, which setuptools compiles one after the other."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pool, compile_in_turn = ThreadPoolExecutor(cores), compiler.compile

    def compile_all(files, *args, **options):
        found = pool.map(lambda file: compile_in_turn([file], *args, **options), files)
        return [path for objects in found for path in objects]

    compiler.compile = compile_all


class BuildKernels(build_clib):
    """The kernels of all targets, whose files are compiled at the same time, those of the widest vectors first: they
    take longest. One library after the other, its last file had a core to itself for up to half a minute."""

    def build_libraries(self, libraries):
        side_by_side(self.compiler)
        build = super().build_libraries
        with ThreadPoolExecutor(len(libraries)) as pool:
            list(pool.map(lambda library: build([library]), reversed(libraries)))


class BuildCore(build_ext):
    """What calls them."""

    def build_extensions(self):
        side_by_side(self.compiler)
        super().build_extensions()


setup(
    cmdclass={"build_clib": BuildKernels, "build_ext": BuildCore},
    libraries=[library(target) for target in built if target not in missing],
    cffi_modules=["cpu_kernels/build_cffi.py:ffi"],
    options={"bdist_wheel": {"py_limited_api": "cp310", "plat_name": platform_tag}},
)
