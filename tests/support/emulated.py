"""The CPU kernels of other architectures: ``tests/cross/run_cases.c`` cross-compiled by clang, under QEMU's user mode.

Products are described here by NumPy arrays of any strides and checked by ``reference.check``, as everywhere.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from pysimd.cpu_kernels import build_cffi, targets

import pysimd
from pysimd.backends.cpu import table as cpu_table
from pysimd.errors import UnavailableError
from pysimd.operands import batch_strides, merged
from pysimd.simulator import toolchain

REQUIRED = os.environ.get("PYSIMD_TEST_CROSS") == "1"
"""Whether a missing compiler or emulator is a failure, not a reason to skip."""

SOURCES = Path(__file__).parents[2] / "cpu_kernels"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
OF_PYTHON = ("door.c", "entry.c", "request.c", "tensors.c")
"""The files in core/ that need the headers of Python and NumPy."""
RUN, MULTIPLY = 0, 1
PLACES = {"ending_at_guard": 0, "starting_at_guard": 1}
ZERO, ACCUMULATE, FACTORS = cpu_table.lib.PYSIMD_ZERO, 0, 8


@dataclass(frozen=True)
class Machine:
    """A processor that QEMU emulates.

    Attributes:
        name: for test ids.
        architecture: ``aarch64`` or ``riscv64``.
        cpu: QEMU's ``-cpu``.
        runs: the targets that it can run, lowest first.
        vector_bytes: of a register whose length is the processor's; 0 where it has none.
    """

    name: str
    architecture: str
    cpu: str
    runs: tuple[str, ...]
    vector_bytes: int = 0


_NEON = ("generic", "neon")
_SVE = (*_NEON, "neondot", "neonmmla", "sve")
MACHINES = (
    Machine("cortex-a72", "aarch64", "cortex-a72", _NEON),
    Machine("neoverse-n1", "aarch64", "neoverse-n1", (*_NEON, "neondot")),
    Machine("no-sve", "aarch64", "max,sve=off,sme=off", _SVE[:-1]),
    Machine("a64fx", "aarch64", "a64fx", (*_NEON, "sve"), 64),
    *(
        Machine(f"sve{n}-sme{n}", "aarch64", f"max,sve{n}=on,sve-max-vq={n // 128},sme{n}=on", (*_SVE, "sme"), n // 8)
        for n in (128, 256, 512)
    ),
    Machine("rv64", "riscv64", "rv64", ("generic",)),
    *(
        Machine(f"rvv{n}", "riscv64", f"rv64,v=true,vlen={n},vext_spec=v1.0", ("generic", "rvv"), n // 8)
        for n in (128, 256, 512)
    ),
)
"""For each target a processor that lacks it, and for each vector length one that has it."""


def missing(architecture: str) -> str:
    """What is not there to compile for this architecture and to run it; empty if all is."""
    try:
        tools = toolchain()
    except UnavailableError as error:
        return str(error)
    if not tools.objdump:
        return f"{tools.name} is not used to link: install clang-19, lld-19 and llvm-19 (apt)"
    if not shutil.which(f"qemu-{architecture}"):
        return f"no qemu-{architecture}: install qemu-user (apt)"
    debian = {"aarch64": "arm64", "riscv64": "riscv64"}[architecture]
    if not Path(f"/usr/{architecture}-linux-gnu/lib/libc.a").exists():
        return (
            f"no C library of {architecture}: install libc6-dev-{debian}-cross and libgcc-12-dev-{debian}-cross (apt)"
        )
    return ""


def compiler(architecture: str) -> list[str]:
    """clang for that architecture."""
    return [*toolchain().clang, f"--target={architecture}-linux-gnu", f"-I{SOURCES}"]


def objects(architecture: str, folder: Path) -> list[Path]:
    """Every C file of the kernels and of the extension that needs no Python, compiled without a warning."""
    jobs = [
        (Path(x), [*targets.FLAGS, *targets.TARGETS[target][1]])
        for target in targets.built_on(architecture)
        for x in targets.sources(SOURCES, target)
    ]
    jobs += [(SOURCES.parent / name, build_cffi.FLAGS) for name in build_cffi.SOURCES if not name.endswith(OF_PYTHON)]
    jobs.append((Path(__file__).parents[1] / "cross" / "run_cases.c", build_cffi.FLAGS))
    found, running = [], []
    for source, flags in jobs:
        found.append(folder / f"{source.parent.name}-{source.stem}.o")
        command = [*compiler(architecture), *flags, *WARNINGS, "-c", str(source), "-o", str(found[-1])]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        if len(running) == os.cpu_count():
            _finish(running.pop(0))
    for process in running:
        _finish(process)
    return found


def _finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def built(architecture: str, folder: Path) -> Path:
    """The program for that architecture, linked statically; built once for all processes that share ``folder``."""
    program = folder / f"run_cases-{architecture}"
    with open(folder / f"{architecture}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            into = folder / f"objects-{architecture}"
            into.mkdir(exist_ok=True)
            parts = map(str, objects(architecture, into))
            link = [*compiler(architecture), "-static", f"--ld-path={toolchain().lld[0]}", "-pthread"]
            subprocess.run([*link, *parts, "-o", str(into / "program")], check=True)
            (into / "program").rename(program)
    return program


# --- products ---

HEADER = struct.Struct("<64s11q17q2q2d6q")


@dataclass
class Case:
    """A product, and what is known of its result.

    Attributes:
        a, b: (..., m, k) and (..., k, n), of any strides; for ``RUN`` the buffers of a ``panels.Tile``.
        c: (..., m, n) with adjacent columns: what C holds before.
        flags: ``ZERO``: C is written; ``ACCUMULATE``: added to; ``FACTORS``: ``alpha A B + beta C``.
        check: called with C as it is afterwards.
        tile: the strides of ``RUN``.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    check: object
    flags: int = ZERO
    tile: object = None
    kernel: str | None = ""
    types: str = ""
    threads: int = 1
    alpha: float = 1.0
    beta: float = 1.0
    place: str = "ending_at_guard"
    words: str = ""
    _c: tuple = field(default=(), repr=False)


