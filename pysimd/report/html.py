"""A report as one HTML file that a person can pass on: no script, nothing fetched, all its numbers in embedded JSON."""

from __future__ import annotations

import json
import math
from html import escape

from pysimd import registry
from pysimd.bench.peaks import Peaks
from pysimd.errors import UnknownKernelError
from pysimd.report import rooflines, tile_drawing
from pysimd.report.compare import Report, Row, side_by_side
from pysimd.report.text import number

JSON_ID = "pysimd-report"

_HEADERS = (
    ("kernel", "kernel"),
    ("tile", "tile"),
    ("analytic", "multiply-adds per element loaded, of the tile"),
    ("counted", "the same, counted in the hot loop that was built"),
    ("FMA / load", "multiply-add instructions per load instruction"),
    ("stores, moves, spills", "in one turn of the hot loop"),
    ("registers", "used, of those there are"),
    ("GFLOP/s", "two operations per multiply-add; GOP/s for integers"),
    ("% of peak", "of a chain of the same multiply-adds that loads nothing, measured here"),
    ("% of loads", "load instructions per second, of those that the first-level cache gives, measured here"),
    ("% of load bytes", "bytes loaded per second, of those that the first-level cache gives, measured here"),
    ("limit", "which of the two needs more time at its measured rate"),
    ("over inner", "speed, divided by that of the inner product"),
)

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #666; --paper: #fff; --line: #ddd; --outer: #2166ac;
  --inner: #d6604d; --pale: #f3f5f8 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #a5a5a5; --paper: #16181b; --line: #383c42; --outer: #6aa9e0; --inner: #ee8a78;
    --pale: #20242a }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1280px; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: .3rem 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
p { max-width: 75ch } p, small { color: var(--soft) } code, .name { font-family: ui-monospace, monospace }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; white-space: nowrap }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: right }
th { font-weight: 600; vertical-align: bottom; white-space: normal }
th:first-child, td:first-child, td.words { text-align: left }
tr.inner td:first-child { color: var(--inner) } tr.outer td:first-child { color: var(--outer) } tr.off { opacity: .6 }
.bars { display: grid; grid-template-columns: minmax(0, 17rem) 1fr; gap: 2px .6rem; font-size: 13px;
  align-items: center }
.bars .name { overflow: hidden; text-overflow: ellipsis } .bar { display: flex; align-items: center; gap: .4rem }
.bar i { display: block; height: 13px; border-radius: 2px } .bar span { white-space: nowrap }
.inner i, .key .i { background: var(--inner) } .outer i, .key .o { background: var(--outer) }
.key b { display: inline-block; width: 12px; height: 12px; margin: 0 .3rem 0 1rem; border-radius: 2px }
.roofs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1rem }
.roof { width: 100%; background: var(--pale); border-radius: 6px } .roof text { fill: var(--ink); font-size: 11px;
  paint-order: stroke; stroke: var(--pale); stroke-width: 2.5px }
