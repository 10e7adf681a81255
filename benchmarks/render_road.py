"""Make the tables of docs/road.md from recorded results: ``python benchmarks/render_road.py``.

Reads road_cpu_intel.json and road_cpu_amd.json (made by ``python benchmarks/road.py --random 1500 --out ...``) in
benchmarks/results; writes the text between the markers ``road:begin`` and ``road:end`` of docs/road.md.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import record
import road

from pysimd import dtypes

PAGE = record.ROOT / "docs" / "road.md"
MACHINES = {"Intel": "road_cpu_intel", "AMD": "road_cpu_amd"}
"""Label in the tables to the name of the recorded document."""


def machine(label: str, document: dict[str, Any]) -> str:
    """A list item: which machine and versions a label stands for."""
    found = document["machine"]
    return (
        f"- {label}: {found['device']} with {', '.join(found['features'])}, {found['cores']} cores; NumPy "
        f"{found['numpy']} on {found['numpy_blas'][0]}; {found['date']}, commit {found['commit']}."
    )


def calls(documents: dict[str, dict[str, Any]]) -> list[str]:
    """Each public call compared with NumPy's, machine by machine."""
    headers = ["call", *(f"{label}: {x}" for label in documents for x in ("pysimd, us", "NumPy, us", "ratio"))]
    lines = []
    for rows in zip(*(document["rows"] for document in documents.values()), strict=True):
        (call,) = {row["call"] for row in rows}
        lines.append([f"`{call}`" if "while" not in call else call, *(cell for row in rows for cell in times(row))])
    return record.table(headers, lines)


def times(row: dict[str, Any]) -> list[str]:
    """Microseconds of pysimd and of NumPy, and their ratio."""
    ours, numpys = row["pysimd_us"], row["numpy_us"]
    if numpys is None:
        return [f"{ours:.2f}", "-", "-"]
    return [f"{ours:.2f}", f"{numpys:.2f}", f"{numpys / ours:.1f}"]


def random_calls(documents: dict[str, dict[str, Any]], key: str, types: Collection[str]) -> list[str]:
    """The summary of the random calls of some types families, for each value of ``key`` and for all."""
    headers = [key]
    for label in documents:
        headers += [f"{label}: calls", "geometric mean", "slower than NumPy", "worst ratio"]
    chosen = [[row for row in x["random_calls"] if row["types"] in types] for x in documents.values()]
    lines = []
    for name in (*sorted({row[key] for row in chosen[0]}), "all"):
        line = [name]
        for rows in chosen:
            found = road.summary([row for row in rows if name in (row[key], "all")])
            line += [str(found["calls"]), f"{found['geometric_mean']:.2f}", f"{found['slower_percent']:.0f} %"]
            line.append(f"{found['worst'][0]['ratio']:.2f}")
        lines.append(line)
    return record.table(headers, lines)


def worst(label: str, document: dict[str, Any]) -> str:
    """A list item: the worst random call of a machine."""
    row = document["random"]["worst"][0]
    a = f"a vector of {row['k']}" if row["layout"] == "v @ B" else f"{row['m']} x {row['k']}"
    b = f"a vector of {row['k']}" if row["layout"] == "A @ v" else f"{row['k']} x {row['n']}"
    return (
        f"- {label}: {row['types']}, {a} by {b}, batch {row['batch']}, layout {row['layout']}: "
        f"{row['pysimd_us']:.0f} us, NumPy on float32 copies {row['numpy_us']:.0f} us, ratio {row['ratio']:.2f}."
    )


def rendered(page: str) -> str:
    """The page with what was recorded."""
    documents = {label: record.read(name) for label, name in MACHINES.items()}
    lines = [
        *(machine(label, document) for label, document in documents.items()),
        "",
        *calls(documents),
        "",
        "Random calls by types family:",
        "",
        *random_calls(documents, "types", dtypes.FAMILIES),
        "",
        "Random calls of f32 and f64 by layout:",
        "",
        *random_calls(documents, "layout", ("f32", "f64")),
        "",
        "The worst of all:",
        "",
        *(worst(label, document) for label, document in documents.items()),
    ]
    return record.replaced(page, "\n".join(lines), "road")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
