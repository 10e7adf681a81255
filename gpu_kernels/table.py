"""The one place where a CUDA kernel is registered; dispatch, compilation, tests, command line and report read it.

The tile in the name is the tile in the row. ``entry`` is the template instance in ``source``; ``{a}`` and ``{b}`` stand
for the layouts of the operands (memory.cuh), ``{edge}`` for "there are edge tiles", ``{direct}`` for "fragments are
loaded from the arrays". Plain data: nothing here needs CuPy.
"""

from dataclasses import dataclass, fields
from typing import ClassVar

REQUIRES = ("sm_75", "sm_80")


@dataclass(frozen=True)
class Kernel:
    """One row.

    Attributes:
        lanes: threads that share a tile.
        tiles: tiles that a thread (or its group of lanes) computes at once.
        layouts: layouts that an operand may be read in, besides ANY.
        instruction: the multiply-add in its machine code, as nvdisasm spells it (a prefix).
        macs: multiply-adds of one such instruction in one thread; of a whole warp for the tensor cores.
    """

    name: str
    form: str
    types: str
    mr: int
    nr: int
    k_group: int
    requires: str
    lanes: int
    source: str
    entry: str
    instruction: str
    macs: int
    tiles: int = 1
    layouts: tuple[str, ...] = ("K_MAJOR", "MN_MAJOR", "PACKED")


# fmt: off
KERNELS = (
    Kernel("cuda_bf16f32_wmma_16x16", form="wmma", types="bf16f32", mr=16, nr=16, k_group=16, requires="sm_80",
           lanes=32,
           source="wmma.cu", entry="wmma_tile<BF16F32, warp_matrix::BF16, {direct}>", instruction="HMMA", macs=2048,
           layouts=()),
    Kernel("cuda_f16_batch2_4x4", form="batch2", types="f16", mr=4, nr=4, k_group=1, requires="sm_75", lanes=1, tiles=2,
           source="cuda_f16_batch2_4x4.cu", entry="batch2_paired<{a}, {b}, {edge}>", instruction="HFMA2", macs=2),
    Kernel("cuda_f16_outer_4x4", form="outer", types="f16", mr=4, nr=4, k_group=1, requires="sm_75", lanes=1,
           source="outer_half2.cu", entry="outer_half2<4, 4, {a}, {b}, {edge}>", instruction="HFMA2", macs=2),
    Kernel("cuda_f16_outer_8x8", form="outer", types="f16", mr=8, nr=8, k_group=1, requires="sm_75", lanes=1,
           source="outer_half2.cu", entry="outer_half2<8, 8, {a}, {b}, {edge}>", instruction="HFMA2", macs=2),
    Kernel("cuda_f16f32_outer_8x8", form="outer", types="f16f32", mr=8, nr=8, k_group=1, requires="sm_75", lanes=1,
           source="outer.cu", entry="outer<F16F32, 8, 8, {a}, {b}, {edge}>", instruction="FFMA", macs=1),
    Kernel("cuda_f16f32_wmma_16x16", form="wmma", types="f16f32", mr=16, nr=16, k_group=16, requires="sm_75", lanes=32,
           source="wmma.cu", entry="wmma_tile<F16F32, warp_matrix::F16, {direct}>", instruction="HMMA", macs=2048,
           layouts=()),
    Kernel("cuda_f32_inner_4x4", form="inner", types="f32", mr=4, nr=4, k_group=1, requires="sm_75", lanes=16,
           source="inner.cu", entry="inner<F32, 4, 4, {a}, {b}, {edge}>", instruction="FFMA", macs=1,
           layouts=("K_MAJOR",)),
    Kernel("cuda_f32_inner_8x8", form="inner", types="f32", mr=8, nr=8, k_group=1, requires="sm_75", lanes=64,
           source="inner.cu", entry="inner<F32, 8, 8, {a}, {b}, {edge}>", instruction="FFMA", macs=1,
           layouts=("K_MAJOR",)),
    Kernel("cuda_f32_outer_4x4", form="outer", types="f32", mr=4, nr=4, k_group=1, requires="sm_75", lanes=1,
           source="outer.cu", entry="outer<F32, 4, 4, {a}, {b}, {edge}>", instruction="FFMA", macs=1),
    Kernel("cuda_f32_outer_8x8", form="outer", types="f32", mr=8, nr=8, k_group=1, requires="sm_75", lanes=1,
           source="outer.cu", entry="outer<F32, 8, 8, {a}, {b}, {edge}>", instruction="FFMA", macs=1),
    Kernel("cuda_f64_outer_4x4", form="outer", types="f64", mr=4, nr=4, k_group=1, requires="sm_75", lanes=1,
           source="outer.cu", entry="outer<F64, 4, 4, {a}, {b}, {edge}>", instruction="DFMA", macs=1),
    Kernel("cuda_i8i32_outer_4x4", form="outer", types="i8i32", mr=4, nr=4, k_group=4, requires="sm_75", lanes=1,
           source="outer_dp4a.cu", entry="outer_dp4a<4, 4, {a}, {b}, {edge}>", instruction="IDP.4A", macs=4),
    Kernel("cuda_i8i32_outer_8x8", form="outer", types="i8i32", mr=8, nr=8, k_group=4, requires="sm_75", lanes=1,
           source="outer_dp4a.cu", entry="outer_dp4a<8, 8, {a}, {b}, {edge}>", instruction="IDP.4A", macs=4),
    Kernel("cuda_i8i32_wmma_16x16", form="wmma", types="i8i32", mr=16, nr=16, k_group=16, requires="sm_75", lanes=32,
           source="wmma.cu", entry="wmma_tile<I8I32, warp_matrix::S8, {direct}>", instruction="IMMA", macs=2048,
           layouts=()),
)
# fmt: on
BY_NAME = {row.name: row for row in KERNELS}

