"""The one place where a rung of the GPU GEMM ladder is registered; compilation, dispatch, tests, benchmark, command
line and tutorial read it.

A rung is a whole GEMM, ``C = alpha A B + beta C``, and each shows one idea more than the one before. ``entry`` is the
template instance in ``gpu_kernels/ladder/<name>.cu``; ``{a}`` and ``{b}`` stand for the layouts of the operands
(gemm.cuh). Plain data: nothing here needs CuPy.
"""

from dataclasses import dataclass

DOCUMENTS = {
    "slides": "slides on row-major SGEMM, kernels sgemm0 to sgemv7",
    "kernel 5": "Kernel 5: Blocktiling and 2D Threadtiling",
    "readme": "README of sgemm_naive_block_tile, sgemm_v1, sgemm_v2 and sgemm_v3",
    "blog": "GEMM optimisation (2023): mysgemm_v1 to mysgemm_v11, the kernels of "
    "yzhaiustc/Optimizing-SGEMM-on-NVIDIA-Turing-GPUs",
}
"""The tellings of the ladder that the rungs are made of. Those of the blog are column-major: the swapped call."""


@dataclass(frozen=True)
class Block:
    """A block of producers.cuh: the part of C that it computes, and how.

    Attributes:
        mr, nr: sums of a thread.
        wm, wn: its eight multiplying warps, down and across.
        lm, ln: their lanes.
        stages: panels in shared memory.
        rate: part of the chain's rate that it multiplies at, measured on an H200 with large products.
        setmaxnreg: its sums need the registers of the producers, which only sm_90 can hand over.
    """

    mr: int
    nr: int
    wm: int
    wn: int
    lm: int
    ln: int
    stages: int
    rate: float
    setmaxnreg: bool = False

    @property
    def bm(self) -> int:
        return self.mr * self.wm * self.lm

    @property
    def bn(self) -> int:
        return self.nr * self.wn * self.ln


# fmt: off
WIDE = Block(8, 16, 4, 2, 4, 8, stages=12, rate=0.86, setmaxnreg=True)
SQUARE = Block(8, 8, 4, 2, 4, 8, stages=12, rate=0.80)
TALL = Block(8, 4, 4, 2, 4, 8, stages=12, rate=0.62)
SMALL = Block(4, 4, 4, 2, 4, 8, stages=12, rate=0.46)
COLUMN = Block(8, 4, 8, 1, 8, 4, stages=8, rate=0.44)
ROW = Block(4, 8, 1, 8, 4, 8, stages=8, rate=0.62)
# fmt: on


@dataclass(frozen=True)
class TensorBlock:
    """A block that multiplies with wgmma what the tensor memory accelerator brings (wgmma_pipeline.cuh).

    Attributes:
        bm, bn: the tile of C that it computes.
        stages: panels in shared memory.
        threads: of the block.
        cluster: blocks that share panels of B, their tiles one below the other.
        persistent: it takes tile after tile.
        rate: operations of 10^12 a second with large products on an H200, measured: for choosing.
        least: multiply-adds of a product from which on it is chosen: a cluster is ahead with large products alone.
    """

    bm: int
    bn: int
    stages: int
    threads: int
    cluster: int = 1
    persistent: bool = False
    rate: float = 0.0
    least: int = 0


