"""Rungs with cp.async copies on packed words: machine code of every block tile, and the choice among them. No GPU."""

import itertools
import re

import cuda_machine_code as machine
import ladder_headers
import numpy as np
import pytest
from pysimd.gpu_kernels import ladder_table

import pysimd
from pysimd.backends.cuda import device, dispatch
from pysimd.backends.cuda.dispatch import Way
from pysimd.backends.cuda.ladder import schedule as gemm_blocks
from pysimd.backends.cuda.ladder import tensor as gemm_tensor
from pysimd.bench import cuda_tiles
from pysimd.microkernel import Backend

needs_compiler = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

ROWS = [row for row in ladder_table.RUNGS if (row.stages or row.blocks) and row.lanes == 1]
INSTRUCTION = {"f32": "FFMA", "f16": "HFMA2", "i8i32": "IDP.4A"}
GROUP = {"f32": 1, "f16": 2, "i8i32": 4}
PAIRS = [ladder_table.row_major(ROWS[0]), ("K_MAJOR", "MN_MAJOR"), ("MN_MAJOR_VEC4", "K_MAJOR_VEC4")]


def architectures(block):
    """With setmaxnreg sm_90a only, else also the oldest that is supported."""
    return ("90a",) if block and block.setmaxnreg else ("90a", 80)


def cases():
    """Every block tile of every rung."""
    for row in ROWS:
        for block in row.blocks or (None,):
            for arch in architectures(block):
                every = row.name in ("cpasync", "f32_best", "h2_gemm", "i8_dp4a_gemm")
                for pair in PAIRS if every else [ladder_table.row_major(row)]:
                    shape = f"{block.bm}x{block.bn}-" if block else ""
                    yield pytest.param(row, block, *pair, arch, id=f"{row.name}-{shape}{'-'.join(pair)}-sm_{arch}")


CASES = list(cases())


def compiled(row, block, a, b, arch):
    return machine.compiled(row.source, ladder_table.entry(row, a, b, block), arch, "ladder")


def inner_loop(code, instruction):
    """The loop with most multiply-adds that stores nothing: the loop over tiles around it stores."""
    loops = [loop for loop in code.loops if not any(x.name.startswith("STG") for x in loop)]
    return max(loops, key=lambda loop: sum(x.name.startswith(instruction) for x in loop))


@pytest.fixture(scope="module")
def everything():
    """Compiled in parallel before the first test."""
    wanted = [case.values for case in CASES]
    programs = [(row.source, ladder_table.entry(row, a, b, block), arch, "ladder") for row, block, a, b, arch in wanted]
    programs += [
        (row.source, ladder_table.fixup_entry(row, block), 80, "ladder")
        for row in ROWS
        if row.split_k
        for block in row.blocks
    ]
    best = ladder_table.BY_NAME["f32_best"]
    programs += [
        (best.source, ladder_table.entry(best, *PAIRS[0], block, fused_fixup=True), arch, "ladder")
        for block in best.blocks
        for arch in architectures(block)
    ]
    programs += [
        ("tile_rate.cu", cuda_tiles.register_tile_entry(types, shape), 90, ".")
        for types, shapes in cuda_tiles.REGISTER_TILES.items()
        for shape in shapes
    ]
    machine.compile_all(programs)


@needs_compiler
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(("row", "block", "a", "b", "arch"), CASES)
class TestMachineCode:
    def test_nothing_in_local_memory_and_denormals_kept(self, row, block, a, b, arch):
        code = compiled(row, block, a, b, arch)
        assert code.count("LDL", "STL") == 0
        flushed = [
            x.name for x in code.instructions if x.name.startswith(("FFMA", "FADD", "FMUL")) and ".FTZ" in x.name
        ]
        assert not flushed

    def test_ratio_in_the_hot_loop(self, row, block, a, b, arch):
        """mr * nr multiply-adds for mr + nr words loaded, 16 bytes a load, and hardly anything else."""
        loop = inner_loop(compiled(row, block, a, b, arch), INSTRUCTION[row.types])
        multiplied = sum(x.name.startswith(INSTRUCTION[row.types]) and not x.moves() for x in loop)
        loads = sum(x.name.startswith("LDS.128") for x in loop)
        tile = (block.mr, block.nr) if block else (row.tm, row.tn)
        assert multiplied / (4 * loads) == tile[0] * tile[1] / sum(tile)
        # Addresses and barriers; the compiler puts three dummy loads before asynchronous copies.
        assert len(loop) - multiplied - loads < (45 if block else 100)

    def test_copies_use_no_registers(self, row, block, a, b, arch):
        code = compiled(row, block, a, b, arch)
        assert code.count("STG.E.128", "STG.E.64") > 0
        if row.loads_by_tma:
            assert (code.count("UTMALDG.3D"), code.count("LDGSTS")) == (2, 0)
            return
        assert code.count("LDGSTS") > 0 or GROUP[row.types] > 1
        if GROUP[row.types] == 1 and (a, b) == PAIRS[0]:
            assert code.count("LDGSTS.E.BYPASS.128") > 0


