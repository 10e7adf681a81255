"""Make the table of extreme products on the CPU from recorded results: ``python benchmarks/render_shapes_cpu.py``.

Reads shapes_cpu_amd.json, shapes_cpu_intel.json (made by ``python benchmarks/shapes_cpu.py --threads 1 --out ...``),
shapes_cpu_threads_amd.json and shapes_cpu_threads_intel.json (without ``--threads``) in benchmarks/results, and writes
the text between the markers ``shapes-cpu:begin`` and ``shapes-cpu:end`` of docs/how_it_works.md.
"""

from __future__ import annotations

import textwrap
from typing import Any

import record
import shapes_cpu

PAGE = record.ROOT / "docs" / "how_it_works.md"
NAMES = {
    "shapes_cpu_amd": "one thread",
    "shapes_cpu_threads_amd": "two threads, right after NumPy's",
    "shapes_cpu_intel": "one thread of an Intel Xeon with AMX",
    "shapes_cpu_threads_intel": "two threads of that, right after NumPy's",
}


def words(name: str, document: dict[str, Any]) -> str:
    """The random shapes in a sentence."""
    found = document["summary"]["random"]
    row = found["worst"][0]
    return (
        f"On {NAMES[name]}, the worst of {found['cases']} random shapes runs at {row['ratio']:.2f} times NumPy's "
        f"speed ({row['types']} {row['m']} x {row['k']} x {row['n']}, {row['layout']}, {row['pysimd_us']:.0f} us), "
        f"{found['slower_percent']:.1f} % are slower, and the geometric mean is {found['geometric_mean']:.2f}; of the "
        f"extreme shapes {document['summary']['extreme']['worst'][0]['ratio']:.2f} and "
        f"{document['summary']['extreme']['geometric_mean']:.2f}."
    )


def ratios(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each extreme shape, a column for each type: the ratios of the layouts."""
    types = list(dict.fromkeys(row["types"] for row in rows))
    found = {(x["types"], x["layout"], x["m"], x["k"], x["n"]): x["ratio"] for x in rows}
    lines = [
        [
            ", ".join(map(str, shape)),
            *(" / ".join(f"{found[(t, x, *shape)]:.2f}" for x in shapes_cpu.LAYOUTS) for t in types),
        ]
        for shape in shapes_cpu.SHAPES
    ]
    return record.table(["m, k, n", *types], lines)


def rendered(page: str) -> str:
    """The page with what was recorded."""
    documents = {name: record.read(name) for name in NAMES}
    one = documents["shapes_cpu_amd"]
    found, reads = one["machine"], one["reads"]
    said = (
        f"{found['device']}, {found['cores']} cores; NumPy {found['numpy']} on {found['numpy_blas'][0]}; "
        f"{found['date']}, commit {found['commit']}. One core read {reads['one_core_gbytes_per_s']:.0f} GB/s from "
        f"memory, in order, all cores {reads['all_cores_gbytes_per_s']:.0f}. The time of NumPy over that of pysimd for "
        f"the extreme shapes on one thread, {', '.join(shapes_cpu.LAYOUTS)}:"
    )
    lines = [*textwrap.wrap(said, 120, break_on_hyphens=False), "", *ratios(one["rows"]), ""]
    lines += textwrap.wrap(" ".join(words(*x) for x in documents.items()), 120, break_on_hyphens=False)
    return record.replaced(page, "\n".join(lines), "shapes-cpu")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
