"""``pysimd source``."""

from __future__ import annotations

import argparse

from pysimd import registry, sources
from pysimd.cli.output import print_json

HELP = "print the source file of a kernel or of a rung of the ladder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the kernel or rung")
    parser.add_argument("--with-includes", action="store_true", help="then the project's headers that it includes")


def execute(options) -> int:
    kernel = registry.kernel_or_rung(options.name)
    found = sources.with_includes(kernel.source_path) if options.with_includes else {kernel.source_path: kernel.source}
    if options.json:
        print_json(kernel=kernel.name, files=[{"path": path, "text": text} for path, text in found.items()])
        return 0
    for path, text in found.items():
        if options.with_includes:
            print(f"/* ==== {path} ==== */")
        print(text.rstrip("\n"))
        if options.with_includes:
            print()
    return 0
