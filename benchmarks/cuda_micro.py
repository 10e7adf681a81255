"""CUDA speed against peers in the same run: ``python benchmarks/cuda_micro.py [--out FILE.json] [--into FILE.json]``.

Sections:
    peaks     of this device: copied bytes, and independent instructions in registers
    batched   C[i] = A[i] B[i], values in memory far larger than L2: bytes of A, B and C per second, matmul(out=)
              against cupy.matmul (cuBLAS) and torch.bmm
    shapes    the same for products of random shapes that matmul does not leave to cuBLAS
    small     few products: microseconds per call from Python, calls in a row
    tiles     every kernel on panels that all its tiles share, so that they come from L1: operations compared with the
              peak of its instruction
    register_tiles  the tiles of the GEMM ladder on panels in shared memory, compared with that peak
    gemms     the rungs for f16 and int8, compared with that peak

Samples of one line are interleaved, each some calls between two events on the GPU, and are medians. Operands are
random; products are checked before they are timed. PyTorch is optional. PYSIMD_COMMIT names the commit where git
cannot. With --into, the sections and types that are measured replace those of an earlier record; the others stay, and
every row names its commit.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import record
from pysimd.gpu_kernels import table

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda.dispatch import Way, choose
from pysimd.backends.cuda.implementation import INSTANCES
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.backends.gpu.tilings import mma_tiling, tiling
from pysimd.bench import cuda_peaks, cuda_tiles, timing
from pysimd.bench.cuda_peaks import PeakLoop, Work
from pysimd.bench.data import random_array
from pysimd.bench.verify import verify

try:
    import torch
except ImportError:
    torch = None

ARRAY_BYTES = 1_200_000_000
"""Of the largest of A, B and C: twenty times the L2 of an H200."""

SIZES = {
    "f32": (
        *(*range(3, 9), 12, 13, 16, 20, 24, 31, 32, 33, 36, 40, 48, 56, 63, 64, 65, 80, 96, 112, 128),
        *(160, 192, 224, 256),
    ),
    "f64": (3, 4, 6, 8, 12, 16, 32, 33, 36, 40, 48),
    "f16": (3, 4, 6, 8, 12, 16, 20, 24, 31, 32, 33, 40, 48, 63, 64, 65, 80, 96, 112, 127, 128),
    "bf16f32": (4, 8, 16, 24, 32, 33, 48, 64, 65, 80, 96, 112, 128),
    "i8i32": (3, 4, 6, 8, 12, 16, 20, 24, 31, 32, 33, 40, 48, 64, 65, 80, 96, 112, 128),
}
SHAPES = {"f32": 40, "f64": 10, "f16": 20}
"""How many random shapes."""

BY_TYPES = {"batched": ["types"], "shapes": ["types"]}
"""The sections that --types bounds: --into replaces the rows of these types."""

SHAPES_SEED, SHAPES_RANGE, SHAPES_BYTES = 14, (4, 256), 600_000_000
"""m, n and k are log-uniform in the range; bytes of A, B and C together."""

SMALL_BATCHES = (1, 100, 10_000)
SMALL_SIZES = (4, 8, 16, 32, 64)
SECONDS = 0.09
"""Time of a function in all."""

INSTRUCTIONS = {"f32": "FFMA", "f16": "HFMA2", "i8i32": "IDP.4A"}
"""The multiply-add of the rungs that multiply without tensor cores."""

LOOPS = [cuda_peaks.PEAKS[x] for x in INSTRUCTIONS.values()] + [PeakLoop("hfma2_broadcast", 4)]


def medians(functions: dict[str, Any], seconds: float = SECONDS) -> dict[str, float]:
    """Median nanoseconds of a call of each function."""
    runs = {name: timing.repeated(function) for name, function in functions.items()}
    return {name: x.median_ns for name, x in timing.times(runs, timing.CudaEvents(), seconds=seconds).items()}


def peaks() -> dict[str, float]:
    rates = cuda_peaks.rates({loop.instance: cuda_peaks.peak_work(loop) for loop in LOOPS})
    found = {f"{name}_tflops": rate / 1000 for name, rate in rates.items()}
    source = random_array("float32", (1 << 28,), cupy.random.default_rng(0))
    target = cupy.empty_like(source)
    copy_ns = medians({"copy": partial(target.data.copy_from_device_async, source.data, source.nbytes)})["copy"]
    found["copy_tb_per_s"] = 2 * source.nbytes / copy_ns / 1000
    for name, value in found.items():
        record.progress(f"{name} {value:.2f}")
    return found


def operands(types: str, shape: tuple[int, ...], shape_b: tuple[int, ...] | None = None):
    """Random A and B of a family; they have one shape unless ``shape_b`` says another."""
    family, rng = dtypes.FAMILIES[types], cupy.random.default_rng(0)
    return random_array(family.a, shape, rng), random_array(family.b, shape_b or shape, rng)


def peers(types: str, a, b, out) -> dict[str, Any]:
    """cuBLAS as CuPy and PyTorch call it, where they have the type."""
    found = {}
    if types in ("f32", "f64", "f16"):
        found["cupy"] = lambda: cupy.matmul(a, b, out=out)
        if torch is not None:
            x, y, z = (torch.from_dlpack(v) for v in (a, b, cupy.empty_like(out)))
            found["torch"] = lambda: torch.bmm(x, y, out=z)
    if types == "bf16f32" and torch is not None:
        # The result of torch.bmm is bfloat16: it moves fewer bytes than are counted for it.
        x, y = (torch.from_dlpack(dtypes.widened(v, "float32")).bfloat16() for v in (a, b))
        z = torch.empty((*a.shape[:-1], b.shape[-1]), dtype=x.dtype, device=x.device)
        found["torch"] = lambda: torch.bmm(x, y, out=z)
    return found


def checked(types: str, a, b, out) -> bool:
    """Whether the last products are within the bound; fewer of them where they are large."""
    some = slice(-max(4, min(len(a), 2000, 50_000_000 // max(1, out[0].size * a.shape[-1]))), None)
    return verify(types, *(cupy.asnumpy(x[some]) for x in (a, b)), None, cupy.asnumpy(out[some])).holds


def batched() -> list[dict[str, Any]]:
    sizes = ((types, size) for types, sizes in SIZES.items() for size in sizes)
    return [{"size": size} | batched_row(types, size, size, size, ARRAY_BYTES) for types, size in sizes]


def shapes() -> list[dict[str, Any]]:
    return [batched_row(types, *shape, SHAPES_BYTES // 3) for types, shape in random_shapes()]


def random_shapes() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Types, and m, n and k of products beyond 32 x 32 that a kernel of the project computes."""
    rng = random.Random(SHAPES_SEED)
    least, most = SHAPES_RANGE
    for types, count in SHAPES.items():
        found: set[tuple[int, int, int]] = set()
        while len(found) < count:
            m, n, k = (round(least * (most / least) ** rng.random()) for _ in range(3))
            taken = choose(types, m, n, k, 1000).way is not Way.LIBRARY
            if taken and max(m, n) > table.BATCHED_MOST_MN and (m, n, k) not in found:
                found.add((m, n, k))
                yield types, (m, n, k)


