"""``tile``, ``regs``, ``per k`` and ``ratio`` of the headers of Arm's and RISC-V's kernels are those of the code that
clang 19 makes; the loop keeps its accumulators in registers."""

from collections import Counter
from fractions import Fraction

import pytest
from emulated import REQUIRED
from kernel_headers import Built, altered, faults

import pysimd
from pysimd import simulator, sources
from pysimd.inspection import compiled

if compiled.missing():
    assert not REQUIRED, compiled.missing()
    pytest.skip(compiled.missing(), allow_module_level=True)

KERNELS = [k for k in pysimd.kernels("cpu") if compiled.is_read(k)]
of_clang_19 = pytest.mark.skipif(
    "clang version 19." not in simulator.toolchain().version,
    reason=f"headers count what clang 19 makes, here is {simulator.toolchain().version}",
)


@pytest.fixture(params=KERNELS, ids=lambda k: k.name)
def kernel(request):
    return request.param


def name_of(text: str) -> str:
    """``ldr q``: the mnemonic, and the kind of register of a load that has several."""
    name, _, operands = text.partition(" ")
    return f"{name} {operands[0]}" if name in ("ldr", "ldp") else name


def built(kernel) -> Built:
    """The hot loop: what it loads and multiplies."""
    seen = pysimd.inspect(kernel)
    group = kernel.nr_vl if kernel.target == "rvv" else 1  # registers that an instruction adds to
    return Built(
        form=kernel.form,
        mr=kernel.mr,
        nr=kernel.nr,
        k=Fraction(seen.macs, kernel.mr * kernel.nr if kernel.form != "inner" else 1),
        instructions=Counter(name_of(line.text) for line in seen.lines if line.roles and line.roles != ("move",)),
        multiply_adds=seen.multiply_adds,
        accumulations=seen.multiply_adds * group,
        loads=sum(seen.load_instructions.values()),
        registers=seen.registers,
        registers_there_are=seen.registers_there_are,
        kind={"sve": "z", "sme": "registers"}.get(kernel.target, "v"),
        names={"vl": 16 // kernel.c_dtype.itemsize},
    )


@of_clang_19
def test_header_is_true(kernel):
    found = faults(sources.labels(kernel.source), built(kernel))
    assert not found, "\n".join(found)


@of_clang_19
def test_every_false_number_is_a_fault(kernel):
    labels, code = sources.labels(kernel.source), built(kernel)
    for false in altered(labels):
        assert faults(false, code), {label: words for label, words in false.items() if labels.get(label) != words}


def test_every_loop_of_whole_tiles_has_no_stack(kernel):
    """Also that of any strides; of an inner product the hottest."""
    counted = [(sum(compiled.macs(kernel, i) for i in loop), loop) for loop in compiled.loops(kernel)]
    most = max(macs for macs, _ in counted)
    least = kernel.mr * kernel.nr if kernel.form == "outer" else most
    whole = [loop for macs, loop in counted if macs >= least]
    assert whole
    for loop in whole:
        lines = [compiled.line(kernel, i) for i in loop]
        assert not [x.text for x in lines if {"store", "spill"} & set(x.roles)], "\n".join(x.text for x in lines)


def test_counted_ratio_is_the_analytic_one(kernel):
    seen = pysimd.inspect(kernel)
    assert seen.agrees, f"{seen}\n{seen.listing}"
    assert (seen.stores, seen.spills) == (0, 0), seen.listing
    assert seen.registers <= seen.registers_there_are


def test_code_of_the_loop_is_what_the_target_is_named_after(kernel):
    marks = {
        "neon": ("fmla",),
        "neondot": ("sdot",),
        "neonmmla": ("smmla", "usmmla", "bfmmla"),
        "sve": ("ld1rw", "ld1rd"),
    }
    marks |= {"sme": ("fmopa", "bfmopa"), "rvv": ("vfmacc.vf", "vwmacc.vx")}
    names = {line.text.split()[0] for line in pysimd.inspect(kernel).lines}
    assert names & set(marks[kernel.target])


def test_other_targets_are_refused(kernel):
    with pytest.raises(pysimd.OptionError, match=kernel.target):
        pysimd.inspect(kernel, target="gfx942")