@dataclass(frozen=True)
class Rung:
    """One row.

    Attributes:
        number: place in the ladder: ``S0`` to ``S14`` are those of the documents, ``S15`` onwards go beyond them, ``H``
            and ``I`` are halves and integers, ``T`` tensor cores.
        bm, bn: the tile of C that a block computes.
        bk: steps of k that a block brings into shared memory at a time; None where nothing is brought.
        tm, tn: elements of C for ``lanes`` threads together.
        threads: of a block that compute it.
        new: what it adds to the rung before.
        covers: document and kernel, of the kernels that this rung says again.
        inner: every element of C is summed by itself, so that nothing in registers is used twice.
        wide: operands whose memory allows it are read in pieces of 16 bytes.
        wide_c: so are rows of C written.
        stages: panels in dynamic shared memory; 0 where shared memory is static.
        line_pad: bytes after each line of those, where they are of 16-bit elements (half_panel.cuh); None where they
            are of words (feed.cuh).
        blocks: those of producers.cuh that it chooses from, the one of ``tm`` and ``tn`` first.
        tensor_blocks: those of wgmma_pipeline.cuh that it chooses from, the one of ``bm`` and ``bn`` first.
        split_k: tiles may be cut along k (schedule.cuh).
        fused_fixup: where C is small, their parts are added in the same launch.
        loads_by_tma: the tensor memory accelerator brings operands that lie along their rows; others are copied first.
        splits_operands: a launch before it writes the parts of which its operands are sums.
        stores_by_tma: C is stored by the tensor memory accelerator.
        roundings: the error is at most ``(k + roundings) u |A| |B|``.
    """

    number: str
    name: str
    bm: int
    bn: int
    bk: int | None
    tm: int
    tn: int
    threads: int
    new: str
    covers: tuple[tuple[str, str], ...]
    lanes: int = 1
    inner: bool = False
    wide: bool = False
    wide_c: bool = False
    stages: int = 0
    line_pad: int | None = None
    blocks: tuple[Block, ...] = ()
    tensor_blocks: tuple[TensorBlock, ...] = ()
    split_k: bool = False
    fused_fixup: bool = False
    loads_by_tma: bool = False
    splits_operands: bool = False
    stores_by_tma: bool = False
    roundings: int = 3
    types: str = "f32"
    requires: str = "sm_75"
    entry: str = "{name}<{a}, {b}>"

    @property
    def source(self) -> str:
        return f"{self.name}.cu"

    @property
    def macs(self) -> int:
        """Multiply-adds for one k, of the threads that share a tile."""
        return self.tm * self.tn

    @property
    def loads(self) -> int:
        """Elements that they read for those, from shared memory or, without it, from global memory."""
        return 2 * self.macs if self.inner else self.tm + self.tn


