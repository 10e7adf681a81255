"""Kernels of Arm and RISC-V, executed: the cases of the other CPU kernels, on emulated processors.

Each kernel runs on a processor that has its target and no higher one, kernels whose vector length is the processor's on
one of each length. A processor without a target must not execute its instructions: QEMU ends the program then."""

import itertools
import os
import subprocess
import sys
import sysconfig

import numpy as np
import panels
import pytest
from cases import BATCHES, K_FEW, PRODUCTS, edge_sizes, k_lengths
from emulated import (
    ACCUMULATE,
    FACTORS,
    MACHINES,
    OF_PYTHON,
    PLACES,
    REQUIRED,
    SOURCES,
    WARNINGS,
    ZERO,
    Case,
    Emulated,
    built,
    compiler,
    missing,
)
from layouts import OPERANDS, contiguous, fractional_strides, negative_rows, padded_rows, same_rows, transposed
from pysimd.cpu_kernels import build_cffi
from reference import check, operands, random_operand, random_result

import pysimd
from pysimd.backends.cpu import table as cpu_table

KERNELS = pysimd.kernels("cpu")
TARGETS = [
    name for name, folder in zip(cpu_table.TARGETS, cpu_table.FOLDERS, strict=True) if folder in ("arm", "riscv")
]
LARGE = ((50, 301, 62), (5, 333, 131), (3, 1050, 19))
"""m, k, n of products that are computed in blocks."""


def first_with(target: str, architecture: str):
    return next(x for x in MACHINES if x.architecture == architecture and target in x.runs)


def machines_of(kernel) -> list:
    """The machines that a kernel is run on."""
    if kernel.target == "generic":
        return [first_with("generic", architecture) for architecture in sorted({x.architecture for x in MACHINES})]
    having = [x for x in MACHINES if kernel.target in x.runs]
    return having if kernel.mr_vl or kernel.nr_vl else having[:1]


PAIRS = [pytest.param(m, k.name, id=f"{m.name}-{k.name}") for k in KERNELS for m in machines_of(k)]


