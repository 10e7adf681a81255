"""Every CUDA kernel is compiled for four architectures and its machine code read. Needs no GPU."""

import cuda_machine_code as machine
import pytest
from pysimd.gpu_kernels import table

from pysimd.backends.cuda import nvrtc
from pysimd.backends.gpu import batched, tilings
from pysimd.inspection.nvidia import compile_text
from pysimd.ratio import tile_ratio

pytestmark = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

CASES = [
    pytest.param(row, which, entry, arch, id=f"{row.name}-{which}-sm_{arch}")
    for arch in machine.ARCHITECTURES
    for row in table.KERNELS
    if int(row.requires[3:]) <= arch
    for which, entry in machine.entries_to_check(row).items()
]

SHAPES = (("f32", 4), ("f32", 8), ("f32", 16), ("f32", 32), ("f32", 3), ("f32", 6), ("f32", 12), ("f32", 7))
SHAPES += (("f64", 8), ("f64", 6), ("f16", 16), ("f16", 12), ("bf16f32", 16), ("i8i32", 16), ("i8i32", 3))


def instance(types, size):
    return table.Batched(types, size, size, size, *tilings.tiling(types, size, size, size))


BATCHED = [
    pytest.param(instance(types, size), arch, id=f"{types}-{size}-sm_{arch}")
    for arch in machine.ARCHITECTURES
    for types, size in SHAPES
    if arch in (75, 90) or size in (3, 4, 16)
]
LARGER = [
    pytest.param(instance(types, size), arch, id=f"{types}-{size}-sm_{arch}")
    for arch in machine.ARCHITECTURES
    for types, size in (("f32", 33), ("f32", 64), ("f32", 96), ("f32", 97), ("f64", 36), ("f64", 48))
    if batched.fits_static(types, size, size, size) or arch >= 80
]
MMA = [
    pytest.param(
        table.BatchedMma(
            types, m, n, k, *tilings.mma_tiling(m, n, k, 1 if types == "i8i32" else 2), a, at, b, bt, whole
        ),
        arch,
    )
    for types, (m, n, k), a, at, b, bt, whole, arch in (
        ("f16", (32, 32, 32), "CONTIGUOUS", False, "CONTIGUOUS", False, True, 80),
        ("f16", (128, 128, 128), "CONTIGUOUS", False, "CONTIGUOUS", False, True, 90),
        ("f16", (63, 63, 63), "CONTIGUOUS", True, "STRIDED", True, True, 90),
        ("bf16f32", (96, 96, 96), "CONTIGUOUS", False, "CONTIGUOUS", True, True, 100),
        ("bf16f32", (33, 34, 36), "BROADCAST", False, "CONTIGUOUS", False, False, 90),
        ("i8i32", (64, 64, 64), "CONTIGUOUS", False, "CONTIGUOUS", False, True, 90),
        ("i8i32", (36, 33, 40), "CONTIGUOUS", True, "CONTIGUOUS", False, True, 100),
    )
]
NARROW = (table.Batched("bf16f32", 16, 16, 16, *tilings.tiling("f16", 16, 16, 16), narrow=True), 75)
NARROW_MMA = (
    (table.BatchedMma("bf16f32", 64, 64, 64, *tilings.mma_tiling(64, 64, 64, 2), narrow=True), 80),
    (table.BatchedMma("bf16f32", 33, 34, 36, *tilings.mma_tiling(33, 34, 36, 2), narrow=True), 100),
)
BATCHED += [pytest.param(*NARROW, id="bf16-16-sm_75")]
MMA += [pytest.param(*x) for x in NARROW_MMA]
ODD = table.Batched("f32", 7, 5, 9, 4, 5, 8, "STRIDED", True, "BROADCAST", False, False)


@pytest.fixture(scope="module", autouse=True)
def everything(request):
    """What the selected tests read, compiled in parallel before the first of them."""
    items = [item for item in request.session.items if item.module is request.module and hasattr(item, "callspec")]
    selected = [item.callspec.params for item in items]
    rows = {(x["row"].source, x["entry"], x["arch"]) for x in selected if "row" in x}
    shapes = {(x["instance"].source, x["instance"].entry, x["arch"]) for x in selected if "instance" in x}
    machine.compile_all([*rows, *shapes])


def element_bytes(row):
    return {"f32": 4, "f64": 8, "i8i32": 1}.get(row.types, 2)


