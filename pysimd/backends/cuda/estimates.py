"""How long a whole product takes an H200 by the best rung of its types and by cuBLAS: the model of dispatch.

Both times are those of waves of tiles, or of the bytes of the operands, whichever is longer. What cuBLAS chooses is not
known, so it is taken for the best of nine tiles, each with and without a split along k. The constants were fitted to
times that benchmarks/gemm_shapes.py recorded (gemm_random, gemm_random8, gemm_random64, gemm_holdout and
gemm_holdout11_h200.json in benchmarks/results). Those of fitted.py, for 16-bit operands and for few rows or columns
(narrow_estimates.py), and by how much a rung has to be ahead (``MARGINS``) are written by benchmarks/fit_estimates.py,
by the rule that it states. What is not clearly ahead is left to cuBLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import exp, log
from typing import NamedTuple

from pysimd.backends.cuda import fitted, narrow_estimates
from pysimd.backends.cuda.ladder import schedule, tensor
from pysimd.gpu_kernels import ladder_table, table

PROCESSORS = 132
"""Multiprocessors of the device that the model is of."""

_CYCLES_PER_US = 1755

_TILES = ((128, 128), (256, 128), (128, 256), (128, 64), (64, 128), (64, 64), (32, 128), (128, 32), (32, 32))
_SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_LEAST_K = 64
_PARTIAL_BYTES_PER_US = 3.0e6
"""Tiles and splits along k of cuBLAS, the k of a part at least, and the speed at which partial tiles are moved."""


class Library(NamedTuple):
    """Constants of cuBLAS for operands of one type.

    Attributes:
        element_bytes: of the operands.
        launch_us: of a launch without its multiply-adds.
        bytes_per_us: of operands and C.
        split_us: of the launch that adds partial tiles.
        flops_per_us: of the device, at its peak.
        parts: of that peak which each of the tiles reaches.
    """

    element_bytes: int
    launch_us: float
    bytes_per_us: float
    split_us: float
    flops_per_us: float
    parts: tuple[float, ...]

    def us(self, m: int, n: int, k: int) -> float:
        """Estimated time."""
        moved = self.element_bytes * (m * k + k * n + m * n) / self.bytes_per_us
        return self.launch_us + max(moved, min(self._multiplied(m, n, k)))

    def _multiplied(self, m: int, n: int, k: int) -> Iterator[float]:
        for (bm, bn), part in zip(_TILES, self.parts, strict=True):
            tiles = -(-m // bm) * -(-n // bn)
            step = 2 * bm * bn * PROCESSORS / (part * self.flops_per_us)
            for split in _SPLITS:
                if split > 1 and k // split < _LEAST_K:
                    break
                added = self.split_us + 8 * m * n * split / _PARTIAL_BYTES_PER_US if split > 1 else 0.0
                yield -(-tiles * split // PROCESSORS) * -(-k // split) * step + added


CUBLAS_F32 = Library(4, 5.1, 2.0e6, 3.3, 54e6, (0.893, 0.837, 0.958, 0.797, 0.8, 0.789, 0.863, 0.718, 0.268))
_CUBLAS_ODD = Library(2, 3.32, 1.25e6, 1.53, 463e6, (0.191, 0.326, 0.326, 0.125, 0.066, 0.017, 0.017, 0.024, 0.062))
_CUBLAS_EVEN = Library(2, 8.4, 2.04e6, 6.2, 800e6, (0.249, 0.255, 0.286, 0.195, 0.2, 0.206, 0.189, 0.163, 0.181))
"""Of 16-bit operands whose rows do not all start at multiples of 16 bytes, which the tensor memory accelerator cannot
read: those that have rows at odd elements, and others. cuBLAS then takes kernels of a third of the speed, and the rung
copies them first. Three quarters of the odd ones took longer than this says."""

LEAST_MN = 48
LEAST_MACS = {"f32": 1 << 26, "f16": 1 << 27, "bf16f32": 1 << 27}
LEAST_ODD_MN = 33
"""Rows and columns, and multiply-adds, from which on the estimates of times hold; rows and columns of 16-bit operands
with rows at odd elements, where they hold for any multiply-adds."""

LEAST_F32_K = 64
"""The k of float32 products from which on the rung is compared with cuBLAS: 1700 x 9036 x 8, a C that is written for
the most part, measured 0.81 times cuBLAS."""

LEAST_16_MN, LEAST_ALIGNED_K = 33, 64
"""Rows and columns of products of 16-bit operands from which on the rung is compared with cuBLAS; the k of those that
need no copies."""

_ALIGNED = 8
_LINE = 64
_POWER_LIMITED = 1 << 38
"""Elements of 16 bytes and of a line of 128; multiply-adds from which on 16-bit products run at the power limit, where
the rung measured 0.99 to 1.05 times cuBLAS if rows are lines."""
_SHORT_US, _SHORT_MN = 6.5, 256


_SKINNY_BYTES = {2: (93e6, 14e6), 4: (22e6, 6e6), 8: (20e6, 20e6)}
"""Bytes of operands and C up to which skinny_gemm.cuh is ahead of cuBLAS, by the blocks that a tile is split among: for
launches of at least so many blocks, and for those of fewer."""
_SKINNY_BLOCKS, _SKINNY_LEAST_BLOCKS, _SKINNY_LEAST_K = 48, 32, 256


@lru_cache(4096)
def takes_narrow(types: str, m: int, n: int, k: int) -> bool:
    """Whether narrow.cu is estimated to be faster than cuBLAS for a row-major product that skinny_gemm.cuh does not
    take; for int8, in place of dp4a and of packed operands, always."""
    # Tried: int8 with 17 to 64 rows in launches for 16 rows each, 35.5 us for 17 x 4096 x 4096 (i8_wgmma 30.0) and 74.4
    # for 64 rows (27.3).
    if types == "i8i32":
        return min(m, n) <= table.NARROW_SHORT[types][-1] and k <= narrow_estimates.MOST_K
    if not narrow_estimates.holds(types, m, n, k) or (types != "f32" and takes_skinny(m, n, k)):
        return False
    return narrow_estimates.takes(types, m, n, k)


@lru_cache(4096)
def takes(types: str, m: int, n: int, k: int) -> bool:
    """Whether the best rung of these types is estimated to be ahead of cuBLAS for a row-major product."""
    if types != "f32" and takes_skinny(m, n, k):
        return True
    if types == "f32" and min(m, n) >= LEAST_MN and _whole_vectors(m, n, k):
        return True
    case = case_of(types, m, n, k)
    if case is None:
        return False
    if case == "lines" and (m * n * k >= _POWER_LIMITED or _short(m, n, k)):
        return True
    return times_cublas(types, m, n, k) >= fitted.MARGINS[case]


def _short(m: int, n: int, k: int) -> bool:
    """Whether a product of rows of lines is a launch for the most part: consecutive launches of the rung overlap. It
    measured 1.13 to 1.30 times cuBLAS from 256 rows and columns on; with 64 rows and 11392 columns 0.92."""
    large = min(m, n) >= _SHORT_MN and m * n * k >= LEAST_MACS["bf16f32"]
    return large and _tensor_choice(m, n, k, skinny=False).us <= _SHORT_US


def case_of(types: str, m: int, n: int, k: int) -> str | None:
    """What the estimates differ by; None where there are none. Of float32 the rows that can be loaded in vectors. Of 16
    bits whether rows of both operands are whole lines of L2 or vectors, which need no copies, or start at multiples of
    4 bytes or at any."""
    if types == "f32":
        rows = "f32 columns" if n % 4 else "f32 rows" if k % 4 else "f32 vectors"
        return rows if k >= LEAST_F32_K and holds(types, m, n, k) else None
    if min(m, n) < LEAST_16_MN:
        return None
    if n % _ALIGNED or k % _ALIGNED:
        return "odd" if n % 2 or k % 2 else "even"
    return None if k < LEAST_ALIGNED_K else "vectors" if n % _LINE or k % _LINE else "lines"


def times_cublas(types: str, m: int, n: int, k: int) -> float:
    """How many times faster than cuBLAS the rung is estimated to be, where there is a ``case_of``."""
    if types == "f32":
        return CUBLAS_F32.us(m, n, k) / f32_us(m, n, k)
    weights = fitted.TIMES_CUBLAS[case_of(types, m, n, k)]
    return exp(sum(x * y for x, y in zip(weights, features(m, n, k), strict=True)))


def features(m: int, n: int, k: int) -> tuple[float, ...]:
    """What the logarithm of the time of cuBLAS over that of the rung is a sum of, for 16-bit operands: the last of
    them, for operands that are copied, is that logarithm by the models of both."""
    macs = m * n * k
    copied = n % _ALIGNED or k % _ALIGNED
    return (
        1.0,
        log(_tensor_choice(m, n, k, skinny=False).us),
        log(1 + macs / 1e9),
        log(1 + macs / 3e7),
        log(1 + k / 512),
        log(1 + m / 256),
        log(1 + n / 256),
        log(1 + (m * k + k * n + m * n) / 4e6),
        float(min(m, n) < 64),
        *([log(cublas_unaligned_us(m, n, k) / unaligned_us(m, n, k))] if copied else []),
    )


def holds(types: str, m: int, n: int, k: int) -> bool:
    """Whether the estimates of the times of the rung and of cuBLAS hold."""
    if types != "f32" and (n % 2 or k % 2):
        return min(m, n) >= LEAST_ODD_MN
    return min(m, n) >= LEAST_MN and m * n * k >= LEAST_MACS[types]


def takes_skinny(m: int, n: int, k: int) -> bool:
    """Whether a C with a short side is computed by blocks that fill between a quarter and half of the device, and rows
    of the operands are whole lines. The rung measured 1.0 to 1.9 times cuBLAS there, and down to 0.8 elsewhere
    (benchmarks/results/gemm_skinny_h200.json); 3568 x 8 x 9472 0.8, so not with a side of less than 16."""
    if not 16 <= min(m, n) <= 64 or k < _SKINNY_LEAST_K or k % _LINE or n % (_LINE if m <= n else _ALIGNED):
        return False
    choice = _tensor_choice(m, n, k)
    if not choice.block.skinny or choice.block.split == 1 or choice.grid < _SKINNY_LEAST_BLOCKS:
        return False
    most = _SKINNY_BYTES[choice.block.split][choice.grid < _SKINNY_BLOCKS]
    return 2 * (m * k + k * n + m * n) <= most


def _whole_vectors(m: int, n: int, k: int) -> bool:
    """Whether float32 operands that are loaded in vectors are large on each side, or C is small and k long: cuBLAS then
    takes up to 1.4 times its estimate, and ``f32_best`` measured 1.03 to 1.4 times cuBLAS."""
    less, more = sorted((m, n))
    return not (n % 4 or k % 4) and ((less >= 512 and k >= 256) or (more <= 512 and k >= 4096))


_MANY_PANELS, _APART = 1000, 1.5
"""Where rows of B are copied by 4 bytes and every tile is split along a k of so many panels, blocks read rows that are
far apart: four of six such products took 1.25 to 1.55 times as long as others, and nothing tells which."""


def f32_us(m: int, n: int, k: int) -> float:
    """Estimated time of ``f32_best``: that of its schedule, or of copies of 4 bytes where n is no multiple of 4, and
    edge tiles whose rows are not stored in vectors."""
    row = ladder_table.BY_NAME["f32_best"]
    choice = schedule.choose(row, row.blocks, 1, m, n, k, 1, PROCESSORS)
    block, waves = choice.block, -(-choice.tiles // PROCESSORS)
    shares = choice.tiles / choice.grid if choice.split_tiles else waves
    words = shares * choice.panels * schedule.PANEL * (block.bm + block.bn) * 1e-4
    stored = waves * block.bm * block.bn * 1e-4
    copied = 4.05 * words * (n % 4 != 0) + 0.03 * words * (k % 4 != 0)
    multiplied = 0.89 * (choice.cycles / _CYCLES_PER_US - 3.4)
    if n % 4 and choice.panels >= _MANY_PANELS and choice.split_tiles == choice.tiles:
        multiplied *= _APART
    moved = (m * k + k * n + m * n) / 1e6
    return 2.5 + max(moved, max(multiplied, copied) + (4.8 * (n % 4 != 0) + 1.4) * stored)


def unaligned_us(m: int, n: int, k: int) -> float:
    """Estimated time of ``f16_best`` and ``bf16_best`` with copies of the operands whose rows are not aligned."""
    copies = [elements for elements, length in ((m * k, k), (k * n, n)) if length % _ALIGNED]
    edges = 1.13e-6 * m * n * (n % _ALIGNED != 0)
    return 1.06 * _tensor_choice(m, n, k, skinny=False).us + 2.8 * len(copies) + 0.75e-6 * sum(copies) + edges


def cublas_unaligned_us(m: int, n: int, k: int) -> float:
    """Estimated time of cuBLAS for the same products: rows at multiples of 4 bytes are another case than odd ones."""
    return (_CUBLAS_ODD if n % 2 or k % 2 else _CUBLAS_EVEN).us(m, n, k)


def _tensor_choice(m: int, n: int, k: int, *, skinny: bool = True) -> tensor.Choice:
    """That of the rungs of 16 bits, with the blocks of skinny_gemm.cuh or, as the other constants were fitted,
    without."""
    row = ladder_table.BY_NAME["bf16_best"]
    return tensor.choose(row if skinny else replace(row, skinny_blocks=()), m, n, k, 1, PROCESSORS)
