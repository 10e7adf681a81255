"""The headers of hip_kernels against the table and the machine code. Needs a compiler, no GPU."""

import re
from collections import Counter
from fractions import Fraction
from functools import cache

import gpu_headers
import hip_machine_code as machine
import pytest
from gpu_headers import Facts
from hip_machine_code import code_of
from pysimd.hip_kernels import table

from pysimd import dtypes, sources
from pysimd.backends.gpu import batched
from pysimd.inspection import amd

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")


def text_of(source):
    return sources.read(f"hip_kernels/{source}")


# --- what is true of a kernel ---


@cache
def facts(row, target):
    """Counted in the instance for K-major operands."""
    code = code_of(row.source, table.entry(row, "K_MAJOR", "K_MAJOR", False), target)
    loop = code.hottest()
    return gpu_headers.facts_of_row(
        row,
        target,
        regs={
            "accumulator": accumulators(x for x, _ in loop.texts),
            "register": Fraction(code.kernel.vgprs),
            "spill": Fraction(code.kernel.scratch + code.kernel.vgpr_spills + code.kernel.sgpr_spills),
        },
        instructions=Counter({spelling(name): n for name, n in loop.names.items() if amd.macs(name)}),
        loads=Counter(loop.loads()),
        macs=sum(amd.macs(name) * n for name, n in loop.names.items()),
        smem=code.kernel.lds,
        copies=2 if (row.form, target) == ("wmma", "gfx1100") else 1,
    )


def spelling(name):
    """As gfx942 has it: the matrix instructions of gfx90a have one underscore less."""
    return re.sub(r"^(v_mfma_\w+x\d+)(f\d+)$", r"\1_\2", name)


def accumulators(instructions):
    """Registers of the results of chains of multiply-adds; None where additions are instructions of their own."""
    pairs = []
    for x in (half for pair in instructions for half in (pair, pair.second) if half is not None):
        if x.mnemonic.startswith("v_mul"):
            return None
        if amd.macs(amd._names([x])[0][0]):
            in_place = x.mnemonic.startswith(("v_fmac", "v_dual_fmac", "v_dot4c"))
            pairs.append((x.operands[0], x.operands[0 if in_place else 3]))
    first, last = re.fullmatch(r"[av]\[?(\d+):?(\d*)\]?", pairs[0][0]).groups()
    return Fraction(gpu_headers.accumulators(pairs) * (int(last or first) - int(first) + 1))


@cache
def batched_facts(types, size, target="gfx906"):
    """Of square products whose rows of C are stored as vectors, all k unrolled."""
    family = dtypes.FAMILIES[types]
    size_a, size_c = gpu_headers.itemsize(family.a), gpu_headers.itemsize(family.c)
    given = gpu_headers.operands(1001, size, size, size, size_a, size_c)
    made = batched.instance(types, given)
    code = code_of(table.BATCHED, made.entry, target)
    names = Counter(name for name, _ in code.instructions)
    macs = Fraction(sum(amd.macs(name) * n for name, n in names.items()), size)
    loaded = sum(n * amd.bytes_loaded(name) for name, n in names.items() if name.startswith(("ds_read", "ds_load")))
    ((_, blocks, threads, _),) = batched.launches(given, made, None)
    return Facts(
        where=f"{made.entry} on {target}",
        words=(types, f"{size}x{size}", target),
        variables={
            **{"M": size, "N": size, "K": size, "TM": made.tm, "TN": made.tn, "PRODUCTS": made.products},
            **{"LANES": made.lanes, "batch": 1001, "A_BYTES": size_a, "C_BYTES": size_c},
        },
        quantities={
            "regs": {"accumulator": None, "spill": Fraction(code.kernel.scratch + code.kernel.vgpr_spills)},
            "per k": {"multiply-add": macs, "element from LDS": Fraction(loaded, size_a * size)},
            "ratio": {"in LDS": macs * size_a * size / loaded},
            "lanes": {"": Fraction(made.lanes)},
            "launch": {"thread a block": Fraction(threads[0]), "block": Fraction(blocks[0])},
            "smem": {"byte": Fraction(code.kernel.lds)},
        },
    )


# --- the headers ---


def facts_of(source):
    if source == table.BATCHED:
        return [], [batched_facts(types, size) for types, size in (("f32", 8), ("f64", 8), ("i8i32", 16))]
    rows = [row for row in table.KERNELS if row.source == source]
    return rows, [facts(row, target) for row in rows for target in machine.targets(row)]


SOURCES = sorted({row.source for row in table.KERNELS} | {table.BATCHED})
every_source = pytest.mark.parametrize("source", SOURCES)


@every_source
def test_the_header_is_true(source):
    assert gpu_headers.complaints(text_of(source), *facts_of(source)) == []


@every_source
def test_no_number_of_the_header_can_be_altered(source):
    for altered in gpu_headers.altered(text_of(source)):
        assert gpu_headers.complaints(altered, *facts_of(source)), altered


LIES = {
    ("outer.hip", "MR*NR v_fmac_f32,", "MR*NR v_fma_f32,"),
    ("outer.hip", ", MR*NR/2 v_pk_fma_f32 for gfx90a and gfx942", ""),
    ("outer.hip", "for gfx90a and gfx942", "for gfx90a"),
    ("outer.hip", "MR*NR accumulators", "MR*NR/2 accumulators"),
    ("outer.hip", "hip_f32_outer_4x4, ", ""),
    ("inner.hip", "lanes     MR*NR", "lanes     MR"),
    ("mfma.hip", ", 8 for f16f32 32x32", ""),
    ("mfma.hip", "MR*NR/64 accumulators", "MR*NR/32 accumulators"),
    ("wmma.hip", "; counted 4.00 for gfx11", ""),
    ("outer_dot4.hip", "v_dot4_i32_iu8 for gfx11 and gfx12", "v_dot4_i32_iu8 for gfx11"),
    ("outer_packed.hip", "MR*NR/2 v_pk_fma_f16", "MR*NR v_pk_fma_f16"),
    ("batched.hip", "TM + TN elements", "TM elements"),
}


@pytest.mark.parametrize(("source", "said", "lie"), sorted(LIES))
def test_a_lie_is_found(source, said, lie):
    text = text_of(source)
    assert said in text
    assert gpu_headers.complaints(text.replace(said, lie), *facts_of(source))