@pytest.mark.parametrize(("row", "which", "entry", "arch"), CASES)
class TestKernel:
    def test_nothing_in_local_memory(self, row, which, entry, arch):
        """No spills and no stack: accumulators are in registers."""
        assert machine.compiled(row.source, entry, arch).count("LDL", "STL") == 0

    def test_denormals_are_kept(self, row, which, entry, arch):
        """CuPy compiles with -ftz=true; no multiply-add may follow it."""
        code = machine.compiled(row.source, entry, arch)
        assert not [
            x.name for x in code.instructions if x.name.startswith(("FFMA", "FADD", "FMUL")) and ".FTZ" in x.name
        ]

    def test_instruction(self, row, which, entry, arch):
        assert machine.compiled(row.source, entry, arch).count(row.instruction) > 0

    def test_ratio_in_the_hot_loop(self, row, which, entry, arch):
        """Multiply-adds per element loaded are those of the tile, counted."""
        if row.form == "wmma" and which != "fast":
            pytest.skip("the loop copies through shared memory")
        loop = machine.compiled(row.source, entry, arch).hot_loop(row.instruction)
        lanes = 32 if row.form == "wmma" else 1
        loaded = sum(x.bytes_loaded() for x in loop) * lanes / element_bytes(row)
        multiplied = sum(machine.macs(x, row) for x in loop)
        assert multiplied / loaded == tile_ratio(row.form, row.mr, row.nr, 1, 1).value

    def test_wide_accesses(self, row, which, entry, arch):
        """Aligned operands are loaded, and aligned rows of C stored, in the widest vectors."""
        if which != "fast":
            pytest.skip("takes any strides")
        code = machine.compiled(row.source, entry, arch)
        if row.form == "inner":  # its lanes store one element each
            assert {x.name.split("E.")[1][:3] for x in code.hot_loop(row.instruction) if x.bytes_loaded()} == {"128"}
            return
        c_bytes = 4 if row.form == "wmma" else row.nr * {"f64": 8, "f16": 2}.get(row.types, 4) * row.tiles
        assert code.count("STG.E.128" if c_bytes >= 16 or row.form == "wmma" else "STG.E.64") > 0
        if row.form != "wmma":
            widths = [x.bytes_loaded() for x in code.hot_loop(row.instruction) if x.bytes_loaded()]
            assert min(widths) >= min(8, row.nr * element_bytes(row) * row.tiles)

    def test_no_store_in_the_hot_loop(self, row, which, entry, arch):
        loop = machine.compiled(row.source, entry, arch).hot_loop(row.instruction)
        assert not [x.name for x in loop if x.name.startswith(("STG", "ST."))]


