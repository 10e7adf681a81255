"""Make the tables and the chart of large products from recorded results: ``python benchmarks/render_gemm_cpu.py``.

Reads gemm_cpu_amd.json in benchmarks/results (made by ``python benchmarks/gemm_cpu.py --out ...``), writes
gemm_cpu_amd.png there, and the text between the markers ``gemm-cpu:begin`` and ``gemm-cpu:end`` of
docs/how_it_works.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gemm_cpu
import record

PAGE = record.ROOT / "docs" / "how_it_works.md"
CHART = record.RESULTS / "gemm_cpu_amd.png"


def machine(document: dict[str, Any]) -> str:
    """Which machine and versions the figures belong to."""
    found = document["machine"]
    torch = f", PyTorch {found['torch']}" if "torch" in found else ""
    return (
        f"{found['device']} with {', '.join(found['features'])}, {found['cores']} cores; NumPy {found['numpy']} on "
        f"{found['numpy_blas'][0]}{torch}; {found['date']}, commit {found['commit']}. GFLOP/s (GOP/s of integers), the "
        "best of interleaved rounds; narrow types next to NumPy on float32 copies."
    )


def limits(document: dict[str, Any]) -> list[str]:
    """What two processes reach at the same time, and what two threads reach, in f32."""
    rows = {(row["m"], row["k"], row["n"]): row["gflops"] for row in document["rows"] if row["types"] == "f32"}
    lines = []
    for limit in document["two_processes"]:
        size, (one, two) = limit["size"], limit["processes"]
        threads = rows[size, size, size]["pysimd/2"]
        lines.append(
            [str(size), f"{one:.0f}", f"{two:.0f}", f"{two / one:.2f}", f"{threads:.0f}", f"{threads / two:.2f}"]
        )
    headers = ["f32, size", "one process", "two at the same time", "ratio", "two threads", "threads / two processes"]
    return record.table(headers, lines)


def rendered(page: str) -> str:
    """The page with what was recorded."""
    document = record.read("gemm_cpu_amd")
    rows = document["rows"]
    lines = [
        machine(document),
        "",
        f"![large products]({'../' + str(CHART.relative_to(record.ROOT))})",
        "",
        *limits(document),
        "",
        "The worst ratio to the fastest of the others first:",
        "",
        *gemm_cpu.table(gemm_cpu.worst_first(rows)),
    ]
    return record.replaced(page, "\n".join(lines), "gemm-cpu")


def draw(document: dict[str, Any], path: Path) -> None:
    """GFLOP/s of squares by size: a panel for each type, a line for each side and number of threads."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    squares = [row for row in document["rows"] if (row["m"], row["k"], row["n"]) in gemm_cpu.SHAPES[:6]]
    types = list(dict.fromkeys(row["types"] for row in squares))
    figure, panels = plt.subplots(1, len(types), figsize=(3 * len(types), 3.2), squeeze=False)
    colors = dict(zip(gemm_cpu.SIDES, ("C0", "C2", "C1"), strict=True))
    for panel, name in zip(panels[0], types, strict=True):
        rows = [row for row in squares if row["types"] == name]
        for side, color in colors.items():
            for threads, style in zip(gemm_cpu.THREADS, ("-", "--"), strict=True):
                key = f"{side}/{threads}"
                found = [(row["m"], row["gflops"][key]) for row in rows if key in row["gflops"]]
                if found:
                    label = f"{side}, {threads} thread{'s' * (threads > 1)}"
                    panel.plot(*zip(*found, strict=True), style, color=color, marker=".", label=label)
        panel.set_xscale("log", base=2)
        panel.set_ylim(bottom=0)
        panel.set_title(name)
        panel.set_xlabel("m = k = n")
    panels[0][0].set_ylabel("GFLOP/s")
    handles = {
        label: line for panel in panels[0] for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncol=len(handles), fontsize=8)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=90)


def main() -> None:
    draw(record.read("gemm_cpu_amd"), CHART)
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
