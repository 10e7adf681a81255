"""Rungs with wgmma: machine code of every block, the choice among them, tensor maps. No GPU."""

import itertools
import re
import types

import cuda_machine_code as machine
import ladder_headers
import numpy as np
import pytest
from pysimd.gpu_kernels import ladder_table

from pysimd.backends.cuda import driver, estimates, tensor_maps
from pysimd.backends.cuda.ladder import rungs
from pysimd.backends.cuda.ladder import tensor as gemm_tensor
from pysimd.backends.gpu import gemm_launches
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import COUNTER, SCRATCH, A, Argument, B, C, Slot
from pysimd.errors import UnavailableError

needs_compiler = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

ROWS = [row for row in ladder_table.RUNGS if row.tensor_blocks]
COPIED = [row for row in ROWS if row.copies_k_major]
LAYOUTS = ("K_MAJOR", "MN_MAJOR")


def instances():
    """Every block of every rung for row-major operands, and every layout of some."""
    for row in ROWS:
        for block in row.tensor_blocks:
            every = row.name in ("wgmma", "wgmma_persistent", "wgmma_cluster") or block is row.tensor_blocks[-1]
            if row.name == "f16_best" and block not in (row.tensor_blocks[0], row.tensor_blocks[-1]):
                continue  # as those of bf16_best
            for pair in itertools.product(LAYOUTS, repeat=2) if every and row not in COPIED else [LAYOUTS]:
                shape = f"{block.bm}x{block.bn}x{block.cluster}x{block.split}"
                yield pytest.param(row, block, *pair, id=f"{row.name}-{shape}-{'-'.join(pair)}")


INSTANCES = list(instances())


def entry(row, block, a, b):
    """For a C of 16 bits where the call is row-major and the rung has one; the first block, which the header describes,
    and other layouts have a C of 32 bits."""
    narrow = bool(row.narrow) and (a, b) == LAYOUTS and block is not row.tensor_blocks[0]
    return ladder_table.entry(row, a, b, block, narrow=narrow)


def compiled(row, block, a, b):
    return machine.compiled(row.source, entry(row, block, a, b), "90a", "ladder")


@pytest.fixture(scope="module")
def everything():
    """Compiled in parallel before the first test."""
    machine.compile_all(
        (row.source, entry(row, block, a, b), "90a", "ladder") for row, block, a, b in (x.values for x in INSTANCES)
    )


@needs_compiler
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(("row", "block", "a", "b"), INSTANCES)
class TestMachineCode:
    def test_nothing_in_local_memory_and_denormals_kept(self, row, block, a, b):
        code = compiled(row, block, a, b)
        assert code.count("LDL", "STL") == 0
        assert not [
            x.name for x in code.instructions if x.name.startswith(("FFMA", "FADD", "FMUL")) and ".FTZ" in x.name
        ]

    def test_wgmma_of_a_panel_are_issued_together(self, row, block, a, b):
        """All wgmma of the loop, and at most two waits: the compiler adds one after each that it cannot prove safe."""
        code = compiled(row, block, a, b)
        k, kind = {"tf32x3": (8, "F32")}.get(row.name, (32, "S8") if row.panel_bytes == 1 else (16, "F32"))
        name = "IGMMA" if kind == "S8" else "HGMMA"
        issued = [x for x in code.instructions if x.name.startswith(name)]
        assert issued
        operands = "" if row.types == "f16f32" else "."  # f16 has no name in the machine code
        assert all(re.match(rf"{name}\.64x{block.bn}x{k}\.{kind}(\.?)", x.text)[1] == operands for x in issued)
        loop = code.hot_loop(name)
        inside = sum(x.name.startswith(name) for x in loop)
        assert inside == {"wgmma": 2 * 4, "tf32x3": 2 * 3 * 4}.get(row.name, 4)
        assert sum(x.name.startswith("WARPGROUP.DEPBAR") for x in loop) <= 2
        assert not [x.name for x in loop if x.name.startswith(("LDS", "LDG", "STS", "MEMBAR"))]

    def test_mn_major_operands_are_transposed_by_the_tensor_cores(self, row, block, a, b):
        issued = [x for x in compiled(row, block, a, b).instructions if x.name.startswith(("HGMMA", "IGMMA"))]
        for operand, layout in (("A", a), ("B", b)):
            transposed = {f".tnsp{operand}" in x.text for x in issued}
            assert transposed == {layout == "MN_MAJOR" and row not in COPIED}

    def test_panels_are_loaded_by_tma(self, row, block, a, b):
        code = compiled(row, block, a, b)
        loads = [x.name for x in code.instructions if x.name.startswith("UTMALDG.3D")]
        assert any(".MULTICAST" in name for name in loads) == (block.cluster > 1)
        assert loads
        assert (code.count("UTMASTG.3D") > 0) == (row.stores_by_tma and block.split == 1)
        assert (code.count("UBLKCP") > 0) == (block.split > 1)
        assert code.count("USETMAXREG") == (2 if block.threads > 128 else 0)


