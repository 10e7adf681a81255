"""Make the figures of docs/ladder*.md and the charts from recorded results: ``python benchmarks/render_ladder.py``.

Reads ladder_h200.json and ladder_counters_h200.json in benchmarks/results (made by ``python benchmarks/ladder.py
--types f32,f16f32,bf16f32,f64 --out ...`` and the same with ``--counters``), ladder_i8_h200.json (``--types i8i32``)
and emulated_gemm_h200.json (``emulated_gemm.py``); writes ladder_h200.svg there, and in docs/ladder.md and
docs/ladder_tensor_cores.md the text between markers such as ``bench:begin`` and ``bench:end`` and that between
``rung:NAME`` and ``/rung``, of the rungs that were recorded. Rungs that the ladder no longer has are left out.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from types import SimpleNamespace
from typing import Any

import record

import pysimd
from pysimd.report import bars
from pysimd.report.drawing import Drawing

PAGES = tuple(record.ROOT / "docs" / f"{name}.md" for name in ("ladder", "ladder_tensor_cores"))
SECTION_SIZE = 4096
CHART_SIZES = (2048, 8192)
CHARTS = {"f32": "ladder_h200.svg", "f16f32": "ladder_f16_h200.svg", "bf16f32": "ladder_bf16_h200.svg"}
ROW_MAJOR = ", row-major B"
STALLS = {
    "stall_memory": "for global memory",
    "stall_shared": "for shared memory",
    "stall_queue": "for the memory queue",
    "stall_barrier": "at a barrier",
}
OPERANDS = {
    "f32": "float32",
    "f16f32": "float16 operands, float32 accumulators",
    "bf16f32": "bfloat16 operands, float32 accumulators",
    "f64": "float64",
    "i8i32": "int8 operands, int32 accumulators, row-major; cuBLAS with a column-major B",
}


def recorded() -> dict[str, Any]:
    """ladder_h200.json without rungs that the ladder no longer has, and with the numbers that it has today."""
    document, numbers = record.read("ladder_h200"), {rung.name: rung.number for rung in pysimd.rungs()}
    rows = [row for row in document["rows"] if row["number"] is None or row["name"] in numbers]
    return {**document, "rows": [{**row, "number": numbers.get(row["name"])} for row in rows]}


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
    peak = document["peak_tflops"][types]
    said = f" Independent multiply-adds in registers ran at {peak:.1f}." if peak else ""
    headers = ["", "rung", *map(str, sizes), "% of cuBLAS", "FMA/element", "registers", "what is new"]
    return [f"{OPERANDS[types]}.{said}", "", *record.table(headers, lines), ""]


def earlier(document) -> str:
    """Which rows were recorded at which commit before the last: other rungs were timed again since."""
    last, found = document["machine"]["commit"], {}
    for row in document["rows"]:
        if row.get("commit", last) != last:
            found.setdefault(row["commit"], {})[
                f"`{row['name']}`" if row["number"] else f"{row['name']} ({row['types']})"
            ] = 1
    return "".join(
        f" Rows of commit {commit}, with the percentage of that run: {', '.join(x)}." for commit, x in found.items()
    )


def overview(document, counters: dict[str, Any]) -> str:
    counted = f"commit {counters['machine']['commit']}"
    machine, rows = document["machine"], document["rows"]
    families = [family(document, types) for types in dict.fromkeys(row["types"] for row in rows)]
    wrong = [row["name"] for row in rows if not row["within_bound"]]
    held = "All results were within `(K + 3) u |A||B|` of float64" if not wrong else f"WRONG: {', '.join(wrong)}"
    return "\n".join(
        [
            f"{machine['device']}, CUDA {record.cuda_version(machine)}, "
            f"NVRTC {'.'.join(map(str, machine['nvrtc']))}, CuPy {machine['cupy']}, cuBLAS {machine['cublas']} without "
            f"TF32; {machine['date']}, commit {machine['commit']}. TFLOP/s, m = n = k, medians of one run; the "
            f"percentage is that at {max(row['size'] for row in rows)}. {held}. Counters below are of {counted}."
            f"{earlier(document)}",
            "",
            *itertools.chain(*families),
            *(f"![the ladder, {types}](../benchmarks/results/{name})\n" for types, name in CHARTS.items()),
        ]
    )


def section(name: str, document: dict[str, Any], counters: dict[str, Any]) -> str:
    """The measured and counted figures of one rung."""
    row = next((row for row in document["rows"] if row["name"] == name and row["size"] == SECTION_SIZE), None)
    found = next((row for row in counters["counters"] if row["name"] == name), None)
    if row is None or found is None:
        return ""
    speed = (
        f"**{row['tflops']:.1f} TFLOP/s** at {SECTION_SIZE}, {row['percent_of_cublas']:.0f} % of cuBLAS. Counted at "
        f"{found['size']}"
    )
    lanes = pysimd.rung(name).lanes
    text = speed + (warpgroup_counters(found) if lanes == 128 else warp_counters(found, tensor=lanes > 1))
    return "\n".join(["", *textwrap.wrap(text, 120, break_on_hyphens=False), "", ""])


def warp_counters(found: dict[str, Any], *, tensor: bool) -> str:
    unit = 2048 if tensor else 32  # multiply-adds of an instruction in a whole warp
    warps = found["size"] ** 3 / unit
    wavefronts, conflicts = found["shared_wavefronts"] / warps, found["shared_conflicts"] / warps
    stalls = ", ".join(f"{found[key]:.2f} {what}" for key, what in STALLS.items())
    requests = found["global_requests"]  # none where the tensor memory accelerator loads everything
    loaded = f" {found['global_sectors'] / requests:.1f} sectors a load from global memory," if requests else ""
    pipe, busy = ("tensor cores were", "tensor_percent") if tensor else ("FMA pipe was", "fma_percent")
    return (
        f", for {unit} multiply-adds: {found['instructions'] / warps:.2f} instructions, {wavefronts:.2f} shared-memory "
        f"wavefronts, {conflicts:.3f} bank conflicts.{loaded} {found['l2_read_sectors'] * 32e-9:.2f} GB from L2. An "
        f"instruction was issued in {found['issue_percent']:.0f} % of the cycles, the {pipe} busy in "
        f"{found[busy]:.0f} %. Warps stalled when one was issued: {stalls}."
    )


def warpgroup_counters(found: dict[str, Any]) -> str:
    """Counters of a rung whose tensor cores read shared memory themselves: loads of its warps would say nothing."""
    return (
        f": the tensor cores were busy in {found['tensor_percent']:.0f} % of the cycles, an instruction was issued in "
        f"{found['issue_percent']:.0f} %. {found['delivered_bytes'] * 1e-9:.2f} GB were delivered to the "
        f"multiprocessors, {found['l2_read_sectors'] * 32e-9:.2f} GB read from L2; results were written to L2 in "
        f"{found['l2_write_requests'] * 1e-6:.2f} million requests."
    )


def errors(document: dict[str, Any]) -> str:
    """The errors of tf32x3 and of float32."""
    names = ("tf32x3", "smem_dbuf", "f32_best", "cublas")
    headers = ["elements", "k", *(f"{name}: max, rms" for name in names)]
    lines = [
        [row["elements"], str(row["k"]), *(f"{row[f'{name}_max']:.2f}, {row[f'{name}_rms']:.2f}" for name in names)]
        for row in document["rows"]
    ]
    size = document["size"]
    said = f"Error of products {size} x k by k x {size} in units of `u |A||B|`, largest and root mean square."
    return "\n".join([said, "", *record.table(headers, lines)])


def ozaki2(document: dict[str, Any]) -> str:
    """The speeds and the errors of the rungs by int8 products, and of their peers, each compared in one run."""
    machine, lines = document["machine"], []
    columns = {"float32": ("ozaki2_f32", "tf32x3", "f32_best", "cuBLAS"), "float64": ("ozaki2_f64", "", "", "cuBLAS")}
    for dtype, names in columns.items():
        for size, rates in document["tflops"][dtype].items():
            cells = [[f"{rates[f'{name}{end}']:.1f}" if name else "" for name in names] for end in ("", ROW_MAJOR)]
            lines.append([dtype, size, *(" / ".join(filter(None, pair)) for pair in zip(*cells, strict=True))])
    headers = ["", "size", "ozaki2", "`tf32x3`", "`f32_best`", "cuBLAS"]
    said = (
        f"{machine['device']}, cuBLAS {machine['cublas']}; {machine['date']}, commit {machine['commit']}. TFLOP/s, "
        "medians of one run: both operands K-major / row-major."
    )
    errors = [
        [name, *(f"{found[kind]['max']:,.2f}, {found[kind]['rms']:,.2f}" for kind in ("normal", "graded"))]
        for name, found in document["errors_in_u"].items()
    ]
    about = "Errors in units of `u |A||B|`, u = 2^-24 or 2^-53, largest and root mean square (k = 4096; float64 1024):"
    of_errors = record.table(["", "normal elements", "columns of A times 2^-10 to 2^10, rows of B divided"], errors)
    return "\n".join([said, "", *record.table(headers, lines), "", about, "", *of_errors])


def int8(document: dict[str, Any]) -> str:
    """The table of the int8 rungs, which were recorded in a run of their own."""
    machine = document["machine"]
    said = f"{machine['device']}, cuBLAS {machine['cublas']}; {machine['date']}, commit {machine['commit']}. TOP/s."
    return "\n".join([said, "", *family(document, "i8i32")])


def rendered(page: str) -> str:
    """A page with what was recorded of its parts."""
    document, counters = recorded(), record.read("ladder_counters_h200")
    parts = {
        "bench": overview(document, counters),
        "int8": int8(record.read("ladder_i8_h200")),
        "ozaki2": ozaki2(record.read("emulated_gemm_h200")),
        "tf32x3-error": errors(record.read("tf32x3_error_h200")),
    }
    for name, text in parts.items():
        if f"<!-- {name}:begin -->" in page:
            page = record.replaced(page, text, name)
    return re.sub(
        r"(<!-- rung:(\w+) -->\n).*?(<!-- /rung -->)",
        lambda match: f"{match[1]}{section(match[2], document, counters)}{match[3]}",
        page,
        flags=re.DOTALL,
    )


def pictures() -> dict[str, Drawing]:
    """Drawings by the name of their file."""
    rows = [SimpleNamespace(**row) for row in recorded()["rows"] if row["size"] in CHART_SIZES]
    return {name: bars.ladder([row for row in rows if row.types == types]) for types, name in CHARTS.items()}


def main() -> None:
    for page in PAGES:
        page.write_text(rendered(page.read_text()))
    record.draw(pictures())


if __name__ == "__main__":
    main()
