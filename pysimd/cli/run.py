"""``pysimd run``."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pysimd import dtypes, operands, registry
from pysimd.bench import tiles
from pysimd.bench.calls import timed_call
from pysimd.bench.data import random_operands
from pysimd.bench.verify import Verified, verify
from pysimd.cli.options import add_seconds, non_negative, positive
from pysimd.cli.output import check_output, fail, operations_unit, print_json, say
from pysimd.errors import DTypeError, OptionError
from pysimd.microkernel import MicroKernel
from pysimd.report.text import table
from pysimd.simulator import TARGETS

_TILE_SECONDS = 0.02
"""Time given to the tile in cache, and to its peak, as in ``ratio --measure``."""

HELP = "run one kernel on .npy files or on seeded random input, time it and check it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="kernel name")
    parser.add_argument("--a", metavar="A.npy", type=Path, help="A, (..., mr, K)")
    parser.add_argument("--b", metavar="B.npy", type=Path, help="B, (..., K, nr)")
    parser.add_argument("--c", metavar="C.npy", type=Path, help="C, (..., mr, nr), added to the product")
    parser.add_argument("--out", metavar="OUT.npy", type=Path, help="write c + a @ b here")
    parser.add_argument("--batch", type=positive, help="products of the random input (1000; 100 with --simulate)")
    parser.add_argument("--k", type=non_negative, help="K of the random input (64)")
    parser.add_argument("--seed", type=non_negative, help="seed of the random input (0)")
    parser.add_argument(
        "--simulate",
        metavar="TARGET",
        help="execute a HIP kernel in the simulator, compiled for this AMD GPU (e.g. gfx942), instead of timing it",
    )
    add_seconds(parser, 0.3, "the measurement")


@dataclass(frozen=True)
class _Input:
    """Operands as NumPy arrays, and where they come from."""

    kernel: MicroKernel
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    source: str


def execute(options) -> int:
    kernel = registry.kernel(options.name)
    check_output(options.out)
    if options.simulate is not None:
        return _simulate(kernel, options)
    kernel._check_available()
    given = _input(kernel, options, batch=1000)
    run = timed_call(kernel, given.a, given.b, given.c, seconds=options.seconds)
    macs = run.products * kernel.mr * kernel.nr * given.a.shape[-1]
    best, median = (2 * macs / ns for ns in (run.times.best_ns, run.times.median_ns))
    tile = tiles.tile_speed(kernel, seconds=min(options.seconds, _TILE_SECONDS))
    fields = {
        "products": run.products,
        "calls": run.times.calls,
        "threads": run.threads,
        "best_ns_per_product": run.best_ns_per_product,
        "median_ns_per_product": run.median_ns_per_product,
        "best_gflops": best,
        "median_gflops": median,
        "tile_gflops": tile.gflops,
        "tile_peak_gflops": tile.peak_gflops,
    }
    unit = operations_unit(kernel.types)
    threads = "" if run.threads is None else f", {run.threads} thread{'s' * (run.threads != 1)}"
    lines = [
        f"time     best {run.best_ns_per_product:.2f} ns, median {run.median_ns_per_product:.2f} ns per product "
        f"({run.times.calls} calls of {run.products} products{threads})",
        f"speed    best {best:.1f} {unit}, median {median:.1f} {unit}: whole calls, which read and pack their operands",
    ]
    if tile.gflops is not None:
        share = "" if tile.percent_of_peak is None else f", {tile.percent_of_peak:.0f} % of the peak"
        where = "on packed panels in cache, as `pysimd ratio --measure` times it"
        lines.append(f"tile     {tile.gflops:.1f} {unit}{share}: {where}")
    return _finish(options, given, run.result, fields, lines, [])


def _simulate(kernel: MicroKernel, options) -> int:
    """``run --simulate``: what was executed instead of how fast it was."""
    if options.simulate not in TARGETS:
        raise OptionError(f"--simulate {options.simulate!r}: the simulator knows {', '.join(TARGETS)}")
    given = _input(kernel, options, batch=100)
    say(f"compiling {kernel.name} for {options.simulate} and executing its machine code ...")
    run = kernel.simulate(given.a, given.b, given.c, target=options.simulate)
    fields = {
        "target": run.target,
        "instance": run.entry,
        "macs": run.macs,
        "elements_loaded": run.elements,
        "macs_per_element": run.ratio if run.elements else None,
        "counts": run.counts.to_dict(),
    }
    lines = [
        f"target   {run.target}, executed in the functional simulator: not run on a GPU",
        f"instance {run.entry or 'none: nothing to compute'}",
    ]
    if run.elements:
        lines.append(
            f"ratio    {run.macs:,} multiply-adds / {run.elements:,} elements loaded = {run.ratio:.2f} "
            f"(of the tile: {kernel.ratio.value:.2f})"
        )
    ordered = sorted(run.counts.instructions.items(), key=lambda x: -x[1].waves)
    rows = [[name, f"{x.waves:,}", f"{x.lanes:,}"] for name, x in ordered]
    executed = table(["instruction", "waves", "lanes"], rows, right=["waves", "lanes"])
    return _finish(options, given, run.result, fields, lines, ["", executed])


def _finish(options, given: _Input, result: np.ndarray, fields: dict[str, Any], lines: list[str], after: list[str]):
    """Check, save and print a result; ``fields`` for JSON, ``lines`` before the error and ``after`` it for text."""
    kernel, a, b, c = given.kernel, given.a, given.b, given.c
    checked = verify(kernel.types, a, b, c, result)
    if options.out is not None:
        with options.out.open("wb") as file:  # the name as given: numpy.save would add .npy
            np.save(file, result)
    if options.json:
        print_json(
            kernel=kernel.name,
            input=given.source,
            shapes={"a": a.shape, "b": b.shape, "c": None if c is None else c.shape, "out": result.shape},
            **fields,
            error=asdict(checked),
            out=None if options.out is None else str(options.out),
        )
    else:
        print(f"kernel   {kernel.name}")
        print(f"input    {given.source}")
        print(f"a        {a.dtype.name} {a.shape}")
        print(f"b        {b.dtype.name} {b.shape}")
        print(f"c        {'none' if c is None else f'{c.dtype.name} {c.shape}'}")
        print(f"result   {kernel.c_dtype.name} {result.shape}" + (f", written to {options.out}" if options.out else ""))
        print("\n".join([*lines, f"error    {_error(checked)}", *after]))
    return 0 if checked.holds else fail(f"{kernel.name}: the result is outside the error bound", 1)


def _error(checked: Verified) -> str:
    if checked.reference == "int64":
        return "none: exact" if checked.holds else f"max |C - C*| = {checked.max_abs_error:.0f}, must be exact"
    verdict = "holds" if checked.holds else "DOES NOT HOLD"
    return (
        f"max |C - C*| = {checked.max_abs_error:.2e} against {checked.reference}; bound (K+3) u (|A||B| + |C0|) "
        f"{verdict}, largest part of it {100 * checked.max_error_over_bound:.1f} %"
    )


def _input(kernel: MicroKernel, options, batch: int) -> _Input:
    """Operands from files, or random ones: ``batch`` products unless the command line says how many."""
    if (options.a is None) != (options.b is None):
        raise OptionError("--a and --b belong together: give both files, or none for random input")
    c = None if options.c is None else _load(kernel, options.c)
    if options.a is not None:
        for key in ("batch", "k", "seed"):
            if getattr(options, key) is not None:
                raise OptionError(f"--{key} is for random input, and --a and --b were given")
        files = [path for path in (options.a, options.b, options.c) if path is not None]
        a, b = _load(kernel, options.a), _load(kernel, options.b)
        return _Input(kernel, a, b, c, ", ".join(map(str, files)))
    batch, k, seed = (
        default if value is None else value
        for value, default in ((options.batch, batch), (options.k, 64), (options.seed, 0))
    )
    a, b = random_operands(kernel, batch, k, seed)
    return _Input(kernel, a, b, c, f"random, seed {seed}" + ("" if c is None else f"; C from {options.c}"))


def _load(kernel: MicroKernel, path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file:
            x = np.load(file, allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # of a corrupt file NumPy raises ValueError, EOFError, TokenError, BadZipFile, ...
        raise DTypeError(f"{path} is not an array file: {error}") from error
    if not isinstance(x, np.ndarray):
        raise DTypeError(f"{path} holds several arrays: give a .npy file with one")
    if x.dtype == np.dtype("V2") and "bf16" in kernel.types:
        x = x.view(dtypes.dtype_of("bfloat16"))  # numpy.save writes bfloat16 as two plain bytes
    operands.check_dimensions(str(path), x.shape, 2, "(..., rows, columns)")
    return x
