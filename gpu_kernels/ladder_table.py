"""The one place where a rung of the GPU GEMM ladder is registered; compilation, dispatch, tests, benchmark, command
line and tutorial read it.

A rung is a whole GEMM, ``C = alpha A B + beta C``, and each shows one idea more than the one before. ``entry`` is the
template instance in ``gpu_kernels/ladder/<name>.cu``; ``{a}`` and ``{b}`` stand for the layouts of the operands
(gemm.cuh). Plain data: nothing here needs CuPy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

DOCUMENTS = {
    "slides": "slides on row-major SGEMM, kernels sgemm0 to sgemv7",
    "kernel 5": "Kernel 5: Blocktiling and 2D Threadtiling",
    "readme": "README of sgemm_naive_block_tile, sgemm_v1, sgemm_v2 and sgemm_v3",
    "blog": "GEMM optimisation (2023): mysgemm_v1 to mysgemm_v11, the kernels of "
    "yzhaiustc/Optimizing-SGEMM-on-NVIDIA-Turing-GPUs",
}
"""The documents whose kernels the first rungs cover. Those of the blog are column-major: operands swapped."""


@dataclass(frozen=True)
class Block:
    """A block tile of warp_specialized.cuh.

    Attributes:
        mr, nr: accumulators of a consumer thread.
        warps_m, warps_n: the eight consumer warps, down and across the tile.
        lanes_m, lanes_n: the lanes of a warp, down and across its warp tile.
        stages: panels in shared memory.
        rate: words that it multiplies with large products on an H200, as a part of the peak of f32; measured.
        setmaxnreg: the accumulators need registers that the producers release, which only sm_90a can do.
    """

    mr: int
    nr: int
    warps_m: int
    warps_n: int
    lanes_m: int
    lanes_n: int
    stages: int
    rate: float
    setmaxnreg: bool = False

    @property
    def bm(self) -> int:
        return self.mr * self.warps_m * self.lanes_m

    @property
    def bn(self) -> int:
        return self.nr * self.warps_n * self.lanes_n


# fmt: off
WIDE = Block(8, 16, 4, 2, 4, 8, stages=12, rate=0.86, setmaxnreg=True)
SQUARE = Block(8, 8, 4, 2, 4, 8, stages=12, rate=0.80)
TALL = Block(8, 4, 4, 2, 4, 8, stages=12, rate=0.62)
SMALL = Block(4, 4, 4, 2, 4, 8, stages=12, rate=0.46)
COLUMN = Block(8, 4, 8, 1, 8, 4, stages=8, rate=0.44)
ROW = Block(4, 8, 1, 8, 4, 8, stages=8, rate=0.62)
# fmt: on


_INT8_RATES = {SQUARE: (0.51, 0.51, 0.12), SMALL: (0.42, 0.21, 0.20)}
"""The same for int8: with K-major operands, with one that the producers transpose, and with operands of which none is
loaded 16 bytes at a time. (A tile of 64 x 64 takes half as long to load as one of 128 x 128, with a quarter of the
multiply-adds.)"""


@dataclass(frozen=True)
class TensorBlock:
    """A block that multiplies with wgmma what TMA loads (wgmma_gemm.cuh).

    Attributes:
        bm, bn: its tile of C.
        stages: panels in shared memory.
        threads: of the block.
        cluster: blocks of a cluster, which share panels of B: their tiles are one below the other.
        split: blocks of a cluster that a tile is split among, along k.
        skinny: one side of the tile is short (skinny_gemm.cuh): so many blocks are resident on a multiprocessor.
        persistent: the grid has as many blocks as the device has multiprocessors, and a block computes several tiles.
        rate: TFLOP/s with large products on an H200, measured; by it the block is chosen.
        least: multiply-adds of a product from which on it is chosen: a cluster is faster for large products only.
    """

    bm: int
    bn: int
    stages: int
    threads: int
    cluster: int = 1
    split: int = 1
    skinny: int = 0
    persistent: bool = False
    rate: float = 0.0
    least: int = 0

    @property
    def swapped(self) -> bool:
        """Whether the operands of a skinny block are: its tile of C has fewer rows than columns."""
        return bool(self.skinny) and self.bm < self.bn


@dataclass(frozen=True)
class Rung:
    """One row.

    Attributes:
        number: place in the ladder: ``S0`` to ``S14`` are those of the documents, ``S15`` onwards go beyond them, ``H``
            and ``I`` are f16 and int8 without tensor cores, ``T`` is tensor cores.
        bm, bn: block tile: the tile of C that a thread block computes.
        bk: steps of k of a panel in shared memory; None where no panel is in shared memory.
        tm, tn: elements of C for ``lanes`` threads together.
        threads: of a block, without producers.
        new: what it adds to the rung before.
        covers: (document, kernel) of the kernels that this rung covers.
        inner: every element of C is an inner product of its own: no element in a register is used twice.
        wide: aligned operands are read 16 bytes at a time.
        wide_c: so are rows of C written.
        stages: panels in dynamic shared memory; 0 where shared memory is static.
        line_pad: bytes of padding of a line in shared memory (f16_panel.cuh); None for packed words
            (panel_loader.cuh).
        blocks: the block tiles of warp_specialized.cuh that it chooses from, first that of ``tm`` and ``tn``.
        tensor_blocks: the blocks of wgmma_gemm.cuh that it chooses from, first that of ``bm`` and ``bn``.
        skinny_blocks: those of skinny_gemm.cuh.
        split_k: tiles may be split along k (tile_scheduler.cuh).
        fused_fixup: where C is small, the same launch adds the partial tiles.
        loads_by_tma: panels are loaded by TMA, MN-major only: a K-major operand is transposed by a copy first.
        splits_operands: a first launch writes the two parts of each operand.
        packs_operands: aligned K-major operands are multiplied; a first launch packs others.
        pads_operands: a first launch copies operands whose rows TMA cannot read, and pads their rows.
        remainders: operands are scaled to integers, and these multiplied by int8 products modulo so many coprime
            numbers (remainders.cuh).
        narrow: type of result.cuh by which C is stored where it has the operands' 16-bit type; empty if it cannot.
        stores_by_tma: C is stored by TMA.
        roundings: the error is at most ``(k + roundings) u |A| |B|``; None where the bound is one on norms of rows.
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
    skinny_blocks: tuple[TensorBlock, ...] = ()
    split_k: bool = False
    fused_fixup: bool = False
    loads_by_tma: bool = False
    splits_operands: bool = False
    packs_operands: bool = False
    pads_operands: bool = False
    remainders: int = 0
    narrow: str = ""
    stores_by_tma: bool = False
    roundings: int | None = 3
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
    def panel_bytes(self) -> int:
        """Of one k of one row of a panel: both parts of split operands."""
        return 8 if self.splits_operands else 1 if self.remainders or self.types == "i8i32" else 2

    @property
    def copies_k_major(self) -> bool:
        """Whether it multiplies K-major operands only: launches before write parts, remainders or copies."""
        return bool(self.splits_operands or self.packs_operands or self.remainders)

    @property
    def loads(self) -> int:
        """Elements that they load for those, from shared memory or, without it, from global memory."""
        return 2 * self.macs if self.inner else self.tm + self.tn


