"""``tile``, ``regs``, ``per k`` and ``ratio`` of every CPU kernel's header are those of the code that gcc 12 makes,
whether or not this CPU can run it; a false number is a fault."""

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from kernel_headers import Built, altered, faults

import pysimd
from pysimd import _cpu, sources
from pysimd.backends.cpu import table
from pysimd.inspection import compiled, x86

if x86.missing():
    pytest.skip(x86.missing(), allow_module_level=True)

KERNELS = [k for k in pysimd.kernels("cpu") if not compiled.is_read(k)]
COMPILER = re.search(rb"GCC: \([^)]*\) ([\d.]+)", Path(_cpu.__file__).read_bytes())
of_gcc_12 = pytest.mark.skipif(
    COMPILER is None or not COMPILER[1].startswith(b"12."),
    reason=f"headers count what gcc 12 makes, this was built by {COMPILER[1].decode() if COMPILER else 'another'}",
)


@pytest.fixture(params=KERNELS, ids=lambda k: k.name)
def kernel(request):
    return request.param


def name_of(i) -> str:
    """``vmovups m256``: mnemonic, any form of a fused multiply-add as 231, a tile load without its hint, and memory
    operand."""
    name = re.sub(r"^(vfn?m(?:add|sub))(?:132|213)", r"\g<1>231", x86.mnemonic(i).lower()).replace("loaddt1", "loadd")
    if not any(x86._names("OpKind")[i.op_kind(n)] == "MEMORY" for n in range(i.op_count)):
        return name
    sizes = x86.iced.MemorySizeExt
    size = (sizes.element_size if i.is_broadcast else sizes.size)(i.memory_size)
    if not size:  # of a tile register, which has its own configuration
        return name
    return f"{name} m{8 * size}{'bcst' if i.is_broadcast else ''}"


def built(kernel) -> Built:
    """The hot loop, without copies from register to register, addresses and counters."""
    loop = x86.hot_loop(x86.innermost_loops(x86.decode(*x86.function_at(x86.address(kernel)))))
    seen = pysimd.inspect(kernel)
    vectors = [bool(x86.vector_registers([i])) for i in loop]
    roles = [line.roles for line in seen.lines]
    counted = [i for i, v, r in zip(loop, vectors, roles, strict=True) if (v or r) and "move" not in r]
    names = Counter(map(name_of, counted))
    parts = x86.PRODUCTS_OF_PARTS if table.row(kernel.name).panel == table.lib.SPLIT else 1
    adds = sum(n for name, n in names.items() if re.match(r"v?p?add[psd]", name))
    return Built(
        form=kernel.form,
        mr=kernel.mr,
        nr=kernel.nr,
        k=Fraction(seen.macs, kernel.mr * kernel.nr if kernel.form != "inner" else 1),
        instructions=names,
        multiply_adds=seen.multiply_adds,
        accumulations=adds or seen.multiply_adds // parts,
        loads=sum(seen.load_instructions.values()),
        registers=seen.registers,
        registers_there_are=seen.registers_there_are,
        kind={16: "xmm", 32: "ymm", 64: "zmm", x86.TILE_BYTES: "tmm"}[
            max(x86.iced.RegisterExt.size(i.op0_register) for i in counted)
        ],
    )


@of_gcc_12
def test_header_is_true(kernel):
    found = faults(sources.labels(kernel.source), built(kernel))
    assert not found, "\n".join(found)


@of_gcc_12
def test_every_false_number_is_a_fault(kernel):
    labels, code = sources.labels(kernel.source), built(kernel)
    for false in altered(labels):
        assert faults(false, code), {label: words for label, words in false.items() if labels.get(label) != words}


FALSE = {  # what: label, its words, what a false header has instead
    "a multiply-add too many": ("per k", "8 vfmadd231ps", "9 vfmadd231ps"),
    "an instruction that is not there": ("per k", "8 vfmadd231ps", "8 vfmadd231pd"),
    "a load left out": ("per k", " 1 vmovups m256", ""),
    "a narrower load": ("per k", "vmovups m256", "vmovups m128"),
    "a broadcast said to be folded": (
        "per k",
        "8 vfmadd231ps 1 vmovups m256 8 vbroadcastss m32",
        "8 vfmadd231ps m32bcst 1 vmovups m256",
    ),
    "an instruction more": ("per k", "vbroadcastss m32", "vbroadcastss m32 1 vpermps"),
    "no list": ("per k", "8 vfmadd231ps", "some vfmadd231ps"),
    "fewer registers": ("regs", "16 of 16 ymm", "12 of 16 ymm"),
    "registers of another kind": ("regs", "ymm", "zmm"),
    "a wrong sum": ("regs", "+ 8", "+ 7"),
    "accumulators too many": ("regs", "8 accumulators + 8", "9 accumulators + 7"),
    "a part that is not counted": ("regs", " = 16", ", 1 temporary = 16"),
    "another tile": ("tile", "mr 8", "mr 6"),
    "a row of two registers": ("tile", "1 register", "2 registers"),
    "a ratio too good": ("ratio", "= 4.00", "= 4.50"),
    "another quotient": ("ratio", "(8+8)", "(8+4)"),
    "the ratio of the inner product": ("ratio", "inner product 0.50", "inner product 1.00"),
    "instructions": ("ratio", "8 / 9 = 0.89", "8 / 8 = 1.00"),
    "a number in the words": ("ratio", "per load instruction", "per load instruction; 2 loads a cycle"),
}


@of_gcc_12
@pytest.mark.parametrize("what", FALSE)
def test_a_false_header_is_refused(what):
    kernel = pysimd.kernel("avx2_f32_outer_8x8")
    labels = sources.labels(kernel.source)
    label, words, false = FALSE[what]
    assert words in labels[label], labels[label]
    assert faults(labels | {label: labels[label].replace(words, false)}, built(kernel))


@of_gcc_12
@pytest.mark.parametrize("label", ["tile", "regs", "per k", "ratio"])
def test_a_header_without_a_label_is_refused(label):
    kernel = pysimd.kernel("avx2_f32_outer_8x8")
    labels = sources.labels(kernel.source)
    assert faults({name: words for name, words in labels.items() if name != label}, built(kernel))
