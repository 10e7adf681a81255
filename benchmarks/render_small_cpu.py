"""Make the tables of small products from recorded results: ``python benchmarks/render_small_cpu.py``.

Reads small_cpu_amd.json and small_cpu_intel.json in benchmarks/results (made by ``python benchmarks/small_cpu.py --out
...``) and writes the text between the markers ``small-cpu:begin`` and ``small-cpu:end`` of docs/how_it_works.md.
"""

from __future__ import annotations

import textwrap
from typing import Any

import record

PAGE = record.ROOT / "docs" / "how_it_works.md"
NAMES = ("small_cpu_amd", "small_cpu_intel")


def squares(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each size, a column for each type and layout: times NumPy's speed, and times that of plain float32."""
    kinds = list(dict.fromkeys((row["types"], row["layout"]) for row in rows))
    found = {(row["m"], row["types"], row["layout"]): row for row in rows}
    lines = []
    for size in dict.fromkeys(row["m"] for row in rows):
        own = [found[(size, *kind)] for kind in kinds]
        lines.append([str(size), *(f"{x['ratio']:.1f}" + beside(x) for x in own)])
    return record.table(["size", *(f"{types} {layout}".removesuffix(" plain") for types, layout in kinds)], lines)


def beside(row: dict[str, Any]) -> str:
    return f" / {row['float32_ratio']:.2f}" if "float32_ratio" in row else ""


def cliffs(documents: list[dict[str, Any]]) -> list[str]:
    """A line for each larger batch, a column for each machine."""
    lines = []
    for rows in zip(*(x["cliffs"] for x in documents), strict=True):
        first = rows[0]
        shape = f"{first['types']} {first['layout']} {first['m']} x {first['k']} x {first['n']}, {first['products']:,}"
        lines.append([shape, *(f"{x['ns']['pysimd']:.1f} ns, {x['ratio']:.2f}" for x in rows)])
    return record.table(["batch", *(x["machine"]["device"] for x in documents)], lines)


def rendered(page: str) -> str:
    """The page with what was recorded."""
    documents = [record.read(name) for name in NAMES]
    lines = []
    for document in documents:
        found = document["machine"]
        said = (
            f"{found['device']}; NumPy {found['numpy']} on {found['numpy_blas'][0]}; {found['date']}, commit "
            f"{found['commit']}. NumPy's time over pysimd's / the time of pysimd's plain float32 products over theirs:"
        )
        lines += [*textwrap.wrap(said, 120, break_on_hyphens=False), "", *squares(document["squares"]), ""]
    lines += ["Larger batches: nanoseconds a product, and NumPy's time over pysimd's:", "", *cliffs(documents)]
    return record.replaced(page, "\n".join(lines), "small-cpu")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
