"""``pysimd ladder``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace

from pysimd.bench import cpu_ladder, cuda_ladder
from pysimd.cli.options import add_plot, add_seconds, one_or_more, positives
from pysimd.cli.output import check_output, numpy_blas, print_json, say, say_written
from pysimd.errors import OptionError
from pysimd.report import plots, report
from pysimd.report.text import number, table

HELP = "a GEMM ladder: every rung against cuBLAS, rocBLAS or NumPy, in interleaved samples of one run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    families = ", ".join(cuda_ladder.TYPES)
    parser.add_argument("--backend", choices=("cpu", "cuda", "hip"), default="cuda", help="which ladder (%(default)s)")
    parser.add_argument("--sizes", type=positives, help="m = n = k (cuda, hip 1024,2048,4096; cpu 128 to 2048)")
    parser.add_argument("--types", type=one_or_more(cuda_ladder.TYPES), help=f"families on cuda: {families} (f32)")
    parser.add_argument("--threads", type=positives, help="threads on the cpu (1,2)")
    parser.add_argument("--list", action="store_true", help="the rungs without measurement; needs no GPU")
    add_plot(parser)
    add_seconds(parser, 0.2, "each rung at each size")


def execute(options) -> int:
    if options.list and options.plot is not None:
        raise OptionError("--plot draws what was measured: leave --list out")
    if options.backend != "cuda" and options.types:
        raise OptionError(f"--types is for --backend cuda: the ladder of {options.backend} is float32")
    if options.backend != "cpu" and options.threads:
        raise OptionError("--threads is for --backend cpu")
    if options.plot is not None and len(options.types or ()) > 1:
        raise OptionError(f"--plot draws one family, --types names {len(options.types)}: give one at a time")
    check_output(options.plot, plot=True)
    rows = _on_cpu(options) if options.backend == "cpu" else _on_gpu(options)
    wrong = [row for row in rows if row.within_bound is False]
    for row in wrong:
        say(f"warning: {row.name} at {row.size}: the result is outside the error bound")
    return 1 if wrong else 0


# --- GPU ---


def _on_gpu(options) -> Sequence[cuda_ladder.Row]:
    types = options.types or ("f32",)
    if options.list:
        rows, peaks = cuda_ladder.listed(options.backend), {}
    else:
        rows, peaks = cuda_ladder.measure(
            options.sizes or (1024, 2048, 4096), options.seconds, say, types, options.backend
        )
    if options.json:
        print_json(machine=report.machine(), peak_tflops=peaks, rows=[asdict(row) for row in rows])
    elif options.list:
        print(_list(rows))
    else:
        blas = "rocBLAS" if options.backend == "hip" else "cuBLAS"
        print("\n\n".join(_table([row for row in rows if row.types == x], peak, blas) for x, peak in peaks.items()))
    if options.plot is not None:
        plots.ladder_bars(rows, options.plot)
        say_written("plot", options.plot)
    return rows


def _list(rows: Sequence[cuda_ladder.Row]) -> str:
    headers = ["", "rung", "tile of a block, of a thread", "threads", "FMA/element", "what is new"]
    lines = [[row.number, row.name, row.tile, row.threads, number(row.ratio, 2), row.new] for row in rows]
    return table(headers, lines, right=["threads", "FMA/element"])


def _table(rows: Sequence[cuda_ladder.Row], peak: float | None, blas: str) -> str:
    speeds = ["TFLOP/s", f"% of {blas}", "% of peak"]
    headers = ["size", "", "rung", *speeds, "FMA/element", "registers", "shared memory"]
    text = table(headers, [_cells(row) for row in rows], right=["size", *headers[3:]])
    if peak is None:
        return text
    return f"{text}\n(peak: {peak:.1f} TFLOP/s, independent multiply-adds in registers in the same run)"


def _cells(row: cuda_ladder.Row) -> list[object]:
    return [
        row.size,
        row.number or "",
        row.name,
        number(row.tflops, 2),
        number(row.percent_of_cublas),
        number(row.percent_of_peak),
        number(row.ratio, 2),
        number(row.registers, 0),
        number(row.shared_bytes, 0),
    ]


# --- CPU ---


def _on_cpu(options) -> Sequence[cpu_ladder.Row]:
    blas = numpy_blas()
    if options.list:
        rows, peaks = cpu_ladder.listed(), {}
    else:
        threads = options.threads or cpu_ladder.THREADS
        rows, peaks = cpu_ladder.measure(options.sizes or cpu_ladder.SIZES, options.seconds, say, threads)
    if options.json:
        about = {"machine": report.machine(), "numpy_blas": asdict(blas)}
        print_json(**about, peak_gflops=peaks, rows=[asdict(row) for row in rows])
    elif options.list:
        print(_cpu_list(rows))
    else:
        print(_cpu_table(rows, peaks))
    if options.plot is not None:
        plots.ladder_bars([_named_by_threads(row) for row in rows], options.plot, "GFLOP/s")
        say_written("plot", options.plot)
    return rows


def _cpu_list(rows: Sequence[cpu_ladder.Row]) -> str:
    counts = ["FMA/element", "multiply-adds", "loads", "stores", "spills"]
    headers = ["", "rung", "tile; mc, nc, kc", *counts, "what is new"]
    lines = [[row.number, row.name, row.tile, *_counts(row), row.new] for row in rows]
    return table(headers, lines, right=counts)


def _counts(row: cpu_ladder.Row) -> list[str]:
    return [number(row.ratio, 2), *(number(x, 0) for x in (row.multiply_adds, row.loads, row.stores, row.spills))]


def _cpu_table(rows: Sequence[cpu_ladder.Row], peaks: dict[int, float]) -> str:
    speeds = ["GFLOP/s", "% of peak", "x NumPy", "x rung before"]
    counts = ["FMA/element", "multiply-adds", "loads", "stores", "spills"]
    headers = ["size", "threads", "", "rung", *speeds, *counts]
    lines = [[row.size, row.threads, row.number or "", row.name, *_speeds(row), *_counts(row)] for row in rows]
    reached = ", ".join(f"{peak:.1f} GFLOP/s on {n} thread{'s' * (n != 1)}" for n, peak in peaks.items())
    text = table(headers, lines, right=["size", "threads", *headers[4:]])
    return f"{text}\n(peak: {reached}, independent multiply-adds in registers in the same run)"


def _speeds(row: cpu_ladder.Row) -> list[str]:
    return [number(row.gflops), number(row.percent_of_peak), number(row.over_numpy, 2), number(row.gain, 2)]


def _named_by_threads(row: cpu_ladder.Row) -> cpu_ladder.Row:
    return row if row.threads == 1 else replace(row, name=f"{row.name}, {row.threads} threads")