def memory(x: np.ndarray) -> tuple[bytes, int]:
    """All bytes from the first to the last that ``x`` spans, and the offset of its first element."""
    if x.size == 0:
        return b"", 0
    low, high = np.lib.array_utils.byte_bounds(x)
    return ctypes.string_at(low, high - low), x.__array_interface__["data"][0] - low


def packed(case: Case, row) -> bytes:
    """The case as the program reads it."""
    of_a, of_b, of_c = memory(case.a), memory(case.b), memory(case.c)
    sizes = [x.itemsize for x in (case.a, case.b, case.c)]
    dims = ()
    if case.tile is not None:
        t = case.tile
        strides = (row.mr, row.nr, t.groups, t.rs_a, t.cs_a, t.rs_b, 0, case.c.strides[-2] // sizes[2])
    else:
        rs_a, cs_a = (s // sizes[0] for s in case.a.strides[-2:])
        rs_b, cs_b = (s // sizes[1] for s in case.b.strides[-2:])
        m, k, n = *case.a.shape[-2:], case.b.shape[-1]
        cs_a, cs_b = 1 if k == 1 else cs_a, 1 if n == 1 else cs_b
        strides = (m, n, k, rs_a, cs_a, rs_b, cs_b, case.c.strides[-2] // sizes[2])
        batch = case.c.shape[:-2]
        if batch:
            dims = merged(batch, *(batch_strides(x, batch) for x in (case.a, case.b, case.c)))
    assert len(dims) <= 4
    padding = [0] * (4 - len(dims))
    shape = [n for n, _ in dims]
    steps = [[step[i] // sizes[i] for _, step in dims] for i in range(3)]
    grid = [x for part in (shape, *steps) for x in (*part, *padding)]
    what = RUN if case.tile is not None else MULTIPLY
    types = cpu_table.TYPES[case.types or row.types]
    name = (row.name if case.kernel == "" else "").encode()
    header = HEADER.pack(
        name, what, types, PLACES[case.place], *strides, len(dims), *grid, case.flags, case.threads,
        case.alpha, case.beta, len(of_a[0]), len(of_b[0]), len(of_c[0]), of_a[1], of_b[1], of_c[1],
    )  # fmt: skip
    case._c = of_c
    return header + of_a[0] + of_b[0] + of_c[0]


class Emulated:
    """The program on one machine."""

    def __init__(self, machine: Machine, program: Path):
        self.machine = machine
        self.command = [f"qemu-{machine.architecture}", "-cpu", machine.cpu, str(program)]

    @cache  # noqa: B019 (as long as the tests)
    def list(self, bound: str = "") -> SimpleNamespace:
        """Features, kernels (name: mr, nr, whether it can run), and the chosen names by types, as the program says."""
        output = subprocess.run(
            [*self.command, "list", *filter(None, [bound])], check=True, capture_output=True, text=True
        )
        lines = [line.split() for line in output.stdout.splitlines()]
        return SimpleNamespace(
            features=lines[0][1:],
            kernels={x[1]: tuple(map(int, x[2:])) for x in lines if x[0] == "kernel"},
            chosen={cpu_table.FAMILIES[int(x[1])]: x[2:] for x in lines if x[0] == "chosen"},
        )

    def kernels(self) -> list[str]:
        """Names of the kernels that can run."""
        return [name for name, (_, _, can_run) in self.list().kernels.items() if can_run]

    def row(self, name: str) -> SimpleNamespace:
        """The kernel as it is on this machine."""
        kernel = pysimd.kernel(name)
        fields = ("name", "target", "types", "form", "k_group", "a_dtype", "b_dtype", "c_dtype", "mr_vl", "nr_vl")
        mr, nr, _ = self.list().kernels[name]
        return SimpleNamespace(mr=mr, nr=nr, **{x: getattr(kernel, x) for x in fields})

    def run(self, row, cases: list[Case]) -> int:
        """Run and check them; returns how many there were."""
        given = b"".join(packed(case, row) for case in cases)
        done = subprocess.run([*self.command, "run"], input=given, capture_output=True)
        at = 0
        for number, case in enumerate(cases):
            what = f"{self.machine.name}, {row.name}, case {number}: {case.words}"
            data, offset = case._c
            if len(done.stdout) < at + 8 + len(data):
                raise AssertionError(
                    f"{what}: the program ended with {done.returncode}\n{done.stderr.decode()[-2000:]}"
                )
            (status,) = struct.unpack_from("<q", done.stdout, at)
            assert status == 0, f"{what}: status {status}"
            memory = np.frombuffer(done.stdout, np.uint8, len(data), at + 8).copy()
            at += 8 + len(data)
            c = np.ndarray(case.c.shape, case.c.dtype, memory, offset, case.c.strides)
            try:
                case.check(c)
                between = memory_between(case.c, data, memory, offset)
                assert between, "bytes between the rows of C were written"
            except AssertionError as error:
                raise AssertionError(f"{what}: {error}") from error
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        assert at == len(done.stdout)
        return len(cases)


def memory_between(c: np.ndarray, before: bytes, after: np.ndarray, offset: int) -> bool:
    """Whether bytes that belong to no element of C are as they were."""
    if c.size == 0:
        return True
    was = np.frombuffer(before, np.uint8).copy()
    now = after.copy()
    for x in (was, now):
        np.ndarray(c.shape, c.dtype, x, offset, c.strides)[...] = 0
    return bool((was == now).all())
