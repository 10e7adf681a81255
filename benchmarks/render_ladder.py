"""Make the figures of docs/ladder.md and the chart from recorded results: ``python benchmarks/render_ladder.py``.

Reads ladder_h200.json and ladder_counters_h200.json in benchmarks/results (made by ``python benchmarks/ladder.py
--out ...`` and the same with ``--counters``); writes ladder_h200.png there, and in docs/ladder.md the text between the
markers ``bench:begin`` and ``bench:end`` and that between ``rung:NAME`` and ``/rung``.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pysimd
from pysimd import plots

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "ladder.md"
PEER = "cuBLAS"
SECTION_SIZE = 4096
CHART_SIZES = (2048, 8192)
WAITS = {
    "stall_memory": "for global memory",
    "stall_shared": "for shared memory",
    "stall_queue": "for the queue to either",
    "stall_barrier": "at a barrier",
}


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def overview(document) -> str:
    machine, rows = document["machine"], document["rows"]
    sizes = sorted({row["size"] for row in rows})
    cells = {(row["name"], row["size"]): row for row in rows}
    lines = []
    for rung in pysimd.rungs():
        if (rung.name, sizes[0]) in cells:
            ours = [cells[rung.name, size] for size in sizes]
            speeds = [f"{row['tflops']:.1f}" for row in ours]
            rest = [f"{ours[-1]['percent_of_cublas']:.0f}", f"{rung.ratio.value:.2f}", str(ours[-1]["registers"])]
            lines.append([rung.number, f"`{rung.name}`", *speeds, *rest, rung.new])
    speeds = [f"{cells[PEER, size]['tflops']:.1f}" for size in sizes]
    lines.append(["", PEER, *speeds, "100", "", "", ""])
    wrong = [row["name"] for row in rows if not row["within_bound"]]
    held = "All results were within `(K + 3) u |A||B|` of float64" if not wrong else f"WRONG: {', '.join(wrong)}"
    return "\n".join(
        [
            f"{machine['device']}, CUDA {machine['cuda_runtime'] // 1000}.{machine['cuda_runtime'] % 1000 // 10}, "
            f"NVRTC {'.'.join(map(str, machine['nvrtc']))}, CuPy {machine['cupy']}, cuBLAS {machine['cublas']} without "
            f"TF32; {machine['date']}, commit {machine['commit']}. TFLOP/s, float32, m = n = k, medians of one run. "
            f"A chain of multiply-adds on registers ran at {document['ceiling_tflops']:.1f}. {held}.",
            "",
            *table(["", "rung", *map(str, sizes), "% of cuBLAS", "FMA/element", "registers", "what is new"], lines),
            "",
            f"The percentage is that at {sizes[-1]}.",
            "",
            "![the ladder](../benchmarks/results/ladder_h200.png)",
        ]
    )


def section(name: str, document, counters) -> str:
    """What was measured and counted of one rung."""
    row = next(row for row in document["rows"] if row["name"] == name and row["size"] == SECTION_SIZE)
    found = next(row for row in counters["counters"] if row["name"] == name)
    warps = found["size"] ** 3 / 32  # multiply-adds of a whole warp
    passes, conflicts = found["shared_wavefronts"] / warps, found["shared_conflicts"] / warps
    waits = ", ".join(f"{found[key]:.2f} {what}" for key, what in WAITS.items())
    loaded = found["global_sectors"] / found["global_requests"]
    text = (
        f"**{row['tflops']:.1f} TFLOP/s** at {SECTION_SIZE}, {row['percent_of_cublas']:.0f} % of cuBLAS. Counted at "
        f"{found['size']}, for 32 multiply-adds: {found['instructions'] / warps:.2f} instructions, {passes:.2f} passes "
        f"through shared memory, {conflicts:.3f} for conflicts. {loaded:.1f} sectors a load from global memory, "
        f"{found['l2_read_sectors'] * 32e-9:.2f} GB from the second-level cache. An instruction started in "
        f"{found['issue_percent']:.0f} % of the cycles, the FMA pipe was busy in {found['fma_percent']:.0f} %. Warps "
        f"waiting when one was started: {waits}."
    )
    return "\n".join(["", *textwrap.wrap(text, 120, break_on_hyphens=False), ""])


def main() -> None:
    document = json.loads((RESULTS / "ladder_h200.json").read_text())
    counters = json.loads((RESULTS / "ladder_counters_h200.json").read_text())
    page = PAGE.read_text()
    page = re.sub(
        r"(<!-- bench:begin -->\n).*?(<!-- bench:end -->)",
        lambda m: f"{m[1]}{overview(document)}\n{m[2]}",
        page,
        flags=re.S,
    )
    page = re.sub(
        r"(<!-- rung:(\w+) -->\n).*?(<!-- /rung -->)",
        lambda m: f"{m[1]}{section(m[2], document, counters)}\n{m[3]}",
        page,
        flags=re.S,
    )
    PAGE.write_text(page)
    rows = [SimpleNamespace(**row) for row in document["rows"] if row["size"] in CHART_SIZES]
    plots.ladder_bars(rows, RESULTS / "ladder_h200.png")


if __name__ == "__main__":
    main()