BATCHED = "batched.cu"
"""What ``matmul`` runs for batches of small products: one file, an instance for every shape and layout of operands."""

BATCHED_ANY = "batched_any.cu"
"""What it runs before such an instance is compiled, and with alpha, beta and C: an instance for each types family."""

BATCHED_TYPES = {"f32": "F32", "f64": "F64", "f16": "F16", "bf16f32": "BF16F32", "i8i32": "I8I32"}
BATCHED_NARROW = {"bf16f32": "BF16"}
"""The types for results of the operands' own 16 bits, of families whose results have 32."""

BATCHED_MOST_MN, BATCHED_MOST_K = 32, 64
"""The largest sizes that ``matmul`` gives to batched.cu on every GPU, in every types family."""


@dataclass(frozen=True)
class BatchedSizes:
    """Larger sizes that batched.cu is faster than cuBLAS for on an H200.

    Attributes:
        least, most: m and n; k is at most ``most`` too.
        elements: of C, at most.
        shared_bytes: of a block of one product, at most.
    """

    least: int
    most: int
    elements: int
    shared_bytes: int


BATCHED_LARGER = {
    "f32": BatchedSizes(4, 128, 112 * 112, 99 << 10),  # what a block can have from sm_80 on
    "f64": BatchedSizes(33, 48, 48 * 48, 48 << 10),
}
"""What ``matmul`` gives to batched.cu beyond that on CUDA devices. Of larger ones, some (m, n, k) are slower than with
cuBLAS: f32 of 115, 115, 115 had 0.92 times its speed, 128, 128, 8 0.83; f64 of 50, 50, 50 0.55, 16, 64, 64 0.83."""
MMA_FROM = {"f16": 20**3, "bf16f32": 22**3, "i8i32": 29**3}
"""What ``matmul`` gives to batched_mma.cu: the types families, and m*n*k below which batched.cu is ahead of it where it
takes a product on every GPU."""

MMA_LEAST, MMA_MOST = 9, 128
"""m and n below which batched.cu takes such a product, and the largest m, n and k."""

BATCHED_SHARED_BYTES = 48 << 10
"""The most static shared memory of a block."""


