"""``pysimd ratio``."""

from __future__ import annotations

import argparse
from pathlib import Path

from pysimd.cli.options import add_plot, add_seconds, add_selection, selected
from pysimd.cli.output import check_output, say, say_written
from pysimd.errors import OptionError
from pysimd.report.ratio_table import ratio_table
from pysimd.report.report import compare

HELP = "multiply-adds per element loaded, inner product against outer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", action="store_true", help="count in the machine code; GPU kernels are compiled")
    parser.add_argument("--measure", action="store_true", help="time each kernel and the peaks of its instructions")
    add_selection(parser)
    add_plot(parser)
    parser.add_argument(
        "--rooflines", metavar="PATH", type=Path, help="draw rooflines of the kernels counted and measured"
    )
    add_seconds(parser, 0.02, "each kernel and to each peak")


def execute(options) -> int:
    if options.targets and not options.count:
        raise OptionError("--target says what is counted: add --count")
    if options.rooflines is not None and not (options.count and options.measure):
        raise OptionError("--rooflines draws what was counted and measured: add --count --measure")
    check_output(options.plot, plot=True)
    check_output(options.rooflines, plot=True)
    found = compare(
        selected(options),
        count=options.count,
        measure=options.measure,
        seconds=options.seconds,
        targets=options.targets,
        fresh=options.fresh,
        say=say,
    )
    print(found.to_json() if options.json else ratio_table(found.rows))
    if options.plot is not None:
        found.plot(options.plot)
        say_written("plot", options.plot)
    if options.rooflines is not None:
        found.plot_rooflines(options.rooflines)
        say_written("rooflines", options.rooflines)
    return 0
