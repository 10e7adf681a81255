"""``pysimd.inspect``: every kernel of every backend does in its hot loop what its tile promises, and no more.

Kernels whose compiler or disassembler is missing here are skipped with what is missing."""

import importlib.util
import json

import pytest
from pysimd.gpu_kernels import table as cuda_table
from pysimd.hip_kernels import table as hip_table

import pysimd
from pysimd import simulator
from pysimd.backends.cuda import nvrtc
from pysimd.backends.hip import device as hip_device
from pysimd.backends.hip import tiles as hip_tiles
from pysimd.inspection import amd, compiled, nvidia, x86

TARGETS = {"cpu": (None,), "cuda": ("sm_75", "sm_90"), "hip": ("gfx906", "gfx942", "gfx1100", "gfx1200")}


def has(kernel, target) -> bool:
    """Whether the kernel can be compiled for the target."""
    if kernel.backend == "cuda":
        return int(cuda_table.BY_NAME[kernel.name].requires[3:]) <= int(target[3:])
    return kernel.backend == "cpu" or not hip_device.lacks(kernel, target)


def missing(backend) -> str:
    if backend == "compiled":
        return compiled.missing()
    if backend != "hip":
        return {"cpu": x86, "cuda": nvidia}[backend].missing()
    try:
        simulator.toolchain()
    except pysimd.UnavailableError as error:
        return str(error)
    return ""


def reader(kernel) -> str:
    return "compiled" if kernel.backend == "cpu" and compiled.is_read(kernel) else kernel.backend


def needs(backend):
    return pytest.mark.skipif(bool(missing(backend)), reason=missing(backend) or "nothing")


CASES = [
    pytest.param(kernel, target, id=f"{kernel.name}{'-' + target if target else ''}", marks=needs(reader(kernel)))
    for kernel in pysimd.kernels()
    for target in TARGETS[kernel.backend]
    if has(kernel, target)
]


# --- the kernels ---


@pytest.mark.parametrize(("kernel", "target"), CASES)
def test_hot_loop(kernel, target):
    """Multiply-adds, loads of A and B in the ratio of the tile, and nothing that stores or spills."""
    seen = pysimd.inspect(kernel, target=target)
    assert (seen.stores, seen.spills) == (0, 0), seen.listing
    assert 0 < seen.multiply_adds <= seen.macs
    assert 0 < seen.registers <= seen.registers_there_are
    assert seen.agrees or seen.remark, f"{seen}\n{seen.listing}"
    if seen.remark == amd.TWICE:
        assert seen.element_ratio == seen.analytic_ratio / 2
    elif seen.remark == x86.SPLIT:  # one of the two tiles of A once more
        assert seen.element_ratio / seen.analytic_ratio == pytest.approx(4 / 5)
    elif kernel.target != "generic":
        assert seen.agrees
    assert set(seen.load_instructions) == {"memory" if kernel.backend == "cpu" else "global"}


@needs("cuda")
@pytest.mark.parametrize("rung", pysimd.rungs(), ids=lambda rung: rung.name)
def test_loop_of_a_rung(rung):
    """As of the kernels, but the loop also copies panels: the ratio is of the memory that the tile is read from."""
    seen = pysimd.inspect(rung)
    assert seen.spills == 0, seen.listing
    assert seen.agrees, f"{seen}\n{seen.listing}"
    assert seen.analytic_ratio == rung.ratio.value
    assert set(seen.load_instructions) <= {"global", "shared"}
    assert ("shared" in seen.load_instructions) == (rung.bk is not None)
    assert seen.stores == 0 or "shared" in seen.load_instructions  # of panels; none goes to global memory
    assert 0 < seen.registers <= seen.registers_there_are


@needs("cpu")
@pytest.mark.parametrize("rung", pysimd.rungs("cpu"), ids=lambda rung: rung.name)
def test_loop_of_a_rung_of_the_cpu(rung):
    seen = pysimd.inspect(rung)
    assert (seen.kernel, seen.analytic_ratio) == (rung.name, rung.ratio.value)
    assert seen.agrees or seen.target == "generic", f"{seen}\n{seen.listing}"
    assert set(seen.load_instructions) == {"memory"}
    with pytest.raises(pysimd.OptionError, match=f"{rung.name} is built for {seen.target}; leave the target out"):
        pysimd.inspect(rung, target="sm_90")


# --- what is counted ---


@needs("cpu")
def test_counts_of_a_step_that_is_known():
    """avx2 6x16: two steps an iteration, each of 6 broadcasts, 2 loads of B and 12 multiply-adds."""
    seen = pysimd.inspect("avx2_f32_outer_6x16")
    assert (seen.multiply_adds, seen.macs) == (24, 192)
    assert (seen.load_instructions, seen.load_elements) == ({"memory": 16}, {"memory": 44})
    assert seen.element_ratio == 192 / 44
    assert seen.instruction_ratio == 1.5
    assert seen.registers == seen.registers_there_are == 16
    assert seen.listing.count("vbroadcastss") == 12
    assert "8 x multiply-add  vfmadd" in seen.listing
    assert "6x16" in str(seen)