@dataclass(frozen=True)
class Batched:
    """An instance of batched.cu.

    Attributes:
        source: the file, whose kernel has its name.
        requires: what it needs of a device.
        tm, tn: rows and columns of the tile of C that a thread computes.
        products: products of a block.
        a, b: how a batch of the operand lies in memory: CONTIGUOUS, STRIDED or BROADCAST (batched.cu).
        a_transposed, b_transposed: the operand is stored column by column.
        whole: the batch of C is one contiguous, 16-byte aligned range of memory.
        narrow: C has the operands' own 16 bits, in a family whose results have 32.
    """

    source: ClassVar[str] = BATCHED
    requires: ClassVar[str] = "sm_75"

    types: str
    m: int
    n: int
    k: int
    tm: int
    tn: int
    products: int
    a: str = "CONTIGUOUS"
    a_transposed: bool = False
    b: str = "CONTIGUOUS"
    b_transposed: bool = False
    whole: bool = True
    narrow: bool = False

    @property
    def entry(self) -> str:
        layout_a = "MN_MAJOR" if self.a_transposed else "K_MAJOR"
        layout_b = "K_MAJOR" if self.b_transposed else "MN_MAJOR"
        parameters = (
            batched_type(self.types, self.narrow),
            f"Shape<{self.m}, {self.n}, {self.k}>",
            self.tile,
            f"Operand<{self.a}, {layout_a}>",
            f"Operand<{self.b}, {layout_b}>",
            _cpp(self.whole),
        )
        return f"{self.source.removesuffix('.cu')}<{', '.join(parameters)}>"

    @property
    def tile(self) -> str:
        return f"ThreadTile<{self.tm}, {self.tn}, {self.products}>"

    @property
    def lanes(self) -> int:
        return -(-self.m // self.tm) * -(-self.n // self.tn)

    @property
    def threads(self) -> int:
        return -(-self.products * self.lanes // 32) * 32


@dataclass(frozen=True)
class BatchedMma(Batched):
    """An instance of batched_mma.cu: ``tm`` and ``tn`` are those of the tile of a warp, multiples of 16."""

    source: ClassVar[str] = "batched_mma.cu"
    requires: ClassVar[str] = "sm_80"

    @property
    def tile(self) -> str:
        return f"WarpTile<{self.tm // 16}, {self.tn // 16}, {self.products}>"

    @property
    def lanes(self) -> int:
        return 32 * super().lanes


@dataclass(frozen=True)
class TmaTile:
    """An instance of batched_tma.cu.

    Attributes:
        tm, tn: rows and columns of the tile of C that a thread computes.
        warps: of a tile, whose lanes are 4 x 8; a warpgroup computes 4 / ``warps`` tiles.
        stages: panels of a ring.
        load_k: k of a load of A from shared memory.
        groups: consumer warpgroups of a block.
        producer_registers: of a thread.
        order: of the columns in the rows of a thread's tile.
        a_buffers: fragments of A.
    """

    source: ClassVar[str] = "batched_tma.cu"
    name: ClassVar[str] = "batched_tma"
    requires: ClassVar[str] = "sm_90a"
    bk: ClassVar[int] = 32

    tm: int
    tn: int
    warps: int
    stages: int
    load_k: int
    groups: int
    producer_registers: int
    order: str = "SERPENTINE"
    a_buffers: int = 1

    @property
    def entry(self) -> str:
        return f"{self.name}<TmaTile<{', '.join(str(getattr(self, x.name)) for x in fields(self))}>>"

    @property
    def bm(self) -> int:
        return 4 * self.tm * self.warps

    @property
    def bn(self) -> int:
        return 8 * self.tn

    @property
    def products(self) -> int:
        return 4 // self.warps

    @property
    def threads(self) -> int:
        return 128 * (self.groups + 1)

    @property
    def dynamic_shared_bytes(self) -> int:
        return 4 * self.groups * self.stages * self.bk * (self.bm + self.bn) * self.products


TMA_TILES = (
    TmaTile(8, 8, warps=2, stages=2, load_k=4, groups=3, producer_registers=24, order="BY_PARITY"),
    TmaTile(10, 10, warps=2, stages=2, load_k=4, groups=2, producer_registers=24, order="ALTERNATING"),
    TmaTile(12, 12, warps=2, stages=2, load_k=1, groups=2, producer_registers=56),
    TmaTile(7, 14, warps=4, stages=4, load_k=1, groups=2, producer_registers=56, order="ALTERNATING"),
    TmaTile(8, 16, warps=4, stages=3, load_k=1, groups=2, producer_registers=40, a_buffers=2),
)
"""Tiles of 64, 80, 96, 112 and 128 a side. The last four parameters are those with which the compiler gives the fewest
multiply-adds two registers of one port."""


@dataclass(frozen=True)
class MnTile:
    """An instance of batched_tma_mn.cu.

    Attributes:
        tm, tn, warps, groups: as of ``TmaTile``.
        stages: panels of a ring.
        a_k_major, b_k_major: whether elements of the operand are adjacent along k, not along m or n.
    """

    source: ClassVar[str] = "batched_tma_mn.cu"
    name: ClassVar[str] = "batched_tma_mn"
    requires: ClassVar[str] = "sm_90a"
    bk: ClassVar[int] = 8

    tm: int
    tn: int
    warps: int
    stages: int
    groups: int
    a_k_major: bool = False
    b_k_major: bool = False

    @property
    def entry(self) -> str:
        values = (getattr(self, x.name) for x in fields(self))
        return f"{self.name}<MnTile<{', '.join(_cpp(x) if isinstance(x, bool) else str(x) for x in values)}>>"

    bm, bn, products, threads = TmaTile.bm, TmaTile.bn, TmaTile.products, TmaTile.threads

    @property
    def dynamic_shared_bytes(self) -> int:
        rows = self.bm + 4 * self.a_k_major + self.bn + 4 * self.b_k_major
        return 4 * self.groups * self.stages * self.bk * rows * self.products


MN_TILES = (
    MnTile(8, 8, warps=2, stages=8, groups=3),
    MnTile(10, 10, warps=2, stages=10, groups=2),
    MnTile(12, 12, warps=2, stages=9, groups=2),
    MnTile(7, 14, warps=4, stages=15, groups=2),
    MnTile(8, 16, warps=4, stages=13, groups=2),
)
"""Tiles of 64, 80, 96, 112 and 128 a side, for any A and B but two that are row-major."""


@dataclass(frozen=True)
class Narrow:
    """An instance of narrow.cu.

    Attributes:
        types: family.
        layout: of the long operand.
        aligned: whether that is read as vectors of 16 bytes.
        short: rows or columns of the short side, at most.
        across: warps of a block along the long side, of eight; the others split k.
        out16: C is of the operands' 16-bit type.
    """

    source: ClassVar[str] = "narrow.cu"
    any_source: ClassVar[str] = "narrow_any.cu"
    any_tile: ClassVar[tuple[int, int]] = (16, 8)
    name: ClassVar[str] = "narrow"
    requires: ClassVar[str] = "sm_90a"
    threads: ClassVar[int] = 256

    types: str
    layout: str
    aligned: bool
    short: int
    across: int
    out16: bool = False

    @property
    def entry(self) -> str:
        element, result, narrow = NARROW_TYPES[self.types]
        c_type = narrow if self.out16 else result
        return f"{self.name}<{element}, {self.layout}, {_cpp(self.aligned)}, {self.short}, {self.across}, {c_type}>"

    @property
    def any_entry(self) -> str:
        """The template instance of narrow_any.cu, which computes the same."""
        element, result, narrow = NARROW_TYPES[self.types]
        return f"narrow_any<{element}, {narrow if self.out16 else result}>"

    @property
    def element_bytes(self) -> int:
        return NARROW_BYTES[self.types]

    @property
    def along(self) -> int:
        """Warps of a block that split a panel."""
        return self.threads // 32 // self.across

    @property
    def rows(self) -> int:
        """Of a tile, along the long side."""
        return 128 // self.element_bytes * self.across

    @property
    def resident(self) -> int:
        """Blocks of a multiprocessor."""
        f32 = self.types == "f32"
        one = self.across < 4 or self.types == "i8i32" or self.short == 32 or (f32 and self.short == 16)
        one = one or (not self.aligned and (not f32 or (self.short == 8 and self.layout == "K_MAJOR")))
        return 1 if one else 2

    @property
    def panel_bytes(self) -> int:
        """Of a panel, along k: a warp loads as many steps of 64 bytes at a time as it has registers for."""
        few = self.across < 4
        if self.types == "f32":
            return 512 // self.across * (4 if few or self.short == 16 else 2)
        return 512 // self.across * (2 if self.element_bytes == 2 and few and self.short < 32 else 1)

    @property
    def dynamic_shared_bytes(self) -> int:
        tiles = self.short * (8 // self.across * (self.rows + 4) + self.rows)  # those of the warps, and their sum
        return max(2 * self.short * (self.panel_bytes + 64), 4 * tiles)


NARROW_TYPES = {
    "f32": ("NarrowF32", "ToF32", ""),
    "f16": ("NarrowF16", "ToF32", "ToF16"),
    "bf16f32": ("NarrowBf16", "ToF32", "ToBf16"),
    "i8i32": ("NarrowI8", "ToI32", ""),
}
"""Types of narrow.cu for a types family: of the operands, and of C, of 32 or of 16 bits."""

NARROW_BYTES = {"f32": 4, "f16": 2, "bf16f32": 2, "i8i32": 1}
NARROW_SHORT = {"f32": (4, 8, 16), "f16": (8, 16, 32), "bf16f32": (8, 16, 32), "i8i32": (8, 16)}
"""What the short side is padded to."""


def narrow_across(types: str, short: int) -> tuple[int, ...]:
    """Warps along the long side that there are instances of: for long ones, and for others."""
    if short < 16:
        return 4, 1
    return (4,) if types == "i8i32" else (4, 2)


TMA_LEAST, TMA_SMALLER, TMA_MOST, TMA_LEAST_K = 60, 256, 480, 32
"""m and n that batched_tma.cu takes, above ``TMA_SMALLER`` in full tiles of 96 a side and more, and the least k."""


def batched_type(types: str, narrow: bool) -> str:
    """The type of types.cuh for a types family; ``narrow`` as for ``Batched``."""
    return BATCHED_NARROW[types] if narrow else BATCHED_TYPES[types]


def batched_any(types: str, narrow: bool = False) -> str:
    """The template instance of batched_any.cu for a types family."""
    return f"batched_any<{batched_type(types, narrow)}>"


def wmma(types: str, narrow: bool = False) -> tuple[Kernel, str]:
    """The row for tiles of a types family on tensor cores, and its instance for any operands."""
    row = next(row for row in KERNELS if row.form == "wmma" and row.types in (types, f"{types}f32"))
    return row, entry(row, "", "", True, False).replace(row.types.upper(), batched_type(types, narrow), 1)


def _cpp(value: bool) -> str:
    return "true" if value else "false"


def entry(row: Kernel, a: str, b: str, edge: bool, direct: bool) -> str:
    """The template instance of a row for operands of these layouts."""
    if row.form == "batch2" and (a, b) == ("GATHERED", "GATHERED"):
        return f"batch2_gathered<{_cpp(edge)}>"
    return row.entry.format(a=a, b=b, edge=_cpp(edge), direct=_cpp(direct))


def entries(row: Kernel) -> list[str]:
    """Every template instance of a row that a call can ask for."""
    if row.form == "wmma":
        return [entry(row, "", "", True, direct) for direct in (False, True)]
    layouts = ("ANY", *row.layouts)
    found = [entry(row, a, b, False, False) for a in layouts for b in layouts] + [entry(row, "ANY", "ANY", True, False)]
    return found + ([f"batch2_gathered<{_cpp(edge)}>" for edge in (False, True)] if row.form == "batch2" else [])
