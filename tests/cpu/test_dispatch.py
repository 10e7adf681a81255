"""Which kernels run where: PYSIMD_ISA, the CPU's features, and the kernel that matmul chooses by name."""

import os
import platform
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from cases import few
from process import RUNNER, output_of, run_python

import pysimd
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU

TARGETS = ["generic", "sse", "avx", "avx2", "avx512", "avx512vnni", "avx512bf16", "avx512fp16", "amx"]
OTHERS = ["neon", "neondot", "neonmmla", "sve", "sme", "rvv"]
"""Targets of other architectures; tests/cross executes their kernels."""
FOREIGN = [k for k in pysimd.kernels("cpu") if k.target in OTHERS]
ROWS = [cpu_table.lib.pysimd_kernels[i] for i in range(cpu_table.lib.pysimd_kernel_count)]
CHOICES = 66
"""Dispatch takes one kernel from this many columns, less one, on (registry.c)."""
GEMV_COLUMNS = 4

PINNED = {  # (target, types): last number of columns and tile, of the choices of today that most machines can check
    ("generic", "f32"): [(70, "4x4")],
    ("generic", "f64"): [(70, "4x4")],
    ("sse", "f32"): [(4, "4x4"), (70, "6x8")],
    ("avx", "f32"): [(70, "8x8")],
    ("avx2", "f32"): [(1, "gemv_8x1"), (3, "8x8"), (4, "4x4"), (8, "8x8"), (16, "6x16"), (24, "4x24"), (70, "6x16")],
    ("avx2", "f64"): [(1, "gemv_8x1"), (3, "6x8"), (4, "4x4"), (8, "6x8"), (12, "4x12"), (70, "6x8")],
    ("avx2", "f16f32"): [(1, "gemv_8x1"), (3, "8x8"), (4, "4x4"), (8, "8x8"), (16, "6x16"), (24, "4x24"), (70, "6x16")],
    ("avx2", "i8i32"): [(1, "gemv_8x1"), (70, "6x16")],
}

REPORT = """
import pysimd
from pysimd.backends.cpu.implementation import CPU
for types in CPU.offered:
    print(types, *[CPU.chosen(types, n).name for n in range(71)])
    print("large", types, *[CPU.chosen(types, n, 4096, 1 << 20).name for n in range(1, 71)])
print("available", *sorted({k.target for k in pysimd.kernels("cpu") if k.available}))
"""


@cache
def report(**environment):
    """What REPORT prints; under an emulator a process takes some seconds."""
    lines = [line.split() for line in output_of("-c", REPORT, **environment).splitlines()]
    return {" ".join(words[: 1 + (words[0] == "large")]): words[1 + (words[0] == "large") :] for words in lines}


HERE = [t for t in TARGETS if t in report()["available"]]
"""What this CPU can run; asked in a process that PYSIMD_ISA does not bound."""


def expected(types: str, bound: str, large: bool = False) -> list[str]:
    """The rule of kernels.inc, for 0 to 70 columns: of the rows whose range has n, one for a vector if there is one, of
    the highest target up to ``bound`` that can run here (before it, where the CPU executes AVX-512 in halves, one that
    needs fewer lanes), and of these the one with the smallest ``.dispatch``. Rows for products of many multiply-adds
    count for large ones only, but those for a vector for any of one column, and rows ``.not_with`` a target of this CPU
    not at all; the row for any number of columns may be ``.dispatch_before_gemv``. A row for whole tiles leaves others
    to the one for more columns, unless that needs fewer lanes."""
    targets = [t for t in HERE if TARGETS.index(t) <= TARGETS.index(bound)]
    rows = [row for row in ROWS if row.types == cpu_table.TYPES[types] and cpu_table.TARGETS[row.target] in targets]
    rows = [row for row in rows if row.dispatch != cpu_table.lib.NEVER]
    rows = [row for row in rows if row.not_with == 0 or cpu_table.TARGETS[row.not_with] not in HERE]
    reaching = [
        [row for row in rows if is_for(row, n) and (large or row.dispatch_macs == 0 or is_for_a_vector(row, n))]
        for n in range(71)
    ]
    halves = cpu_table.lib.pysimd_halves_avx512()

    def rank(row):
        return row.form != cpu_table.lib.GEMV, -(halves and row.dispatch_halves), -row.target, row.dispatch

    found = [min(some, key=rank) for some in reaching]
    widest = found[-1]
    if not large and not halves and widest.dispatch_before_gemv and not widest.dispatch_macs_few:
        for n in range(widest.dispatch_before_gemv, GEMV_COLUMNS + 1):
            found[n] = widest  # unused lanes cost nothing
    rows_of_c = 4096 if large else 2
    for n, row in enumerate(found):
        whole = row.mr == rows_of_c or (row.nr == n and rows_of_c % row.mr == 0)
        if row.dispatch_whole and not whole:
            wider = found[row.dispatch + 1]
            found[n] = widest if wider.dispatch_halves else wider
    return [cpu_table.text(row.name) for row in found]


