"""``pysimd show``."""

from __future__ import annotations

import argparse
from pathlib import Path

from pysimd import registry
from pysimd.cli.output import check_output, print_json, said_when_slow, say_written
from pysimd.errors import UnavailableError
from pysimd.inspection import Inspection, inspect
from pysimd.microkernel import MicroKernel, Rung
from pysimd.report import drawing, plots, tile_drawing

HELP = "draw the register tile of a kernel or of a rung of the ladder, with the counts of its hot loop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the kernel or rung")
    parser.add_argument("--target", help="compile a GPU kernel for this, e.g. sm_80 or gfx1100")
    parser.add_argument("--code", action="store_true", help="then the counts and the disassembly of the hot loop")
    parser.add_argument("--svg", metavar="PATH", type=Path, help="write the drawing here as SVG")
    parser.add_argument("--plot", metavar="PATH", type=Path, help="write it here as PNG, SVG or PDF")


def execute(options) -> int:
    check_output(options.svg)
    check_output(options.plot, plot=True)
    kernel = registry.kernel_or_rung(options.name)
    found, reason = _inspected(kernel, options.target)
    if options.code and found is None:
        raise UnavailableError(reason)
    tile = tile_drawing.tile(kernel, found and found.counts(), reason)
    picture = tile_drawing.drawing(tile)
    if options.svg is not None:
        options.svg.write_text(drawing.svg(picture))
        say_written("drawing", options.svg)
    if options.plot is not None:
        plots.save(picture, options.plot)
        say_written("drawing", options.plot)
    if options.json:
        print_json(**tile.to_dict() | {"counted": found and found.to_dict()})
        return 0
    print(tile_drawing.text(tile))
    if options.code:
        print(f"\n{found}\n\n{found.listing}")
    return 0


def _inspected(kernel: MicroKernel | Rung, target: str | None) -> tuple[Inspection | None, str]:
    """The hot loop, or what is missing to read it."""
    try:
        with said_when_slow(f"reading the code of {kernel.name} ..."):
            return inspect(kernel, target=target), ""
    except UnavailableError as error:
        return None, str(error)
