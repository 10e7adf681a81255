"""Arguments that several commands have, and the types of arguments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pysimd import registry
from pysimd.errors import OptionError

BACKENDS = ("cpu", "cuda", "hip")


def add_json(parser: argparse.ArgumentParser, default) -> None:
    parser.add_argument("--json", action="store_true", default=default, help="one JSON document instead of a table")


def add_seconds(parser: argparse.ArgumentParser, default: float, what: str) -> None:
    parser.add_argument("--seconds", type=seconds, default=default, help=f"time given to {what} (%(default)s)")


def add_plot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", metavar="PATH", type=Path, help="draw the table as bars (PNG, SVG, PDF)")


def add_fresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="measure peaks again that were measured before")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Names, ``--backend``, ``--target`` and ``--fresh``, of commands that report on kernels."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="kernels (all)")
    parser.add_argument("--backend", choices=BACKENDS, help="the kernels of one backend (all)")
    parser.add_argument(
        "--target",
        dest="targets",
        type=words,
        default=(),
        help="what GPU kernels are compiled for when counted, e.g. sm_80 or gfx906,gfx1100",
    )
    add_fresh(parser)


def selected(options) -> list | None:
    """The kernels of ``add_selection``; None for all."""
    if options.names and options.backend:
        raise OptionError("give names or --backend, not both")
    return registry.kernels(options.backend) if options.backend else options.names or None


def words(text: str) -> tuple[str, ...]:
    """Words between commas."""
    return tuple(part.strip() for part in text.split(","))


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def non_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)


def positives(text: str) -> tuple[int, ...]:
    """Positive integers between commas."""
    return tuple(positive(part) for part in words(text))


def one_or_more(known: Sequence[str]):
    """Words of ``known`` between commas."""

    def parse(text: str) -> tuple[str, ...]:
        for name in words(text):
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return words(text)

    return parse


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds between 0 and 3600")
    return value
