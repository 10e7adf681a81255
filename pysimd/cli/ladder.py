"""``pysimd ladder``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from pysimd.bench import ladder
from pysimd.cli.options import add_plot, add_seconds, one_or_more, positives
from pysimd.cli.output import check_output, print_json, say, say_written
from pysimd.errors import OptionError
from pysimd.report import plots, report
from pysimd.report.text import number, table

HELP = "the GPU GEMM ladder: every rung against cuBLAS, in interleaved samples of one run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=positives, default=(1024, 2048, 4096), help="m = n = k (1024,2048,4096)")
    parser.add_argument(
        "--types", type=one_or_more(ladder.TYPES), default=("f32",), help=f"families: {', '.join(ladder.TYPES)} (f32)"
    )
    parser.add_argument("--list", action="store_true", help="the rungs without measurement; needs no GPU")
    add_plot(parser)
    add_seconds(parser, 0.2, "each rung at each size")


def execute(options) -> int:
    if options.list and options.plot is not None:
        raise OptionError("--plot draws what was measured: leave --list out")
    if options.plot is not None and len(options.types) > 1:
        raise OptionError(f"--plot draws one family, --types names {len(options.types)}: give one at a time")
    check_output(options.plot, plot=True)
    if options.list:
        rows, peaks = ladder.listed(), {}
    else:
        rows, peaks = ladder.measure(options.sizes, options.seconds, say, options.types)
    if options.json:
        print_json(machine=report.machine(), peak_tflops=peaks, rows=[asdict(row) for row in rows])
    elif options.list:
        print(_list(rows))
    else:
        print("\n\n".join(_table([row for row in rows if row.types == x], peak) for x, peak in peaks.items()))
    if options.plot is not None:
        plots.ladder_bars(rows, options.plot)
        say_written("plot", options.plot)
    wrong = [row for row in rows if row.within_bound is False]
    for row in wrong:
        say(f"warning: {row.name} at {row.size}: the result is outside the error bound")
    return 1 if wrong else 0


def _list(rows: Sequence[ladder.Row]) -> str:
    headers = ["", "rung", "tile of a block, of a thread", "threads", "FMA/element", "what is new"]
    lines = [[row.number, row.name, row.tile, row.threads, number(row.ratio, 2), row.new] for row in rows]
    return table(headers, lines, right=["threads", "FMA/element"])


def _table(rows: Sequence[ladder.Row], peak: float | None) -> str:
    speeds = ["TFLOP/s", "% of cuBLAS", "% of peak"]
    headers = ["size", "", "rung", *speeds, "FMA/element", "registers", "shared memory"]
    text = table(headers, [_cells(row) for row in rows], right=["size", *headers[3:]])
    if peak is None:
        return text
    return f"{text}\n(peak: {peak:.1f} TFLOP/s, independent multiply-adds in registers in the same run)"


def _cells(row: ladder.Row) -> list[object]:
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