def batched_row(types: str, m: int, n: int, k: int, array_bytes: int) -> dict[str, Any]:
    """A batch of which A, B and C have ``array_bytes`` on average."""
    dtype = dtypes.dtype_of(dtypes.FAMILIES[types].c)
    batch = 3 * array_bytes // ((m * k + k * n + m * n) * dtype.itemsize)
    a, b = operands(types, (batch, m, k), (batch, k, n))
    out = cupy.empty((batch, m, n), dtype)
    for _ in range(2):
        pysimd.matmul(a, b, out=out)
    INSTANCES.wait()
    pysimd.matmul(a, b, out=out)
    holds = checked(types, a, b, out)
    ns = medians({"pysimd": partial(pysimd.matmul, a, b, out=out), **peers(types, a, b, out)})
    rates = {name: (a.nbytes + b.nbytes + out.nbytes) / x / 1000 for name, x in ns.items()}
    best = max((rate for name, rate in rates.items() if name != "pysimd"), default=None)
    shown = "  ".join(f"{name} {rate:.2f}" for name, rate in rates.items())
    record.progress(f"{types} {m} x {n} x {k}  TB/s  {shown}  {'' if holds else 'WRONG'}")
    choice = choose(types, m, n, k, batch)
    tile = {Way.BATCHED: partial(tiling, types), Way.BATCHED_MMA: partial(mma_tiling, size=a.itemsize)}.get(choice.way)
    row = {
        "types": types,
        "m": m,
        "n": n,
        "k": k,
        "batch": batch,
        "computed_by": choice.name or choice.way.name.lower(),
        "tile": tile(m, n, k) if tile else None,
        "within_bound": holds,
        "tb_per_s": rates,
        "over_best_peer": rates["pysimd"] / best if best else None,
    }
    del a, b, out
    cupy.get_default_memory_pool().free_all_blocks()
    if torch is not None:
        torch.cuda.empty_cache()
    return row