@pytest.mark.parametrize(("instance", "arch"), BATCHED)
class TestBatched:
    def test_nothing_in_local_memory(self, instance, arch):
        assert machine.compiled(table.BATCHED, instance.entry, arch).count("LDL", "STL") == 0

    def test_wide_copies(self, instance, arch):
        """Whatever the size of the products, memory is read and written 16 bytes at a time."""
        code = machine.compiled(table.BATCHED, instance.entry, arch)
        assert code.count("LDGSTS.E.BYPASS.128" if arch >= 80 else "LDG.E.128") > 0
        assert code.count("STG.E.128") > 0

    def test_multiply_adds(self, instance, arch):
        """The tile of a thread, all k: nothing more (unless the loop over k is kept), and in the right instruction."""
        code = machine.compiled(table.BATCHED, instance.entry, arch)
        name = {"f64": "DFMA", "i8i32": "IDP.4A"}.get(instance.types, "FFMA")
        k = -(-instance.k // 4) if name == "IDP.4A" else instance.k
        found, whole = code.count(name), instance.tm * instance.tn * k
        assert found == whole if whole <= 512 else whole % found == 0


@pytest.mark.parametrize(("instance", "arch"), LARGER)
class TestLargerBatched:
    def test_nothing_in_local_memory(self, instance, arch):
        code = machine.compiled(table.BATCHED, instance.entry, arch)
        assert code.count("LDL", "STL") == 0
        assert code.registers <= 255

    def test_wide_copies(self, instance, arch):
        """Also where the products of a block are not a multiple of 16 bytes."""
        code = machine.compiled(table.BATCHED, instance.entry, arch)
        assert code.count("LDGSTS.E.BYPASS.128" if arch >= 80 else "LDG.E.128") > 0
        assert code.count("STG.E.128") > 0

    def test_shared_memory(self, instance, arch):
        """Static, as much as its operands take, or dynamic, as much as the host passes."""
        code = machine.compiled(table.BATCHED, instance.entry, arch)
        size = {"f32": 4, "f64": 8}[instance.types]
        operands = instance.products * (instance.m + instance.n) * instance.k * size
        shared, reserved = batched.dynamic_shared_bytes(instance), 0 if arch < 90 else 1024
        assert (code.shared_bytes > reserved) == (not shared)
        assert operands <= (shared or code.shared_bytes - reserved) <= operands + 64

    def test_multiply_adds(self, instance, arch):
        """Whole steps of k."""
        code = machine.compiled(table.BATCHED, instance.entry, arch)
        found = code.count({"f64": "DFMA"}.get(instance.types, "FFMA"))
        assert found > 0
        assert found % (instance.tm * instance.tn) == 0


@pytest.mark.parametrize(("instance", "arch"), MMA)
class TestBatchedMma:
    def test_registers(self, instance, arch):
        """No local memory, and as many threads as the block has find registers."""
        code = machine.compiled(instance.source, instance.entry, arch)
        assert code.count("LDL", "STL") == 0
        assert code.registers * instance.threads <= 64 << 10

    def test_products_on_tensor_cores(self, instance, arch):
        """All fragments of a warp's tile at all steps of k, each loaded once for a step; the last eight columns may not
        exist."""
        code = machine.compiled(instance.source, instance.entry, arch)
        name, step = ("IMMA.16832", 32) if instance.types == "i8i32" else ("HMMA.16816", 16)
        down, across, steps = instance.tm // 16, instance.tn // 16, -(-instance.k // step)
        columns = -(-min(instance.n, instance.tn) // 8) if instance.n % 16 else 2 * across
        assert code.count(name) in (down * columns * steps, 2 * down * across * steps)
        assert code.count("LDSM") == (down + across) * steps

    def test_wide_copies(self, instance, arch):
        """Of rows that divide into chunks."""
        code = machine.compiled(instance.source, instance.entry, arch)
        elements = 16 if instance.types == "i8i32" else 8
        lengths = (
            (instance.m if instance.a_transposed else instance.k),
            (instance.k if instance.b_transposed else instance.n),
        )
        if not any(length % elements for length in lengths):
            assert code.count("LDGSTS.E.BYPASS.128") > 0
        if instance.whole and (instance.types == "f16" or instance.narrow) and instance.n % 8 == 0:
            assert code.count("STG.E.128") > 0

    def test_shared_memory(self, instance, arch):
        """Static, or dynamic: as much as the host passes."""
        code = machine.compiled(instance.source, instance.entry, arch)
        shared, reserved = batched.dynamic_shared_bytes(instance), 0 if arch < 90 else 1024
        assert (code.shared_bytes > reserved) == (not shared)
        if not shared:
            expected = max(batched.mma_operand_bytes(instance), batched.mma_staged_bytes(instance))
            assert code.shared_bytes - reserved == expected


def test_results_of_bfloat16_are_rounded_once():
    """By the instruction where there is one, in each kernel that computes a batch."""
    _, tile = table.wmma("bf16f32", narrow=True)
    for source, entry in ((table.BATCHED_ANY, table.batched_any("bf16f32", narrow=True)), ("wmma.cu", tile)):
        code = machine.compiled(source, entry, 80)
        assert code.count("LDL", "STL") == 0
        assert code.count("F2FP.BF16") > 0
    assert machine.compiled(NARROW_MMA[0][0].source, NARROW_MMA[0][0].entry, 80).count("F2FP.BF16") > 0


def test_any_strides_compile():
    assert machine.compiled(table.BATCHED, ODD.entry, 90).count("LDL", "STL") == 0


@pytest.mark.parametrize("types", ["f32", "f64"])
def test_strided_operands_are_copied_asynchronously(types):
    """Element by element, without registers in between."""
    made = table.Batched(types, 48, 48, 48, 6, 4, 1, "STRIDED", False, "STRIDED", False, False)
    code = machine.compiled(table.BATCHED, made.entry, 90)
    assert code.count("LDL", "STL") == 0
    assert code.count("LDGSTS") > 0
    assert code.count("LDG.E") == 0


def test_instances_compiled_together_are_those_compiled_alone():
    """Each in its own place: registers, shared memory, instructions and loops; only labels have other numbers."""

    def facts(code):
        names = [x.name for x in code.instructions]
        return names, [len(loop) for loop in code.loops], code.registers, code.shared_bytes

    source = nvrtc.source("wmma.cu"), "wmma.cu"
    entries = list(machine.entries_to_check(table.BY_NAME["cuda_f16f32_wmma_16x16"]).values())
    together = compile_text(*source, entries, 80)
    alone = [compile_text(*source, [entry], 80)[0] for entry in entries]
    assert len({str(facts(code)) for code in together}) == len(entries) > 1
    assert [facts(code) for code in together] == [facts(code) for code in alone]
