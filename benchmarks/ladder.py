"""The GPU GEMM ladder against cuBLAS: ``python benchmarks/ladder.py [--out FILE.json]``.

At each size, m = n = k, samples of all rungs of a family (``--types``) and of cuBLAS are interleaved, on random
operands that exceed L2 in all; each result is checked against float64 before it is timed. Figures are medians of times
between two events on the GPU. The error of cuBLAS shows that it computes float32 in float32: with TF32 it would be some
thousand times as large, and outside the bound. For 16-bit operands cuBLAS is asked to accumulate in f32, with a C of
f32 and with one of 16 bits. For int8 it is given a column-major B, which its tensor-core kernels need.

``--rungs`` times some of them, with cuBLAS; with ``--into`` their rows replace those of an earlier record, whose others
stay, cuBLAS's too: its rows are of the run of most rungs. Every row names its commit.

``--counters`` runs every rung once under Nsight Compute (``ncu``) instead, and records its counters, per multiply-add
or as a share; ``--once RUNG ... --size N`` is what ncu is given. PYSIMD_COMMIT names the commit where git cannot.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.bench import cuda_ladder as ladder
from pysimd.bench.data import random_array

SIZES = (1024, 2048, 4096, 8192)

KEYS = {"rows": ["types", "name", "size"]}

COUNTERS = {
    "instructions": "smsp__inst_executed.sum",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "shared_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "global_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "l2_write_requests": "lts__t_requests_op_write.sum",
    "delivered_bytes": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "warps_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fma_percent": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "tensor_percent": "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "stall_memory": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "stall_shared": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "stall_queue": "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    "stall_barrier": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
}
"""What is recorded of a launch, and its metric of Nsight Compute. Stalls are stalled warps per issued instruction: for
global memory (long scoreboard), for shared memory (short scoreboard), for the memory queue (MIO throttle), and at a
barrier."""


def clocks() -> str:
    """Clocks, power and temperature from the driver right after the measurement; empty if it does not report them."""
    return record.output_of(
        "nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu", "--format=csv,noheader"
    )


def once(names: Sequence[str], size: int) -> None:
    rng, out = cupy.random.default_rng(0), cupy.empty((size, size), np.float32)
    for name in names:
        rung = pysimd.rung(name)
        family = dtypes.FAMILIES[rung.types]
        a, b = (random_array(x, (size, size), rng) for x in (family.a, family.b))
        gpu_rungs.prepared(rung, a, b, out)()
    cupy.cuda.get_current_stream().synchronize()


def counters(size: int, types: Sequence[str]) -> list[dict[str, Any]]:
    """Counters of each rung of these families, from one launch of it under ncu."""
    names = [rung.name for rung in pysimd.rungs() if rung.available and rung.types in types]
    pattern = "|".join(f"{name}$" for name in names)
    own = [sys.executable, __file__, "--size", str(size), "--once", *names]
    command = ["ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--kernel-name-base", "function"]
    command += ["--kernel-name", f"regex:^({pattern})", "--metrics", ",".join(COUNTERS.values()), *own]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode or not lines:
        sys.exit(f"ncu gave no counters: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    found: dict[str, dict[str, float]] = {}
    labels = {metric: label for label, metric in COUNTERS.items()}
    for row in csv.DictReader(lines):
        values = found.setdefault(row["Kernel Name"].split("<")[0].split("(")[0].removeprefix("void "), {})
        values[labels[row["Metric Name"]]] = float(row["Metric Value"].replace(",", ""))
    return [{"name": name, "size": size, **found.get(name, {})} for name in names]


def times(sizes: Sequence[int], seconds: float, types: Sequence[str], names: Sequence[str] | None) -> dict[str, Any]:
    rows, peaks = ladder.measure(sizes, seconds, record.progress, types, names=names)
    for row in rows:
        record.progress(f"{row.size:6} {row.name:18} {row.tflops:7.2f} {row.percent_of_cublas:6.1f} %")
    return {"clocks_after": clocks(), "peak_tflops": peaks, "rows": [asdict(row) for row in rows]}


def into(old: dict[str, Any], new: dict[str, Any], some: bool) -> dict[str, Any]:
    """The record in which new rows have taken the place of old ones; where only ``some`` rungs were timed, not cuBLAS's
    that it has, and not its peaks."""
    if some:
        had = {tuple(row[x] for x in KEYS["rows"]) for row in old["rows"]}
        rows = [row for row in new["rows"] if row["number"] or tuple(row[x] for x in KEYS["rows"]) not in had]
        new = new | {"rows": rows}
    peaks = [old["peak_tflops"], new["peak_tflops"]]
    return record.merged(old, new, KEYS) | {"peak_tflops": (peaks[1] | peaks[0]) if some else (peaks[0] | peaks[1])}


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    types = ",".join(ladder.TYPES)
    parser.add_argument("--types", type=lambda text: text.split(","), default=["f32"], help=f"{types} (f32)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each rung at each size (%(default)s)")
    parser.add_argument("--rungs", nargs="+", metavar="RUNG", help="of these families (all)")
    parser.add_argument("--into", type=Path, metavar="FILE.json", help="an earlier record, whose other rows stay")
    parser.add_argument("--counters", action="store_true", help="what the hardware counts, instead of times")
    parser.add_argument("--once", metavar="RUNG", nargs="+", help="run these rungs once, for a profiler")
    parser.add_argument("--size", type=int, default=2048, help="of --counters and --once (%(default)s)")
    options = parser.parse_args()
    record.need_cuda(parser)
    if options.once:
        once(options.once, options.size)
        return
    found = {"machine": record.gpu()}
    if options.counters:
        found |= {"counters": counters(options.size, options.types)}
    else:
        found |= times(options.sizes, options.seconds, options.types, options.rungs)
    if options.into:
        found = into(json.loads(options.into.read_text()), found, bool(options.rungs))
    record.write(**{"out": options.out, **{name: x for name, x in found.items() if name != "schema_version"}})


if __name__ == "__main__":
    main()