def microseconds_per_call(functions: dict[str, Any], calls: int = 400) -> dict[str, float]:
    """Of calls in a row from Python, the work of the GPU included."""

    def run(function, calls: int) -> None:
        for _ in range(calls):
            function()
        cupy.cuda.get_current_stream().synchronize()

    runs = {name: partial(run, function) for name, function in functions.items()}
    for each in runs.values():
        each(20)
    samples = timing.interleaved({name: partial(timing.HostClock().ns, x, calls) for name, x in runs.items()}, 5)
    return {name: median(ns) / 1000 for name, ns in samples.items()}


def small() -> list[dict[str, Any]]:
    rows = []
    for size, batch in itertools.product(SMALL_SIZES, SMALL_BATCHES):
        a, b = operands("f32", (batch, size, size))
        out = cupy.empty_like(a)
        pysimd.matmul(a, b, out=out)
        holds = checked("f32", a, b, out)
        calls = {
            "pysimd": partial(pysimd.matmul, a, b),
            "pysimd_out": partial(pysimd.matmul, a, b, out=out),
            "cupy": partial(cupy.matmul, a, b),
            "cupy_out": partial(cupy.matmul, a, b, out=out),
        }
        if torch is not None:
            calls["torch"] = partial(torch.bmm, torch.from_dlpack(a), torch.from_dlpack(b))
        times = microseconds_per_call(calls)
        rows.append({"size": size, "batch": batch, "within_bound": holds, "us_per_call": times})
        shown = "  ".join(f"{name} {us:.1f}" for name, us in times.items())
        record.progress(f"f32 {size}x{size} batch {batch}  us  {shown}")
    return rows


def against_peak(work: Work, loop: PeakLoop | None) -> dict[str, Any]:
    """The fields of a row: operations per second of a launch, and its peak."""
    works = {"work": work} | ({"peak": cuda_peaks.peak_work(loop)} if loop else {})
    rates = {name: rate / 1000 for name, rate in cuda_peaks.rates(works).items()}
    return {
        "tflops": rates["work"],
        "peak": loop.instance if loop else None,
        "peak_tflops": rates.get("peak"),
        "part_of_peak": rates["work"] / rates["peak"] if loop else None,
    }


def said(row: dict[str, Any]) -> str:
    part = f"{row['part_of_peak']:.1%} of {row['peak']}" if row["peak"] else ""
    return f"{row['tflops']:.1f} TFLOP/s  {part}"


