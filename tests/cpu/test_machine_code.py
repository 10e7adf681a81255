"""The machine code of every kernel, whether or not this CPU can run it: the loop is what the header says, and executes
nothing that its target does not have. A kernel broken on purpose is caught."""

import ctypes
import re
import shutil
import subprocess
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

import pysimd
from pysimd import _cpu
from pysimd.backends.cpu import table as cpu_table
from pysimd.inspection import compiled, x86

if x86.missing():
    pytest.skip(x86.missing(), allow_module_level=True)
import machine_code

KERNELS = [k for k in pysimd.kernels("cpu") if not compiled.is_read(k)]

BASELINE = {
    "INTEL8086",
    "INTEL186",
    "INTEL286",
    "INTEL386",
    "INTEL486",
    "X64",
    "CMOV",
    "SSE",
    "SSE2",
    "MULTIBYTENOP",
    "PAUSE",
}
BASELINE |= {"CET_IBT"}  # endbr64, a nop where it is not known
FEATURES = {"avx512_vnni": "AVX512_VNNI", "avx512_bf16": "AVX512_BF16", "avx512_fp16": "AVX512_FP16"}

needs_symbols = pytest.mark.skipif(
    not any(name.endswith("_4x4") for name in machine_code.functions()), reason="the extension is stripped"
)


def allowed(kernel) -> set[str]:
    return BASELINE | {FEATURES.get(f, f.upper()) for f in kernel.requires}


@pytest.fixture(params=KERNELS, ids=lambda k: k.name)
def kernel(request):
    return request.param


def hot_instructions(kernel) -> list[list]:
    """Every loop of ``run`` that does whole steps of k, whatever the strides: at least the tile, or (inner form) as
    much as the hottest."""
    loops = x86.innermost_loops(x86.decode(*x86.function_at(x86.address(kernel))))
    macs = [sum(x86.line(i).macs for i in loop) for loop in loops]
    least = kernel.mr * kernel.nr if kernel.form == "outer" else max(macs)
    return [loop for loop, found in zip(loops, macs, strict=True) if found >= least]


def all_hot_loops(kernel) -> list[list[x86.Line]]:
    return [[x86.line(i) for i in loop] for loop in hot_instructions(kernel)]


# --- the loop ---


def test_every_hot_loop_stores_nothing_and_has_no_stack(kernel):
    loops = all_hot_loops(kernel)
    assert loops
    for loop in loops:
        text = "\n".join(line.text for line in loop)
        assert not [line.text for line in loop if {"store", "spill"} & set(line.roles)], text


WIDE = [k for k in KERNELS if k.target == "avx512" and k.types in ("f32", "f64", "f16f32") and k.mr * k.nr >= 192]


@needs_symbols
@pytest.mark.parametrize("kernel", WIDE, ids=lambda k: k.name)
def test_no_loop_of_a_batch_spills(kernel):
    """Of tiles whose accumulators nearly fill the register file: one test more in the batch function had 14x16 double
    spilled, whose products of 96 and 128 then took 1.3 times as long on a Xeon."""
    loops = x86.innermost_loops(machine_code.instructions(f"{kernel.name}_batch"))
    assert len(loops) > 10
    spills = [line.text for loop in loops for line in map(x86.line, loop) if "spill" in line.roles]
    assert not spills


LARGE = [k for k in KERNELS if k.target == "avx2" and k.form == "outer" and k.mr * k.nr >= 48]


@pytest.mark.parametrize("kernel", LARGE, ids=lambda k: k.name)
def test_hot_loops_of_large_tiles_begin_with_a_cache_line(kernel):
    """Or the speed of a tile would change by a twentieth with the place where the linker puts it. (The smallest tiles
    have loops that gcc enters in the middle, and does not align.)"""
    offsets = [loop[0].ip % 64 for loop in hot_instructions(kernel)]
    assert offsets
    assert not any(offsets)


@needs_symbols
@pytest.mark.parametrize("name", ["avx512_f32_outer_4x4", "avx512_f32_outer_8x8"])
def test_loops_of_a_batch_have_no_stack(name):
    """The kernels that are written out have a function for each layout of A."""
    functions = [function for function in machine_code.functions() if function.startswith(f"{name}.c:loop_")]
    assert functions
    for function in functions:
        for loop in x86.innermost_loops(machine_code.instructions(function)):
            lines = [x86.line(i) for i in loop]
            spills = [line.text for line in lines if "spill" in line.roles]
            assert not spills, f"{function}: {spills}"


