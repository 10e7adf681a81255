"""The command ``pysimd``. Data goes to standard output, warnings and progress to standard error.

Exit codes: 0; 1 for what this machine or the data do not allow; 2 for a wrong command line; 130 after Ctrl-C; 141 when
the reader of standard output went away.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from pysimd import dtypes, registry, sources
from pysimd import operands as arrays
from pysimd._version import __version__
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import ladder as ladder_report
from pysimd.bench import peaks
from pysimd.bench import tiles as measure
from pysimd.bench.verify import verify
from pysimd.errors import DTypeError, OptionError, PysimdError, UnavailableError, UnknownKernelError
from pysimd.microkernel import Backend, MicroKernel
from pysimd.report import compare as report
from pysimd.report.text import number, table

USAGE_ERRORS = (OptionError, UnknownKernelError)
COLUMNS = (4, 8, 16, 32, 64)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (``sys.argv[1:]`` by default) and return its exit code."""
    try:
        options = _parser().parse_args(argv)
        code = options.command(options)
        sys.stdout.flush()
        return code
    except PysimdError as error:
        return _fail(error, 2 if isinstance(error, USAGE_ERRORS) else 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush is quiet
        return 141
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else error, 1)
    except MemoryError as error:
        return _fail(f"not enough memory: {error}", 1)
    except KeyboardInterrupt:
        return 130


def _fail(error: object, code: int) -> int:
    print("pysimd: error:", " ".join(str(error).split()), file=sys.stderr)
    return code