def tiles() -> list[dict[str, Any]]:
    """All tiles share one panel of A and one of B: broadcast batches, as any caller may pass them."""
    rows = []
    for kernel in pysimd.kernels("cuda", available=True):
        loop = cuda_peaks.PEAKS.get(table.BY_NAME[kernel.name].instruction)
        # Panels of 64 KiB at most each.
        k = min(4096, 65_536 // (max(kernel.mr, kernel.nr) * kernel.a_dtype.itemsize))
        found = []
        for packed_a, columns_b in itertools.product((False, True), repeat=2):
            row = {
                "kernel": kernel.name,
                "k": k,
                "a": "packed panel" if packed_a else "rows",
                "b": "columns" if columns_b else "rows",
            }
            work = cuda_tiles.tile_work(kernel, k, packed_a=packed_a, columns_b=columns_b)
            found.append(row | against_peak(work, loop))
        rows += found
        best = max(found, key=lambda row: row["tflops"])
        record.progress(f"{kernel.name}  {said(best)}  (A {best['a']}, B {best['b']})")
    return rows


def register_tiles() -> list[dict[str, Any]]:
    """The tiles that the ladder is made of, on panels in shared memory."""
    rows = []
    for types, tile in ((types, tile) for types, tiles in cuda_tiles.REGISTER_TILES.items() for tile in tiles):
        row = {
            "types": types,
            "tile": f"{tile.mr}x{tile.nr}",
            "warps": f"{tile.warps_m}x{tile.warps_n}",
            "lanes": f"{tile.lanes_m}x{tile.lanes_n}",
        }
        work = cuda_tiles.register_tile_work(types, tile)
        rows.append(row | against_peak(work, cuda_peaks.PEAKS[INSTRUCTIONS[types]]))
        record.progress(f"{types} {row['tile']} on panels in shared memory  {said(rows[-1])}")
    return rows


def gemms() -> list[dict[str, Any]]:
    """The rungs on words of two f16 and of four int8, without tensor cores, at large sizes."""
    rows = []
    rungs = [rung for rung in pysimd.rungs() if rung.available and rung.types in ("f16", "i8i32") and rung.lanes == 1]
    for rung, size in itertools.product(rungs, (1024, 2048, 4096, 8192)):
        a, b = operands(rung.types, (size, size))
        out = cupy.empty((size, size), dtypes.dtype_of(dtypes.FAMILIES[rung.types].c))
        launch = gpu_rungs.prepared(rung, a, b, out)
        launch()
        some = (a[-16:], b[:, -512:], out[-16:, -512:])
        a_rows, b_columns, corner = (cupy.asnumpy(x) for x in some)
        holds = verify(rung.types, a_rows, b_columns, None, corner).holds
        row = {"rung": rung.name, "types": rung.types, "size": size, "within_bound": holds}
        work = Work(launch, 2.0 * size**3)
        rows.append(row | against_peak(work, cuda_peaks.PEAKS[INSTRUCTIONS[rung.types]]))
        record.progress(f"{rung.name} {size}  {said(rows[-1])}")
    return rows


SECTIONS = {
    "peaks": peaks,
    "batched": batched,
    "shapes": shapes,
    "small": small,
    "tiles": tiles,
    "register_tiles": register_tiles,
    "gemms": gemms,
}


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    parser.add_argument(
        "--types", nargs="+", choices=SIZES, default=list(SIZES), metavar="TYPES", help="of the batches"
    )
    parser.add_argument("--into", type=Path, metavar="FILE.json", help="an earlier record, whose other figures stay")
    parser.add_argument("--least", type=int, default=0, metavar="SIZE", help="of the section batched")
    options = parser.parse_args()
    record.need_cuda(parser)
    for types, sizes in SIZES.items():
        SIZES[types] = tuple(size for size in sizes if size >= options.least)
    for table_of in (SIZES, SHAPES):
        for types in set(table_of) - set(options.types):
            del table_of[types]
    found = {"machine": record.gpu() | {"torch": getattr(torch, "__version__", None)}}
    found |= {name: SECTIONS[name]() for name in options.sections}
    if options.into:
        found = record.merged(json.loads(options.into.read_text()), found, BY_TYPES)
    record.write(**{"out": options.out, **{name: x for name, x in found.items() if name != "schema_version"}})


if __name__ == "__main__":
    main()