# fmt: off
_INT8 = (
    TensorBlock(128, 256, stages=4, threads=384, cluster=2, persistent=True, rate=1840, least=1 << 35),
    TensorBlock(128, 256, stages=4, threads=384, persistent=True, rate=1840),
    TensorBlock(128, 128, stages=6, threads=384, persistent=True, rate=1740),
    TensorBlock(128, 64, stages=8, threads=384, persistent=True, rate=1840),
)
_SIXTEEN_BIT = (
    TensorBlock(128, 256, stages=4, threads=384, cluster=2, persistent=True, rate=920),
    TensorBlock(128, 256, stages=4, threads=384, persistent=True, rate=920),
    TensorBlock(128, 192, stages=4, threads=384, persistent=True, rate=890),
    TensorBlock(128, 192, stages=4, threads=384, cluster=2, persistent=True, rate=880, least=1 << 30),
    TensorBlock(128, 128, stages=6, threads=384, persistent=True, rate=870),
    TensorBlock(128, 64, stages=8, threads=384, persistent=True, rate=920),
    TensorBlock(128, 128, stages=5, threads=384, split=4, persistent=True, rate=870),
    *(TensorBlock(128, 64, stages=8, threads=384, split=split, persistent=True, rate=920) for split in (8, 4, 2)),
)
_SKINNY = tuple(
    TensorBlock(*sides, stages=stages, threads=288, split=split, skinny=resident)
    for short, split, resident, stages in (
        (64, 1, 1, 9), (64, 2, 1, 9), (64, 4, 2, 4), (64, 8, 2, 4),
        (16, 1, 1, 12), (16, 2, 1, 12), (16, 4, 2, 6), (16, 8, 2, 6),
    )
    for sides in ((short, 128), (128, short))
)
RUNGS = (
    Rung("S0", "naive_uncoalesced", bm=32, bn=32, bk=None, tm=1, tn=1, threads=1024,
         new="one thread per element of C; the lanes of a warp access different rows: uncoalesced",
         covers=()),
    Rung("S1", "naive", bm=32, bn=32, bk=None, tm=1, tn=1, threads=1024,
         new="coalesced access: the lanes of a warp access adjacent columns",
         covers=(("slides", "sgemm0"), ("blog", "mysgemm_v1"), ("readme", "sgemm_naive_block_tile"))),
    Rung("S2", "smem_conflict", bm=32, bn=32, bk=32, tm=1, tn=1, threads=1024,
         new="block tiles of A and B in shared memory, but loads of B have bank conflicts",
         covers=(("blog", "mysgemm_v2"), ("blog", "mysgemm_v3"))),
    Rung("S3", "smem", bm=32, bn=32, bk=32, tm=1, tn=1, threads=1024,
         new="B stored row by row: shared memory without bank conflicts",
         covers=(("slides", "sgemm1"), ("blog", "mysgemm_v4"))),
    Rung("S4", "thread2x2_inner", bm=64, bn=64, bk=32, tm=2, tn=2, threads=1024,
         new="2 x 2 elements of C a thread, one inner product after the other: no reuse in registers",
         covers=(("slides", "sgemm2"),), inner=True),
    Rung("S5", "thread4x1", bm=32, bn=32, bk=32, tm=4, tn=1, threads=256,
         new="4 x 1 register tile: an element of B in a register is used four times; 16-byte (float4) global loads",
         covers=(("blog", "mysgemm_v5"), ("blog", "mysgemm_v6"), ("slides", "sgemm3")), wide=True),
    Rung("S6", "reg2x2_outer", bm=64, bn=64, bk=32, tm=2, tn=2, threads=1024,
         new="loop interchange: an outer product per k, each element in a register used twice",
         covers=(("slides", "sgemm4"),)),
    Rung("S7", "reg_generic", bm=64, bn=64, bk=8, tm=4, tn=4, threads=256,
         new="outer product with template tile sizes, here 4 x 4 a thread: each element in a register used four times",
         covers=(("kernel 5", "sgemm_blocktiling_2dthreadtiling"), ("readme", "sgemm_v1")),
         entry="{name}<{a}, {b}, {bm}, {bn}, {bk}, {tm}, {tn}>"),
    Rung("S8", "reg4x4", bm=64, bn=64, bk=16, tm=4, tn=4, threads=256,
         new="16-byte (float4) loads from shared memory and 16-byte stores of C",
         covers=(("blog", "mysgemm_v7"), ("slides", "sgemm5")), wide=True, wide_c=True),
    Rung("S9", "reg4x4_At", bm=64, bn=64, bk=16, tm=4, tn=4, threads=256,
         new="A transposed while stored to shared memory: both fragments are 16-byte loads",
         covers=(("slides", "sgemm5, version 6"),), wide=True, wide_c=True),
    Rung("S10", "reg8x8", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="8 x 8 register tile, 64 accumulators a thread, in a block tile of 128 x 128",
         covers=(("blog", "mysgemm_v8"),), wide=True, wide_c=True),
    Rung("S11", "reg8x8_quad", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="the 8 x 8 of a thread as four 4 x 4 quadrants: no bank conflicts",
         covers=(("readme", "sgemm_v2"),), wide=True, wide_c=True),
    Rung("S12", "warptile", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="warp tiles of 32 x 64: a warp loads 96 different elements per k instead of 144",
         covers=(("blog", "mysgemm_v9"),), wide=True, wide_c=True),
    Rung("S13", "reg_prefetch", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="register prefetch: the next panel, and the next fragments, are loaded before this one is multiplied",
         covers=(("blog", "mysgemm_v10"),), wide=True, wide_c=True),
    Rung("S14", "smem_dbuf", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256,
         new="double-buffered shared memory: one barrier a panel instead of two",
         covers=(("blog", "mysgemm_v11"), ("slides", "sgemv7"), ("readme", "sgemm_v3")), wide=True, wide_c=True),
    Rung("S15", "cpasync", bm=128, bn=256, bk=8, tm=16, tn=8, threads=256, requires="sm_80", stages=6,
         new="cp.async multistage pipeline: copies use no registers, so 16 x 8 a thread fits; grouped raster order",
         covers=(), wide=True, wide_c=True),
    Rung("S16", "producers", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80", blocks=(WIDE, SQUARE),
         new="warp specialisation: 4 producer and 8 consumer warps, setmaxnreg; persistent blocks",
         covers=(), wide=True, wide_c=True),
    Rung("S17", "streamk", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80", blocks=(WIDE, SQUARE),
         split_k=True,
         new="stream-K: the tiles of the last wave are split along k; a fix-up kernel adds the partial tiles",
         covers=(), wide=True, wide_c=True),
    Rung("S18", "f32_best", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80",
         blocks=(WIDE, SQUARE, TALL, SMALL, COLUMN, ROW), split_k=True, fused_fixup=True,
         new="block tile and split along k chosen from the shape; fused fix-up where C is small",
         covers=(), wide=True, wide_c=True),
    Rung("S19", "tma", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_90a", blocks=(WIDE,), split_k=True,
         loads_by_tma=True,
         new="TMA loads: one producer thread starts two box copies a panel",
         covers=(), wide_c=True),
    Rung("H1", "h2_gemm", bm=128, bn=256, bk=8, tm=8, tn=16, threads=256, requires="sm_80", types="f16",
         blocks=(replace(WIDE, rate=0.80), replace(SQUARE, rate=0.66), replace(SMALL, rate=0.30)), split_k=True,
         new="f16 without tensor cores: HFMA2 on pairs along k",
         covers=(), wide=True, wide_c=True),
    Rung("I1", "i8_dp4a_gemm", bm=128, bn=128, bk=8, tm=8, tn=8, threads=256, requires="sm_80", types="i8i32",
         blocks=(SQUARE, SMALL), split_k=True,
         new="int8 without tensor cores: dp4a on groups of four along k",
         covers=(), wide=True, wide_c=True),
    Rung("T1", "wmma_naive", bm=32, bn=32, bk=None, tm=16, tn=16, lanes=32, threads=128, types="f16f32",
         new="tensor cores with WMMA: 16 x 16 of C a warp, fragments from global memory",
         covers=(), wide_c=True),
    Rung("T2", "wmma_smem", bm=128, bn=256, bk=64, tm=64, tn=64, lanes=32, threads=256, requires="sm_80",
         types="f16f32", stages=3, line_pad=16,
         new="4 x 4 accumulator fragments a warp, padded panels in shared memory, cp.async multistage pipeline",
         covers=(), wide=True, wide_c=True),
    Rung("T3", "mma_sync", bm=128, bn=256, bk=64, tm=64, tn=64, lanes=32, threads=256, requires="sm_80",
         types="f16f32", stages=3, line_pad=0,
         new="mma.sync and ldmatrix in PTX, swizzled shared memory instead of padding",
         covers=(), wide=True, wide_c=True),
    Rung("T4", "wgmma", bm=128, bn=128, bk=64, tm=64, tn=128, lanes=128, threads=128, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 128, stages=1, threads=128),),
         new="wgmma: a warpgroup multiplies tiles in shared memory that TMA loads",
         covers=()),
    Rung("T5", "wgmma_persistent", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 256, stages=4, threads=384, persistent=True),),
         new="warp specialisation: one producer and two consumer warpgroups of 64 x 256 each; persistent blocks",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}>"),
    Rung("T6", "wgmma_cluster", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 256, stages=4, threads=384, cluster=2, persistent=True),),
         new="2-CTA clusters: each block loads half of B for both, with TMA multicast",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}>"),
    Rung("T7", "wgmma_store", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32", tensor_blocks=(TensorBlock(128, 256, stages=4, threads=384, cluster=2, persistent=True),),
         stores_by_tma=True,
         new="epilogue through shared memory, with TMA stores",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}>"),
    Rung("T8", "bf16_best", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="bf16f32",
         tensor_blocks=_SIXTEEN_BIT, skinny_blocks=_SKINNY,
         split_k=True, pads_operands=True, narrow="ToBf16", stores_by_tma=True,
         new="block tile and split along k chosen from the shape; C of f32 or bf16",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}, {cluster}, {split}, {result}>"),
    Rung("T9", "tf32x3", bm=128, bn=128, bk=32, tm=64, tn=128, lanes=128, threads=256, requires="sm_90a",
         tensor_blocks=(TensorBlock(128, 128, stages=3, threads=384, cluster=2, persistent=True, rate=110),
                        TensorBlock(128, 128, stages=3, threads=384, persistent=True, rate=100)),
         splits_operands=True, stores_by_tma=True,
         roundings=15,
         new="3xTF32: f32 as the sum of two TF32 numbers, three tensor-core products, with an error like that of f32",
         covers=(), entry="{name}<{bn}, {stages}, {cluster}>"),
    Rung("T10", "i8_wgmma", bm=128, bn=256, bk=128, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="i8i32",
         tensor_blocks=(*_INT8,
                        *(TensorBlock(128, 64, stages=8, threads=384, split=split, persistent=True, rate=1840)
                          for split in (8, 4))),
         split_k=True, packs_operands=True, stores_by_tma=True,
         new="int8: 32 k a wgmma; operands that are not K-major are packed first",
         covers=(), entry="{name}<{bn}, {stages}, {cluster}, {split}>"),
    Rung("T11", "f16_best", bm=128, bn=256, bk=64, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="f16f32",
         tensor_blocks=_SIXTEEN_BIT, skinny_blocks=_SKINNY,
         split_k=True, pads_operands=True, narrow="ToF16", stores_by_tma=True,
         new="f16 as bf16_best; C of f32 or f16",
         covers=(), entry="{name}<{a}, {b}, {bn}, {stages}, {cluster}, {split}, {result}>"),
    Rung("T12", "i8_mma_sync", bm=128, bn=256, bk=64, tm=64, tn=64, lanes=32, threads=256, requires="sm_80",
         types="i8i32", stages=4, line_pad=0, packs_operands=True,
         new="int8 by mma.sync, for devices without wgmma: 32 k an instruction",
         covers=(), wide_c=True, entry="{name}<{bk}, {stages}>"),
    Rung("T13", "ozaki2_f32", bm=128, bn=256, bk=128, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="f32", tensor_blocks=_INT8, remainders=7, stores_by_tma=True, roundings=None,
         new="Ozaki scheme II: f32 by 7 int8 products and the Chinese remainder theorem",
         covers=(), entry="{name}<{bn}, {stages}, {cluster}, {split}>"),
    Rung("T14", "ozaki2_f64", bm=128, bn=256, bk=128, tm=64, tn=256, lanes=128, threads=256, requires="sm_90a",
         types="f64", tensor_blocks=_INT8, remainders=15, stores_by_tma=True, roundings=None,
         new="f64 by 15 int8 products and the Chinese remainder theorem",
         covers=(), entry="{name}<{bn}, {stages}, {cluster}, {split}>"),
)
# fmt: on
BY_NAME = {row.name: row for row in RUNGS}