def _say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pysimd",
        description="SIMD microkernels for small matrix products. Without a command: an overview of this machine.",
    )
    parser.add_argument("--version", action="version", version=f"pysimd {__version__}")
    parser.set_defaults(command=_overview)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, function, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.set_defaults(command=function)
        _add_json(sub, argparse.SUPPRESS)
        return sub

    _add_json(parser, False)
    _add_seconds(parser, 0.02, "time given to each kernel and to each peak (%(default)s)")

    sub = command("kernels", _kernels, "list the kernels")
    sub.add_argument("--backend", choices=("cpu", "cuda", "hip"))
    sub.add_argument("--target", help="instruction set or GPU family, e.g. avx2")
    sub.add_argument("--types", help="types family, e.g. f32 or i8i32")
    sub.add_argument("--form", help="outer, inner, or the matrix unit")
    sub.add_argument("--available", action="store_true", help="only those that can run on this machine")

    sub = command("run", _run, "run one kernel on .npy files or on seeded random input, time it and check it")
    sub.add_argument("name", metavar="NAME", help="kernel name")
    sub.add_argument("--a", metavar="A.npy", type=Path, help="A, (..., mr, K)")
    sub.add_argument("--b", metavar="B.npy", type=Path, help="B, (..., K, nr)")
    sub.add_argument("--c", metavar="C.npy", type=Path, help="C, (..., mr, nr), added to the product")
    sub.add_argument("--out", metavar="OUT.npy", type=Path, help="write c + a @ b here")
    sub.add_argument("--batch", type=_positive, help="products of the random input (1000; 100 with --simulate)")
    sub.add_argument("--k", type=_not_negative, help="K of the random input (64)")
    sub.add_argument("--seed", type=_not_negative, help="seed of the random input (0)")
    sub.add_argument(
        "--simulate",
        metavar="TARGET",
        help="execute a HIP kernel in the simulator, compiled for this AMD GPU (e.g. gfx942), instead of timing it",
    )
    _add_seconds(sub, 0.3, "time given to the measurement (%(default)s)")

    sub = command("ratio", _ratio, "multiply-adds per element loaded, inner product against outer")
    sub.add_argument("names", metavar="NAME", nargs="*", help="kernels (all)")
    sub.add_argument("--count", action="store_true", help="count in the machine code; kernels of GPUs are compiled")
    sub.add_argument("--measure", action="store_true", help="time each kernel and the peaks of its instructions")
    _add_selection(sub)
    sub.add_argument("--plot", metavar="PATH", type=Path, help="draw the table as bars (PNG, SVG, PDF)")
    sub.add_argument(
        "--rooflines", metavar="PATH", type=Path, help="draw what was counted and measured under its roofs"
    )
    _add_seconds(sub, 0.02, "time given to each kernel and to each peak (%(default)s)")

    sub = command("report", _report, "one HTML page of it all: analytic, counted, measured, drawn")
    sub.add_argument("names", metavar="NAME", nargs="*", help="kernels (all)")
    sub.add_argument("-o", "--output", metavar="PATH", type=Path, required=True, help="write the page here")
    sub.add_argument("--no-measure", action="store_true", help="count only")
    _add_selection(sub)
    sub.add_argument(
        "--from", dest="recorded", metavar="JSON", type=Path, help="of a file that ratio --count --measure --json wrote"
    )
    _add_seconds(sub, 0.1, "time given to each kernel and to each peak (%(default)s)")

    sub = command("peaks", _peaks, "what this machine multiplies and loads at most, measured; kept for the next time")
    sub.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="of what (%(default)s)")
    _add_fresh(sub)

    sub = command("show", _show, "draw the register tile of a kernel, with what its hot loop does")
    sub.add_argument("name", metavar="NAME", help="kernel name")
    sub.add_argument("--target", help="of a GPU's kernel: compile for this, e.g. sm_80 or gfx1100")
    sub.add_argument("--code", action="store_true", help="then the counts and the disassembly of the hot loop")
    sub.add_argument("--svg", metavar="PATH", type=Path, help="write the drawing here as SVG")
    sub.add_argument("--plot", metavar="PATH", type=Path, help="write it here as PNG or PDF")

    sub = command("bench", _bench, "batched matmul beside numpy.matmul or cuBLAS, in one run, turn by turn")
    sub.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="where (%(default)s)")
    sub.add_argument("--sizes", type=_numbers, default=(4, 8, 16), help="m = n = k (4,8,16)")
    sub.add_argument("--batch", type=_numbers, default=(1, 1000, 100_000), help="products per call (1,1000,100000)")
    sub.add_argument(
        "--types", type=_families, default=("f32",), help="families: f32, f64, f16 (GPU), bf16f32, i8i32, u8i8i32 (f32)"
    )
    sub.add_argument("--threads", type=_positive, default=1, help="threads of pysimd (1, as NumPy has for batches)")
    sub.add_argument("--plot", metavar="PATH", type=Path, help="draw the table as bars (PNG, SVG, PDF)")
    _add_seconds(sub, 0.3, "time given to each side of a case (%(default)s)")

    sub = command("ladder", _ladder, "the GPU GEMM ladder: every rung beside cuBLAS, in one run, turn by turn")
    sub.add_argument("--sizes", type=_numbers, default=(1024, 2048, 4096), help="m = n = k (1024,2048,4096)")
    sub.add_argument("--types", type=_summed_in_float, default=("f32",), help="families: f32, f16f32, bf16f32 (f32)")
    sub.add_argument("--list", action="store_true", help="the rungs without measurement; needs no GPU")
    sub.add_argument("--plot", metavar="PATH", type=Path, help="draw the table as bars (PNG, SVG, PDF)")
    _add_seconds(sub, 0.2, "time given to each rung at each size (%(default)s)")

    sub = command("source", _source, "print the source file of a kernel or of a rung of the ladder")
    sub.add_argument("name", metavar="NAME", help="name of the kernel or rung")
    sub.add_argument("--with-includes", action="store_true", help="then the project's headers that it includes")
    return parser


def _add_json(parser: argparse.ArgumentParser, default) -> None:
    parser.add_argument("--json", action="store_true", default=default, help="one JSON document instead of a table")


def _add_seconds(parser: argparse.ArgumentParser, default: float, text: str) -> None:
    parser.add_argument("--seconds", type=_seconds, default=default, help=text)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", choices=("cpu", "cuda", "hip"), help="the kernels of this one (all)")
    parser.add_argument(
        "--target",
        dest="targets",
        type=lambda text: tuple(part.strip() for part in text.split(",")),
        default=(),
        help="what kernels of GPUs are compiled for when counted, e.g. sm_80 or gfx906,gfx1100",
    )
    _add_fresh(parser)