def test_counted_ratio_is_the_analytic_one(kernel):
    seen = pysimd.inspect(kernel)
    assert seen.agrees or seen.remark, f"{seen}\n{seen.listing}"
    assert (seen.stores, seen.spills) == (0, 0), seen.listing
    if seen.remark == x86.SPLIT:  # one of the two tiles of A once more
        assert seen.element_ratio / seen.analytic_ratio == pytest.approx(4 / 5)
    elif kernel.target != "generic":
        assert seen.agrees
        assert seen.remark == ""
        for loop in all_hot_loops(kernel):
            elements = sum(line.load_bytes for line in loop) / seen.element_bytes
            text = "\n".join(line.text for line in loop)
            assert sum(line.macs for line in loop) / elements == pytest.approx(kernel.ratio.value), text


def test_registers_are_those_of_the_target(kernel):
    seen = pysimd.inspect(kernel)
    assert seen.registers <= seen.registers_there_are


# --- instruction sets ---


def test_kernels_execute_what_their_target_has(kernel):
    assert set(pysimd.inspect(kernel).features) <= allowed(kernel)


@needs_symbols
def test_batches_execute_what_their_target_has(kernel):
    assert machine_code.features(f"{machine_code.code_of(kernel.name)}_batch") <= allowed(kernel)


@needs_symbols
@pytest.mark.parametrize("kernel", [k for k in KERNELS if cpu_table.row(k.name).batch_widening_b], ids=lambda k: k.name)
def test_a_batch_that_widens_b_does_so_as_it_loads_it(kernel):
    """vcvtph2ps from memory, where the row of B is a whole vector; it executes what its target has."""
    name = f"{kernel.name}_batch"
    assert machine_code.features(name) <= allowed(kernel)
    code = [i for i in machine_code.instructions(name) if x86.mnemonic(i) == "VCVTPH2PS"]
    assert any(i.op1_kind == x86.iced.OpKind.MEMORY for i in code)


@needs_symbols
@pytest.mark.parametrize(("file", "target"), machine_code.SMALL.items())
def test_small_products_execute_what_their_target_has(file, target):
    kernel = next(k for k in KERNELS if k.target == target)
    names = [name for name in machine_code.functions() if name.startswith((f"{file}:", f"{target}_small_"))]
    assert len(names) > 4
    for name in names:
        assert machine_code.features(name) <= allowed(kernel), name


@needs_symbols
@pytest.mark.parametrize(
    "kind", ["avx512.c:f32s", "avx512.c:bf16s", "avx512.c:f16s", "avx512vnni.c:i8q", "avx512bf16.c:bf16p"]
)
def test_small_products_prefetch_the_next_ones(kind):
    """Into L2 or L1, between the tiles of K(multiply) in small_groups.h; nothing else in it prefetches."""
    functions = [name for name in machine_code.functions() if re.match(rf"small_{kind}_multiply(\.|$)", name)]
    assert functions
    for name in functions:
        found = {x86.mnemonic(i) for i in machine_code.instructions(name)}
        assert {"PREFETCHT0", "PREFETCHT1"} & found, name


COMPILER = re.search(rb"GCC: \([^)]*\) ([\d.]+)", Path(_cpu.__file__).read_bytes())
LOOPS_OF_SMALL = {  # file:function: instructions of its loop
    "small_bytes_avx2.c:i8_4x4": {"vpmaddwd": 4, "vpaddd": 2, "vpmovsxbw": 2},
    "small_bytes_avx2.c:u8i8_4x4": {"vpmaddwd": 4, "vpaddd": 2, "vpmovsxbw": 1, "vpmovzxbw": 1},
    "small_bytes_avx2.c:i8_8_8": {"vpmaddwd": 4, "vpshufd": 4},
    "small_avx512.c:f32s_8x8_01": {"vfmadd": 32, "vbroadcastsd": 32, "vpermt2pd": 4, "vshuff64x2": 4},
    "small_avx512vnni.c:i8q_tile_16_11": {"vpdpbusd": 17},  # one for the sum of B
    "small_avx512bf16.c:bf16p_tile_16_11": {"vdpbf16ps": 32},  # a half of an odd K's last step
    "small_bytes_avx512vnni.c:i8_4x4": {"vpdpwssd": 4, "vpmovsxbw": 2},
    "small_avx2.c:f32_4x4_000": {"vfmadd": 8, "vpermilps": 8},
    "small_avx2.c:f32_4x4_010": {"vfmadd": 8, "vpermilps": 8, "vunpck": 4, "vshufps": 4},
    "small_avx2.c:bf16_4x4_000": {"vfmadd": 8, "vpermilps": 8, "vpshufb": 4, "vpslld": 2},
    "small_avx2.c:f16_4x4_000": {"vfmadd": 8, "vpermilps": 8, "vcvtph2ps": 6},
    "small_avx2.c:f32_8x8_000": {"vfmadd": 64, "vbroadcastss": 64},
    "small_avx2.c:f32_8x8_010": {"vfmadd": 64, "vbroadcastss": 64, "vunpck": 8, "vshufps": 8},
}


