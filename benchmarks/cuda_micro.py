"""CUDA speed beside the peers of the same run: ``python benchmarks/cuda_micro.py [--out FILE.json]``.

Sections:
    ceilings  what this device does at most: copied bytes, and chains of one arithmetic instruction on registers
    batched   C[i] = A[i] B[i], new values in memory far larger than L2: bytes of A, B and C per second, matmul(out=)
              beside cupy.matmul (cuBLAS) and torch.bmm
    small     few products: microseconds per call, from Python, of calls one after the other
    tiles     every kernel on panels that all its tiles share, so that they come from the first-level cache: operations
              beside the ceiling of its instruction
    register_tiles  the tiles of the GEMM ladder on panels in shared memory, beside that ceiling
    gemms     the rungs for halves and bytes, beside that ceiling

Figures of one line are taken turn by turn, each turn some calls between two events on the GPU, and are medians.
Operands are random; products are checked before they are timed. PyTorch is optional. PYSIMD_COMMIT names the commit
where git cannot.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

import cupy
import numpy as np
from gpu_record import deliver, machine
from pysimd.gpu_kernels import table

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda.ladder import rungs as cuda_ladder
from pysimd.backends.gpu.batched import tiling
from pysimd.bench import cuda_peaks, cuda_tiles
from pysimd.bench.verify import verify

try:
    import torch
except ImportError:
    torch = None

ARRAY_BYTES = 1_200_000_000
"""Of the largest of A, B and C: twenty times the L2 of an H200."""

SIZES = {
    "f32": (3, 4, 5, 6, 7, 8, 12, 13, 16, 20, 24, 31, 32),
    "f64": (3, 4, 6, 8, 12, 16, 32),
    "f16": (3, 4, 6, 8, 12, 16, 32),
    "bf16f32": (4, 8, 16, 32),
    "i8i32": (3, 4, 6, 8, 12, 16, 32),
}
SMALL_BATCHES = (1, 100, 10_000)
SMALL_SIZES = (4, 8, 16, 32)

#: Chains of peaks.cu, with the operations of one instruction.
CHAINS = {"ffma": 2, "hfma2": 4, "hfma2_broadcast": 4, "dp4a": 8}


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def turns(functions: dict[str, object], rounds: int = 9, seconds: float = 0.01) -> dict[str, float]:
    """Median seconds of a call of each function, turn by turn, about ``seconds`` of calls (ten at most) between two
    events."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def timed(function, calls: int) -> float:
        begin.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) * 1e-3 / calls

    counts, times = {}, {name: [] for name in functions}
    for name, function in functions.items():
        function()
        counts[name] = min(10, max(1, round(seconds / timed(function, 1))))
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(timed(function, counts[name]))
    return {name: median(found) for name, found in times.items()}


def ceilings() -> dict[str, float]:
    runs = {name: cuda_peaks.peak_run(name, operations) for name, operations in CHAINS.items()}
    seconds = turns({name: run for name, (run, _) in runs.items()})
    found = {f"{name}_tflops": runs[name][1] / seconds[name] / 1e12 for name in runs}
    source = cupy.random.default_rng(0).standard_normal(1 << 28, dtype=np.float32)
    target = cupy.empty_like(source)
    copy = turns({"copy": partial(target.data.copy_from_device_async, source.data, source.nbytes)})["copy"]
    found["copy_tb_per_s"] = 2 * source.nbytes / copy / 1e12
    for name, value in found.items():
        progress(f"{name} {value:.2f}")
    return found


def random_batch(name: str, batch: int, size: int, seed: int):
    generator = cupy.random.default_rng(seed)
    if name == "int8":
        return generator.integers(-128, 128, (batch, size, size), dtype=np.int8)
    x = generator.standard_normal((batch, size, size), dtype=np.float64 if name == "float64" else np.float32)
    return x.astype(dtypes.dtype_of(name))


