"""Make the figures of docs/ladder.md and the chart from recorded results: ``python benchmarks/render_ladder.py``.

Reads ladder_h200.json and ladder_counters_h200.json in benchmarks/results (made by ``python benchmarks/ladder.py
--types f32,f16f32,bf16f32 --out ...`` and the same with ``--counters``); writes ladder_h200.png there, and in
docs/ladder.md the text between the markers ``bench:begin`` and ``bench:end`` and that between ``rung:NAME`` and
``/rung``, of the rungs that were recorded.
"""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pysimd
from pysimd.report import plots

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "ladder.md"
PEER = "cuBLAS"
SECTION_SIZE = 4096
CHART_SIZES = (2048, 8192)
CHARTS = {"f32": "ladder_h200.png", "f16f32": "ladder_f16_h200.png", "bf16f32": "ladder_bf16_h200.png"}
WAITS = {
    "stall_memory": "for global memory",
    "stall_shared": "for shared memory",
    "stall_queue": "for the queue to either",
    "stall_barrier": "at a barrier",
}


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


OPERANDS = {"f32": "float32", "f16f32": "float16 operands, float32 sums", "bf16f32": "bfloat16 operands, float32 sums"}


def family(document, types: str) -> list[str]:
    """A line on the operands, and the table of their rungs."""
    rows = [row for row in document["rows"] if row["types"] == types]
    sizes = sorted({row["size"] for row in rows})
    cells = {(row["name"], row["size"]): row for row in rows}
    lines = []
    for rung in pysimd.rungs():
        if (rung.name, sizes[0]) in cells:
            ours = [cells[rung.name, size] for size in sizes]
            speeds = [f"{row['tflops']:.1f}" for row in ours]
            rest = [f"{ours[-1]['percent_of_cublas']:.0f}", f"{rung.ratio.value:.2f}", str(ours[-1]["registers"])]
            lines.append([rung.number, f"`{rung.name}`", *speeds, *rest, rung.new])
    for peer in dict.fromkeys(row["name"] for row in rows if row["number"] is None):
        speeds = [f"{cells[peer, size]['tflops']:.1f}" for size in sizes]
        lines.append(["", peer, *speeds, f"{cells[peer, sizes[-1]]['percent_of_cublas']:.0f}", "", "", ""])
    ceiling = document["ceiling_tflops"][types]
    chain = f" A chain of multiply-adds on registers ran at {ceiling:.1f}." if ceiling else ""
    head = ["", "rung", *map(str, sizes), "% of cuBLAS", "FMA/element", "registers", "what is new"]
    return [f"{OPERANDS[types]}.{chain}", "", *table(head, lines), ""]


def overview(document) -> str:
    machine, rows = document["machine"], document["rows"]
    families = [family(document, types) for types in dict.fromkeys(row["types"] for row in rows)]
    wrong = [row["name"] for row in rows if not row["within_bound"]]
    held = "All results were within `(K + 3) u |A||B|` of float64" if not wrong else f"WRONG: {', '.join(wrong)}"
    return "\n".join(
        [
            f"{machine['device']}, CUDA {machine['cuda_runtime'] // 1000}.{machine['cuda_runtime'] % 1000 // 10}, "
            f"NVRTC {'.'.join(map(str, machine['nvrtc']))}, CuPy {machine['cupy']}, cuBLAS {machine['cublas']} without "
            f"TF32; {machine['date']}, commit {machine['commit']}. TFLOP/s, m = n = k, medians of one run; the "
            f"percentage is that at {max(row['size'] for row in rows)}. {held}.",
            "",
            *itertools.chain(*families),
            *(f"![the ladder, {types}](../benchmarks/results/{name})\n" for types, name in CHARTS.items()),
        ]
    )


