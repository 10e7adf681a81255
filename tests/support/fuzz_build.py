"""The fuzz target of the C code (fuzz_driver.c), built with the sanitizers from the sources of cpu_kernels."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

from pysimd.cpu_kernels import targets

SOURCE = Path(__file__).with_name("fuzz_driver.c")
CORE = (
    "registry",
    "few",
    "features",
    "caches",
    "pack",
    "widen",
    "narrow",
    "stage",
    "placement",
    "threads",
    "gemm",
    "strips",
    "direct",
    "driver",
    "beyond",
    "batch",
    "scale",
)
KERNELS = re.compile("generic_.*|sse_f32_outer_4x4|avx2_f32_(inner_8x8|gemv_8x1)|avx2_i8i32_outer_6x16")
"""One kernel of each form and each kind of panel: with the sanitizers, a compiler takes some seconds for each."""

PACKING = ("widen_", "planes_", "narrow_", "transpose_", "every_other_", "interleave_", "pair_", "small_bytes_avx2")
"""Files of functions that prepare operands or convert results begin with these."""

_SANITIZERS = "address,undefined"
_CALLS = "asan-instrumentation-with-call-threshold=0"
_OF_KERNELS = {"gcc": (f"--param={_CALLS}",), "clang": ("-mllvm", f"-{_CALLS}")}
"""Of unrolled code: checks that are calls take a compiler half of the time."""
_FLAGS = ("-std=gnu11", "-O1", "-g1", "-w", "-ffp-contract=off", "-fno-omit-frame-pointer", "-pthread")


def compiler(*, guided: bool) -> list[str] | None:
    """The command of a compiler with the sanitizers, and with libFuzzer if inputs are to be ``guided`` by what they
    reach; None if there is none."""
    if not guided:
        return (
            ["gcc", f"-fsanitize={_SANITIZERS}", "-fno-sanitize-recover=all", "-DSTANDALONE"]
            if shutil.which("gcc")
            else None
        )
    for version in range(30, 13, -1):
        clang = shutil.which(f"clang-{version}")
        if clang and _has_fuzzer(clang):
            return [clang, f"-fsanitize=fuzzer,{_SANITIZERS}", "-fno-sanitize-recover=all", "-fno-sanitize=function"]
    return None


def _has_fuzzer(clang: str) -> bool:
    done = subprocess.run([clang, "--print-file-name=libclang_rt.fuzzer-x86_64.a"], capture_output=True, text=True)
    folder = subprocess.run([clang, "--print-resource-dir"], capture_output=True, text=True).stdout.strip()
    return Path(done.stdout.strip()).is_absolute() or any(Path(folder).rglob("libclang_rt.fuzzer-*.a"))


def build(folder: Path, command: list[str]) -> Path:
    """The program. ``folder`` keeps the copy of the sources that it is made of."""
    copy = folder / "cpu_kernels"
    shutil.copytree(str(files("pysimd.cpu_kernels")), copy, dirs_exist_ok=True)
    table = (copy / "kernels.inc").read_text()
    rows = re.compile(r"^KERNEL(?:_OF\(\w+, |\()(\w+),.*\n", re.MULTILINE)
    (copy / "kernels.inc").write_text(rows.sub(lambda row: row[0] if KERNELS.fullmatch(row[1]) else "", table))
    objects = []
    for source, flags in _sources(copy, _OF_KERNELS[Path(command[0]).name.split("-")[0]]):
        made = folder / f"{Path(source).stem}.o"
        subprocess.run([*command, *_FLAGS, *flags, "-I", str(copy), "-c", str(source), "-o", str(made)], check=True)
        objects.append(str(made))
    program = folder / "fuzz_driver"
    subprocess.run([*command, *_FLAGS, *objects, "-o", str(program), "-lm"], check=True)
    return program


def _sources(copy: Path, of_kernels: tuple[str, ...]):
    """Files and the flags that they need beyond those of all; ``of_kernels``: those of kernels."""
    yield SOURCE, ()
    for name in CORE:
        yield copy / "core" / f"{name}.c", ()
    for target in ("generic", "sse", "avx2", "avx512"):
        for source in map(Path, targets.sources(copy, target)):
            if KERNELS.fullmatch(source.stem) or source.stem.startswith(PACKING):
                yield source, (*targets.TARGETS[target][1], "-fno-sanitize=all", "-fsanitize=address", *of_kernels)