def peers(types: str, a, b, out) -> dict[str, object]:
    """cuBLAS as CuPy and PyTorch call it, where they have the type."""
    found = {}
    if types in ("f32", "f64", "f16"):
        found["cupy"] = lambda: cupy.matmul(a, b, out=out)
        if torch is not None:
            x, y, z = (torch.from_dlpack(v) for v in (a, b, cupy.empty_like(out)))
            found["torch"] = lambda: torch.bmm(x, y, out=z)
    if types == "bf16f32" and torch is not None:
        # torch.bmm's result is bfloat16: it moves fewer bytes than it is credited for.
        x, y = (torch.from_dlpack(v.astype(np.float32)).bfloat16() for v in (a, b))
        z = torch.empty_like(x)
        found["torch"] = lambda: torch.bmm(x, y, out=z)
    return found


def checked(types: str, a, b, out) -> bool:
    some = slice(-min(len(a), 2000), None)
    return verify(types, *(cupy.asnumpy(x[some]) for x in (a, b)), None, cupy.asnumpy(out[some])).holds


def batched() -> list[dict[str, object]]:
    rows = []
    for types, sizes in SIZES.items():
        family = dtypes.FAMILIES[types]
        for size in sizes:
            result = dtypes.dtype_of(family.c)
            batch = ARRAY_BYTES // (size * size * result.itemsize)
            a, b = (random_batch(family.a, batch, size, seed) for seed in (1, 2))
            out = cupy.empty((batch, size, size), result)
            pysimd.matmul(a, b, out=out)
            holds = checked(types, a, b, out)
            theirs = peers(types, a, b, out)
            ours = partial(pysimd.matmul, a, b, out=out)
            seconds = turns({"pysimd": ours, **theirs})
            moved = a.nbytes + b.nbytes + out.nbytes
            rates = {name: moved / s / 1e12 for name, s in seconds.items()}
            best = max((rates[name] for name in theirs), default=None)
            row = {
                "types": types,
                "size": size,
                "batch": batch,
                "tile": tiling(types, size, size, size),
                "within_bound": holds,
                "tb_per_s": rates,
                "over_best_peer": rates["pysimd"] / best if best else None,
            }
            rows.append(row)
            shown = "  ".join(f"{name} {rate:.2f}" for name, rate in rates.items())
            progress(f"{types} {size}x{size}  TB/s  {shown}  {'' if holds else 'WRONG'}")
            del a, b, out, theirs
            cupy.get_default_memory_pool().free_all_blocks()
            if torch is not None:
                torch.cuda.empty_cache()
    return rows


def per_call(function, calls: int = 400) -> float:
    """Microseconds of a call from Python, the GPU's work included, many calls in a row."""
    for _ in range(20):
        function()
    best = []
    for _ in range(5):
        cupy.cuda.get_current_stream().synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        cupy.cuda.get_current_stream().synchronize()
        best.append((time.perf_counter() - start) / calls * 1e6)
    return median(best)


def small() -> list[dict[str, object]]:
    rows = []
    for size in SMALL_SIZES:
        for batch in SMALL_BATCHES:
            a, b = (random_batch("float32", batch, size, seed) for seed in (1, 2))
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
                x, y = torch.from_dlpack(a), torch.from_dlpack(b)
                calls["torch"] = partial(torch.bmm, x, y)
            times = {name: per_call(call) for name, call in calls.items()}
            rows.append({"size": size, "batch": batch, "within_bound": holds, "us_per_call": times})
            progress(f"f32 {size}x{size} batch {batch}  us  " + "  ".join(f"{n} {t:.1f}" for n, t in times.items()))
    return rows


