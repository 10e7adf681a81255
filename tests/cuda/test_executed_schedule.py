"""The schedules of gpu_kernels/ladder executed on the host, for what the host code chooses: every tile of C is computed
once, and every panel of k of it. Needs neither a GPU nor NVRTC."""

import itertools
import re
from collections import Counter
from dataclasses import replace

import host_kernels
import numpy as np
import pytest
from pysimd.gpu_kernels import ladder_table

from pysimd import sources
from pysimd.backends.cuda.ladder import schedule as gemm_blocks
from pysimd.backends.cuda.ladder import tensor
from pysimd.backends.gpu.gemm_launches import FIELDS

pytestmark = pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")

LISTED = 9
"""Words of a piece of work: block, tile, first panel, panels; product, row, column; slot in the workspace, or part of a
tile and of how many (with 0 where the tile is whole)."""

KERNELS = """
struct Listing { i64 *rows, most; };
template <int BM, int BN, class Scheduler, class Part>
void list(const Gemm& p, const Schedule& s, const Listing& to, Scheduler scheduler, const Part& part) {
    WorkTile work;
    i64* row = to.rows + blockIdx.x * to.most * 9;
    for (i64 i = 0; scheduler.next(s, work); ++i, row += 9) {
        if (i == to.most) return;
        TileCoordinates t = tile_coordinates<BM, BN>(p, s, work.tile);
        i64 found[] = {blockIdx.x, work.tile, work.first, work.count, t.product, t.row, t.column, 0, 0};
        part(work, found), memcpy(row, found, sizeof found);
    }
}
template <int BM, int BN>
void blocks(const Gemm p, const Schedule s, const Listing to) {
    list<BM, BN>(p, s, to, TileScheduler(s), [&](WorkTile work, i64* found) {
        if (work.count == s.panels) return;
        int first, count;
        s.partial_tiles(work.tile, first, count);
        found[7] = s.slot(blockIdx.x, work.tile);
        found[8] = first <= blockIdx.x && blockIdx.x < first + count ? count : -1;
    });
}
template <int BM, int BN, int M, int K>
void clusters(const Gemm p, const Schedule s, const Listing to) {
    ClusterScheduler<Cluster<M, K>> scheduler(s);
    list<BM * M, BN>(p, s, to, scheduler, [&](WorkTile, i64* found) {
        found[5] = found[5] * M + blockIdx.x % M, found[7] = scheduler.part.index, found[8] = scheduler.part.count;
    });
}
"""


def with_clusters(text):
    """The text of tile_scheduler.cuh, and of the scheduler of clusters what needs no instruction of theirs."""
    structs = []
    for file, struct in (("split_tile", "TilePart"), ("tma_pipeline", "Cluster"), ("wgmma_gemm", "ClusterScheduler")):
        header = sources.read(f"gpu_kernels/ladder/{file}.cuh")
        structs.append(
            re.search(rf"^(?:template <.*>\n)?struct {struct} \{{.*?^\}};\n", header, re.MULTILINE | re.DOTALL)[0]
        )
    return text + "".join(structs) + KERNELS


class Words:
    def __init__(self, words):
        self.words = np.ascontiguousarray(words).view(np.int64)
        self.ptr = self.words.ctypes.data


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """A function that runs an entry over a grid and gives its pieces of work."""
    entries = _block_entries() + _cluster_entries()
    library = host_kernels.Library(
        "ladder/tile_scheduler.cuh", entries, tmp_path_factory.mktemp("schedules"), with_clusters
    )

    def run(entry, grid, m, n, k, schedule):
        most = 4096 // grid + 300
        rows = np.full((grid * most, LISTED), -1, np.int64)
        gemm = np.zeros(len(FIELDS), np.int64)
        for name, value in zip("mnk", (m, n, k), strict=True):
            gemm[FIELDS.index(name)] = value
        library.function(entry)(
            (grid,), (1,), (Words(gemm), Words(schedule), Words(np.array([rows.ctypes.data, most])))
        )
        return rows[rows[:, 0] >= 0]

    return run


BLOCK_ROWS = [row for row in ladder_table.RUNGS if row.split_k and row.blocks]
CLUSTER_ROWS = [
    row for row in ladder_table.RUNGS if any(block.persistent or block.split > 1 for block in row.tensor_blocks)
]
SHAPES = [(1, 1, 1), (300, 70, 67), (64, 64, 4096), (1000, 3000, 300), (129, 4097, 2500), (5000, 260, 0)]
GROUPED = {"f32": 1, "f16": 2, "i8i32": 4}


def _block_entries():
    return sorted({f"blocks<{block.bm}, {block.bn}>" for row in BLOCK_ROWS for block in row.blocks})