def section(name: str, document, counters) -> str:
    """What was measured and counted of one rung."""
    row = next((row for row in document["rows"] if row["name"] == name and row["size"] == SECTION_SIZE), None)
    found = next((row for row in counters["counters"] if row["name"] == name), None)
    if row is None or found is None:
        return ""
    if pysimd.rung(name).lanes == 128:
        return warpgroup_section(row, found)
    tensor = pysimd.rung(name).lanes > 1
    unit = 2048 if tensor else 32  # multiply-adds of an instruction in a whole warp
    warps = found["size"] ** 3 / unit
    passes, conflicts = found["shared_wavefronts"] / warps, found["shared_conflicts"] / warps
    waits = ", ".join(f"{found[key]:.2f} {what}" for key, what in WAITS.items())
    requests = found["global_requests"]  # none where the tensor memory accelerator brings all
    loaded = f" {found['global_sectors'] / requests:.1f} sectors a load from global memory," if requests else ""
    pipe, busy = ("tensor cores were", "tensor_percent") if tensor else ("FMA pipe was", "fma_percent")
    text = (
        f"**{row['tflops']:.1f} TFLOP/s** at {SECTION_SIZE}, {row['percent_of_cublas']:.0f} % of cuBLAS. Counted at "
        f"{found['size']}, for {unit} multiply-adds: {found['instructions'] / warps:.2f} instructions, {passes:.2f} "
        f"passes through shared memory, {conflicts:.3f} for conflicts.{loaded} "
        f"{found['l2_read_sectors'] * 32e-9:.2f} GB from the second-level cache. An instruction started in "
        f"{found['issue_percent']:.0f} % of the cycles, the {pipe} busy in {found[busy]:.0f} %. Warps "
        f"waiting when one was started: {waits}."
    )
    return "\n".join(["", *textwrap.wrap(text, 120, break_on_hyphens=False), "", ""])


def warpgroup_section(row, found) -> str:
    """The same of a rung whose tensor cores read shared memory themselves: what warps load says nothing there."""
    text = (
        f"**{row['tflops']:.1f} TFLOP/s** at {SECTION_SIZE}, {row['percent_of_cublas']:.0f} % of cuBLAS. Counted at "
        f"{found['size']}: the tensor cores were busy in {found['tensor_percent']:.0f} % of the cycles, an instruction "
        f"started in {found['issue_percent']:.0f} %. {found['delivered_bytes'] * 1e-9:.2f} GB came to the "
        f"multiprocessors, {found['l2_read_sectors'] * 32e-9:.2f} GB from the second-level cache; results arrived "
        f"there in {found['l2_write_requests'] * 1e-6:.2f} million requests."
    )
    return "\n".join(["", *textwrap.wrap(text, 120, break_on_hyphens=False), "", ""])


def errors(document) -> str:
    """The error of tf32x3 beside those of float32."""
    names = ("tf32x3", "smem_dbuf", "f32_best", "cublas")
    head = ["elements", "k", *(f"{name}: max, rms" for name in names)]
    lines = [
        [row["elements"], str(row["k"]), *(f"{row[f'{name}_max']:.2f}, {row[f'{name}_rms']:.2f}" for name in names)]
        for row in document["rows"]
    ]
    size = document["size"]
    said = f"Error of products {size} x k by k x {size} in units of `u |A||B|`, largest and root of the mean square."
    return "\n".join([said, "", *table(head, lines)])


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
        lambda m: f"{m[1]}{section(m[2], document, counters)}{m[3]}",
        page,
        flags=re.S,
    )
    error = json.loads((RESULTS / "tf32x3_error_h200.json").read_text())
    page = re.sub(
        r"(<!-- tf32x3-error:begin -->\n).*?(<!-- tf32x3-error:end -->)",
        lambda m: f"{m[1]}{errors(error)}\n{m[2]}",
        page,
        flags=re.S,
    )
    PAGE.write_text(page)
    for types, name in CHARTS.items():
        rows = [row for row in document["rows"] if row["types"] == types and row["size"] in CHART_SIZES]
        plots.ladder_bars([SimpleNamespace(**row) for row in rows], RESULTS / name)


if __name__ == "__main__":
    main()