PORTABLE = tuple(row for row in RUNGS if row.requires == "sm_75" and row.lanes == 1)
"""Those without instructions that only NVIDIA has: AMD's compilers take the same files after hip_kernels/amd.h."""

LAYOUTS = ("K_MAJOR", "MN_MAJOR", "K_MAJOR_VEC4", "MN_MAJOR_VEC4")


def layouts(row: Rung) -> tuple[str, ...]:
    """The layouts that a rung reads an operand in."""
    if row.loads_by_tma:
        return ("MN_MAJOR",)
    return LAYOUTS if row.wide else LAYOUTS[:2]


def rates(row: Rung, blocks: Sequence[Block], a: str, b: str) -> list[float]:
    """The rates of blocks of a rung. Those of int8 depend on the layouts of the operands: integers have the same bits
    whatever the choice."""
    if row.types != "i8i32":
        return [block.rate for block in blocks]
    vectors = any(layout.endswith("VEC4") for layout in (a, b))
    transposed = any(layout.startswith("MN_MAJOR") for layout in (a, b))
    return [_INT8_RATES[block][1 if transposed and vectors else 0 if vectors else 2] for block in blocks]


def entry(
    row: Rung,
    a: str,
    b: str,
    block: Block | TensorBlock | None = None,
    fused_fixup: bool = False,
    narrow: bool = False,
) -> str:
    """The template instance of a rung for operands of these layouts, and for a block that it chooses from; with
    ``fused_fixup`` the one that adds the partial tiles in the same launch, with ``narrow`` that for a 16-bit C."""
    if row.tensor_blocks:
        x = block or row.tensor_blocks[0]
        result = row.narrow if narrow else "ToF32"
        if x.skinny:
            shape = f"{min(x.bm, x.bn)}, {x.stages}, {x.split}, {x.skinny}, {str(x.swapped).lower()}"
            return f"{row.name}_skinny<{a}, {b}, {shape}, {result}>"
        shape = {"bn": x.bn, "stages": x.stages, "cluster": x.cluster, "split": x.split}
        return row.entry.format(name=row.name, a=a, b=b, result=result, **shape)
    if row.blocks:
        x = block or row.blocks[0]
        name = f"{row.name}_fused_fixup" if fused_fixup else row.name
        return f"{name}<{a}, {b}, {x.mr}, {x.nr}, {x.warps_m}, {x.warps_n}, {x.lanes_m}, {x.lanes_n}, {x.stages}>"
    sizes = {"bm": row.bm, "bn": row.bn, "bk": row.bk, "tm": row.tm, "tn": row.tn, "stages": row.stages}
    return row.entry.format(name=row.name, a=a, b=b, **sizes)