def tiles() -> list[dict[str, object]]:
    """All tiles share one panel of A and one of B: broadcast batches, as any caller may pass them."""
    rows = []
    for kernel in pysimd.kernels("cuda", available=True):
        ceiling = cuda_peaks.PEAKS.get(table.BY_NAME[kernel.name].instruction)
        # Panels of 64 KiB at most each.
        k = min(4096, 65_536 // (max(kernel.mr, kernel.nr) * kernel.a_dtype.itemsize))
        found = []
        for packed_a, columns_b in ((False, False), (False, True), (True, False), (True, True)):
            runs = {"kernel": cuda_tiles.tile_run(kernel, k, packed_a=packed_a, columns_b=columns_b)}
            if ceiling:
                runs["ceiling"] = cuda_peaks.peak_run(*ceiling)
            seconds = turns({name: run for name, (run, _) in runs.items()})
            rates = {name: runs[name][1] / seconds[name] / 1e12 for name in runs}
            row = {
                "kernel": kernel.name,
                "k": k,
                "a": "packed panel" if packed_a else "rows",
                "b": "columns" if columns_b else "rows",
                "tflops": rates["kernel"],
                "ceiling": ceiling[0] if ceiling else None,
                "ceiling_tflops": rates.get("ceiling"),
                "part_of_ceiling": rates["kernel"] / rates["ceiling"] if ceiling else None,
            }
            found.append(row)
        rows += found
        best = max(found, key=lambda row: row["tflops"])
        part = f"{best['part_of_ceiling']:.1%} of {best['ceiling']}" if ceiling else ""
        progress(f"{kernel.name}  {best['tflops']:.1f} TFLOP/s  {part}  (A {best['a']}, B {best['b']})")
    return rows


def register_tiles() -> list[dict[str, object]]:
    """The tiles that the ladder is made of, on panels in shared memory."""
    rows = []
    ceiling_of = {"f32": "FFMA", "f16": "HFMA2", "i8i32": "IDP.4A"}
    for types, (_, shapes) in cuda_tiles.REGISTER_TILES.items():
        name, operations = cuda_peaks.PEAKS[ceiling_of[types]]
        for shape in shapes:
            runs = {
                "tile": cuda_tiles.register_tile_run(types, shape),
                "ceiling": cuda_peaks.peak_run(name, operations),
            }
            seconds = turns({label: run for label, (run, _) in runs.items()})
            rates = {label: runs[label][1] / seconds[label] / 1e12 for label in runs}
            part = rates["tile"] / rates["ceiling"]
            tile, warps, lanes = (f"{x}x{y}" for x, y in zip(shape[::2], shape[1::2], strict=True))
            rows.append(
                {
                    "types": types,
                    "tile": tile,
                    "warps": warps,
                    "lanes": lanes,
                    "tflops": rates["tile"],
                    "ceiling": name,
                    "ceiling_tflops": rates["ceiling"],
                    "part_of_ceiling": part,
                }
            )
            progress(f"{types} {tile} on panels in shared memory  {rates['tile']:.1f} TFLOP/s  {part:.1%} of {name}")
    return rows


def gemms() -> list[dict[str, object]]:
    """The rungs on words of two halves and four bytes, at large sizes, beside the chain of their instruction."""
    rows = []
    for rung in (rung for rung in pysimd.rungs() if rung.available and rung.types != "f32"):
        name, operations = cuda_peaks.PEAKS["HFMA2" if rung.types == "f16" else "IDP.4A"]
        family = pysimd.dtypes.FAMILIES[rung.types]
        for size in (1024, 2048, 4096, 8192):
            a, b = (random_batch(family.a, 1, size, seed)[0] for seed in (1, 2))
            out = cupy.empty((size, size), family.c)
            run = cuda_ladder.prepared(rung, a, b, out)
            run()
            holds = verify(rung.types, *(cupy.asnumpy(x) for x in (a[-16:], b)), None, cupy.asnumpy(out[-16:])).holds
            chain, chain_operations = cuda_peaks.peak_run(name, operations)
            seconds = turns({"rung": run, "ceiling": chain})
            rate, ceiling = 2e-12 * size**3 / seconds["rung"], chain_operations / seconds["ceiling"] / 1e12
            rows.append(
                {
                    "rung": rung.name,
                    "types": rung.types,
                    "size": size,
                    "within_bound": holds,
                    "tflops": rate,
                    "ceiling": name,
                    "ceiling_tflops": ceiling,
                    "part_of_ceiling": rate / ceiling,
                }
            )
            progress(f"{rung.name} {size}  {rate:.1f} TFLOP/s  {rate / ceiling:.1%} of {name}")
    return rows


SECTIONS = {
    "ceilings": ceilings,
    "batched": batched,
    "small": small,
    "tiles": tiles,
    "register_tiles": register_tiles,
    "gemms": gemms,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    parser.add_argument("--sections", nargs="+", default=list(SECTIONS))
    options = parser.parse_args()
    reason = pysimd.backends()[1].reason
    if reason:
        parser.exit(1, f"{reason}\n")
    document = {
        "machine": machine() | {"torch": getattr(torch, "__version__", None)},
        **{name: SECTIONS[name]() for name in options.sections},
    }
    deliver(document, options.out)


if __name__ == "__main__":
    main()