@needs("hip")
@pytest.mark.parametrize(
    ("name", "target", "entry"),
    [
        ("hip_f32_outer_8x8", "gfx942", "outer<F32, 8, 8, K_MAJOR, PACKED, false>"),
        ("hip_i8i32_outer_4x4", "gfx1100", "outer_dp4a<4, 4, K_MAJOR, PACKED, false>"),
        ("hip_f32_mfma_16x16", "gfx90a", "mfma_tile<FromF32, 16, K_MAJOR, K_MAJOR, false>"),
    ],
)
def test_entry_of_a_hip_kernel(name, target, entry):
    """The template instance that is read: of this kernel, and the one that packed operands take."""
    seen = pysimd.inspect(name, target=target)
    assert (seen.kernel, seen.target, seen.entry) == (name, target, entry)
    row = hip_table.BY_NAME[name]
    code = simulator.compile_hip(hip_tiles.instance(row.source, seen.entry), target)
    assert hip_table.symbol(seen.entry) in code.kernels


@needs("cpu")
def test_a_multiply_add_may_load_its_operand():
    seen = pysimd.inspect("avx512_f64_outer_8x8")
    assert [x for x in seen.lines if x.roles == ("multiply-add", "load")]
    assert seen.agrees


@needs("cpu")
def test_as_json():
    seen = pysimd.inspect("sse_f32_outer_4x4")
    data = json.loads(json.dumps(seen.to_dict()))
    assert data["instructions"] == len(data["lines"]) == seen.instructions
    assert sum(x["macs"] for x in data["lines"]) == data["macs"]
    assert "lines" not in seen.counts()


@needs("cuda")
def test_tensor_cores_are_counted_by_the_warp():
    seen = pysimd.inspect("cuda_f16f32_wmma_16x16")
    assert (seen.scope, seen.target) == ("warp", "sm_90")
    assert seen.macs == 2048 * seen.multiply_adds


@needs("hip")
def test_default_target_of_a_kernel_that_cdna_lacks():
    assert pysimd.inspect("hip_f32_outer_8x8").target == "gfx942"
    assert pysimd.inspect("hip_f16f32_wmma_16x16").target == "gfx1100"


@needs("cuda")
def test_a_rung_by_its_name_and_target():
    newest, older = pysimd.inspect("f32_best"), pysimd.inspect("f32_best", target="sm_80")
    assert (newest.target, older.target) == ("sm_90a", "sm_80")  # where warps trade registers, and where they do not
    assert (newest.analytic_ratio, older.analytic_ratio) == (16 * 8 / (16 + 8), 8 * 8 / (8 + 8))
    assert newest.load_instructions == {"shared": 48}
    assert (newest.multiply_adds, newest.macs) == (1024, 1024)


@needs("cuda")
def test_what_a_warpgroup_multiplies_comes_from_shared_memory():
    seen = pysimd.inspect("bf16_best")
    assert seen.scope == "warpgroup"
    assert seen.macs == 64 * 256 * 16 * seen.multiply_adds
    assert seen.load_elements == {"shared": seen.multiply_adds * (64 + 256) * 16}


@needs("hip")
@pytest.mark.parametrize(("name", "target"), [("hip_reg4x4_At", "gfx906"), ("hip_smem_dbuf", "gfx1100")])
def test_a_rung_compiled_for_amd(name, target):
    """The tile is read from LDS, as often as the row says."""
    seen = pysimd.inspect(name, target=target)
    assert (seen.scope, seen.tile_memory, seen.spills) == ("thread", "shared", 0)
    assert seen.element_ratio == seen.analytic_ratio == pysimd.rung(name).ratio.value


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("cpasync", "sm_75", "sm_80 or newer"),
        ("bf16_best", "sm_100", "sm_90a alone"),
        ("naive", "gfx906", "sm_75"),
        ("hip_naive", "sm_90", "gfx900, gfx906"),
    ],
)
def test_target_that_a_rung_lacks(name, target, says):
    with pytest.raises(pysimd.OptionError, match=says):
        pysimd.inspect(name, target=target)


# --- refusals ---


