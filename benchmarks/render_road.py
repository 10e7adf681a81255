"""Make the tables of docs/road.md from recorded results: ``python benchmarks/render_road.py``.

Reads road_cpu_intel.json and road_cpu_amd.json (made by ``python benchmarks/road.py --random N --out ...``) and
road_gpu_h200.json (made by ``python benchmarks/road_gpu.py --out ...``) in benchmarks/results; writes the text between
the markers ``road:begin`` and ``road:end``, and between ``road-gpu:begin`` and ``road-gpu:end``, of docs/road.md.
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


def gpu_calls(document: dict[str, Any]) -> list[str]:
    """Host time of calls on GPU arrays, and that of the peer's call on the same arrays."""
    lines = []
    for row in document["rows"]:
        ours, peer = row["pysimd_us"], row["peer_us"]
        target = str(row["target_us"] or "")
        lines.append([row["library"], f"`{row['call']}`", f"{ours:.1f}", f"{peer:.1f}", f"{peer / ours:.1f}", target])
    return record.table(["arrays of", "call", "pysimd, us", "peer, us", "ratio", "target, us"], lines)


def gpu_first_calls(document: dict[str, Any]) -> list[str]:
    """Milliseconds from a call to its result, for shapes that the process has not seen."""
    headers = ["first call", "shapes", "median, ms", "worst, ms", "2nd to 5th, worst", "with its own instance"]
    keys = ("median_ms", "worst_ms", "later_worst_ms", "ready_worst_ms")
    lines = [[x["calls"], str(x["count"]), *(f"{x[key]:.2f}" for key in keys)] for x in document["first"]]
    return record.table(headers, lines)


def _commit(document: dict[str, Any], section: str) -> str:
    """That a section was measured at, and those of the rows that were added to it."""
    commits: dict[str, list[str]] = {}
    for row in document[section]:
        commits.setdefault(row.get("commit", document["machine"]["commit"]), []).append(
            row.get("calls", row.get("call"))
        )
    first, *added = commits
    return first + "".join(f" ({', '.join(commits[x])}: commit {x})" for x in added)


def gpu(document: dict[str, Any]) -> str:
    """The tables of the GPU."""
    found = document["machine"]
    worst = min(document["rows"], key=lambda row: row["peer_us"] / row["pysimd_us"])
    said = (
        f"{found['device']}, CUDA {record.cuda_version(found)}, CuPy {found['cupy']}, cuBLAS {found['cublas']}, "
        f"PyTorch {found['torch']}; {found['date']}, commit {_commit(document, 'rows')}. The worst ratio is "
        f"{worst['peer_us'] / worst['pysimd_us']:.2f}: `{worst['call']}` on arrays of {worst['library']}."
    )
    commit = _commit(document, "first")
    of_first = [] if commit == _commit(document, "rows") else [f"First calls, commit {commit}:", ""]
    return "\n".join([said, "", *gpu_calls(document), "", *of_first, *gpu_first_calls(document)])


def rendered(page: str) -> str:
    """The page with what was recorded."""
    page = record.replaced(page, gpu(record.read("road_gpu_h200")), "road-gpu")
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