SKINNY = [
    pytest.param(row, block, *pair, narrow, id=f"{row.name}-{block.bm}x{block.bn}x{block.split}-{'-'.join(pair)}")
    for row in ROWS
    for i, block in enumerate(row.skinny_blocks)
    for pair, narrow in ((("K_MAJOR", "K_MAJOR"), i % 2 == 0), (("MN_MAJOR", "MN_MAJOR"), i % 2 == 1))
    if min(block.bm, block.bn) % 64 == 0 or pair[0] == "K_MAJOR"
    if row.name == "bf16_best" or block.split == 2
]


@pytest.fixture(scope="module")
def skinny():
    """Compiled in parallel before the first test."""
    machine.compile_all(
        (row.source, ladder_table.entry(row, a, b, block, narrow=narrow), "90a", "ladder")
        for row, block, a, b, narrow in (x.values for x in SKINNY)
    )


@needs_compiler
@pytest.mark.usefixtures("skinny")
class TestSkinnyBlocks:
    """skinny_gemm.cuh, for K-major operands and for operands that the tensor cores transpose."""

    @pytest.mark.parametrize(("row", "block", "a", "b", "narrow"), SKINNY)
    def test_machine_code(self, row, block, a, b, narrow):
        code = machine.compiled(row.source, ladder_table.entry(row, a, b, block, narrow=narrow), "90a", "ladder")
        assert code.count("LDL", "STL") == 0
        issued = [x for x in code.instructions if x.name.startswith("HGMMA")]
        assert all(x.text.startswith(f"HGMMA.64x{min(block.bm, block.bn)}x16.F32") for x in issued)
        for letter in "AB":
            assert {f".tnsp{letter}" in x.text for x in issued} == {a == "MN_MAJOR"}
        loop = code.hot_loop("HGMMA")
        assert sum(x.name.startswith("HGMMA") for x in loop) == 4
        assert sum(x.name.startswith("WARPGROUP.DEPBAR") for x in loop) <= 2
        assert code.count("UTMALDG.3D") > 0
        assert code.count("UTMAPF.L2.3D") > 0
        assert (code.count("UBLKCP") > 0) == (block.split > 1)
        shared = code.shared_bytes + ladder_table.dynamic_shared_bytes(row, a, b, block)
        assert block.skinny * shared <= 228 << 10
        assert block.skinny * block.threads * -(-code.registers // 8) * 8 <= 1 << 16


@pytest.mark.parametrize(
    ("m", "n", "k", "layouts", "tile", "parts"),
    [
        (64, 4096, 4096, "KK", (64, 128), 2),
        (64, 4096, 4096, "KM", (64, 128), 2),
        (4096, 64, 4096, "KM", (128, 64), 2),
        (16, 4096, 4096, "KM", (16, 128), 2),
        (16, 4096, 4096, "MM", (64, 128), 2),  # boxes along a short side are 64 wide
        (4096, 16, 4096, "KM", (128, 64), 2),
        (4096, 16, 4096, "KK", (128, 16), 2),
        (64, 2048, 2048, "KM", (64, 128), 4),
        (17, 1024, 8192, "KM", (64, 128), 8),
        (64, 11008, 4096, "KM", (64, 128), 1),
    ],
)
def test_skinny_tiles(m, n, k, layouts, tile, parts):
    names = tuple({"K": "K_MAJOR", "M": "MN_MAJOR"}[x] for x in layouts)
    choice = gemm_tensor.choose(ladder_table.BY_NAME["bf16_best"], m, n, k, 1, 132, names)
    assert ((choice.block.bm, choice.block.bn), choice.parts, bool(choice.block.skinny)) == (tile, parts, True)
    assert choice.grid == choice.tiles * parts
    assert not gemm_tensor.choose(ladder_table.BY_NAME["bf16_best"], m, n, k, 2, 132, names).block.skinny


def test_maps_of_a_skinny_block(monkeypatch):
    """Boxes of 16 rows of a K-major operand; of the other one 64 along its rows, two for a panel."""
    maps = []
    monkeypatch.setattr(
        tensor_maps, "tensor_map", lambda *given: (maps.append(given), np.zeros(1, tensor_maps.TENSOR_MAP))[1]
    )
    row, layouts = ladder_table.BY_NAME["bf16_best"], ("K_MAJOR", "MN_MAJOR")
    given = {"a": 4096, "b": 8192, "c": 1 << 20, "m": 16, "n": 4096, "k": 4096, "lda": 4096, "ldb": 4096, "ldc": 4096}
    words = np.array([given.get(name, 0) for name in gemm_launches.FIELDS], np.int64)
    gemm = Argument(words, tuple(Slot(i, which) for i, which in ((0, A), (1, B), (3, C))))
    choice = gemm_tensor.choose(row, 16, 4096, 4096, 1, 132, layouts)
    packed, scratch, _ = gemm_tensor.arguments(choice, row, layouts, 1, gemm, 4)
    assert (packed, scratch) == ([], 0)
    assert [x[4] for x in maps] == [(64, 16), (64, 64)]


@needs_compiler
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_header(row):
    first = [case.values[2:] for case in INSTANCES if case.values[:2] == (row, row.tensor_blocks[0])]
    ladder_headers.check(row, [(a, b, "90a") for a, b in first], "90a")


@needs_compiler
def test_high_part_is_rounded_and_the_difference_is_exact():
    row = ladder_table.BY_NAME["tf32x3"]
    for layout in LAYOUTS:
        code = machine.compiled(row.source, ladder_table.pack_entry(row, layout), "90a", "ladder")
        assert code.count("LDL", "STL") == 0
        kept = sum("0xffffe000" in x.text for x in code.instructions)  # the mask of 11 significant bits, after rounding
        assert kept == 2 * code.count("FFMA") > 0
        assert not [x.name for x in code.instructions if x.name.startswith(("FFMA", "FADD")) and ".FTZ" in x.name]


@needs_compiler
def test_padded_copies_are_written_16_bytes_at_a_time():
    row = ladder_table.BY_NAME["bf16_best"]
    code = machine.compiled(row.source, ladder_table.pack_entry(row, "K_MAJOR"), "90a", "ladder")
    assert code.count("LDL", "STL") == 0
    assert code.count("STG.E.128") == 1


@needs_compiler
def test_bytes_are_transposed_by_permutes():
    row = ladder_table.BY_NAME["i8_wgmma"]
    for layout in LAYOUTS:
        code = machine.compiled(row.source, ladder_table.pack_entry(row, layout), "90a", "ladder")
        assert code.count("LDL", "STL") == 0
        assert (sum(x.name == "PRMT" for x in code.instructions) >= 8) == (layout == "MN_MAJOR")
        assert code.count("STG.E.128") == 1


@needs_compiler
@pytest.mark.parametrize("row", [row for row in ROWS if row.remainders], ids=lambda row: row.name)
def test_remainders_are_written_four_at_a_time_and_denormals_kept(row):
    exponents, split, join = zip(*(ladder_table.remainder_entries(row, layout) for layout in LAYOUTS), strict=True)
    for name in dict.fromkeys((*exponents, *split, *join)):
        code = machine.compiled(row.source, name, "90a", "ladder")
        assert code.count("LDL", "STL") == 0
        assert not [
            x.name for x in code.instructions if x.name.startswith(("F2F", "FFMA", "FMUL")) and ".FTZ" in x.name
        ]
        if name in split:
            assert code.count("STG") == row.remainders  # words of four
            assert not [x.name for x in code.instructions if x.name.startswith("STG.E.U")]


@pytest.mark.parametrize(("m", "n", "ldc", "stored"), [(9, 64, 64, True), (9, 62, 64, False), (1, 17, 17, False)])
def test_c_is_stored_by_tma_where_its_rows_end_at_16_bytes(m, n, ldc, stored, monkeypatch):
    """A TMA store writes whole pieces of 16 bytes."""
    monkeypatch.setattr(tensor_maps, "tensor_map", lambda *_: np.zeros(1, tensor_maps.TENSOR_MAP))
    row = ladder_table.BY_NAME["bf16_best"]
    given = {"a": 4096, "b": 8192, "c": 1 << 20, "m": m, "n": n, "k": 64}
    given |= {"lda": 64, "ldb": 64, "ldc": ldc, "c_vector": 1}
    words = np.array([given.get(name, 0) for name in gemm_launches.FIELDS], np.int64)
    gemm = Argument(words, tuple(Slot(i, which) for i, which in ((0, A), (1, B), (3, C))))
    choice = gemm_tensor.choose(row, m, n, 64, 1, 132)
    _, _, (made, *_) = gemm_tensor.arguments(choice, row, ("K_MAJOR", "K_MAJOR"), 1, gemm, 4)
    assert gemm_tensor.fields(made)["c_vector"] == (gemm_tensor.BY_MAP if stored else 1)


@pytest.mark.parametrize(("bn", "box"), [(256, (64, 64)), (192, (64, 32))])
def test_blocks_of_a_cluster_load_whole_boxes_of_b(bn, box, monkeypatch):
    """Half of the columns each or, of three boxes, half of k; along k any number of columns is a box."""
    maps = []
    monkeypatch.setattr(
        tensor_maps, "tensor_map", lambda *given: (maps.append(given), np.zeros(1, tensor_maps.TENSOR_MAP))[1]
    )
    row = ladder_table.BY_NAME["bf16_best"]
    (block,) = (x for x in row.tensor_blocks if (x.bn, x.cluster) == (bn, 2))
    choice = gemm_tensor.Choice(block, 66, 1, 1, 132, 1.0)
    given = {"a": 4096, "b": 8192, "c": 1 << 20, "m": 512, "n": 768, "k": 768, "lda": 768, "ldb": 768, "ldc": 768}
    words = np.array([given.get(name, 0) for name in gemm_launches.FIELDS], np.int64)
    gemm = Argument(words, tuple(Slot(i, which) for i, which in ((0, A), (1, B), (3, C))))
    for b_layout in ("MN_MAJOR", "K_MAJOR"):
        gemm_tensor.arguments(choice, row, ("K_MAJOR", b_layout), 1, gemm, 4)
    assert [x[4] for x in maps] == [(64, 128), box, (64, 128), (64, bn // 2)]
    assert bn * row.bk == 2 * (bn // 64 if box[1] < row.bk else bn // 128) * box[0] * box[1]


class Matrices:
    """Shape, strides and address: what an array of CuPy is to ``CallOperands``."""

    def __init__(self, shape, strides, pointer=4096, itemsize=2):
        self.shape, self.strides, self.itemsize = shape, strides, itemsize
        self.ndim, self.size = len(shape), int(np.prod(shape))
        self.data = types.SimpleNamespace(ptr=pointer)


def call_operands(a, batch=()):
    k = a.shape[-1]
    b = Matrices((k, 64), (128, 2))
    c = Matrices((*batch, a.shape[-2], 64), (a.shape[-2] * 256, 256, 4)[-2 - len(batch) :], itemsize=4)
    return CallOperands(a, b, None, c)


@pytest.mark.parametrize(
    ("a", "expected"),
    [
        (Matrices((100, 64), (128, 2)), True),
        (Matrices((100, 63), (128, 2)), True),  # the extent may be any
        (Matrices((100, 63), (126, 2)), False),  # rows at multiples of 2 bytes
        (Matrices((100, 64), (128, 2), pointer=4104), False),
        (Matrices((104, 64), (2, 208)), True),  # transposed
        (Matrices((100, 64), (2, 200)), False),
        (Matrices((1, 63), (126, 2)), True),  # no step between rows
        (Matrices((100, 64), (-128, 2)), False),  # backwards
        (Matrices((100, 64), (0, 2)), False),  # the same row again
        (Matrices((100, 64), (64, 2)), False),  # rows overlap
        (Matrices((100, 0), (128, 2)), False),  # a map has no extent of 0
    ],
)
def test_what_can_be_mapped(a, expected):
    assert gemm_tensor.mappable(call_operands(a), 0) == expected


@pytest.mark.parametrize(("step", "expected"), [(12800, True), (12808, False), (0, True), (-12800, False)])
def test_steps_of_a_batch(step, expected):
    assert gemm_tensor.mappable(call_operands(Matrices((3, 100, 64), (step, 128, 2)), (3,)), 0) == expected


@pytest.mark.parametrize(
    ("a", "expected"),
    [
        (Matrices((100, 64), (4, 400), itemsize=4), True),
        (Matrices((99, 64), (4, 396), itemsize=4), False),  # steps of k at multiples of 4 bytes
        (Matrices((100, 64), (256, 4), itemsize=4), False),  # along k
        (Matrices((1, 64), (256, 4), itemsize=4), False),
        (Matrices((1, 64), (4, 16), itemsize=4), True),
        (Matrices((100, 1), (4, 4), itemsize=4), True),
    ],
)
def test_what_lies_along_its_rows(a, expected):
    assert gemm_tensor.along_rows(call_operands(a), 0) == expected


@pytest.mark.parametrize(
    ("name", "size", "tile", "cluster"),
    [
        ("bf16_best", 1024, 64, 1),
        ("bf16_best", 2048, 256, 2),
        ("bf16_best", 3000, 192, 2),  # 3072 has whole lines, and clusters gain nothing
        ("bf16_best", 3072, 192, 1),
        ("bf16_best", 8192, 256, 2),
        ("i8_wgmma", 2048, 256, 1),
        ("i8_wgmma", 4096, 256, 2),
        ("i8_wgmma", 8192, 256, 2),
    ],
)
def test_choice(name, size, tile, cluster):
    """For the 132 multiprocessors of an H200, without a split along k."""
    choice = gemm_tensor.choose(ladder_table.BY_NAME[name], size, size, size, 1, 132)
    assert (choice.block.bn, choice.block.cluster, choice.parts) == (tile, cluster, 1)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.splits_operands], ids=lambda row: row.name)
def test_bytes_of_a_small_product_are_estimated_too(row):
    """Less than what is moved in a microsecond; in the same tile, more columns take longer."""
    narrow, wide = (gemm_tensor.choose(row, 60, n, 64, 1, 132) for n in (48, 56))
    assert (narrow.block, narrow.parts) == (wide.block, wide.parts)
    assert narrow.us < wide.us < narrow.us + 1


@pytest.mark.parametrize(
    ("m", "n", "k", "taken"),
    [
        (1024, 1024, 1024, True),  # short, whole lines
        (1024, 1024, 1032, False),
        (2048, 2048, 2048, False),
        (8192, 8192, 8192, True),  # at the power limit
        (1634, 502, 757, True),  # rows that cuBLAS reads element by element
        (655, 1668, 260, False),
        (64, 4096, 4096, True),  # a short side, about half as many blocks as multiprocessors
        (16, 4096, 4096, True),
        (4096, 64, 4096, True),
        (48, 1024, 8192, True),
        (64, 2048, 2048, True),
        (64, 2560, 2560, True),
        (64, 1024, 1024, True),
        (64, 4096, 11008, True),
        (64, 2048, 5120, True),
        (64, 1280, 5120, False),
        (64, 2048, 8192, False),
        (64, 4096, 14336, False),
        (64, 5120, 5120, False),
        (64, 11008, 4096, False),
        (64, 64, 16384, False),
        (16, 4100, 4096, False),
        (16, 4096, 128, False),
    ],
)
def test_matmul_leaves_to_cublas_what_is_not_estimated_to_be_faster(m, n, k, taken):
    assert estimates.takes("bf16f32", m, n, k) == estimates.takes("f16", m, n, k) == taken


@pytest.mark.parametrize(("k", "pitch"), [(301, 304), (511, 512), (513, 576)])
def test_long_rows_of_a_copy_begin_with_a_line(k, pitch):
    p = {"a": 4096, "k": k, "lda": k, "a_batch": 0}
    copy = gemm_tensor.Packed(ladder_table.BY_NAME["f16_best"], p, "a", 3, "K_MAJOR", 1, Slot(0, A), 0)
    assert (copy.pitch, copy.nbytes) == (pitch, -(-3 * pitch * 2 // 256) * 256)


@pytest.mark.parametrize("name", ["bf16_best", "f16_best", "i8_wgmma"])
@pytest.mark.parametrize(("m", "n", "k"), [(100, 100, 100_000), (256, 256, 16384), (520, 300, 9000)])
def test_few_tiles_are_split_along_k(name, m, n, k):
    """Every block has a part of one tile; products of a batch are not split."""
    row = ladder_table.BY_NAME[name]
    choice = gemm_tensor.choose(row, m, n, k, 1, 132)
    assert choice.parts == choice.clusters * choice.block.split > 1
    assert choice.grid == choice.tiles * choice.parts <= 132
    assert choice.panels // choice.parts >= gemm_tensor.LEAST
    assert gemm_tensor.choose(row, m, n, k, 2, 132).parts == 1


@pytest.mark.parametrize("narrow", [False, True])
def test_rows_that_cannot_be_read_are_padded(narrow, monkeypatch):
    """A lies along k in rows of 70008 bytes, B in rows of 128; partial tiles lie behind the copy in scratch memory."""
    maps = []
    monkeypatch.setattr(
        tensor_maps, "tensor_map", lambda *given: (maps.append(given), np.zeros(1, tensor_maps.TENSOR_MAP))[1]
    )
    row, c_bytes = ladder_table.BY_NAME["f16_best"], 2 if narrow else 4
    given = {"a": 4096, "b": 8192, "c": 1 << 20, "m": 30, "n": 64, "k": 35004, "lda": 35004, "ldb": 64, "ldc": 64}
    words = np.array([(given | {"c_vector": 1}).get(name, 0) for name in gemm_launches.FIELDS], np.int64)
    gemm = Argument(words, tuple(Slot(i, which) for i, which in ((0, A), (1, B), (3, C))))
    choice = gemm_tensor.choose(row, 30, 64, 35004, 1, 132)
    packed, scratch, arguments = gemm_tensor.arguments(choice, row, ("K_MAJOR", "MN_MAJOR"), 1, gemm, c_bytes)
    ((layout, copy),) = packed
    assert (layout, copy.pitch, copy.nbytes) == ("K_MAJOR", 35008, -(-30 * 35008 * 2 // 256) * 256)
    assert choice.clusters > 1
    assert scratch == copy.nbytes + 4 * choice.clusters * choice.block.bm * choice.block.bn
    assert arguments[1].slots == (Slot(0, SCRATCH, copy.nbytes), Slot(1, COUNTER, 4))
    assert [x[2] for x in maps] == [(35004, 30, 1), (64, 35004, 1), (64, 30, 1)]
    assert (maps[2][1], maps[2][4]) == (c_bytes, (128 // c_bytes, 64))


@pytest.mark.parametrize(
    ("changes", "layout", "packed"),
    [
        ({}, "K_MAJOR", False),
        ({"k": 90, "lda": 96}, "K_MAJOR", True),  # what follows the end of a row is not zero
        ({"lda": 100}, "K_MAJOR", True),
        ({"a": 4104}, "K_MAJOR", True),
        ({"lda": -96}, "K_MAJOR", True),
        ({"a_batch": 3008}, "K_MAJOR", False),
        ({"a_batch": 3001}, "K_MAJOR", True),
        ({"lda": 32}, "MN_MAJOR", True),
    ],
)
def test_operands_of_a_rung_without_maps_are_packed(changes, layout, packed):
    """K-major, with rows of whole pieces of 16 bytes; the Gemm has the copy's address, pitch and step."""
    row = ladder_table.BY_NAME["i8_mma_sync"]
    given = {"a": 4096, "b": 8192, "c": 1 << 20, "m": 30, "n": 64, "k": 96, "lda": 96, "ldb": 96, "ldc": 64} | changes
    b_layout = "MN_MAJOR" if given["k"] % 16 else "K_MAJOR"
    words = np.array([given.get(name, 0) for name in gemm_launches.FIELDS], np.int64)
    gemm = Argument(words, tuple(Slot(i, which) for i, which in ((0, A), (1, B), (3, C))))
    copies, scratch, made = gemm_tensor.packed(row, (layout, b_layout), 5, gemm)
    fields = gemm_tensor.fields(made)
    assert [letter for letter, _ in copies] == [layout] * packed + [b_layout] * (b_layout == "MN_MAJOR")
    assert scratch == sum(copy.nbytes for _, copy in copies)
    if not packed:
        assert (made.slots, made.words.tolist()) == (gemm.slots, words.tolist())
        return
    copy = copies[0][1]
    assert made.slots[0] == Slot(0, SCRATCH, 0)
    assert made.slots[2] == gemm.slots[2]
    assert (fields["lda"], copy.pitch, copy.products) == (96, 96, 5 if "a_batch" in changes else 1)
    assert fields["a_batch"] == (30 * 96 if "a_batch" in changes else 0)
    assert copy.argument.slots == (Slot(0, A), Slot(1, SCRATCH, 0))


def test_launches_of_a_split_product(monkeypatch):
    """The copy of A and the product, each with the grid and the arguments of its own."""
    monkeypatch.setattr(tensor_maps, "tensor_map", lambda *_: np.zeros(1, tensor_maps.TENSOR_MAP))
    for name in ("_pack_function", "_function"):
        monkeypatch.setattr(rungs, name, lambda *_, name=name: name)
    monkeypatch.setattr(rungs, "current_device", lambda: 0)
    monkeypatch.setattr(rungs, "multiprocessors", lambda device: 132)
    row = ladder_table.BY_NAME["f16_best"]
    given = {"a": 4096, "b": 8192, "c": 1 << 20, "m": 30, "n": 64, "k": 35004, "lda": 35004, "ldb": 64, "ldc": 64}
    words = np.array([given.get(name, 0) for name in gemm_launches.FIELDS], np.int64)
    gemm = Argument(words, tuple(Slot(i, which) for i, which in ((0, A), (1, B), (3, C))))
    choice = gemm_tensor.choose(row, 30, 64, 35004, 1, 132)
    part = rungs._tensor(4, rungs._Gemm(row, 30, 64, 35004, ("K_MAJOR", "MN_MAJOR"), 1, gemm))
    assert choice.clusters > 1
    assert part.counts
    assert [(x.function, x.grid, x.block, len(x.arguments)) for x in part.launches] == [
        ("_pack_function", (-(-30 * 35008 // 2048),), (256,), 1),
        ("_function", (choice.tiles * choice.parts,), (choice.block.threads,), 5),
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_shared_memory_fits(row):
    for block in row.tensor_blocks:
        assert ladder_table.dynamic_shared_bytes(row, *LAYOUTS, block) + 256 <= 227 << 10


def test_a_driver_without_tensor_maps_is_told(monkeypatch):
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: object())
    driver.function.cache_clear()
    with pytest.raises(UnavailableError, match="update the driver"):
        tensor_maps.tensor_map(4096, 2, (64, 64, 1), (128, 0), (64, 64), 128)
    driver.function.cache_clear()