@pytest.fixture(scope="session")
def emulated(tmp_path_factory):
    """A function: the program on a machine."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def on(machine) -> Emulated:
        reason = missing(machine.architecture)
        if reason:
            (pytest.fail if REQUIRED else pytest.skip)(reason)
        return Emulated(machine, built(machine.architecture, folder))

    return on


# --- which kernels run ---


def test_every_target_has_a_machine():
    assert set(TARGETS) == {target for machine in MACHINES for target in machine.runs} - {"generic"}
    for target in set(TARGETS) - {"neon"}:  # which every AArch64 has
        (architecture,) = {x.architecture for x in MACHINES if target in x.runs}
        others = [x for x in MACHINES if x.architecture == architecture and target not in x.runs]
        assert others, f"{target}: every {architecture} here has it, so a wrong detection would not be seen"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_detected(machine, emulated):
    """What the processor has, and no more; where vectors have its length, so have the tiles."""
    here = emulated(machine)
    runs = {k.name for k in KERNELS if k.target in machine.runs}
    assert set(here.kernels()) == runs
    for kernel in (k for k in KERNELS if k.name in runs):
        row = here.row(kernel.name)
        lanes = machine.vector_bytes // kernel.c_dtype.itemsize
        assert row.mr == (kernel.mr_vl * lanes or kernel.mr)
        assert row.nr == (kernel.nr_vl * lanes or kernel.nr)


def expected(machine, types: str, bound: str) -> list[str]:
    """The rule of kernels.inc."""
    allowed = [t for t in machine.runs if cpu_table.TARGETS.index(t) <= cpu_table.TARGETS.index(bound)]
    rows = [row for row in cpu_table.rows() if row.types == cpu_table.TYPES[types] and row.dispatch]
    rows = [row for row in rows if cpu_table.TARGETS[row.target] in allowed]
    ranges = [[row for row in rows if row.dispatch_from <= n <= row.dispatch] for n in range(71)]
    best = [min(some, key=lambda row: (-row.target, row.dispatch)) for some in ranges]
    return [cpu_table.text(row.name) for row in best]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_chosen(machine, emulated):
    for bound in machine.runs:
        chosen = emulated(machine).list(bound).chosen
        assert chosen == {types: expected(machine, types, bound) for types in cpu_table.OFFERED}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
@pytest.mark.parametrize("types", cpu_table.OFFERED)
def test_chosen_kernels_run(machine, types, emulated):
    """Products of every size by what dispatch takes: on a processor without a target its lower kernels."""
    kernel = next(k for k in KERNELS if k.types == types)
    sizes = [(p.batch, p.m, p.k, p.n) for p in PRODUCTS[:14]] + [((), 50, 301, 62)]
    cases = [product(kernel, *size, by_choice=True) for size in sizes]
    assert emulated(machine).run(kernel, cases) == len(sizes)


# --- the kernels ---


def result_check(kernel, a, b, c=None):
    return lambda result: check(result, kernel.types, a, b, c)


def product(kernel, batch, m, k, n, *, of_a=contiguous, of_b=contiguous, of_c=contiguous, flags=ZERO, by_choice=False,
            **more) -> Case:  # fmt: skip
    """A product of random operands."""
    rng = np.random.default_rng((m, k, n))
    a = of_a(random_operand(rng, kernel.a_dtype, (*batch, m, k)))
    b = of_b(random_operand(rng, kernel.b_dtype, (*batch, k, n)))
    before = random_result(rng, kernel.c_dtype, (*batch, m, n))
    given = of_c(before if flags else np.full_like(before, np.nan if before.dtype.kind == "f" else -1))
    added = before if flags == ACCUMULATE else None
    if flags == ACCUMULATE:
        given = of_c(before)
    words = f"{batch} {m} x {k} x {n}, {of_a.__name__}, {of_b.__name__}, {of_c.__name__}, flags {flags}"
    return Case(a, b, given, result_check(kernel, a, b, added), flags=flags, words=words, types=kernel.types,
                kernel=None if by_choice else "", **more)  # fmt: skip


def tiles(row):
    """``run`` itself, on dense and on loose panels, at both guards."""
    for k, packed, place in itertools.product(k_lengths(), (True, False), PLACES):
        a, b = operands(row, k)
        c = random_result(np.random.default_rng(k), row.c_dtype, (row.mr, row.nr + 3))[:, : row.nr]
        at = panels.tile(row, a, b, packed=packed)
        words = f"run, K = {k}, {'packed' if packed else 'loose'}, {place}"
        yield Case(at.a, at.b, c, result_check(row, a, b, c.copy()), tile=at, place=place, words=words)


def edges(row):
    """Partial tiles: each m and some n, each n and some m; a few K; at both guards."""
    some = {*itertools.product(range(1, row.mr + 2), (1, row.nr - 1, row.nr + 1))}
    some |= {*itertools.product((1, row.mr), range(1, row.nr + 2))}
    if row.mr * row.nr > 200:
        some = {*itertools.product(edge_sizes(row.mr), edge_sizes(row.nr))}
    for (m, n), flags in itertools.product(sorted(some), (ZERO, ACCUMULATE)):
        place = tuple(PLACES)[(m + n) % 2]
        yield product(row, (2,), m, (m + n) % 5, n, flags=flags, place=place)


def arrays(row):
    """Shapes, batches and layouts; products in blocks, also by two threads."""
    for p in PRODUCTS:
        yield product(row, p.batch, p.m, p.k, p.n)
    for x in BATCHES:
        rng = np.random.default_rng(7)
        a = random_operand(rng, row.a_dtype, (*x.a, row.mr, 6))
        b = random_operand(rng, row.b_dtype, (*x.b, 6, row.nr))
        c = np.zeros((*x.result, row.mr, row.nr), row.c_dtype)
        yield Case(a, b, c, result_check(row, a, b), words=x.why)
    usable = [x for x in OPERANDS if x is not fractional_strides]
    for of_a, of_b, k in itertools.product(usable, (contiguous, transposed, same_rows), (5, 64)):
        yield product(row, (2,), row.mr, k, row.nr, of_a=of_a, of_b=of_b)
    for of_b, of_c in itertools.product(usable, (padded_rows, negative_rows)):
        yield product(row, (2,), row.mr + 1, 9, row.nr + 1, of_b=of_b, of_c=of_c, flags=ACCUMULATE)
    for (m, k, n), threads in itertools.product(LARGE, (1, 2)):
        yield product(row, (), m, k, n, threads=threads)


def specials(row):
    """NaN and infinity stay in their row and column; integers at their extremes are exact."""
    for k in K_FEW[1:]:
        if row.c_dtype.kind == "f":
            for value in (np.nan, np.inf, -np.inf):
                a, b = operands(row, k)
                a[1, k - 1], b[0, -1] = value, value
                yield Case(a, b, np.zeros((row.mr, row.nr), row.c_dtype), result_check(row, a, b), words=f"{value}")
            continue
        ends = (np.iinfo(row.a_dtype), np.iinfo(row.b_dtype))
        for x, y in itertools.product((ends[0].min, ends[0].max), (ends[1].min, ends[1].max)):
            a, b = np.full((row.mr, k), x, row.a_dtype), np.full((k, row.nr), y, row.b_dtype)
            c = np.full((row.mr, row.nr), 2**31 - 1 if x * y > 0 else -(2**31), np.int32)
            yield Case(a, b, c, result_check(row, a, b, c.copy()), flags=ACCUMULATE, words=f"{x} times {y}")


@pytest.mark.parametrize("cases", [tiles, edges, arrays, specials], ids=lambda x: x.__name__)
@pytest.mark.parametrize(("machine", "name"), PAIRS)
def test_kernel(machine, name, cases, emulated, record_property):
    here = emulated(machine)
    row = here.row(name)
    some = list(cases(row))
    record_property("cases", here.run(row, some))


@pytest.mark.parametrize(("machine", "name"), PAIRS)
def test_same_bits(machine, name, emulated):
    """The value of a product depends neither on strides nor on its neighbours."""
    here = emulated(machine)
    row = here.row(name)
    a, b = operands(row, 37)
    found = []
    cases = [
        Case(x, y, np.zeros((*batch, row.mr, row.nr), row.c_dtype), lambda c: found.append(c.copy()))
        for batch in ((), (5,))
        for of_a, of_b in itertools.product((contiguous, transposed, padded_rows), repeat=2)
        for x, y in [(of_a(np.broadcast_to(a, (*batch, *a.shape))), of_b(np.broadcast_to(b, (*batch, *b.shape))))]
    ]
    here.run(row, cases)
    for c in found:
        np.testing.assert_array_equal(c, np.broadcast_to(found[0], c.shape))


@pytest.mark.parametrize("types", ["f32", "f64"])
@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_factors_of_large_products(machine, types, emulated):
    """alpha and beta are applied to each micro-tile of packed products."""
    kernel = next(k for k in KERNELS if k.types == types)
    rng = np.random.default_rng(1)
    a, b, c = (random_operand(rng, kernel.c_dtype, shape) for shape in ((110, 64), (64, 165), (110, 165)))
    exact = 2 * (a.astype(np.float64) @ b) - 0.5 * c

    def close(result):
        assert (abs(result - exact) <= 200 * np.finfo(kernel.c_dtype).eps * (1 + abs(exact).max())).all()

    case = Case(a, b, c, close, flags=FACTORS, alpha=2, beta=-0.5, kernel=None, types=types)
    assert emulated(machine).run(kernel, [case]) == 1


# --- the tests themselves ---


def test_a_wrong_result_and_a_crash_are_seen(emulated):
    here = emulated(MACHINES[0])
    row = here.row("generic_f32_outer_4x4")
    case = next(iter(arrays(row)))
    wrong = Case(case.a, case.b, case.c, lambda c: check(c + 1, row.types, case.a, case.b), words="off by one")
    with pytest.raises(AssertionError, match=r"off by one: .*wrong"):
        here.run(row, [wrong])
    a, b = operands(row, 4)
    tile = panels.tile(row, a, b, packed=True)
    tile.groups += 1  # reads past the panel, at the guard
    beyond = Case(tile.a, tile.b, np.zeros((4, 4), np.float32), lambda c: None, tile=tile, words="one step too far")
    with pytest.raises(AssertionError, match=r"one step too far: the program ended with -11"):
        here.run(row, [beyond])


@pytest.mark.parametrize("architecture", ["aarch64", "riscv64"])
def test_the_door_compiles(architecture, tmp_path):
    """The files that need the headers of Python and NumPy; pyconfig.h is this machine's, whose sizes are the same."""
    if missing(architecture):
        (pytest.fail if REQUIRED else pytest.skip)(missing(architecture))
    configuration = tmp_path / f"{architecture}-linux-gnu" / f"python3.{sys.version_info[1]}" / "pyconfig.h"  # Debian's
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f'#include "{sysconfig.get_config_h_filename()}"\n')
    headers = [sysconfig.get_path("include"), sysconfig.get_path("platinclude"), np.get_include(), tmp_path]
    command = [*compiler(architecture), *build_cffi.FLAGS, *WARNINGS, *(f"-isystem{x}" for x in headers)]
    files = [str(SOURCES / "core" / name) for name in OF_PYTHON]
    done = subprocess.run([*command, "-fsyntax-only", *files], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