# fmt: off
RUNGS = (
    Rung("S0", "naive_uncoalesced", bm=32, bn=32, bk=None, tm=1, tn=1, threads=1024,
         new="one element of C a thread; the lanes of a warp go down the rows, each access a line of its own",
         covers=()),
    Rung("S1", "naive", bm=32, bn=32, bk=None, tm=1, tn=1, threads=1024,
         new="the lanes go along the columns: what a warp accesses together is adjacent",
         covers=(("slides", "sgemm0"), ("blog", "mysgemm_v1"), ("readme", "sgemm_naive_block_tile"))),
    Rung("S2", "smem_conflict", bm=32, bn=32, bk=32, tm=1, tn=1, threads=1024,
         new="tiles of A and B in shared memory, but B stored so that the lanes of a warp collide on its banks",
         covers=(("blog", "mysgemm_v2"), ("blog", "mysgemm_v3"))),
    Rung("S3", "smem", bm=32, bn=32, bk=32, tm=1, tn=1, threads=1024,
         new="the tile of B row by row: shared memory without conflicts",
         covers=(("slides", "sgemm1"), ("blog", "mysgemm_v4"))),
    Rung("S4", "thread2x2_inner", bm=64, bn=64, bk=32, tm=2, tn=2, threads=1024,
         new="four elements of C a thread, one inner product after the other: more work a thread, nothing used twice",
         covers=(("slides", "sgemm2"),), inner=True),
    Rung("S5", "thread4x1", bm=32, bn=32, bk=32, tm=4, tn=1, threads=256,
         new="a 4 x 1 register tile a thread: an element of B in a register is used four times; 16-byte global loads",
         covers=(("blog", "mysgemm_v5"), ("blog", "mysgemm_v6"), ("slides", "sgemm3")), wide=True),
    Rung("S6", "reg2x2_outer", bm=64, bn=64, bk=32, tm=2, tn=2, threads=1024,
         new="thread2x2_inner with its loops turned: an outer product per k, each element in a register used twice",
         covers=(("slides", "sgemm4"),)),
    Rung("S7", "reg_generic", bm=64, bn=64, bk=8, tm=4, tn=4, threads=256,
         new="the outer product with any tile, here 4 x 4 a thread: each element in a register used four times",
         covers=(("kernel 5", "sgemm_blocktiling_2dthreadtiling"), ("readme", "sgemm_v1")),
         entry="{name}<{a}, {b}, {bm}, {bn}, {bk}, {tm}, {tn}>"),
    Rung("S8", "reg4x4", bm=64, bn=64, bk=16, tm=4, tn=4, threads=256,
         new="shared and global memory in pieces of 16 bytes, C too",
         covers=(("blog", "mysgemm_v7"), ("slides", "sgemm5")), wide=True, wide_c=True),
    Rung("S9", "reg4x4_At", bm=64, bn=64, bk=16, tm=4, tn=4, threads=256,
         new="A turned on its way into shared memory: what an outer product needs of it is adjacent too",
         covers=(("slides", "sgemm5, version 6"),), wide=True, wide_c=True),
    Rung("S10", "reg8x8", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="64 sums a thread: each element from shared memory is used eight times, from global memory 128 times",
         covers=(("blog", "mysgemm_v8"),), wide=True, wide_c=True),
    Rung("S11", "reg8x8_quad", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="the 8 x 8 of a thread as four quarters apart: a warp reads runs of shared memory, without conflicts",
         covers=(("readme", "sgemm_v2"),), wide=True, wide_c=True),
    Rung("S12", "warptile", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="a tile of 32 x 64 for each warp: 96 elements a warp for one k instead of 144",
         covers=(("blog", "mysgemm_v9"),), wide=True, wide_c=True),
    Rung("S13", "reg_prefetch", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="the next tile comes into registers while this one is multiplied, and the next fragments likewise",
         covers=(("blog", "mysgemm_v10"),), wide=True, wide_c=True),
    Rung("S14", "smem_dbuf", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="two tiles in shared memory: one is stored while the other is read, with one barrier a tile",
         covers=(("blog", "mysgemm_v11"), ("slides", "sgemv7"), ("readme", "sgemm_v3")), wide=True, wide_c=True),
    Rung("S15", "cpasync", bm=128, bn=256, bk=8, tm=16, tn=8, threads=256, requires="sm_80", stages=6,
         new="cp.async multistage pipeline, which leaves registers for 16 x 8 a thread; grouped raster order of tiles",
         covers=(), wide=True, wide_c=True),
    Rung("S16", "producers", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80", blocks=(WIDE, SQUARE),
         new="warps with roles: four bring panels, eight multiply; blocks stay and take tile after tile",
         covers=(), wide=True, wide_c=True),
    Rung("S17", "streamk", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80", blocks=(WIDE, SQUARE),
         split_k=True,
         new="tiles that do not fill the last round are cut along k, so that all multiprocessors end together",
         covers=(), wide=True, wide_c=True),
    Rung("S18", "f32_best", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80",
         blocks=(WIDE, SQUARE, TALL, SMALL, COLUMN, ROW), split_k=True, fused_fixup=True,
         new="tile and cut from the shape",
         covers=(), wide=True, wide_c=True),
    Rung("S19", "tma", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_90a", blocks=(WIDE,), split_k=True,
         loads_by_tma=True,
         new="panels brought by the tensor memory accelerator, one thread asking for two boxes a panel",
         covers=(), wide_c=True),
    Rung("H1", "h2_gemm", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80", types="f16",
         blocks=(WIDE, SQUARE, SMALL), split_k=True,
         new="half precision without tensor cores: words of two halves along k",
         covers=(), wide=True, wide_c=True),
    Rung("I1", "i8_dp4a_gemm", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256, requires="sm_80", types="i8i32",
         blocks=(SQUARE, SMALL), split_k=True,
         new="bytes without tensor cores: words of four bytes along k, dp4a",
         covers=(), wide=True, wide_c=True),
    Rung("T1", "wmma_naive", bm=32, bn=32, bk=None, tm=16, tn=16, lanes=32, threads=128, types="f16f32",
         new="tensor cores: a warp multiplies 16 x 16 by 16 x 16 at once, fragments from global memory",
         covers=(), wide_c=True),
    Rung("T2", "wmma_smem", bm=128, bn=256, bk=64, tm=64, tn=64, lanes=32, threads=256, requires="sm_80",
         types="f16f32", stages=3, line_pad=16,
         new="sixteen fragments of sums a warp, panels in shared memory that asynchronous copies bring",
         covers=(), wide=True, wide_c=True),
    Rung("T3", "mma_sync", bm=128, bn=256, bk=64, tm=64, tn=64, lanes=32, threads=256, requires="sm_80",
         types="f16f32", stages=3, line_pad=0,
         new="the instruction itself: fragments at addresses constants apart, lines swizzled instead of padded",
         covers=(), wide=True, wide_c=True),
    Rung("T4", "wgmma", bm=128, bn=128, bk=64, tm=64, tn=128, lanes=128, threads=128, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 128, stages=1, threads=128),),
         new="a warpgroup multiplies tiles straight from shared memory, where one thread has boxes brought",
         covers=()),
    Rung("T5", "wgmma_persistent", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 256, stages=4, threads=384, persistent=True),),
         new="warp specialisation: a producer warpgroup and two consumer warpgroups of 64 x 256 each, persistent blocks",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}>"),
    Rung("T6", "wgmma_cluster", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 256, stages=4, threads=384, cluster=2, persistent=True),),
         new="clusters of two blocks: each brings half of B for both",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}>"),
    Rung("T7", "wgmma_store", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 256, stages=4, threads=384, cluster=2, persistent=True),),
         stores_by_tma=True,
         new="tiles go out by way of shared memory, whole lines at a time, while the next part is written there",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}>"),
    Rung("T8", "bf16_best", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32",
         tensor_blocks=(TensorBlock(128, 256, stages=4, threads=384, cluster=2, persistent=True, rate=665,
                                    least=1 << 38),
                        TensorBlock(128, 256, stages=4, threads=384, persistent=True, rate=650),
                        TensorBlock(128, 128, stages=6, threads=384, persistent=True, rate=480),
                        TensorBlock(128, 64, stages=8, threads=384, persistent=True, rate=345)),
         stores_by_tma=True,
         new="tile and cluster from the shape",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}, {cluster}>"),
    Rung("T9", "tf32x3", bm=128, bn=128, bk=32, tm=64, tn=128, lanes=128, threads=256, requires="sm_90a",
         tensor_blocks=(TensorBlock(128, 128, stages=3, threads=384, cluster=2, persistent=True, rate=110),
                        TensorBlock(128, 128, stages=3, threads=384, persistent=True, rate=100)),
         splits_operands=True, stores_by_tma=True,
         roundings=15,
         new="floats as sums of two numbers that tensor cores take: three products, and an error like that of float",
         covers=(), entry="{name}<{bn}, {stages}, {cluster}>"),
)
# fmt: on
BY_NAME = {row.name: row for row in RUNGS}

