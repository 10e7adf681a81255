"""Make the tables and pictures of docs/ratios.md from recorded results: ``python benchmarks/render_ratios.py``.

Reads, in benchmarks/results,
    report_cpu.json   pysimd ratio --backend cpu --count --measure --fresh --seconds 0.3 --json, on a quiet machine
    report_h200.json  pysimd ratio --backend cuda --count --measure --fresh --json
    report_hip.json   pysimd ratio --backend hip --count --target gfx900,gfx906,... --json, without a GPU
    peaks_cpu.json    python benchmarks/peaks.py --out ...
    peaks_h200.json   python benchmarks/peaks.py --backend cuda --out ...
and writes rooflines_cpu.svg, rooflines_h200.svg there, and the text between the markers of docs/ratios.md.
"""

from __future__ import annotations

from typing import Any

import record

from pysimd.report import rooflines
from pysimd.report.drawing import Drawing
from pysimd.report.report import Report
from pysimd.report.rows import Row, in_table_order
from pysimd.report.text import number

PAGE = record.ROOT / "docs" / "ratios.md"


def measured(report: Report, scale: float, unit: str) -> str:
    """Analytic, counted, measured, kernel by kernel."""
    headers = ["kernel", "computed", "counted", "by instruction", unit, "% of peak", "% of loads", "% of load bytes"]
    rows = [
        [
            f"`{row.kernel}`",
            number(row.ratio, 2),
            number((row.counted or {}).get("element_ratio"), 2),
            number((row.counted or {}).get("instruction_ratio"), 2),
            number(row.gflops / scale, 1),
            number(row.percent_of_peak, 0),
            number(row.percent_of_load_rate, 0),
            number(row.percent_of_load_bandwidth, 0),
            row.limit or "-",
            number(row.over_inner, 2),
        ]
        for row in in_table_order(report.rows)
        if row.gflops is not None
    ]
    return "\n".join(record.table([*headers, "limit", "over inner"], rows))


def peaks(report: Report, scale: float, unit: str) -> str:
    (found,) = report.peaks
    memories = list(dict.fromkeys(load.memory for peak in found.peaks for load in peak.loads))
    rows = []
    for peak in found.peaks:
        rates = {load.memory: load.gbytes_per_s for load in peak.loads}
        name = " ".join((peak.target, peak.instruction)).strip()
        rows.append([name, peak.types, number(peak.gflops / scale, 1), *(number(rates.get(x), 0) for x in memories)])
    return "\n".join(record.table(["target", "types", unit, *(f"{x}, GB/s" for x in memories)], rows))


def agreement(document: dict[str, Any]) -> str:
    """The result of benchmarks/peaks.py."""
    ratios = [row["second_over_first"] for row in document["runs"]]
    machine = document["machine"]
    text = (
        f"Measured twice ({machine['device']}, {machine['date']}, commit {machine['commit']}), the second over the "
        f"first is {min(ratios):.3f} to {max(ratios):.3f}."
    )
    loops = document.get("loops")
    if not loops:
        return text
    found = [row["package_over_loop"] for row in loops]
    return (
        f"{text} Compared with loops of other code, `benchmarks/peaks_fma.c`, compiled by {machine['compiler']}, the "
        f"package measures {min(found):.3f} to {max(found):.3f} of their multiply-adds, over {len(found)} targets "
        "and types."
    )


def device(report: Report) -> str:
    (found,) = report.peaks
    return f"{found.identity['device']}, {found.measured_at[:10]}"


def static(report: Report) -> str:
    """Multiply-add and load instructions of an iteration of the hot loop, kernel by target."""
    by_kernel: dict[str, dict[str, Row]] = {}
    targets: dict[str, None] = {}
    for row in report.rows:
        of_target = by_kernel.setdefault(row.kernel, {})
        if row.counted:
            of_target[row.counted["target"]] = row
            targets[row.counted["target"]] = None

    def cell(row: Row | None) -> str:
        if row is None:
            return ""
        counted = row.counted
        differs = "" if counted["agrees"] else f", {counted['element_ratio']:.2f}"
        return f"{counted['multiply_adds']} : {sum(counted['load_instructions'].values())}{differs}"

    rows = [
        [f"`{name}`", number(next(iter(found.values())).ratio, 2), *(cell(found.get(x)) for x in targets)]
        for name, found in by_kernel.items()
        if found
    ]
    return "\n".join(record.table(["kernel", "computed", *targets], rows))


def machine_section(kind: str, name: str, whole: str, scale: float, prefix: str) -> list[str]:
    """The kernels and the peaks of a measured CPU or GPU; ``name`` is that of its files in benchmarks/results."""
    report = recorded(name)
    return [
        f"### A {kind}: {device(report)}",
        "",
        f"{whole}. {prefix}OP/s for integers.",
        "",
        measured(report, scale, f"{prefix}FLOP/s"),
        "",
        f"![rooflines of the {kind}](../benchmarks/results/rooflines_{name}.svg)",
        "",
        "Its peaks:",
        "",
        peaks(report, scale, f"{prefix}FLOP/s"),
        "",
        agreement(record.read(f"peaks_{name}")),
        "",
    ]


def text() -> str:
    hip = recorded("hip")
    stores = sum(row.counted["stores"] + row.counted["spills"] for row in hip.rows if row.counted)
    return "\n".join(
        [
            *machine_section("CPU", "cpu", "One core", 1, "G"),
            *machine_section("GPU", "h200", "The whole device", 1000, "T"),
            "### HIP, compiled and counted",
            "",
            "Multiply-add and load instructions of an iteration of the hot loop, for each target; then the element "
            f"ratio where it is not the computed one. Stores and spills in all these loops together: {stores}.",
            "",
            static(hip),
        ]
    )


def recorded(name: str) -> Report:
    return Report.from_dict(record.read(f"report_{name}"))


def rendered(page: str) -> str:
    """The page with what was recorded."""
    return record.replaced(page, text())


def pictures() -> dict[str, Drawing]:
    """Drawings by the name of their file."""
    reports = {name: recorded(name) for name in ("cpu", "h200")}
    return {f"rooflines_{name}.svg": rooflines.picture(x.rows, x.peaks) for name, x in reports.items()}


def main() -> None:
    record.draw(pictures())
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