@needs_symbols
@pytest.mark.skipif(
    COMPILER is None or not COMPILER[1].startswith(b"12."),
    reason="counts are those of gcc 12",
)
@pytest.mark.parametrize("where", LOOPS_OF_SMALL)
def test_loops_of_small_products(where):
    code = machine_code.instructions(where)
    names = Counter(x86.mnemonic(i).lower() for i in code)
    for mnemonic, count in LOOPS_OF_SMALL[where].items():
        assert sum(n for name, n in names.items() if name.startswith(mnemonic)) == count, (mnemonic, names)
    on_stack = [str(i) for i in code if x86.vector_registers([i]) and re.search(r"\[r[sb]p", str(i))]
    assert not on_stack, on_stack


def test_kernels_do_use_their_target(kernel):
    """A kernel compiled with another target's flags would pass the tests above."""
    marks = {"sse": "SSE", "avx": "AVX", "avx2": "FMA", "avx512": "AVX512F"}
    marks |= {"avx512vnni": "AVX512_VNNI", "avx512bf16": "AVX512_BF16", "avx512fp16": "AVX512_FP16", "amx": "AMX_TILE"}
    if kernel.types.endswith("i8i32"):
        marks["avx2"] = "AVX2"
    assert marks.get(kernel.target, "X64") in pysimd.inspect(kernel).features


@needs_symbols
def test_everything_else_is_baseline():
    """The dispatcher runs before any feature has been checked. A measurement runs only where its kernels do."""
    prefixes = ("", "peak_", "widen_")
    of_targets = tuple(f"{prefix}{k.target}_" for k in KERNELS if k.target != "generic" for prefix in prefixes)
    of_targets += tuple(f"{file}:" for file in machine_code.SMALL)
    names = [name for name in machine_code.functions() if not name.startswith(of_targets)]
    assert "pysimd_multiply" in names
    for name in names:
        assert machine_code.features(name) <= BASELINE | {"CPUID", "XSAVE"}, name


@needs_symbols
def test_no_masked_store_that_faults_beyond_its_mask():
    for name in machine_code.functions():
        assert machine_code.masked_stores_that_fault(name) == [], name


# --- the reader itself ---


@needs_symbols
def test_the_function_in_the_process_is_the_one_in_the_file(kernel):
    _, code = x86.function_at(x86.address(kernel))
    assert code == machine_code.functions()[machine_code.code_of(kernel.name)][1]


def test_no_code_at_an_address_that_is_not_mapped():
    with pytest.raises(pysimd.UnavailableError, match="no code at 0x10"):
        x86.function_at(16)


# what: (text of outer.h, its replacement, what is seen)
BROKEN = {
    "accumulators spilled": (
        "V(acc) acc[MR][NV_MAX];",
        "volatile V(acc) acc[MR][NV_MAX];",
        lambda seen: seen.spills > 0,
    ),
    "an extra load per step": (
        "const V(vec) ai = V(broadcast)(ROW(i) + (further));",
        "const V(vec) ai = V(broadcast)(ROW(i) + (further)); if (i == 0) (void)*(const volatile V(elem_a) *)ROW(i);",
        lambda seen: not seen.agrees and seen.element_ratio < seen.analytic_ratio,
    ),
    "a store per step": (
        "        b += rs_b;",
        "        b += rs_b; *(volatile int *)c = 0;",
        lambda seen: seen.stores > 0,
    ),
}
FLAGS = {"sse": [], "avx2": ["-mavx2", "-mfma"]}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", ["sse_f32_outer_6x8", "avx2_f32_outer_6x16"])
@pytest.mark.parametrize("what", [None, *BROKEN])
def test_a_kernel_broken_on_purpose_is_caught(what, name, tmp_path):
    """Compiled from a copy of the sources; the unchanged copy is like the kernel itself."""
    kernel = pysimd.kernel(name)
    sources, library = tmp_path / "cpu_kernels", tmp_path / "broken.so"
    shutil.copytree(str(files("pysimd.cpu_kernels")), sources)
    old, new, caught = BROKEN[what] if what else ("", "", None)
    outer = sources / "templates" / "outer.h"
    text = outer.read_text()
    assert old in text, f"outer.h has changed: no {old!r}; choose another place for this fault"
    outer.write_text(text.replace(old, new, 1))
    flags = ["-std=gnu11", "-O2", "-w", "-shared", "-fPIC", *FLAGS[kernel.target]]
    subprocess.run(["gcc", *flags, "-o", library, tmp_path / kernel.source_path], check=True)
    function = getattr(ctypes.CDLL(str(library)), name)
    seen = x86.inspection(kernel, ctypes.cast(function, ctypes.c_void_p).value)
    if what:
        assert caught(seen), seen.listing
    else:
        assert seen.agrees
        assert (seen.stores, seen.spills) == (0, 0)
