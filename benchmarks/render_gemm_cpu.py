"""Make the tables of large products on the CPU from recorded results: ``python benchmarks/render_gemm_cpu.py``.

Reads gemm_cpu_amd.json and gemm_cpu_intel.json in benchmarks/results (made by ``python benchmarks/gemm_cpu.py --out
...``) and writes the text between the markers of docs/how_it_works.md that ``PARTS`` names.
"""

from __future__ import annotations

import textwrap
from typing import Any

import gemm_cpu
import record

PAGE = record.ROOT / "docs" / "how_it_works.md"
PARTS = {"gemm_cpu_amd": "gemm-cpu", "gemm_cpu_intel": "gemm-cpu-intel"}  # a record and its markers


def wrapped(said: str) -> list[str]:
    return textwrap.wrap(said, 120, break_on_hyphens=False)


def machine(document: dict[str, Any]) -> list[str]:
    """Which machine and versions the figures belong to."""
    found = document["machine"]
    torch = f", PyTorch {found['torch']}" if "torch" in found else ""
    return wrapped(
        f"{found['device']}, {found['cores']} core{'s' * (found['cores'] > 1)}; NumPy {found['numpy']} on "
        f"{found['numpy_blas'][0]}{torch}; {found['date']}, commit {found['commit']}. GFLOP/s (GOP/s of integers) on "
        "one thread, the best of interleaved rounds; in parentheses the ratio to the fastest of the others, and the "
        "part of the multiply-adds of registers alone, the peak, in the same rounds." + older(document)
    )


def older(document: dict[str, Any]) -> str:
    """The types that were measured at another commit, where there are such."""
    commits: dict[str, dict[str, None]] = {}
    for row in document["rows"]:
        if row.get("commit", document["machine"]["commit"]) != document["machine"]["commit"]:
            commits.setdefault(row["commit"], {})[row["types"]] = None
    return "".join(f" Of commit {commit}: {', '.join(types)}." for commit, types in commits.items())


def cell(row: dict[str, Any], threads: int) -> str:
    speed = row["gflops"][f"pysimd/{threads}"]
    part = f"; {speed / row['peak']:.0%}".replace("%", " %") if "peak" in row else ""
    return f"{speed:,.0f} ({gemm_cpu.ratios(row)[threads]:.2f}{part})"


def speeds(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each listed shape, a column for each type: one thread."""
    types = list(dict.fromkeys(row["types"] for row in rows))
    found = {(row["types"], row["m"], row["k"], row["n"]): row for row in rows}
    lines = [[", ".join(map(str, x)), *(cell(found[(t, *x)], 1) for t in types)] for x in gemm_cpu.SHAPES]
    return record.table(["m, k, n", *types], lines)


def peaks(rows: list[dict[str, Any]]) -> str:
    """The peaks, and what NumPy leaves of them: no product can be faster than NumPy's by more than that."""
    best: dict[str, float] = {}
    for row in rows:
        best[row["types"]] = max(row.get("peak", 0), best.get(row["types"], 0))
    best = {t: peak for t, peak in best.items() if peak}
    said = f"The highest peaks are {', '.join(f'{x:,.0f} in {t}' for t, x in best.items())}."
    for types in ("f32", "f64"):
        squares = [row for row in rows if row["types"] == types and row["m"] == row["k"] == row["n"] >= 256]
        parts = [row["gflops"]["numpy/1"] / row["peak"] for row in squares]
        most = [row["peak"] / row["gflops"]["numpy/1"] for row in squares]
        said += (
            f" NumPy's {types} squares from 256 on run at {min(parts):.0%} to {max(parts):.0%} of it, so that the peak "
            f"itself is {min(most):.2f} to {max(most):.2f} times NumPy."
        ).replace("%", " %")
    return said


def worst(document: dict[str, Any]) -> str:
    """The worst ratio on each number of threads, what two threads gain, and what two processes reached."""
    said, counts = [], gemm_cpu.threads_in(document["rows"])
    for threads in counts:
        row = min(document["rows"], key=lambda row: gemm_cpu.ratios(row)[threads])
        shape = f"{row['m']}, {row['k']}, {row['n']}"
        name = "one thread" if threads == 1 else f"{threads} threads"
        said.append(f"{gemm_cpu.ratios(row)[threads]:.2f} on {name} ({row['types']} {shape})")
    text = f"The worst ratio{'s are' if len(said) > 1 else ' is'} {' and '.join(said)}."
    if 2 not in counts:
        return text
    gains = [
        f"{row['gflops']['pysimd/2'] / row['gflops']['pysimd/1']:.2f} at {row['m']} in {row['types']}"
        for row in document["rows"]
        if row["types"] in ("f32", "f64") and row["m"] == row["k"] == row["n"] >= 512
    ]
    limits = ", ".join(f"{x['processes'][1]:.0f} at {x['size']}" for x in document["two_processes"])
    return (
        f"{text} Two threads are {', '.join(gains)} times as fast as one. Two processes at the same time, on one "
        f"thread each, reached {limits} in f32: this virtual machine's speed varies from row to row, and the ratios "
        "with it."
    )


def rendered(page: str) -> str:
    """The page with what was recorded."""
    for name, markers in PARTS.items():
        document = record.read(name)
        rows = document["rows"]
        text = [*machine(document), "", *speeds(rows), "", *wrapped(f"{peaks(rows)} {worst(document)}")]
        page = record.replaced(page, "\n".join(text), markers)
    return page


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