def _cluster_entry(block):
    return f"clusters<{block.bm}, {block.bn}, {block.cluster}, {block.split}>"


def _cluster_entries():
    return sorted({_cluster_entry(block) for row in CLUSTER_ROWS for block in row.tensor_blocks + row.skinny_blocks})


def _check_tiles(rows, products, tile_rows, tile_columns, panels):
    """Each panel of each tile is in exactly one piece of work."""
    pieces = {}
    for _, _, first, count, *tile, _, _ in rows.tolist():
        pieces.setdefault(tuple(tile), []).append((first, first + count))
    assert set(pieces) == set(itertools.product(range(products), range(tile_rows), range(tile_columns)))
    for found in pieces.values():
        ends = sorted(found)
        assert [first for first, _ in ends] == [0, *(end for _, end in ends[:-1])]
        assert ends[-1][1] == panels


@pytest.mark.parametrize("row", BLOCK_ROWS, ids=lambda row: row.name)
def test_blocks(row, listed):
    """A block leaves two partial tiles at most, each in a slot of its own."""
    split = 0
    for (m, n, k), products, processors in itertools.product(SHAPES, (1, 3), (3, 132)):
        choice = gemm_blocks.choose(row, row.blocks, products, m, n, k, GROUPED[row.types], processors)
        block, schedule = choice.block, gemm_blocks.schedule(row.types, choice)
        rows = listed(f"blocks<{block.bm}, {block.bn}>", choice.grid, m, n, k, schedule)
        _check_tiles(rows, products, -(-m // block.bm), -(-n // block.bn), choice.panels)
        partial = rows[rows[:, 3] < choice.panels]
        assert len(set(partial[:, 7].tolist())) == len(partial)
        assert all(0 <= slot < choice.split_tiles + choice.grid for slot in partial[:, 7].tolist())
        assert max(Counter(partial[:, 0].tolist()).values(), default=0) <= 2
        split += len(partial)
        for tile, count in Counter(partial[:, 1].tolist()).items():
            assert set(partial[partial[:, 1] == tile][:, 8].tolist()) == {count}
    assert split


@pytest.mark.parametrize("row", CLUSTER_ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("processors", [20, 132])
def test_clusters(row, processors, listed):
    """Every block that a rung may choose, with as many parts as its tiles are split in."""
    for block in row.tensor_blocks:
        alone = replace(row, tensor_blocks=(replace(block, least=0),), skinny_blocks=())
        for (m, n, k), products in itertools.product(SHAPES, (1, 3)):
            if k == 0:
                continue
            try:
                choice = tensor.choose(alone, m, n, k, products, processors)
            except ValueError:  # too few panels for the parts, or a batch
                assert block.split > 1
                continue
            schedule = gemm_blocks.fields(
                row.types, choice.tiles, choice.panels, 0, choice.grid, tensor.GROUP // block.cluster
            )
            rows = listed(_cluster_entry(block), choice.grid, m, n, k, schedule)
            assert choice.grid % (block.cluster * block.split) == 0
            tall = -(-m // (block.bm * block.cluster)) * block.cluster
            _check_tiles(rows, products, tall, -(-n // block.bn), choice.panels)
            if choice.parts > 1:
                assert set(rows[:, 8].tolist()) == {choice.parts}
                assert Counter(rows[:, 7].tolist()) == dict.fromkeys(range(choice.parts), choice.tiles)


@pytest.mark.parametrize("row", [row for row in CLUSTER_ROWS if row.skinny_blocks], ids=lambda row: row.name)
@pytest.mark.parametrize("processors", [20, 132])
def test_skinny_blocks(row, processors, listed):
    """Each of them computes one part of a tile, and all are chosen by some shape."""
    alone, chosen = replace(row, tensor_blocks=()), set()
    longs, layouts = (5, 200, 600, 1400, 2000, 3000, 5000), ("K_MAJOR", "MN_MAJOR")
    for short, long, k, layout in itertools.product((1, 16, 17, 64), longs, (1, 300, 4100), layouts):
        for m, n in ((short, long), (long, short)):
            choice = tensor.choose(alone, m, n, k, 1, processors, (layout, layout))
            block = choice.block
            chosen.add(block)
            schedule = gemm_blocks.fields(row.types, choice.tiles, choice.panels, 0, choice.grid, tensor.GROUP)
            rows = listed(_cluster_entry(block), choice.grid, m, n, k, schedule)
            assert Counter(rows[:, 0].tolist()) == dict.fromkeys(range(choice.grid), 1)
            _check_tiles(rows, 1, -(-m // block.bm), -(-n // block.bn), choice.panels)
            assert choice.parts == block.split <= choice.panels
            assert choice.parts == 1 or choice.grid <= processors // 2
    assert chosen == set(row.skinny_blocks)
