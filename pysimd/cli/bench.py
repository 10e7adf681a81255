"""``pysimd bench``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from pysimd import registry
from pysimd._version import __version__
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench import matmul
from pysimd.cli.options import add_plot, add_seconds, one_or_more, positive, positives
from pysimd.cli.output import check_output, numpy_blas, print_json, say, say_written
from pysimd.errors import OptionError
from pysimd.report import plots, report
from pysimd.report.text import number, table

HELP = "batched matmul against numpy.matmul or cuBLAS, in interleaved samples of one run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="where (%(default)s)")
    parser.add_argument("--sizes", type=positives, default=(4, 8, 16), help="m = n = k (4,8,16)")
    parser.add_argument("--batch", type=positives, default=(1, 1000, 100_000), help="products per call (1,1000,100000)")
    parser.add_argument(
        "--types",
        type=one_or_more((*CPU.offered, "f16")),
        default=("f32",),
        help="families: f32, f64, f16 (GPU), bf16f32, i8i32, u8i8i32 (f32)",
    )
    parser.add_argument("--threads", type=positive, default=1, help="threads of pysimd (1, as NumPy uses for batches)")
    add_plot(parser)
    add_seconds(parser, 0.3, "each side of a case")


def execute(options) -> int:
    rows = _on_cuda(options) if options.backend == "cuda" else _on_cpu(options)
    wrong = [row for row in rows if not row.within_bound]
    for row in wrong:
        what = f"the result of {row.kernel}" if options.backend == "cpu" else "the result"
        say(f"warning: {row.types} {row.size}x{row.size}: {what} is outside the error bound")
    return 1 if wrong else 0


def _on_cpu(options) -> Sequence[matmul.CpuRow]:
    if "f16" in options.types:
        raise OptionError("--types f16 is for --backend cuda: the CPU has no f16 kernels")
    check_output(options.plot, plot=True)
    blas = numpy_blas()
    say(f"pysimd {__version__} against NumPy {np.__version__} ({blas})")
    rows = [
        matmul.against_numpy(*case, threads=options.threads, seconds=options.seconds) for case in _announced(options)
    ]
    if options.json:
        about = {"machine": report.machine(), "numpy": np.__version__, "numpy_blas": asdict(blas)}
        print_json(**about, rows=[asdict(row) for row in rows])
    else:
        print(f"C[i] = A[i] @ B[i], random operands, median ns per product; pysimd on {options.threads} thread(s)")
        headers = ["types", "size", "batch", "kernel", "pysimd ns", "numpy ns", "numpy/pysimd", "GFLOP/s", "GB/s"]
        print(table(headers, [_cpu_cells(row) for row in rows], right=["batch", *headers[4:]]))
    if options.plot is not None:
        plots.matmul_bars(rows, options.plot)
        say_written("plot", options.plot)
    return rows


def _on_cuda(options) -> Sequence[matmul.CudaRow]:
    if options.plot is not None or options.threads != 1:
        raise OptionError("--plot and --threads are for --backend cpu")
    matmul.check_cuda(options.types)
    rows = [matmul.against_cublas(*case, seconds=options.seconds) for case in _announced(options)]
    device = next(b.device for b in registry.backends() if b.name == "cuda")
    if options.json:
        print_json(machine=report.machine(), device=device, rows=[asdict(row) for row in rows])
    else:
        print(f"C[i] = A[i] @ B[i] on one {device}, random operands, median microseconds per call")
        headers = ["types", "size", "batch", "pysimd us", "cublas us", "cublas/pysimd", "GFLOP/s", "GB/s"]
        print(table(headers, [_cuda_cells(row) for row in rows], right=headers[2:]))
    return rows


def _announced(options):
    """Types, size and batch of each case, which is announced before it is measured."""
    cases = [(types, size, batch) for types in options.types for size in options.sizes for batch in options.batch]
    for i, (types, size, batch) in enumerate(cases, 1):
        say(f"[{i}/{len(cases)}] {types} {size}x{size}, batch {batch:,} ...")
        yield types, size, batch


def _cpu_cells(row: matmul.CpuRow) -> list[str]:
    return [
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


def _cuda_cells(row: matmul.CudaRow) -> list[str]:
    return [
        row.types,
        f"{row.size}x{row.size}",
        f"{row.batch:,}",
        number(row.pysimd_us),
        number(row.cublas_us),
        number(row.cublas_over_pysimd, 2),
        number(row.pysimd_gflops),
        number(row.pysimd_gbytes_per_s),
    ]