def test_unknown_kernel():
    with pytest.raises(pysimd.UnknownKernelError, match="did you mean"):
        pysimd.inspect("generic_f32_outer_4x5")


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("sse_f32_outer_4x4", "avx2", "is built for sse"),
        ("cuda_f32_outer_4x4", "sm_70", "sm_75 or newer"),
        ("cuda_f32_outer_4x4", "gfx942", "sm_75 or newer"),
        ("hip_f32_outer_4x4", "gfx1", "gfx906"),
        ("hip_f32_mfma_16x16", "gfx1100", "needs mfma"),
    ],
)
def test_unknown_target(name, target, says):
    with pytest.raises(pysimd.OptionError, match=says):
        pysimd.inspect(name, target=target)


def test_without_iced(monkeypatch):
    monkeypatch.setattr(x86, "iced", None)
    monkeypatch.setattr(x86.platform, "machine", lambda: "x86_64")
    with pytest.raises(pysimd.UnavailableError, match=r"pip install 'pysimd\[inspect\]'"):
        pysimd.inspect("generic_f32_outer_4x4")


def test_another_processor(monkeypatch):
    monkeypatch.setattr(x86.platform, "machine", lambda: "riscv64")
    with pytest.raises(pysimd.UnavailableError, match="riscv64 cannot be read"):
        pysimd.inspect("generic_f32_outer_4x4")


@pytest.fixture
def forgetful():
    """The cached lookups of compilers, empty before and after."""
    functions = (nvidia.missing, nvidia.toolkit, nvidia.disassembler, simulator.toolchain)
    for function in functions:
        function.cache_clear()
    yield
    for function in functions:
        function.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_without_cupy(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda x, *y: None if x == "cupy_backends" else find(x, *y))
    with pytest.raises(pysimd.UnavailableError, match=r"CuPy is not installed: pip install 'pysimd\[cuda-test\]'"):
        pysimd.inspect("cuda_f32_outer_4x4")


@needs("cuda")
@pytest.mark.usefixtures("forgetful")
def test_without_nvdisasm(monkeypatch):
    monkeypatch.setattr(nvidia, "disassembler", lambda: None)
    with pytest.raises(pysimd.UnavailableError, match="nvdisasm is not installed"):
        pysimd.inspect("cuda_f32_outer_4x4")


@pytest.mark.usefixtures("forgetful")
def test_without_a_compiler_of_amd_code(monkeypatch):
    from pysimd.simulator import compilers

    monkeypatch.setattr(compilers, "_distribution_clang", lambda: None)
    monkeypatch.setattr(compilers, "_ziglang", lambda: None)
    amd.code_of.cache_clear()
    with pytest.raises(pysimd.UnavailableError, match=r"pip install 'pysimd\[simulate\]'"):
        pysimd.inspect("hip_f32_outer_4x4")


# --- kernels broken on purpose; those of the CPU are in tests/cpu/test_machine_code.py ---

FETCH = "load_fragment<Y, MR, U, LA, EDGE>(x, a, p.a_rs, p.a_cs, t.rows);"
# what: (text of outer.cu, its replacement, what is seen)
BROKEN = {
    "accumulators spilled": (
        "__launch_bounds__(128, 1)",
        "__launch_bounds__(1024, 2)",
        lambda seen: seen.spills > 0,
    ),
    "an extra load per step": (
        FETCH,
        f"{FETCH} (void)*(const volatile Elem*)a;",
        lambda seen: not seen.agrees and seen.element_ratio < seen.analytic_ratio,
    ),
    "a store per step": (FETCH, f"{FETCH} *(volatile int*)p.c = 0;", lambda seen: seen.stores > 0),
}


def broken(source, what):
    old, new, _ = BROKEN[what]
    assert old in source, f"outer.cu has changed: no {old!r}; insert this fault elsewhere"
    return source.replace(old, new)


@needs("cuda")
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_cuda_kernel_is_caught(what):
    kernel = pysimd.kernel("cuda_f32_outer_8x8")
    entry = nvidia.fast_entry(cuda_table.BY_NAME[kernel.name])
    code = nvidia.compile_text(broken(nvrtc.source("outer.cu"), what), "outer.cu", (entry,), 90)[0]
    seen = nvidia.inspection(kernel, "sm_90", entry, code)
    assert BROKEN[what][2](seen), f"{seen}\n{seen.listing}"


@needs("hip")
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_hip_kernel_is_caught(what):
    kernel, row = pysimd.kernel("hip_f32_outer_8x8"), hip_table.BY_NAME["hip_f32_outer_8x8"]
    entry = amd.fast_entry(row)
    text = broken(hip_tiles.instance(row.source, entry), what)
    seen = amd.inspection(kernel, "gfx942", entry, amd.Code(text, hip_table.symbol(entry), "gfx942"))
    assert BROKEN[what][2](seen), f"{seen}\n{seen.listing}"


@needs("cuda")
def test_source_that_does_not_compile():
    with pytest.raises(nvidia.CompileError, match="sm_90"):
        nvidia.compile_text("nonsense", "outer.cu", ("outer",), 90)