def is_for(row, n: int) -> bool:
    also = row.dispatch_also > 0 and row.dispatch_also_from <= n <= row.dispatch_also
    splits = row.panel == cpu_table.lib.SPLIT
    return (row.dispatch_from <= n <= row.dispatch or also) and (not splits or is_worth_splitting(n))


def is_worth_splitting(n: int, rows: int = 4096) -> bool:
    filled = n / (-(-n // 16) * 16) if n else 0  # of tile registers
    return filled >= 0.6 and filled * n * rows / (n + rows) >= 24


def is_for_a_vector(row, n: int) -> bool:
    return row.form == cpu_table.lib.GEMV and n == 1


def all_expected(bound: str) -> dict[str, list[str]]:
    small = {types: expected(types, bound) for types in CPU.offered}
    return small | {f"large {types}": expected(types, bound, large=True)[1:] for types in CPU.offered}


def test_the_table_of_targets_is_the_one_written_here():
    assert list(cpu_table.TARGETS) == TARGETS + OTHERS
    assert list(cpu_table.BUILT) == TARGETS


def test_every_other_target_has_kernels():
    assert {k.target for k in FOREIGN} == set(OTHERS)


@pytest.mark.parametrize("kernel", FOREIGN, ids=lambda k: k.name)
def test_a_kernel_of_another_architecture_is_refused(kernel):
    architecture = "RISC-V" if kernel.target == "rvv" else "AArch64"
    reason = f"this processor is x86-64 ({kernel.target} kernels need {architecture})"
    assert (kernel.available, kernel.unavailable_reason) == (False, reason)
    a, b = np.ones((kernel.mr, 4), kernel.a_dtype), np.ones((4, kernel.nr), kernel.b_dtype)
    c = np.ones((kernel.mr, kernel.nr), kernel.c_dtype)
    for call in (lambda: kernel(a, b), lambda: kernel.bind(a, b, c), lambda: pysimd.matmul(a, b, kernel=kernel)):
        with pytest.raises(pysimd.UnavailableError, match=re.escape(f"{kernel.name} cannot run here: {reason}")):
            call()
    assert (c == 1).all()


def test_rows_say_for_how_many_columns_they_are_taken():
    """Different numbers within a target and types, of which the largest is any; an inner product is never taken."""
    taken = {}
    for row in ROWS:
        if row.form == cpu_table.lib.INNER:
            assert row.dispatch == cpu_table.lib.NEVER, cpu_table.text(row.name)
        elif row.form == cpu_table.lib.GEMV:
            by_order = row.dispatch == cpu_table.lib.NEVER and row.dispatch_dots > 0
            assert row.nr == 1 <= row.dispatch <= 4 or by_order, cpu_table.text(row.name)
            assert (row.dispatch_macs > 0) == (row.dispatch > 1), cpu_table.text(row.name)
        elif row.dispatch != cpu_table.lib.NEVER:
            assert 0 <= row.dispatch_from <= row.dispatch, cpu_table.text(row.name)
            assert row.column_step == 0 or row.nr % row.column_step == 0, cpu_table.text(row.name)
            assert row.dispatch_also == 0 or row.dispatch < row.dispatch_also_from <= row.dispatch_also < CHOICES - 1
            taken.setdefault((row.target, row.types), []).append(row.dispatch)
    for columns in taken.values():
        assert len(set(columns)) == len(columns)
        assert max(columns) == cpu_table.lib.ANY_N
        assert all(0 < n < CHOICES - 1 for n in columns if n != cpu_table.lib.ANY_N)
    offered = {cpu_table.TYPES[types] for types in cpu_table.OFFERED}
    assert {types for target, types in taken if target == cpu_table.lib.GENERIC} == offered


@pytest.mark.parametrize("bound", few(TARGETS, 3))
def test_isa_is_an_upper_bound(bound):
    seen = report(PYSIMD_ISA=bound)
    allowed = [t for t in HERE if TARGETS.index(t) <= TARGETS.index(bound)]
    assert seen == {"available": sorted(allowed), **all_expected(bound)}


@pytest.mark.parametrize("target", sorted({target for target, _ in PINNED}))
def test_choices_of_today(target):
    if target not in HERE:
        pytest.skip(f"this CPU has no {target}")
    seen = report(PYSIMD_ISA=target)
    for types in (types for t, types in PINNED if t == target):
        tiles = [next(tile for last, tile in PINNED[target, types] if n <= last) for n in range(1, 71)]
        assert seen[types][1:] == [f"{target}_{types}_{tile if '_' in tile else f'outer_{tile}'}" for tile in tiles]


@pytest.mark.parametrize("environment", [{}, {"PYSIMD_ISA": ""}], ids=["unset", "empty"])
def test_the_best_of_this_cpu_by_default(environment):
    seen = report(**environment)
    assert seen == {"available": sorted(HERE), **all_expected(TARGETS[-1])}


@pytest.mark.parametrize("value", few(["AVX2", "avx3", "sse2,avx", " avx", "neon"]))
def test_unknown_isa(value):
    call = "import numpy as np, pysimd; pysimd.matmul(np.ones((4, 4)), np.ones((4, 4)))"
    done = run_python("-c", call, PYSIMD_ISA=value)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        f"pysimd.errors.OptionError: PYSIMD_ISA={value!r} is no target: "
        f"use one of {', '.join(TARGETS)}, or leave it unset"
    )


@pytest.mark.parametrize("value", few(["0", "-1", "two", "1.5", "\u00b2"]))
def test_bad_number_of_threads(value):
    """Reported by the first call, large or small."""
    call = "import numpy as np, pysimd; pysimd.matmul(np.ones((4, 4)), np.ones((4, 4)))"
    done = run_python("-c", call, PYSIMD_NUM_THREADS=value)
    assert done.returncode != 0
    assert f"OptionError: PYSIMD_NUM_THREADS={value!r} must be a positive integer" in done.stderr


def test_number_of_threads():
    show = "from pysimd.backends.cpu import table; print(table.default_threads())"
    assert output_of("-c", show, PYSIMD_NUM_THREADS="3").strip() == "3"
    assert int(output_of("-c", show, PYSIMD_NUM_THREADS="")) >= 1


def test_a_kernel_above_the_bound_is_refused():
    call = """
import numpy as np, pysimd
k = pysimd.kernel("avx_f32_outer_8x8")
out = np.full((8, 8), 3, np.float32)
a = np.ones((8, 8), np.float32)
for call in (lambda: k(a, a, out=out), lambda: k.bind(a, a, out), lambda: pysimd.matmul(a, a, out=out, kernel=k)):
    try:
        call()
    except pysimd.UnavailableError as error:
        print(error)
assert (out == 3).all()
"""
    lines = output_of("-c", call, PYSIMD_ISA="sse").splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("avx_f32_outer_8x8 cannot run here: ")
        if "avx" in HERE:
            assert line.endswith("PYSIMD_ISA=sse bounds dispatch below avx: unset it, or set it to avx or higher")
        else:
            assert "this CPU has no avx (avx kernels need avx)" in line


def test_a_kernel_this_cpu_lacks_says_what_is_missing(monkeypatch):
    """Played by a processor without any features: the real one may have them all."""
    monkeypatch.setattr(cpu_table, "features", lambda: ("sse2",))
    row = cpu_table.row("avx2_f32_outer_8x8") if platform.machine() == "x86_64" else pytest.skip("x86-64 kernels")
    kernel = CPU._kernel(row, TARGETS[-1])
    assert not kernel.available
    assert kernel.unavailable_reason == "this CPU has no avx, avx2, fma, f16c (avx2 kernels need avx, avx2, fma, f16c)"
    with pytest.raises(pysimd.UnavailableError, match="avx2_f32_outer_8x8 cannot run here: this CPU has no avx"):
        kernel(None, None)
    with pytest.raises(pysimd.UnavailableError, match="cannot run here"):
        kernel.bind(None, None, None)


@pytest.mark.skipif(bool(RUNNER), reason="an emulator shows the real processor in /proc/cpuinfo")
def test_detection_agrees_with_the_kernel_of_the_system():
    info = Path("/proc/cpuinfo")
    flags = next((line for line in info.read_text().splitlines() if line.startswith("flags")), None)
    if platform.machine() != "x86_64" or flags is None:
        pytest.skip("no flags in /proc/cpuinfo")
    known = set(flags.partition(":")[2].split())
    detected = set(pysimd.backends()[0].features)
    assert detected == known & set(cpu_table.FEATURES), f"detected {sorted(detected)}, the system says {sorted(known)}"


@pytest.mark.skipif(not RUNNER, reason="only under an emulator, whose CPU is known")
def test_the_emulated_cpu_gets_its_own_kernels():
    """PYSIMD_TEST_EXPECT_ISA is set by whoever starts the emulator."""
    wanted = os.environ["PYSIMD_TEST_EXPECT_ISA"]
    assert TARGETS[: TARGETS.index(wanted) + 1] == HERE


def test_kernels_that_do_not_chain_say_so():
    """Those of floats that strips would take (core/strips.c), and whose tile is not that of outer.h or outer_vla.h."""
    folder = Path(str(files("pysimd.cpu_kernels")))
    text = folder.joinpath("kernels.inc").read_text()
    code = {name: source for source, name in re.findall(r"^KERNEL_OF\((\w+), (\w+),", text, re.MULTILINE)}
    floats = [cpu_table.TYPES[types] for types in ("f32", "f64", "bf16f32", "f16f32")]
    seen = set()
    for row in ROWS:
        if row.types not in floats or row.form != cpu_table.lib.OUTER or row.k_group != 1 or row.k_tile:
            continue
        name = cpu_table.text(row.name)
        source = next(folder.glob(f"*/{code.get(name, name)}.c")).read_text()
        has_chain = bool(re.search(r'include ".*outer(_vla)?\.h"', source)) or row.dispatch == cpu_table.lib.NEVER
        assert bool(row.unchained) != has_chain, name
        seen.add(has_chain)
    assert seen == {True, False}