.roof line, .roof polyline { stroke: var(--line); fill: none } .roof .edge { stroke: var(--soft); stroke-width: 1.4 }
.roof .far { stroke: var(--soft); stroke-dasharray: 3 3 }
.roof circle.inner { fill: var(--inner) } .roof circle.outer { fill: var(--outer) }
details { border-bottom: 1px solid var(--line); padding: .3rem 0 } summary { cursor: pointer }
@media (max-width: 600px) { .bars { grid-template-columns: 1fr } .bars .name { margin-top: .3rem } }
"""


def page(report: Report) -> str:
    """The report as HTML text."""
    rows = side_by_side(report.rows)
    data = json.dumps(json.loads(report.to_json()), separators=(",", ":")).replace("<", "\\u003c")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>pysimd report</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Multiply-adds and loads, kernel by kernel</h1>",
        f"<p>pysimd {escape(report.to_dict()['pysimd'])}. {_machine(report)}</p>",
        "<h2>Multiply-adds per element loaded</h2>",
        '<p class="key"><b class="i"></b>inner product <b class="o"></b>outer product and matrix units. '
        "Computed from the tile; the table has what was counted in the built code.</p>",
        _bars(_each_once(rows)),
        *_roofs(report),
        *(_peaks(found) for found in report.peaks),
        "<h2>Analytic, counted, measured</h2>",
        "<p>Counts are of one turn of the hot loop. Speeds: one tile on packed panels in cache (on a GPU: tiles all "
        "over it), beside peaks that were measured turn by turn with it. A dash: not measured or not counted here.</p>",
        f'<div class="wide">{_table(_seen(rows))}</div>',
        _remarks(rows),
        "<h2>Register tiles</h2>",
        *(_drawing(row) for row in _each_once(rows)),
        f'<script type="application/json" id="{JSON_ID}">{data}</script>',
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _machine(report: Report) -> str:
    there = [b for b in report.machine.values() if b["available"]]
    away = [b for b in report.machine.values() if not b["available"]]
    text = "; ".join(f"{b['name']}: {b['device']}" for b in there) + "."
    return escape(text + "".join(f" No {b['name']}: {b['reason']}." for b in away))


def _each_once(rows: list[Row]) -> list[Row]:
    """A kernel that was counted for several targets has a row for each."""
    return list({row.kernel: row for row in reversed(rows)}.values())[::-1]


def _seen(rows: list[Row]) -> list[Row]:
    """Without the targets that a kernel lacks, if it was counted for another; the remarks tell them."""
    counted = {row.kernel for row in rows if row.counted}
    return [row for row in rows if row.counted or row.gflops is not None or row.kernel not in counted]


def _form(row: Row) -> str:
    return "inner" if row.form == "inner" else "outer"


def _bars(rows: list[Row]) -> str:
    widest = max((row.ratio for row in rows), default=1)
    lines = []
    for row in rows:
        width = 85 * row.ratio / widest
        lines.append(
            f'<span class="name">{escape(row.kernel)}</span><span class="bar {_form(row)}">'
            f'<i style="width:{width:.1f}%"></i><span>{row.ratio:.2f}</span></span>'
        )
    return f'<div class="bars">{"".join(lines)}</div>'


def _table(rows: list[Row]) -> str:
    head = "".join(f'<th title="{escape(text)}">{escape(name)}</th>' for name, text in _HEADERS)
    body = "".join(
        f'<tr class="{_form(row)}{"" if row.available or row.counted else " off"}">'
        + "".join(f'<td class="words">{escape(x)}</td>' if i == 11 else f"<td>{escape(x)}</td>" for i, x in cells)
        + "</tr>"
        for row in rows
        for cells in [enumerate(_cells(row))]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Row) -> list[str]:
    seen = row.counted or {}
    counted = [number(seen.get(key), 2) for key in ("element_ratio", "instruction_ratio")]
    besides = "{stores}, {moves}, {spills}".format(**seen) if seen else "-"
    registers = "{registers} of {registers_there_are}".format(**seen) if seen else "-"
    speeds = (row.gflops, row.percent_of_peak, row.percent_of_load_rate, row.percent_of_load_bandwidth)
    return [
        row.kernel + (f" ({seen['target']})" if seen and row.backend != "cpu" else ""),
        f"{row.mr}x{row.nr}",
        number(row.ratio, 2),
        *counted,
        besides,
        registers,
        *(number(speed, 0) for speed in speeds),
        row.limit or "-",
        number(row.over_inner, 2),
    ]


def _remarks(rows: list[Row]) -> str:
    found = [
        f"<li><code>{escape(row.kernel)}</code>: {escape(row.counted['remark'])}</li>"
        for row in rows
        if row.counted and row.counted["remark"] and not row.counted["agrees"]
    ]
    found += [
        f"<li>{escape(x)}</li>"
        for x in dict.fromkeys(
            f"{row.backend} not counted: {row.uncounted_reason}" for row in rows if row.uncounted_reason
        )
    ]
    return (
        f"<p>Where counted and analytic differ, or nothing was counted:</p><ul>{''.join(found)}</ul>" if found else ""
    )


def _peaks(found: Peaks) -> str:
    """Table of what a machine does at most."""
    whose = "one core" if found.backend == "cpu" else "the whole device"
    memories = list(dict.fromkeys(load.memory for peak in found.peaks for load in peak.loads))
    head = "".join(f"<th>{escape(x)}</th>" for x in ("target", "types", "GFLOP/s", *(f"{x}, GB/s" for x in memories)))
    body = ""
    for peak in found.peaks:
        rates = {load.memory: load.gbytes_per_s for load in peak.loads}
        numbers = (number(x, 0) for x in (peak.gflops, *(rates.get(memory) for memory in memories)))
        cells = "".join(f"<td>{escape(x)}</td>" for x in (peak.types, *numbers))
        body += f"<tr><td>{escape(' '.join((peak.target, peak.instruction)).strip())}</td>{cells}</tr>"
    return (
        f"<h2>What {escape(found.identity['device'])} does at most</h2>"
        f"<p>Of {whose}: multiply-adds alone (GOP/s for integers), and loads alone from each memory. Measured "
        f"{escape(found.measured_at)} in {found.seconds:.1f} s.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


# --- rooflines ---

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 520, 340, 46, 12, 28, 36


def _roofs(report: Report) -> list[str]:
    """A roofline for each types family that has measured kernels with measured roofs; nothing if none has."""
    found = rooflines.of(report)
    if not found:
        return []
    return [
        "<h2>Rooflines</h2>",
        "<p>Each kernel at its operations per byte loaded (counted) and its measured speed, on logarithmic axes, below "
        "the roofs of its instruction set: what the first-level cache loads, and what the multiply-adds reach. Below "
        "both stands a kernel whose loads bind by their number, not by their bytes. Dashed: the same for operands from "
        "farther away, of the target that multiplies fastest.</p>",
        f'<div class="roofs">{"".join(map(_roof, found))}</div>',
    ]


def _roof(found: rooflines.Roofline) -> str:
    (x0, x1), (y0, y1), scale, unit = found.across, found.up, found.scale, found.unit

    def place(x: float, y: float) -> tuple[float, float]:
        right = math.log(x / x0) / math.log(x1 / x0)
        high = math.log(y / y0) / math.log(y1 / y0)
        inside = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + right * inside[0], _HEIGHT - _BOTTOM - high * inside[1]

    shapes = [f'<text x="8" y="17" font-weight="600">{escape(found.types)}: {unit} over operations per byte</text>']
    for value in rooflines.ticks(x0, x1):
        x, _ = place(value, y0)
        shapes.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        shapes.append(f'<text x="{x:.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{value:g}</text>')
    for value in rooflines.ticks(y0 / scale, y1 / scale):
        _, y = place(x0, value * scale)
        shapes.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shapes.append(f'<text x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for memory, line in found.farther.items():
        (x, y), (right, top) = (place(*end) for end in line)
        shapes.append(f'<line class="far" x1="{x:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{top:.1f}"/>')
        shapes.append(f'<text x="{x + 3:.1f}" y="{y - 9:.1f}">{escape(memory)}</text>')
    for name, corners in found.roofs.items():
        points = " ".join("{:.1f},{:.1f}".format(*place(*corner)) for corner in corners)
        x, y = place(*corners[-1])
        shapes.append(f'<polyline class="edge" points="{points}"/>')
        shapes.append(f'<text x="{x - 4:.1f}" y="{y - 5:.1f}" text-anchor="end">{escape(name)}</text>')
    labels: list[tuple[float, float]] = []
    for row in found.rows:
        x, y = place(rooflines.operations_per_byte(row), row.gflops)
        high = y + 4
        while any(abs(x - other) < 75 and abs(high - taken) < 11 for other, taken in labels):
            high -= 2
        labels.append((x, high))
        said = f"{row.kernel}: {row.gflops / scale:.3g} {unit}, {row.percent_of_peak:.0f} % of its peak"
        shapes.append(
            f'<circle class="{_form(row)}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"><title>{escape(said)}</title></circle>'
            f'<text x="{x + 7:.1f}" y="{high:.1f}">{escape(rooflines.label(row))}</text>'
        )
    view = f"0 0 {_WIDTH} {_HEIGHT}"
    return f'<svg class="roof" viewBox="{view}" xmlns="http://www.w3.org/2000/svg" role="img">{"".join(shapes)}</svg>'


def _drawing(row: Row) -> str:
    try:
        kernel = registry.kernel(row.kernel)
    except UnknownKernelError:  # a report of another version
        return ""
    drawn = tile_drawing.tile(kernel, None if row.counted is None or row.backend == "cpu" else row.counted["target"])
    return (
        f'<details><summary class="name">{escape(row.kernel)}</summary>'
        f'<div class="wide">{tile_drawing.svg(drawn)}</div></details>'
    )
