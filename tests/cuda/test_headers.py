"""The headers of gpu_kernels/micro against the table and the machine code. Needs no GPU."""

from collections import Counter
from fractions import Fraction
from functools import cache

import cuda_machine_code as machine
import gpu_headers
import pytest
from gpu_headers import Facts
from pysimd.gpu_kernels import table

from pysimd import dtypes, sources
from pysimd.backends.gpu import batched

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

ARCHITECTURES = (75, 90)
RESERVED = {75: 0, 90: 1024}
"""Bytes of shared memory in the machine code that belong to the system."""


def text_of(source):
    return sources.read(f"gpu_kernels/micro/{source}")


# --- what is true of a kernel ---


@cache
def facts(row, arch):
    """Counted in the instance for K-major operands (of the tensor cores: for row-major ones, loaded directly)."""
    layout = "K_MAJOR" if row.layouts else ""
    code = machine.compiled(row.source, table.entry(row, layout, layout, False, row.form == "wmma"), arch)
    loop = code.hot_loop(row.instruction)
    return gpu_headers.facts_of_row(
        row,
        f"sm_{arch}",
        regs={
            "accumulator": accumulators(loop, row.instruction),
            "register": Fraction(code.registers),
            "spill": Fraction(code.count("LDL", "STL")),
        },
        instructions=Counter({row.instruction: len(multiply_adds(loop, row.instruction))}),
        loads=Counter(x.bytes_loaded() for x in loop if x.bytes_loaded()),
        macs=sum(machine.macs(x, row) for x in loop),
        smem=code.shared_bytes and code.shared_bytes - RESERVED[arch],
        tiles=row.tiles,
    )


def multiply_adds(instructions, prefix):
    return [x for x in instructions if x.name.startswith(prefix) and not x.moves()]


def accumulators(instructions, prefix):
    """Accumulators of a lane: one of each multiply-add, m x n over 32 lanes of one of the tensor cores."""
    found = multiply_adds(instructions, prefix)
    pairs = [x.operands.split(",") for x in found]
    each = {"HMMA.1688": 4, "HMMA.16816": 4, "IMMA.8816": 2, "IMMA.16816": 4}
    chains = gpu_headers.accumulators((register(x[0]), register(x[-1])) for x in pairs)
    return Fraction(chains * each.get(".".join(found[0].name.split(".")[:2]), 1))


def register(operand):
    """``-R12.reuse`` is R12."""
    return operand.strip(" -|").split(".")[0]


@cache
def batched_facts(types, size):
    """Of square products whose rows of C are stored as vectors, all k unrolled. Only sm_75 has no other loads from
    shared memory."""
    family = dtypes.FAMILIES[types]
    size_a, size_c = gpu_headers.itemsize(family.a), gpu_headers.itemsize(family.c)
    given = gpu_headers.operands(1001, size, size, size, size_a, size_c)
    made = batched.instance(types, given)
    code = machine.compiled(table.BATCHED, made.entry, 75)
    instruction, macs = {"f64": ("DFMA", 1), "i8i32": ("IDP.4A", 4)}.get(types, ("FFMA", 1))
    elements = Fraction(sum(x.bytes_loaded("LDS.") for x in code.instructions), size_a * size)
    count = Fraction(code.count(instruction), size)
    ((_, blocks, threads, _),) = batched.launches(given, made, None)
    return Facts(
        where=made.entry,
        words=(types, f"{size}x{size}", "sm_75"),
        variables={
            **{"M": size, "N": size, "K": size, "TM": made.tm, "TN": made.tn, "PRODUCTS": made.products},
            **{"LANES": made.lanes, "batch": 1001, "A_BYTES": size_a, "C_BYTES": size_c},
        },
        quantities={
            "regs": {
                "accumulator": accumulators(code.instructions, instruction),
                "spill": Fraction(code.count("LDL", "STL")),
            },
            "per k": {instruction: count, "element from shared memory": elements},
            "ratio": {"in shared memory": count * macs / elements},
            "lanes": {"": Fraction(made.lanes)},
            "launch": {"thread a block": Fraction(threads[0]), "block": Fraction(blocks[0])},
            "smem": {"byte": Fraction(code.shared_bytes)},
        },
    )


# --- the headers ---


def facts_of(source):
    if source == table.BATCHED:
        return [], [batched_facts(types, size) for types, size in (("f32", 8), ("f64", 8), ("f16", 16), ("i8i32", 16))]
    rows = [row for row in table.KERNELS if row.source == source]
    return rows, [facts(row, arch) for row in rows for arch in ARCHITECTURES if int(row.requires[3:]) <= arch]


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
    ("outer.cu", "MR*NR FFMA", "MR*NR HFMA2"),
    ("outer.cu", "MR*NR FFMA,", "MR*NR + 1 FFMA,"),
    ("outer.cu", ", MR*NR DFMA for f64", ""),
    ("outer.cu", "MR*NR accumulators", "2*MR*NR accumulators"),
    ("outer.cu", "(MR + NR)/4 loads of 8 bytes for f16f32", "(MR + NR)/8 loads of 16 bytes for f16f32"),
    ("outer.cu", "MR*NR / (MR + NR)", "MR*NR / (MR * NR)"),
    ("outer.cu", "cuda_f16f32_outer_8x8, ", ""),
    ("outer.cu", "no spills; ", ""),
    ("outer.cu", "at most 128 registers", "at most 100 registers"),
    ("outer.cu", "grid ceil(batch * ceil(m/MR)", "grid ceil(batch * ceil(n/MR)"),
    ("inner.cu", "lanes     MR*NR", "lanes     1"),
    ("outer_dp4a.cu", "; k_group 4", ""),
    ("outer_dp4a.cu", "IDP.4A", "IDP.2A"),
    ("wmma.cu", "8 accumulators", "4 accumulators"),
    ("wmma.cu", "C_BYTES", "A_BYTES"),
    ("wmma.cu", ", 1/4 HMMA for f16f32 sm_75", ""),
    ("batched.cu", "TM + TN elements", "TM * TN elements"),
    ("batched.cu", "PRODUCTS*LANES", "LANES"),
}


@pytest.mark.parametrize(("source", "said", "lie"), sorted(LIES))
def test_a_lie_is_found(source, said, lie):
    text = text_of(source)
    assert said in text
    assert gpu_headers.complaints(text.replace(said, lie), *facts_of(source))


def test_a_missing_label_is_found():
    text = text_of("inner.cu").replace(" * smem ", " * sram ")
    assert gpu_headers.complaints(text, *facts_of("inner.cu"))
