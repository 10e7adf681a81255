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
processor = Path("/proc/cpuinfo")
without_avx512 = processor.exists() and "avx512f" not in processor.read_text()

platform_tag = os.environ.get("PYSIMD_PLATFORM")
machine = next(x for x in targets["FOLDERS"] if platform_tag.endswith(x)) if platform_tag else platform.machine()


def cannot_run(target):
    """Whether a test can run nothing of a target on this processor."""
    return without_avx512 and "-mavx512f" in targets["TARGETS"][target][1]


def library(target):
    """The kernels of a target. Those of AVX-512 take gcc half of the time of all. Where they cannot run, a sanitized
    build compiles them like any other, so that ccache has them from that one."""
    folder, flags = targets["TARGETS"][target]
    checks = SANITIZE_KERNELS if sanitized and not cannot_run(target) else []
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
    take longest. One library after the other, its last file had a core to itself for up to half a minute. (A sanitized
    build ends with what it shares with another one, which may run beside it.)"""

    def build_libraries(self, libraries):
        side_by_side(self.compiler)
        build = super().build_libraries
        shared = [library(target)[0] for target in built if sanitized and cannot_run(target)]
        in_turn = [*reversed(libraries)]
        in_turn.sort(key=lambda library: library[0] in shared)
        with ThreadPoolExecutor(len(libraries)) as pool:
            list(pool.map(lambda library: build([library]), in_turn))


class BuildCore(build_ext):
    """What calls them."""

    def build_extensions(self):
        for extension in self.extensions:
            extension.define_macros += [(f"PYSIMD_WITHOUT_{target.upper()}", None) for target in missing]
            if sanitized:
                extension.extra_compile_args += SANITIZE
                extension.extra_link_args += SANITIZE
        side_by_side(self.compiler)
        super().build_extensions()


setup(
    cmdclass={"build_clib": BuildKernels, "build_ext": BuildCore},
    libraries=[library(target) for target in built if target not in missing],
    cffi_modules=["cpu_kernels/build_cffi.py:ffi"],
    options={"bdist_wheel": {"py_limited_api": "cp310", "plat_name": platform_tag}},
)
