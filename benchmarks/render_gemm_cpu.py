"""Make the table of large products on the CPU from recorded results: ``python benchmarks/render_gemm_cpu.py``.

Reads gemm_cpu_amd.json in benchmarks/results (made by ``python benchmarks/gemm_cpu.py --out ...``) and writes the text
between the markers ``gemm-cpu:begin`` and ``gemm-cpu:end`` of docs/how_it_works.md.
"""

from __future__ import annotations

import textwrap
from typing import Any

import gemm_cpu
import record

PAGE = record.ROOT / "docs" / "how_it_works.md"
NAME = "gemm_cpu_amd"


def machine(document: dict[str, Any]) -> list[str]:
    """Which machine and versions the figures belong to."""
    found = document["machine"]
    torch = f", PyTorch {found['torch']}" if "torch" in found else ""
    said = (
        f"{found['device']}, {found['cores']} cores; NumPy {found['numpy']} on {found['numpy_blas'][0]}{torch}; "
        f"{found['date']}, commit {found['commit']}. GFLOP/s (GOP/s of integers) on one thread, the best of "
        "interleaved rounds; in parentheses the ratio to the fastest of the others."
    )
    return textwrap.wrap(said, 120, break_on_hyphens=False)


def cell(row: dict[str, Any], threads: int) -> str:
    return f"{row['gflops'][f'pysimd/{threads}']:,.0f} ({gemm_cpu.ratios(row)[threads]:.2f})"


def speeds(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each listed shape, a column for each type: one thread."""
    types = list(dict.fromkeys(row["types"] for row in rows))
    found = {(row["types"], row["m"], row["k"], row["n"]): row for row in rows}
    lines = [[", ".join(map(str, x)), *(cell(found[(t, *x)], 1) for t in types)] for x in gemm_cpu.SHAPES]
    return record.table(["m, k, n", *types], lines)


def worst(document: dict[str, Any]) -> str:
    """The worst ratio on each number of threads, and what two processes reached: the machine's speed varies."""
    said = []
    for threads in gemm_cpu.THREADS:
        row = min(document["rows"], key=lambda row: gemm_cpu.ratios(row)[threads])
        shape = f"{row['m']}, {row['k']}, {row['n']}"
        name = "one thread" if threads == 1 else f"{threads} threads"
        said.append(f"{gemm_cpu.ratios(row)[threads]:.2f} on {name} ({row['types']} {shape})")
    limits = ", ".join(f"{x['processes'][1]:.0f} at {x['size']}" for x in document["two_processes"])
    return (
        f"The worst ratios are {' and '.join(said)}. Two processes at the same time, on one thread each, reached "
        f"{limits} in f32: this virtual machine's speed varies from row to row, and the ratios with it."
    )


def rendered(page: str) -> str:
    """The page with what was recorded."""
    document = record.read(NAME)
    lines = [*machine(document), "", *speeds(document["rows"]), "", *textwrap.wrap(worst(document), 120)]
    return record.replaced(page, "\n".join(lines), "gemm-cpu")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
