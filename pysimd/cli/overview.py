"""``pysimd``: an overview of this machine."""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import asdict

import numpy as np

from pysimd import registry
from pysimd._version import __version__
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import tiles
from pysimd.cli.options import add_seconds
from pysimd.cli.output import numpy_blas, print_json, say
from pysimd.report import report
from pysimd.report.ratio_table import ratio_table
from pysimd.report.text import table

COLUMNS = (4, 8, 16, 32, 64)
LARGE = 4096  # rows and k of products that are large for every kernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_seconds(parser, 0.02, "each kernel and to each peak")


def execute(options) -> int:
    blas = numpy_blas()
    chosen = {types: {n: CPU.chosen(types, n, n) for n in COLUMNS} for types in CPU.offered}
    names = [k.name for k in registry.kernels(types="f32", available=True)]
    say(f"measuring {len(names)} f32 kernels ...")
    measured = report.compare(names, measure=True, seconds=options.seconds)
    if options.json:
        print_json(
            machine=report.machine(),
            python=platform.python_version(),
            numpy=np.__version__,
            numpy_blas=asdict(blas),
            isa_bound=_isa_bound(),
            default_threads=cpu_table.default_threads(),
            kernel_by_types_and_columns={types: {n: k.name for n, k in by_n.items()} for types, by_n in chosen.items()},
            rows=measured.to_dict()["rows"],
        )
        return 0
    print(f"pysimd {__version__}, Python {platform.python_version()}, NumPy {np.__version__} ({blas})\n")
    _print_backends()
    _print_dispatch(chosen)
    print("\nInner product against outer product, f32: multiply-adds per element loaded, and the speed of one tile in")
    print(f"cache (one core, K = {tiles.K}) as a share of the peak measured here for the same instructions:")
    print(ratio_table(measured.rows))
    print("\nAll types: pysimd ratio --measure    against NumPy: pysimd bench    one kernel: pysimd run NAME")
    return 0


def _isa_bound() -> str | None:
    return os.environ.get("PYSIMD_ISA") or None


def _print_backends() -> None:
    backends = registry.backends()
    lines = [[b.name, *(("available", b.device) if b.available else ("unavailable", b.reason))] for b in backends]
    print(table(["backend", "state", "device, or what is missing"], lines))
    host, bound = next(b for b in backends if b.name == "cpu"), _isa_bound()
    targets = dict.fromkeys(k.target for k in registry.kernels("cpu", available=True))
    print(f"\nCPU features  {' '.join(host.features) or '(none that pysimd uses)'}")
    print(f"CPU targets   {' '.join(targets)}" + (f"   (PYSIMD_ISA={bound} is the upper bound)" if bound else ""))
    print(f"CPU threads   1 for small work, {cpu_table.default_threads()} for large\n")


def _print_dispatch(chosen) -> None:
    print("Tiles that pysimd.matmul takes for products with n columns:")
    headers = ["types", "target", *(f"n = {n}" if n < COLUMNS[-1] else f"n >= {n}" for n in COLUMNS)]
    lines = [
        [types, by_n[COLUMNS[0]].target, *(f"{k.mr}x{k.nr}" for k in by_n.values())] for types, by_n in chosen.items()
    ]
    print(table(headers, lines))
    for types, by_n in chosen.items():
        large = CPU.chosen(types, COLUMNS[-1], LARGE, LARGE)
        if large is not by_n[COLUMNS[-1]]:
            print(f"Large products of {types}: {large.name}")