@needs_compiler
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_header(row):
    first = row.blocks[0] if row.blocks else None
    instances = [(a, b, arch) for x, block, a, b, arch in (case.values for case in CASES) if (x, block) == (row, first)]
    ladder_headers.check(row, instances, "90a")


@needs_compiler
@pytest.mark.usefixtures("everything")
def test_setmaxnreg_on_sm_90a_only():
    row = ladder_table.BY_NAME["streamk"]
    assert compiled(row, row.blocks[0], *PAIRS[0], "90a").count("USETMAXREG") == 2
    assert compiled(row, row.blocks[1], *PAIRS[0], 80).count("USETMAXREG") == 0


@needs_compiler
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("row", [row for row in ROWS if row.split_k], ids=lambda row: row.name)
def test_fixup_kernels_compile(row):
    for block in row.blocks:
        code = machine.compiled(row.source, ladder_table.fixup_entry(row, block), 80, "ladder")
        assert code.count("LDL", "STL") == 0


@needs_compiler
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("block", ladder_table.BY_NAME["f32_best"].blocks, ids=lambda block: f"{block.bm}x{block.bn}")
def test_fused_fixup(block):
    """One atomic operation for the grid-wide barrier, no local memory, and as many multiply-adds in the main loop."""
    row = ladder_table.BY_NAME["f32_best"]
    for arch in architectures(block):
        code = machine.compiled(row.source, ladder_table.entry(row, *PAIRS[0], block, fused_fixup=True), arch, "ladder")
        alone = compiled(row, block, *PAIRS[0], arch)
        assert code.count("LDL", "STL") == 0
        assert code.count("ATOMG") == 1
        assert alone.count("ATOMG") == 0
        loops = [inner_loop(x, "FFMA") for x in (code, alone)]
        assert len({sum(x.name.startswith("FFMA") for x in loop) for loop in loops}) == 1


@needs_compiler
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("types", cuda_tiles.REGISTER_TILES)
def test_register_tiles_alone(types):
    """The register tile is measured without global memory: the same words, the same order, nothing else."""
    for shape in cuda_tiles.REGISTER_TILES[types]:
        code = machine.compiled("tile_rate.cu", cuda_tiles.register_tile_entry(types, shape), 90, ".")
        assert code.count("LDL", "STL") == 0
        loop = inner_loop(code, INSTRUCTION[types])
        multiplied = sum(x.name.startswith(INSTRUCTION[types]) and not x.moves() for x in loop)
        loads = sum(x.name.startswith("LDS.128") for x in loop)
        assert multiplied / (4 * loads) == shape[0] * shape[1] / sum(shape[:2])
        assert len(loop) - multiplied - loads < 12


def choose(name, m, n, k, batch=1, processors=132, layouts=("K_MAJOR_VEC4", "MN_MAJOR_VEC4")):
    row = ladder_table.BY_NAME[name]
    rates = ladder_table.rates(row, row.blocks, *layouts)
    return gemm_blocks.choose(row, row.blocks, batch, m, n, k, GROUP[row.types], processors, rates)