LAYOUTS = ("K_MAJOR", "MN_MAJOR", "K_MAJOR_VEC4", "MN_MAJOR_VEC4")


def layouts(row: Rung) -> tuple[str, ...]:
    """The layouts that a rung reads an operand in."""
    if row.loads_by_tma:
        return ("MN_MAJOR",)
    return LAYOUTS if row.wide else LAYOUTS[:2]


def entry(row: Rung, a: str, b: str, block: Block | TensorBlock | None = None, fused_fixup: bool = False) -> str:
    """The template instance of a rung for operands of these layouts, and for a block that it chooses from; with
    ``fused_fixup`` the one whose blocks add the partial tiles themselves."""
    if row.tensor_blocks:
        x = block or row.tensor_blocks[0]
        return row.entry.format(name=row.name, a=a, b=b, bn=x.bn, stages=x.stages, cluster=x.cluster)
    if row.blocks:
        x = block or row.blocks[0]
        name = f"{row.name}_fused_fixup" if fused_fixup else row.name
        return f"{name}<{a}, {b}, {x.mr}, {x.nr}, {x.wm}, {x.wn}, {x.lm}, {x.ln}, {x.stages}>"
    return row.entry.format(name=row.name, a=a, b=b, bm=row.bm, bn=row.bn, bk=row.bk, tm=row.tm, tn=row.tn)


def fixup_entry(row: Rung, block: Block) -> str:
    """The template instance that adds the parts of tiles that were cut."""
    return f"{row.name}_fixup<{block.bm}, {block.bn}>"


def split_entry(row: Rung, layout: str) -> str:
    """The template instance that writes the parts of an operand."""
    return f"{row.name}_split<{layout}>"


def dynamic_shared_bytes(row: Rung, a: str, b: str, block: Block | TensorBlock | None = None) -> int:
    """Shared memory that an instance is launched with: panels. 0: it is all static."""
    if row.tensor_blocks:
        x = block or row.tensor_blocks[0]  # from a multiple of 1 KiB on
        return (
            1024
            + x.stages * row.bk * (x.bm + x.bn) * (8 if row.splits_operands else 2)
            + (32 << 10) * row.stores_by_tma
        )
    if not row.stages and not row.blocks:
        return 0
    if row.line_pad is not None:
        panels = ((row.bm, a), (row.bn, b))
        lines = ((r, row.bk) if layout.startswith("K_MAJOR") else (row.bk, r) for r, layout in panels)
        return row.stages * sum(count * (2 * length + row.line_pad) for count, length in lines)
    x = block or (row.blocks[0] if row.blocks else row)
    rows = x.bm + x.bn + sum(4 for layout in (a, b) if layout.startswith("K_MAJOR"))
    return x.stages * 8 * rows * 4  # of eight words of k


def row_major(row: Rung) -> tuple[str, str]:
    """The layouts of A and B of a row-major call, aligned where the rung makes use of it."""
    if row.loads_by_tma:
        return "MN_MAJOR", "MN_MAJOR"
    return ("K_MAJOR_VEC4", "MN_MAJOR_VEC4") if row.wide else ("K_MAJOR", "MN_MAJOR")