def fixup_entry(row: Rung, block: Block) -> str:
    """The template instance that adds the partial tiles of split tiles."""
    return f"{row.name}_fixup<{block.bm}, {block.bn}>"


def pack_entry(row: Rung, layout: str) -> str:
    """The template instance that writes the two parts, or the packed or padded copy, of an operand."""
    return f"{row.name}_{'split' if row.splits_operands else 'pack'}<{layout}>"


def remainder_entries(row: Rung, layout: str) -> tuple[str, str, str]:
    """The template instances of remainders.cuh that find the exponents of an operand's rows, write their remainders,
    and join the sums."""
    count, of_type = row.remainders, {"f32": "float", "f64": "double"}[row.types]
    return (
        f"row_exponents<{layout}, {of_type}>",
        f"split_rows<{layout}, {count}, {of_type}>",
        f"join_sums<{count}, {of_type}>",
    )


def dynamic_shared_bytes(row: Rung, a: str, b: str, block: Block | TensorBlock | None = None) -> int:
    """Dynamic shared memory of an instance in bytes: its panels, and the boxes of C for TMA stores or the slices of
    partial tiles; 0 where it has only static shared memory."""
    if row.tensor_blocks:
        x = block or row.tensor_blocks[0]  # aligned to 1 KiB
        panels = x.stages * row.bk * (x.bm + x.bn) * row.panel_bytes
        if x.skinny:  # a tile is added in the memory of the panels
            return 1024 + panels
        slices = 4 * x.bm * x.bn * (x.split - 1) // x.split
        return 1024 + panels + (max(32 << 10, slices) if row.stores_by_tma else 0)
    if not row.stages and not row.blocks:
        return 0
    if row.line_pad is not None:
        panels = ((row.bm, a), (row.bn, b))
        lines = ((r, row.bk) if layout.startswith("K_MAJOR") else (row.bk, r) for r, layout in panels)
        return row.stages * sum(count * (row.panel_bytes * length + row.line_pad) for count, length in lines)
    x = block or (row.blocks[0] if row.blocks else row)
    rows = x.bm + x.bn + sum(4 for layout in (a, b) if layout.startswith("K_MAJOR"))
    return x.stages * 8 * rows * 4  # 8 words of k, 4 bytes each


def row_major(row: Rung) -> tuple[str, str]:
    """The layouts of A and B of a row-major call, aligned where the rung has an instance for that."""
    if row.loads_by_tma:
        return "MN_MAJOR", "MN_MAJOR"
    return ("K_MAJOR_VEC4", "MN_MAJOR_VEC4") if row.wide else ("K_MAJOR", "MN_MAJOR")
