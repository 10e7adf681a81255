"""``pysimd report``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pysimd.cli.options import add_seconds, add_selection, selected
from pysimd.cli.output import check_output, say, say_written
from pysimd.errors import OptionError
from pysimd.report.report import Report, compare

_MOST_BYTES = 64 << 20
"""Of a recorded report."""

HELP = "write one HTML page: ratios analytic and counted, speeds measured, rooflines and register tiles drawn"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, required=True, help="write the page here")
    parser.add_argument("--no-measure", action="store_true", help="count only")
    parser.add_argument(
        "--from",
        dest="recorded",
        metavar="JSON",
        type=Path,
        help="make the page from a file that ratio --count --measure --json wrote",
    )
    add_seconds(parser, 0.1, "each kernel and to each peak")


def execute(options) -> int:
    check_output(options.output)
    found = _measured(options) if options.recorded is None else _recorded(options)
    page = found.html() if options.recorded is None else _page(found, options.recorded)
    if options.json:
        print(found.to_json())
    options.output.write_text(page)
    say_written("report", options.output)
    return 0


def _measured(options) -> Report:
    return compare(
        selected(options),
        count=True,
        measure=not options.no_measure,
        seconds=options.seconds,
        targets=options.targets,
        fresh=options.fresh,
        say=say,
    )


def _page(found: Report, path: Path) -> str:
    """The page of a recorded report, whose values may be of any type."""
    try:
        return found.html()
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise OptionError(f"{path} is no report: a value in it has another type or range ({error})") from error


def _recorded(options) -> Report:
    if options.names or options.backend or options.targets or options.no_measure or options.fresh:
        raise OptionError("--from takes the report as it was recorded: leave everything but -o and --json out")
    with options.recorded.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise OptionError(f"{options.recorded} is longer than {_MOST_BYTES} bytes, which no report is")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{options.recorded} is not a JSON file: {error}") from error
    return Report.from_dict(data)
