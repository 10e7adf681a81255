"""Make the figures of docs/cpu_ladder.md and the chart: ``python benchmarks/render_cpu_ladder.py``.

Reads benchmarks/results/ladder_cpu_amd.json (made by ``python benchmarks/cpu_ladder.py --out ...``); writes
ladder_cpu_amd.svg there, and in docs/cpu_ladder.md the text between the markers ``bench:begin`` and ``bench:end`` and
that between ``rung:NAME`` and ``/rung``.
"""

from __future__ import annotations

import re
import textwrap
from types import SimpleNamespace
from typing import Any

import record

from pysimd.report import bars
from pysimd.report.drawing import Drawing

PAGE = record.ROOT / "docs" / "cpu_ladder.md"
NAME = "ladder_cpu_amd"
CHART_SIZES = (256, 1024)


def overview(document: dict[str, Any]) -> str:
    machine, peaks = document["machine"], document["peak_gflops"]
    rows = [row for row in document["rows"] if row["threads"] == 1]
    wrong = [row["name"] for row in document["rows"] if not row["within_bound"]]
    held = "All results were within `(K + 3) u |A||B|` of float64" if not wrong else f"WRONG: {', '.join(wrong)}"
    reached = ", ".join(f"{peak:.0f} on {threads} threads" for threads, peak in peaks.items() if threads != "1")
    said = (
        f"{machine['device']}, {machine['numpy_blas'][0]}, NumPy {machine['numpy']}; {machine['date']}, commit "
        f"{machine['commit']}. GFLOP/s, float32, m = n = k, the shortest sample of one run. Independent multiply-adds "
        f"in registers ran at {peaks['1']:.0f} on one thread{f', {reached}' if reached else ''}. {held}. A dash: a "
        "call takes longer than a second. The counts are instructions of one iteration of the hot loop, which is two "
        "steps of k from C4 on."
    )
    return "\n".join(
        [
            *textwrap.wrap(said, 120, break_on_hyphens=False),
            "",
            "One thread:",
            "",
            *speeds(rows),
            "",
            *threaded(document),
            "What is compiled:",
            "",
            *counts(rows),
            "",
            f"![the CPU ladder](../benchmarks/results/{NAME}.svg)",
        ]
    )


def speeds(rows: list[dict[str, Any]]) -> list[str]:
    """GFLOP/s at each size, the share of the peak, and the speed compared with NumPy, on one number of threads."""
    sizes = sorted({row["size"] for row in rows})
    cells = {(row["name"], row["size"]): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows):
        own = [cells.get((name, size)) for size in sizes]
        last = [row for row in own if row][-1]
        number = f"{last['number']} `{name}`" if last["number"] else name
        rates = [f"{row['gflops']:.1f}" if row else "-" for row in own]
        lines.append([number, *rates, f"{last['percent_of_peak']:.0f}", f"{last['over_numpy']:.2f}"])
    return record.table(["rung", *map(str, sizes), "% of peak, last size", "x NumPy, last size"], lines)


def threaded(document: dict[str, Any]) -> list[str]:
    """The table of each larger number of threads."""
    found = []
    for threads in sorted({row["threads"] for row in document["rows"]} - {1}):
        rows = [row for row in document["rows"] if row["threads"] == threads]
        found += [f"{threads} threads, NumPy too:", "", *speeds(rows), ""]
    return found


def counts(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        [
            f"{row['number']} `{row['name']}`",
            row["tile"].partition(";")[0],
            f"{row['ratio']:.2f}",
            *(str(row[key]) for key in ("multiply_adds", "macs", "loads", "stores", "spills")),
            row["new"],
        ]
        for row in {row["name"]: row for row in rows if row["number"]}.values()
    ]
    headers = ["rung", "tile", "FMA/element", "multiply-adds", "of elements", "loads", "stores", "spills", "new"]
    return record.table(headers, lines)


def section(name: str, document: dict[str, Any]) -> str:
    """The measured figures of one rung: at each size its speed, and what it gains."""
    threads = 2 if name == "threads" else 1
    rows = [row for row in document["rows"] if (row["name"], row["threads"]) == (name, threads)]
    found = ", ".join(
        f"{row['gflops']:.1f} at {row['size']}" + (f" ({row['gain']:.2f} x)" if row["gain"] else "") for row in rows
    )
    what = " (times the rung before)" if rows[0]["gain"] else ""
    on = " on two threads" if threads == 2 else ""
    text = f"**GFLOP/s{on}{what}:** {found}. {rows[-1]['percent_of_peak']:.0f} % of the peak at {rows[-1]['size']}."
    return "\n".join(["", *textwrap.wrap(text, 120, break_on_hyphens=False), "", ""])


def rendered(page: str) -> str:
    """The page with what was recorded."""
    document = record.read(NAME)
    page = record.replaced(page, overview(document))
    return re.sub(
        r"(<!-- rung:(\w+) -->\n).*?(<!-- /rung -->)",
        lambda match: f"{match[1]}{section(match[2], document)}{match[3]}",
        page,
        flags=re.DOTALL,
    )


def pictures() -> dict[str, Drawing]:
    """Drawings by the name of their file."""
    rows = [row for row in record.read(NAME)["rows"] if row["size"] in CHART_SIZES]
    named = [{**row, "name": f"{row['name']}, {row['threads']} threads"} if row["threads"] > 1 else row for row in rows]
    last = sorted(named, key=lambda row: row["number"] is None)
    return {f"{NAME}.svg": bars.ladder([SimpleNamespace(**row) for row in last], "GFLOP/s")}


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))
    record.draw(pictures())


if __name__ == "__main__":
    main()