class TestChoice:
    """For the 132 multiprocessors of an H200."""

    @pytest.mark.parametrize(
        ("m", "n", "k", "block", "split_tiles"),
        [
            (8192, 8192, 8192, ladder_table.WIDE, 200),
            (4096, 4096, 4096, ladder_table.WIDE, 248),
            (2048, 2048, 2048, ladder_table.WIDE, 0),
            (8192, 16, 8192, ladder_table.COLUMN, 16),
            (16, 8192, 8192, ladder_table.ROW, 16),
            (64, 64, 4096, ladder_table.SMALL, 1),
            (4096, 4096, 64, ladder_table.WIDE, 0),
        ],
    )
    def test_shapes(self, m, n, k, block, split_tiles):
        choice = choose("f32_best", m, n, k)
        assert (choice.block, choice.split_tiles) == (block, split_tiles)

    @pytest.mark.parametrize(
        ("name", "size", "tile", "split_tiles"),
        [
            ("h2_gemm", 512, (64, 64), 0),
            ("h2_gemm", 1024, (128, 128), 64),
            ("h2_gemm", 1280, (128, 256), 50),
            ("i8_dp4a_gemm", 512, (64, 64), 0),
            ("i8_dp4a_gemm", 1024, (128, 128), 64),
            ("i8_dp4a_gemm", 2048, (128, 128), 0),
        ],
    )
    def test_f16_and_int8_have_rates_of_their_own(self, name, size, tile, split_tiles):
        """With those of float32, int8 took 64 x 64 at 1024, which measured 1.5 times as long."""
        choice = choose(name, size, size, size)
        assert ((choice.block.bm, choice.block.bn), choice.split_tiles) == (tile, split_tiles)

    def test_int8_by_what_the_producers_do(self):
        """At 1024 small tiles measured 26 us with K-major operands, large ones 30; at 1000, where no operand is loaded
        in vectors, 43 and 86."""
        for layouts in (("K_MAJOR_VEC4", "K_MAJOR_VEC4"), ("K_MAJOR", "MN_MAJOR"), ("K_MAJOR", "K_MAJOR")):
            assert choose("i8_dp4a_gemm", 1024, 1024, 1024, layouts=layouts).block is ladder_table.SMALL
        assert choose("i8_dp4a_gemm", 1024, 1024, 1024).block is ladder_table.SQUARE
        assert choose("i8_dp4a_gemm", 4096, 4096, 4096, layouts=("K_MAJOR_VEC4",) * 2).block is ladder_table.SQUARE

    @pytest.mark.parametrize(
        ("m", "n", "k"), list(itertools.product((1, 100, 5000), (1, 300, 4097), (0, 1, 513, 20_000)))
    )
    def test_every_panel_has_one_block(self, m, n, k):
        """The shares of split tiles are consecutive, whole tiles are distributed, and no share is tiny."""
        for name in ("producers", "streamk", "f32_best", "h2_gemm", "i8_dp4a_gemm"):
            for processors in (1, 7, 132):
                choice = choose(name, m, n, k, processors=processors)
                assert choice.tiles == -(-m // choice.block.bm) * -(-n // choice.block.bn)
                assert choice.panels == max(1, -(-k // (8 * GROUP[ladder_table.BY_NAME[name].types])))
                assert 0 < choice.grid <= processors
                assert choice.split_tiles <= choice.tiles
                if choice.split_tiles:
                    share = choice.split_tiles * choice.panels / choice.grid
                    assert share >= min(gemm_blocks.LEAST, choice.panels)
                    assert share < 2 * choice.panels  # so that a block leaves two partial tiles at most

    def test_fused_fixup_where_c_is_small(self):
        """In (64, 64, 256) each thread adds exactly 16 bytes of C."""
        for shape in ((64, 64, 256), (64, 64, 4096), (128, 128, 16384), (256, 256, 4096)):
            assert choose("f32_best", *shape).fused_fixup
            assert not choose("streamk", *shape).fused_fixup
        for shape in ((1024, 1024, 1024), (8192, 8192, 8192), (4096, 4096, 64)):
            assert not choose("f32_best", *shape).fused_fixup

    def test_batches_are_not_split(self):
        assert all(choose("f32_best", 512, 512, 5000, batch=batch).split_tiles == 0 for batch in (2, 3, 50))
        assert choose("f32_best", 512, 512, 5000).split_tiles

    def test_schedule_has_the_fields_of_the_struct(self):
        text = pysimd.sources.read("gpu_kernels/ladder/tile_scheduler.cuh")
        struct = re.sub(
            r"/\*.*?\*/", "", re.search(r"struct Schedule \{(.*?)\n\};", text, re.DOTALL)[1], flags=re.DOTALL
        )
        fields = re.findall(r"^    (?:u32\*|i64|float) ([\w, ]+);", struct, re.MULTILINE)
        assert fields[:4] == ["workspace", "barrier_counter", "tiles", "panels"]
        assert fields[4:] == ["split_tiles", "share", "longer", "group", "one, zero"]
        assert gemm_blocks.SCHEDULE.itemsize == 8 * len(fields)
        given = gemm_blocks.fields(
            "f32", tiles=50, panels=7, split_tiles=3, grid=4, group=8, workspace=64, barrier_counter=16
        ).view(np.int64)
        assert given[:-1].tolist() == [64, 16, 50, 7, 3, 5, 1, 8]
        assert given[-1:].view(np.float32).tolist() == [1, 0]
        given = gemm_blocks.fields("i8i32", tiles=50, panels=7, split_tiles=3, grid=4, group=8).view(np.int64)
        assert given[-1:].view(np.int32).tolist() == [1, 0]
        row = ladder_table.BY_NAME["wgmma_cluster"]
        choice, (block,) = gemm_tensor.choose(row, 1000, 3000, 300, 2, 132), row.tensor_blocks
        tiles = 2 * -(-1000 // (block.bm * block.cluster)) * -(-3000 // block.bn)
        assert choice[:5] == (block, tiles, 5, 1, min(tiles, 66) * block.cluster)


@pytest.mark.parametrize(
    ("capability", "m", "n", "k", "count", "name"),
    [
        (90, 1024, 1024, 1024, 1, "i8_wgmma"),
        (90, 1 << 31, 64, 64, 1, "i8_mma_sync"),
        (80, 1024, 1024, 1024, 1, "i8_mma_sync"),
        (89, 2048, 2048, 2048, 1, "i8_mma_sync"),
        (100, 2048, 2048, 2048, 1, "i8_mma_sync"),
        (80, 512, 512, 512, 1, "i8_dp4a_gemm"),
        (80, 256, 256, 16384, 1, "i8_dp4a_gemm"),
        (80, 256, 256, 16384, 12, "i8_mma_sync"),
        (75, 2048, 2048, 2048, 1, "cuda_i8i32_outer_8x8"),
    ],
)
def test_int8(capability, m, n, k, count, name, monkeypatch):
    """On tensor cores where there are enough tiles: without wgmma by mma.sync, which does not split k."""
    here = Backend("cuda", True, "", "a device", (f"sm_{capability}",))
    monkeypatch.setattr(device, "backend", lambda: here)
    assert dispatch.choose("i8i32", m, n, k, count).name == name


@pytest.mark.parametrize(
    ("m", "n", "k", "products", "way"),
    [
        (1024, 1024, 1024, 1, Way.RUNG),
        (1000, 1000, 1000, 1, Way.RUNG),
        (512, 512, 512, 1, Way.RUNG),
        (64, 64, 4096, 1, Way.RUNG),
        (128, 128, 16384, 1, Way.RUNG),
        (64, 64, 4096, 2, Way.LIBRARY),
        (300, 900, 4096, 1, Way.LIBRARY),
        (64, 4096, 4096, 1, Way.LIBRARY),
        (7823, 2837, 599, 1, Way.LIBRARY),
        (1700, 9036, 8, 1, Way.LIBRARY),
        (3122, 11222, 9114, 1, Way.LIBRARY),
        (6, 10857, 1207, 1, Way.LIBRARY),
        (8192, 16, 8192, 1, Way.RUNG),
        (8192, 16, 8192, 2, Way.LIBRARY),
        (1024, 1024, 1024, 12, Way.RUNG),
        (1024, 1024, 1024, 3, Way.LIBRARY),
        (1024, 1020, 1024, 12, Way.LIBRARY),
        (16, 4096, 4096, 1, Way.RUNG),
        (4, 13380, 6901, 1, Way.LIBRARY),
        (8, 11992, 1536, 1, Way.LIBRARY),
        (16, 4096, 1024, 1, Way.LIBRARY),
        (2000, 4, 500, 1, Way.NARROW),
        (16, 4096, 1024, 2, Way.LIBRARY),
        (1, 1 << 15, 1 << 15, 1, Way.LIBRARY),
    ],
)
def test_best(m, n, k, products, way, monkeypatch):
    """What is estimated to be as fast as cuBLAS: large products, those of a small C with a long k, few rows; batches of
    large products."""
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    assert dispatch.choose("f32", m, n, k, products) == (dispatch.F32_BEST if way is Way.RUNG else dispatch.Choice(way))
    assert dispatch.choose("f64", m, n, k, products).way is not dispatch.Way.RUNG


@pytest.mark.parametrize("types", ["f16", "bf16f32"])
def test_batches_of_16_bits(types, monkeypatch):
    """By a rung where rows start at odd elements and a product is large; the others measured down to 0.21 times
    cuBLAS."""
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    best = dispatch.Choice(Way.RUNG, {"f16": "f16_best", "bf16f32": "bf16_best"}[types])
    for m, n, k in ((134, 389, 3362), (949, 1709, 562), (154, 197, 1025)):
        assert dispatch.choose(types, m, n, k, 2) == best
    for m, n, k in (
        (15, 2, 878),
        (294, 433, 60),
        (27, 310, 1025),
        (310, 27, 1025),
        (512, 512, 512),
        (1072, 254, 326),
        (64, 100, 673),
    ):
        assert dispatch.choose(types, m, n, k, 2).way is Way.LIBRARY
        assert dispatch.choose(types, m, n, k, 2, captured=True) == best
