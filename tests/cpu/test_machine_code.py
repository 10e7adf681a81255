"""The machine code of every kernel, whether or not this CPU can run it: the loop is what the header says, and executes
nothing that its target does not have."""

import platform

import pytest

import pysimd
from pysimd.backends import cpu

if platform.machine() != "x86_64":
    pytest.skip("decodes x86-64 only", allow_module_level=True)
machine_code = pytest.importorskip("machine_code", exc_type=ImportError)
if not any(name.endswith("_4x4") for name in machine_code.functions()):
    pytest.skip("the extension is stripped of its symbols", allow_module_level=True)

KERNELS = pysimd.kernels("cpu")

BASELINE = {"INTEL8086", "INTEL186", "INTEL286", "INTEL386", "INTEL486", "X64", "CMOV", "SSE", "SSE2", "MULTIBYTENOP"}
BASELINE |= {"CET_IBT"}  # endbr64, a nop where it is not known
FEATURES = {"avx512_vnni": "AVX512_VNNI", "avx512_bf16": "AVX512_BF16"}

CONVERTS = "generic kernels of narrow types widen in the loop, in whatever way the compiler finds"
LOWERED = "generic vectors become whatever the target has; gcc loads some elements twice"


def element_bytes(kernel) -> int:
    """Bytes of an element as the kernel loads it: int8 widened to int16 in WIDE panels."""
    return 2 if cpu._row(kernel.name).panel == cpu.lib.WIDE else kernel.a_dtype.itemsize


def allowed(kernel) -> set[str]:
    return BASELINE | {FEATURES.get(f, f.upper()) for f in kernel.requires}


@pytest.fixture(params=KERNELS, ids=lambda k: k.name)
def kernel(request):
    return request.param


def hot_loops(kernel):
    """The loops of ``run`` that do whole steps of k: at least the tile, or (inner form) a whole vector."""
    loops = machine_code.innermost_loops(kernel.name)
    least = kernel.mr * kernel.nr if kernel.form == "outer" else loops[0].macs
    hot = [loop for loop in loops if loop.macs >= least]
    assert hot, f"no loop of {kernel.name} does a whole step; the most is {loops[0].macs if loops else 0} multiply-adds"
    return hot


def test_hot_loop_stores_nothing_and_has_no_stack(kernel):
    if kernel.target == "generic" and kernel.types not in ("f32", "f64"):
        pytest.skip(CONVERTS)
    for loop in hot_loops(kernel):
        text = "\n".join(loop.text)
        assert loop.stores == 0, f"{loop.stores} stores in\n{text}"
        assert loop.stack == 0, f"{loop.stack} stack accesses in\n{text}"


def test_counted_ratio_is_the_analytic_one(kernel):
    if kernel.target == "generic":
        pytest.skip(LOWERED)
    for loop in hot_loops(kernel):
        counted = loop.macs / (loop.load_bytes / element_bytes(kernel))
        text = "\n".join(loop.text)
        assert counted == pytest.approx(kernel.ratio.value), f"{loop.macs} / {loop.load_bytes} bytes in\n{text}"


def test_kernels_execute_what_their_target_has(kernel):
    for name in (kernel.name, f"{kernel.name}_batch"):
        assert machine_code.features(name) <= allowed(kernel), name


def test_kernels_do_use_their_target(kernel):
    """A kernel compiled with another target's flags would pass the test above."""
    marks = {"sse": "SSE", "avx": "AVX", "avx2": "FMA", "avx512": "AVX512F"}
    marks |= {"avx512vnni": "AVX512_VNNI", "avx512bf16": "AVX512_BF16"}
    if kernel.types.endswith("i8i32"):
        marks["avx2"] = "AVX2"
    assert marks.get(kernel.target, "X64") in machine_code.features(kernel.name)


def test_everything_else_is_baseline():
    """The dispatcher runs before any feature has been checked. A peak function runs only where its kernels do."""
    of_targets = tuple(f"{prefix}{k.target}_" for k in KERNELS if k.target != "generic" for prefix in ("", "peak_"))
    names = [name for name in machine_code.functions() if not name.startswith(of_targets)]
    assert "pysimd_multiply" in names
    for name in names:
        assert machine_code.features(name) <= BASELINE | {"CPUID", "XSAVE"}, name


def test_no_masked_store_that_faults_beyond_its_mask():
    for name in machine_code.functions():
        assert machine_code.masked_stores_that_fault(name) == [], name