def _add_fresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="measure peaks again that were measured before")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 up")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_positive(part.strip()) for part in text.split(","))


def _families(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:

    names, known = tuple(part.strip() for part in text.split(",")), known or (*CPU.offered, "f16")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return names


def _summed_in_float(text: str) -> tuple[str, ...]:
    return _families(text, ladder_report.TYPES)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0 and below 3600")
    return value


def _print_json(**fields) -> int:
    print(report.to_json(report.document(**fields)))
    return 0


# --- overview ---


def _overview(options) -> int:

    backends = registry.backends()
    blas = measure.numpy_blas()
    chosen = {types: {n: CPU.chosen(types, n) for n in COLUMNS} for types in CPU.offered}
    names = [k.name for k in registry.kernels(types="f32", available=True)]
    _say(f"measuring {len(names)} f32 kernels ...")
    ratios = report.compare(names, measure=True, seconds=options.seconds)
    if options.json:
        return _print_json(
            machine=report.machine(),
            python=platform.python_version(),
            numpy=np.__version__,
            numpy_blas=asdict(blas),
            isa_bound=os.environ.get("PYSIMD_ISA") or None,
            default_threads=cpu_table.default_threads(),
            kernel_by_types_and_columns={types: {n: k.name for n, k in by_n.items()} for types, by_n in chosen.items()},
            rows=ratios.to_dict()["rows"],
        )
    print(f"pysimd {__version__}, Python {platform.python_version()}, NumPy {np.__version__} ({_blas(blas)})\n")
    print(table(["backend", "state", "device, or what is missing"], [_backend(b) for b in backends]))
    host = next(b for b in backends if b.name == "cpu")
    bound = os.environ.get("PYSIMD_ISA")
    print(f"\nCPU features  {' '.join(host.features) or '(none that pysimd uses)'}")
    print(f"CPU targets   {' '.join(_targets())}" + (f"   (PYSIMD_ISA={bound} is the upper bound)" if bound else ""))
    print(f"CPU threads   1 for small work, {cpu_table.default_threads()} for large\n")
    print("Tiles that pysimd.matmul takes for products with n columns:")
    headers = ["types", "target", *(f"n = {n}" if n < COLUMNS[-1] else f"n >= {n}" for n in COLUMNS)]
    rows = [
        [types, by_n[COLUMNS[0]].target, *(f"{k.mr}x{k.nr}" for k in by_n.values())] for types, by_n in chosen.items()
    ]
    print(table(headers, rows))
    print("\nInner product against outer product, f32: multiply-adds per element loaded, and the speed of one tile in")
    print(f"cache (one core, K = {measure.K}) as a share of the peak measured here for the same instructions:")
    print(_ratio_table(ratios.rows))
    print("\nAll types: pysimd ratio --measure    beside NumPy: pysimd bench    one kernel: pysimd run NAME")
    return 0


def _backend(backend: Backend) -> list[str]:
    if backend.available:
        return [backend.name, "available", backend.device]
    return [backend.name, "unavailable", backend.reason]


def _targets() -> list[str]:
    return list(dict.fromkeys(k.target for k in registry.kernels("cpu", available=True)))


def _blas(blas: measure.Blas) -> str:
    words = " ".join(word for word in (blas.name, blas.version) if word) or "unknown BLAS"
    more = [f"{blas.architecture} kernels"] if blas.architecture else []
    more += [f"{blas.threads} thread{'s' * (blas.threads != 1)}"] if blas.threads else []
    return ", ".join([words, *more])


def _ratio_table(rows) -> str:
    headers = ["kernel", "form", "tile", "FMA/element", "FMA/byte", "GFLOP/s", "peak", "% of peak"]
    lines = []
    for row in report.side_by_side(rows):
        line = [row.kernel, row.form, f"{row.mr}x{row.nr}", number(row.ratio, 2), number(row.ratio_per_byte, 3)]
        speeds = [number(row.gflops), number(row.peak_gflops), number(row.percent_of_peak, 0)]
        lines.append([*line, *(speeds if row.available else ["not here", "", ""])])
    for header, of in _MORE_COLUMNS.items():
        cells = [of(row) for row in report.side_by_side(rows)]
        if any(cell is not None for cell in cells):
            headers.append(header)
            for line, cell in zip(lines, cells, strict=True):
                line.append("-" if cell is None else cell)
    text = table(headers, lines, right=[x for x in headers[3:] if x != "limit"])
    integers = any(row.gflops is not None and row.types.endswith("i32") for row in rows)
    missing = dict.fromkeys(
        f"{row.backend} not counted: {row.uncounted_reason}" for row in rows if row.uncounted_reason
    )
    text += "".join(f"\n({x})" for x in missing)
    return text + ("\n(integer kernels: GOP/s)" if integers else "")


def _counted(key: str):
    def cell(row: report.Row) -> str | None:
        return None if row.counted is None or row.counted[key] is None else number(row.counted[key], 2)

    return cell


def _percent(key: str):
    return lambda row: None if getattr(row, key) is None else number(getattr(row, key), 0)


# Columns that are there only where something was counted or measured for them.
_MORE_COLUMNS = {
    "counted": _counted("element_ratio"),
    "FMA/load": _counted("instruction_ratio"),
    "% of loads": _percent("percent_of_load_rate"),
    "% of load bytes": _percent("percent_of_load_bandwidth"),
    "limit": lambda row: row.limit,
    "over inner": lambda row: None if row.over_inner is None else number(row.over_inner, 2),
}


# --- kernels ---


def _kernels(options) -> int:
    wanted = {key: getattr(options, key) for key in ("backend", "target", "types", "form")}
    everything = registry.kernels()
    for key in ("target", "types", "form"):
        there_are = list(dict.fromkeys(getattr(k, key) for k in everything))
        if wanted[key] is not None and wanted[key] not in there_are:
            raise OptionError(f"--{key} {wanted[key]}: there are {', '.join(there_are)}")
    found = registry.kernels(**wanted, available=True if options.available else None)
    if options.json:
        return _print_json(kernels=[_kernel_fields(k) for k in found])
    headers = ["kernel", "backend", "types", "form", "tile", "k_group", "FMA/element", "here"]
    rows = [
        [k.name, k.backend, k.types, k.form, f"{k.mr}x{k.nr}", k.k_group, number(k.ratio.value, 2), _here(k)]
        for k in found
    ]
    print(table(headers, rows, right=["k_group", "FMA/element"]))
    shown = {k.backend for k in found} | {wanted["backend"]} if any(wanted.values()) else {"cpu", "cuda", "hip"}
    for backend in registry.backends():
        if not backend.available and backend.name in shown:
            _say(f"{backend.name}: {backend.reason}")
    return 0


def _here(kernel: MicroKernel) -> str:
    return "yes" if kernel.available else f"no: {kernel.unavailable_reason}"


def _kernel_fields(kernel: MicroKernel) -> dict:
    plain = ("name", "backend", "target", "types", "form", "mr", "nr", "k_group", "requires")
    return {
        **{key: getattr(kernel, key) for key in plain},
        "a_dtype": dtypes.FAMILIES[kernel.types].a,
        "b_dtype": dtypes.FAMILIES[kernel.types].b,
        "c_dtype": dtypes.FAMILIES[kernel.types].c,
        "macs_per_element": kernel.ratio.value,
        "macs_per_byte": kernel.ratio.per_byte,
        "available": kernel.available,
        "unavailable_reason": kernel.unavailable_reason,
        "source_path": kernel.source_path,
    }


# --- run ---


def _run(options) -> int:
    kernel = registry.kernel(options.name)
    if options.simulate is not None:
        return _simulate(kernel, options)
    kernel._check_available()
    a, b, c, source = _operands(kernel, options)
    run = measure.run(kernel, a, b, c, seconds=options.seconds)
    checked = verify(kernel.types, a, b, c, run.result)
    _save(options.out, run.result)
    macs = run.products * kernel.mr * kernel.nr * a.shape[-1]
    gflops = {"best_gflops": 2 * macs / run.times.best_ns, "median_gflops": 2 * macs / run.times.median_ns}
    if options.json:
        _print_json(
            kernel=kernel.name,
            input=source,
            shapes={"a": a.shape, "b": b.shape, "c": None if c is None else c.shape, "out": run.result.shape},
            products=run.products,
            calls=run.times.calls,
            best_ns_per_product=run.best_ns_per_product,
            median_ns_per_product=run.median_ns_per_product,
            **gflops,
            error=asdict(checked),
            out=None if options.out is None else str(options.out),
        )
    else:
        unit = "GOP/s" if kernel.types.endswith("i32") else "GFLOP/s"
        _print_operands(kernel, source, a, b, c, run.result, options.out)
        print(
            f"time     best {run.best_ns_per_product:.2f} ns, median {run.median_ns_per_product:.2f} ns per product "
            f"({run.times.calls} calls of {run.products} products, on one thread unless the work is large)"
        )
        print(f"speed    best {gflops['best_gflops']:.1f} {unit}, median {gflops['median_gflops']:.1f} {unit}")
        print(f"error    {_error(checked)}")
    return _verdict(kernel, checked)


def _simulate(kernel: MicroKernel, options) -> int:
    """``run --simulate``: what was executed instead of how fast it was."""
    a, b, c, source = _operands(kernel, options, batch=100)
    _say(f"compiling {kernel.name} for {options.simulate} and executing its machine code ...")
    run = kernel.simulate(a, b, c, target=options.simulate)
    checked = verify(kernel.types, a, b, c, run.result)
    _save(options.out, run.result)
    if options.json:
        _print_json(
            kernel=kernel.name,
            input=source,
            shapes={"a": a.shape, "b": b.shape, "c": None if c is None else c.shape, "out": run.result.shape},
            target=run.target,
            instance=run.entry,
            macs=run.macs,
            elements_loaded=run.elements,
            macs_per_element=run.ratio if run.elements else None,
            counts=run.counts.to_dict(),
            error=asdict(checked),
            out=None if options.out is None else str(options.out),
        )
        return _verdict(kernel, checked)
    _print_operands(kernel, source, a, b, c, run.result, options.out)
    print(f"target   {run.target}, executed in the functional simulator: not run on a GPU")
    print(f"instance {run.entry or 'none: nothing to compute'}")
    if run.elements:
        print(
            f"ratio    {run.macs:,} multiply-adds / {run.elements:,} elements loaded = {run.ratio:.2f} "
            f"(of the tile: {kernel.ratio.value:.2f})"
        )
    print(f"error    {_error(checked)}\n")
    ordered = sorted(run.counts.instructions.items(), key=lambda x: -x[1].waves)
    rows = [[name, f"{x.waves:,}", f"{x.lanes:,}"] for name, x in ordered]
    print(table(["instruction", "waves", "lanes"], rows, right=["waves", "lanes"]))
    return _verdict(kernel, checked)


def _save(path: Path | None, result: np.ndarray) -> None:
    if path is not None:
        with path.open("wb") as file:  # the name as given: numpy.save would add .npy
            np.save(file, result)


def _print_operands(kernel, source, a, b, c, result, out) -> None:
    print(f"kernel   {kernel.name}")
    print(f"input    {source}")
    print(f"a        {a.dtype.name} {a.shape}")
    print(f"b        {b.dtype.name} {b.shape}")
    print(f"c        {'none' if c is None else f'{c.dtype.name} {c.shape}'}")
    print(f"result   {kernel.c_dtype.name} {result.shape}" + (f", written to {out}" if out else ""))


def _verdict(kernel, checked) -> int:
    return 0 if checked.holds else _fail(f"{kernel.name}: the result is outside the error bound", 1)


def _error(checked) -> str:
    if checked.reference == "int64":
        return "none: exact" if checked.holds else f"max |C - C*| = {checked.max_abs_error:.0f}, must be exact"
    verdict = "holds" if checked.holds else "DOES NOT HOLD"
    return (
        f"max |C - C*| = {checked.max_abs_error:.2e} against {checked.reference}; bound (K+3) u (|A||B| + |C0|) "
        f"{verdict}, largest part of it {100 * checked.max_error_over_bound:.1f} %"
    )


def _operands(kernel, options, batch: int = 1000):
    """A, B, C as NumPy arrays, and where they are from; ``batch`` products unless the command line says how many."""
    if (options.a is None) != (options.b is None):
        raise OptionError("--a and --b belong together: give both files, or none for random input")
    c = None if options.c is None else _load(kernel, options.c)
    if options.a is not None:
        for key in ("batch", "k", "seed"):
            if getattr(options, key) is not None:
                raise OptionError(f"--{key} is for random input, and --a and --b were given")
        a, b = _load(kernel, options.a), _load(kernel, options.b)
        return a, b, c, ", ".join(str(p) for p in (options.a, options.b, options.c) if p is not None)
    batch, k, seed = (
        default if value is None else value
        for value, default in ((options.batch, batch), (options.k, 64), (options.seed, 0))
    )
    a, b = measure.random_operands(kernel, batch, k, seed)
    return a, b, c, f"random, seed {seed}" + ("" if c is None else f"; C from {options.c}")


def _load(kernel, path: Path) -> np.ndarray:
    try:
        x = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DTypeError(f"{path} is no array file: {error}") from error
    if not isinstance(x, np.ndarray):
        raise DTypeError(f"{path} holds several arrays: give a .npy file with one")
    if x.dtype == np.dtype("V2") and "bf16" in kernel.types:
        x = x.view(dtypes.dtype_of("bfloat16"))  # numpy.save knows no bfloat16 and writes two plain bytes
    arrays.check_dimensions(str(path), x.shape, 2, "")
    return x


# --- ratio ---


def _ratio(options) -> int:
    if options.targets and not options.count:
        raise OptionError("--target is what is counted: add --count")
    made = report.compare(
        _chosen(options),
        count=options.count,
        measure=options.measure,
        seconds=options.seconds,
        targets=options.targets,
        fresh=options.fresh,
    )
    if options.plot is not None:
        made.plot(options.plot)
        _say(f"plot written to {options.plot}")
    if options.rooflines is not None:
        made.plot_rooflines(options.rooflines)
        _say(f"rooflines written to {options.rooflines}")
    print(made.to_json() if options.json else _ratio_table(made.rows))
    return 0


def _chosen(options) -> list | None:
    """Kernels that ``ratio`` and ``report`` are about; None for all."""
    if options.names and options.backend:
        raise OptionError("give names or --backend, not both")
    return registry.kernels(options.backend) if options.backend else options.names or None


# --- peaks ---


def _peaks(options) -> int:
    found = peaks.peaks(options.backend, fresh=options.fresh)
    if options.json:
        return _print_json(**found.to_dict())
    whose = "one core" if found.backend == "cpu" else "the whole device"
    print(f"{found.identity['device']}, {whose}; measured {found.measured_at} in {found.seconds:.1f} s\n")
    memories = list(dict.fromkeys(load.memory for peak in found.peaks for load in peak.loads))
    headers = ["target", "types", "GFLOP/s", *(f"{x} GB/s" for x in memories), "10^9 loads/s"]
    rows = []
    for peak in found.peaks:
        rates = {load.memory: load for load in peak.loads}
        nearest = next(iter(peak.loads), None)
        rows.append(
            [
                " ".join((peak.target, peak.instruction)).strip(),
                peak.types,
                number(peak.gflops),
                *(number(rates[x].gbytes_per_s if x in rates else None) for x in memories),
                number(nearest.gloads_per_s if nearest else None),
            ]
        )
    print(table(headers, rows, right=headers[2:]))
    print("(integers: GOP/s; loads per second are those from the nearest memory; a dash: its loads convert)")
    return 0


# --- report ---


def _report(options) -> int:
    if options.recorded is not None:
        if options.names or options.backend or options.targets or options.no_measure or options.fresh:
            raise OptionError("--from takes the report as it was recorded: leave everything but -o and --json out")
        made = report.Report.from_dict(_recorded(options.recorded))
    else:
        _say("counting and measuring; where kernels of GPUs are compiled, this takes a minute ...")
        made = report.compare(
            _chosen(options),
            count=True,
            measure=not options.no_measure,
            seconds=options.seconds,
            targets=options.targets,
            fresh=options.fresh,
        )
    options.output.write_text(made.html())
    _say(f"report written to {options.output}")
    if options.json:
        print(made.to_json())
    return 0


def _recorded(path: Path) -> dict:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise OptionError(f"{path} is no JSON file: {error}") from error


# --- show ---


def _show(options) -> int:
    from pysimd.report import tile_drawing

    drawn = tile_drawing.tile(registry.kernel(options.name), options.target)
    if options.code and drawn.counted is None:
        raise UnavailableError(drawn.uncounted_reason)
    if options.svg is not None:
        options.svg.write_text(tile_drawing.svg(drawn))
        _say(f"drawing written to {options.svg}")
    if options.plot is not None:
        from pysimd.report import plots

        plots.register_tile(drawn, options.plot)
        _say(f"drawing written to {options.plot}")
    if options.json:
        return _print_json(**drawn.to_dict())
    print(tile_drawing.text(drawn))
    if options.code:
        print(f"\n{drawn.counted}\n\n{drawn.counted.listing}")
    return 0


# --- bench ---


def _bench(options) -> int:
    if options.backend == "cuda":
        return _gpu_bench(options)
    if "f16" in options.types:
        raise OptionError("--types f16 is for --backend cuda: the CPU has no half kernels")
    blas = measure.numpy_blas()
    _say(f"pysimd {__version__} beside NumPy {np.__version__} ({_blas(blas)})")
    if blas.forced is not None:
        _say(f"warning: OPENBLAS_CORETYPE={blas.forced} is set: NumPy may run another machine's kernels; unset it")
    cases = [(t, s, n) for t in options.types for s in options.sizes for n in options.batch]
    rows = []
    for i, (types, size, batch) in enumerate(cases, 1):
        _say(f"[{i}/{len(cases)}] {types} {size}x{size}, batch {batch:,} ...")
        rows.append(measure.beside_numpy(types, size, batch, threads=options.threads, seconds=options.seconds))
    if options.plot is not None:
        from pysimd.report import plots

        plots.bench_bars(rows, options.plot)
        _say(f"plot written to {options.plot}")
    if options.json:
        _print_json(
            machine=report.machine(), numpy=np.__version__, numpy_blas=asdict(blas), rows=[asdict(row) for row in rows]
        )
    else:
        print(f"C[i] = A[i] @ B[i], random operands, median ns per product; pysimd on {options.threads} thread(s)")
        print(_bench_table(rows))
    wrong = [row for row in rows if not row.within_bound]
    for row in wrong:
        _say(f"warning: {row.types} {row.size}x{row.size}: the result of {row.kernel} is outside the error bound")
    return 1 if wrong else 0


def _gpu_bench(options) -> int:
    from pysimd.bench import matmul_cuda as gpu_bench

    if options.plot is not None or options.threads != 1:
        raise OptionError("--plot and --threads are for --backend cpu")
    gpu_bench.check(options.types)
    cases = [(t, s, n) for t in options.types for s in options.sizes for n in options.batch]
    rows = []
    for i, (types, size, batch) in enumerate(cases, 1):
        _say(f"[{i}/{len(cases)}] {types} {size}x{size}, batch {batch:,} ...")
        rows.append(gpu_bench.beside_cublas(types, size, batch, seconds=options.seconds))
    device = next(b.device for b in registry.backends() if b.name == "cuda")
    if options.json:
        _print_json(machine=report.machine(), device=device, rows=[asdict(row) for row in rows])
    else:
        print(f"C[i] = A[i] @ B[i] on one {device}, random operands, median microseconds per call")
        headers = ["types", "size", "batch", "pysimd us", "cublas us", "cublas/pysimd", "GFLOP/s", "GB/s"]
        lines = [
            [
                row.types,
                f"{row.size}x{row.size}",
                f"{row.batch:,}",
                number(row.pysimd_us),
                number(row.cublas_us),
                number(row.cublas_over_pysimd, 2),
                number(row.pysimd_gflops),
                number(row.pysimd_gbytes_per_s),
            ]
            for row in rows
        ]
        print(table(headers, lines, right=headers[2:]))
    wrong = [row for row in rows if not row.within_bound]
    for row in wrong:
        _say(f"warning: {row.types} {row.size}x{row.size}: the result is outside the error bound")
    return 1 if wrong else 0


def _bench_table(rows: Sequence[measure.Beside]) -> str:
    headers = ["types", "size", "batch", "kernel", "pysimd ns", "numpy ns", "numpy/pysimd", "GFLOP/s", "GB/s"]
    lines = [
        [
            row.types,
            f"{row.size}x{row.size}",
            f"{row.batch:,}",
            row.kernel,
            number(row.pysimd_median_ns_per_product, 2),
            number(row.numpy_median_ns_per_product, 2),
            number(row.numpy_over_pysimd, 2),
            number(row.pysimd_gflops),
            number(row.pysimd_gbytes_per_s),
        ]
        for row in rows
    ]
    return table(headers, lines, right=["batch", *headers[4:]])


# --- ladder ---


def _ladder(options) -> int:
    if options.list and options.plot is not None:
        raise OptionError("--plot draws what was measured: leave --list out")
    if options.plot is not None and len(options.types) > 1:
        raise OptionError(f"--plot draws one family, --types names {len(options.types)}: give one at a time")
    if options.list:
        rows, ceilings = ladder_report.listed(), {}
    else:
        rows, ceilings = ladder_report.measure(options.sizes, options.seconds, _say, options.types)
    if options.plot is not None:
        from pysimd.report import plots

        plots.ladder_bars(rows, options.plot)
        _say(f"plot written to {options.plot}")
    if options.json:
        _print_json(machine=report.machine(), ceiling_tflops=ceilings, rows=[asdict(row) for row in rows])
    elif options.list:
        print(_ladder_list(rows))
    else:
        tables = [_ladder_table([row for row in rows if row.types == x], c) for x, c in ceilings.items()]
        print("\n\n".join(tables))
    wrong = [row for row in rows if row.within_bound is False]
    for row in wrong:
        _say(f"warning: {row.name} at {row.size}: the result is outside the error bound")
    return 1 if wrong else 0


def _ladder_list(rows: Sequence[ladder_report.Row]) -> str:
    headers = ["", "rung", "tile of a block, of a thread", "threads", "FMA/element", "what is new"]
    lines = [[row.number, row.name, row.tile, row.threads, number(row.ratio, 2), row.new] for row in rows]
    return table(headers, lines, right=["threads", "FMA/element"])


def _ladder_table(rows: Sequence[ladder_report.Row], ceiling: float | None) -> str:
    headers = [
        "size",
        "",
        "rung",
        "TFLOP/s",
        "% of cuBLAS",
        "% of ceiling",
        "FMA/element",
        "registers",
        "shared memory",
    ]
    lines = [
        [
            row.size,
            row.number or "",
            row.name,
            number(row.tflops, 2),
            number(row.percent_of_cublas),
            number(row.percent_of_ceiling),
            number(row.ratio, 2),
            number(row.registers, 0),
            number(row.shared_bytes, 0),
        ]
        for row in rows
    ]
    lines = table(headers, lines, right=["size", *headers[3:]])
    if ceiling is None:
        return lines
    return f"{lines}\n(ceiling: {ceiling:.1f} TFLOP/s, a chain of multiply-adds on registers in the same run)"


# --- source ---


def _source(options) -> int:
    kernel = registry.kernel_or_rung(options.name)
    found = sources.with_includes(kernel.source_path)
    if not options.with_includes:
        found = {kernel.source_path: kernel.source}
    if options.json:
        return _print_json(kernel=kernel.name, files=[{"path": path, "text": text} for path, text in found.items()])
    for path, text in found.items():
        if options.with_includes:
            print(f"/* ==== {path} ==== */")
        print(text.rstrip("\n"))
        if options.with_includes:
            print()
    return 0
