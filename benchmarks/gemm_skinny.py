"""Products with a short side against cuBLAS: ``python benchmarks/gemm_skinny.py [--out FILE.json]``.

bf16_best and f16_best by their names, with a row-major and with a column-major B and a C of the operands' type; cuBLAS
through CuPy and through torch. Figures are medians of GPU times of calls in a queue, on random operands that exceed L2
in all, samples shuffled; for some shapes also of calls in a CUDA graph. ``taken``: whether matmul takes the rung.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import cupy
import record
from gemm_squares import MOST_SETS, RUNGS, torch_mm
from pysimd.gpu_kernels import ladder_table

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda import estimates
from pysimd.backends.cuda.ladder import tensor
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.bench import cuda_ladder as ladder
from pysimd.bench import timing
from pysimd.bench.data import random_array

SHORT = (1, 8, 16, 32, 48, 64)
LONG = (  # n, k
    (4096, 4096),
    (3072, 3072),
    (2560, 2560),
    (2304, 2304),
    (2048, 2048),
    (1536, 1536),
    (1280, 5120),
    (1024, 4096),
    (1024, 1024),
    (512, 4096),
    (4096, 1024),
    (4096, 256),
    (2048, 5120),
    (1024, 8192),
    (3072, 768),
    (4096, 11008),
    (5120, 5120),
    (8192, 4096),
    (11008, 4096),
    (16384, 4096),
)
SOME = (16, 64)
"""Rows of the shapes that are no squares of 4096."""

_OFFERED = {"bf16f32": "bf16f32", "f16f32": "f16"}
"""The family of a rung's operands as matmul offers it."""

GRAPHS = ((64, 4096, 4096), (16, 4096, 4096), (64, 2048, 2048), (16, 2048, 2048), (64, 1024, 8192), (64, 3072, 3072))


def shapes() -> list[tuple[int, int, int]]:
    found = [(m, n, k) for n, k in LONG for m in (SHORT if (n, k) == LONG[0] else SOME)]
    return found + [(n, m, k) for m, n, k in found if (n, k) in (LONG[0], LONG[4], LONG[7]) and m in SOME]


class Calls:
    """Sets of operands of a product, and what computes it."""

    def __init__(self, types: str, m: int, n: int, k: int, columns: bool):
        family, rung = dtypes.FAMILIES[types], pysimd.rung(RUNGS[types])
        size = dtypes.dtype_of(family.a).itemsize
        sets = min(MOST_SETS, ladder.operand_sets(size * (m * k + k * n + m * n)))
        rng = cupy.random.default_rng(0)
        a = random_array(family.a, (sets, m, k), rng)
        b = random_array(family.a, (sets, n, k) if columns else (sets, k, n), rng)
        b = b.swapaxes(1, 2) if columns else b
        arrays = [(a[i], b[i], cupy.empty((m, n), a.dtype)) for i in range(sets)]
        self.of = {
            name: [function(*x) for x in arrays]
            for name, function in (
                ("pysimd", partial(gpu_rungs.prepared, rung)),
                ("cublas", ladder.gemm_ex),
                ("torch", torch_mm),
            )
        }


def row(types: str, m: int, n: int, k: int, columns: bool, seconds: float) -> dict[str, Any]:
    calls = Calls(types, m, n, k, columns).of
    runs = {name: timing.cycled(functions) for name, functions in calls.items()}
    ns = {name: x.median_ns for name, x in timing.times(runs, timing.QueuedCudaEvents(), seconds=seconds).items()}
    layouts = ("K_MAJOR", "K_MAJOR" if columns else "MN_MAJOR")
    choice = tensor.choose(ladder_table.BY_NAME[RUNGS[types]], m, n, k, 1, estimates.PROCESSORS, layouts)
    found = {"types": types, "m": m, "n": n, "k": k, "b": "columns" if columns else "rows"}
    found["us"] = {x: round(y / 1000, 2) for x, y in ns.items()}
    found |= {"times_cublas": round(min(ns["cublas"], ns["torch"]) / ns["pysimd"], 3)}
    found |= {
        "tile": f"{choice.block.bm}x{choice.block.bn}",
        "parts": choice.parts,
        "skinny": bool(choice.block.skinny),
    }
    found |= {"estimated_us": round(choice.us, 1), "taken": estimates.takes(_OFFERED[types], m, n, k)}
    record.progress(f"{types} {m} x {n} x {k}, B {found['b']}: {found['us']} {found['times_cublas']} {found['taken']}")
    return found


def graph_row(types: str, m: int, n: int, k: int) -> dict[str, Any]:
    calls, us = Calls(types, m, n, k, False).of, {}
    for name in ("pysimd", "torch"):
        functions = calls[name][:12]
        replay, stream = (_captured_by_torch if name == "torch" else _captured)(functions)
        us[name] = round(_replay_us(replay, stream) / len(functions), 2)
    found = {"types": types, "m": m, "n": n, "k": k, "us": us, "times_cublas": round(us["torch"] / us["pysimd"], 3)}
    record.progress("graph", found)
    return found


def _captured(functions: list[Callable]) -> tuple[Callable, cupy.cuda.Stream]:
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for function in functions:
            function()
        stream.begin_capture()
        for function in functions:
            function()
        graph = stream.end_capture()
    return partial(graph.launch, stream), stream


def _captured_by_torch(functions: list[Callable]) -> tuple[Callable, cupy.cuda.Stream]:
    import torch

    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for function in functions:
            function()
    return graph.replay, cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)


def _replay_us(replay: Callable, stream: cupy.cuda.Stream) -> float:
    samples = []
    for _ in range(40):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        replay()
        begin.record(stream)
        replay()
        replay()
        end.record(stream)
        end.synchronize()
        samples.append(500 * cupy.cuda.get_elapsed_time(begin, end))
    return statistics.median(samples)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0.03, help="for each side at each shape (%(default)s)")
    options = parser.parse_args()
    record.need_cuda(parser)
    ladder.check_available()
    types = ("bf16f32", "f16f32")
    rows = [row(x, *shape, columns, options.seconds) for shape in shapes() for x in types for columns in (False, True)]
    graphs = [graph_row(x, *shape) for shape in GRAPHS for x in types]
    record.write(record.gpu(), options.out, rows=rows, graphs=graphs)


if __name__ == "__main__":
    main()
