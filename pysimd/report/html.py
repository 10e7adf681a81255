"""A report as one HTML file: no script runs, no other file is fetched, and all its numbers are in embedded JSON."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pysimd import registry
from pysimd._version import __version__
from pysimd.errors import UnknownKernelError
from pysimd.report import bars, drawing, rooflines, tile_drawing
from pysimd.report.rows import Row, in_table_order
from pysimd.report.text import number

if TYPE_CHECKING:
    from pysimd.bench.peaks import Peaks

JSON_ID = "pysimd-report"

_HEADERS = {
    "kernel": "kernel",
    "tile": "tile",
    "analytic": "multiply-adds per element loaded, of the tile",
    "counted": "the same, counted in the hot loop that was built",
    "FMA / load": "multiply-add instructions per load instruction",
    "stores, moves, spills": "in one iteration of the hot loop",
    "registers": "used, of those of the target",
    "GFLOP/s": "two operations per multiply-add; GOP/s for integers",
    "% of peak": "of independent multiply-adds that load nothing, measured here",
    "% of loads": "load instructions per second, of those that L1 delivers, measured here",
    "% of load bytes": "bytes loaded per second, of those that L1 delivers, measured here",
    "limit": "what takes longer at its measured rate",
    "over inner": "speed divided by that of the inner product",
}

_STYLE = """
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
.roofs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 1rem }
.roofs div { overflow-x: auto } svg { border-radius: 6px } svg.roof { width: 100%; min-width: 480px; height: auto }
details { border-bottom: 1px solid var(--line); padding: .3rem 0 } summary { cursor: pointer }
ul { padding-left: 1.2rem; max-width: 100ch } li { overflow-wrap: anywhere }
"""


def page(rows: Sequence[Row], machine: dict[str, Any], peaks: Sequence[Peaks], data: str) -> str:
    """The HTML text.

    Args:
        rows: of the report.
        machine: its backends, by name.
        peaks: of its backends, where they were measured.
        data: the report as JSON, which is embedded.
    """
    rows = in_table_order(rows)
    embedded = data.replace("<", "\\u003c")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>pysimd report</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{drawing.css()}{_STYLE}</style></head><body>",
        "<h1>Multiply-adds and loads, kernel by kernel</h1>",
        f"<p>pysimd {escape(__version__)}. {_machine(machine)}</p>",
        "<h2>Multiply-adds per element loaded</h2>",
        "<p>Computed from the tile; the table has the counts of the built code.</p>",
        f'<div class="wide">{drawing.svg(bars.ratios(_each_once(rows)), style=False)}</div>',
        *_rooflines(rows, peaks),
        *(_peaks(found) for found in peaks),
        "<h2>Analytic, counted, measured</h2>",
        "<p>Counts are of one iteration of the hot loop. Speeds are of one tile on packed panels in cache (on a GPU: "
        "of tiles on the whole device), compared with peaks that were measured in interleaved samples. A dash: not "
        "measured or not counted here.</p>",
        f'<div class="wide">{_table(_shown(rows))}</div>',
        _remarks(rows),
        "<h2>Register tiles</h2>",
        *(_tile(row) for row in _each_once(rows)),
        f'<script type="application/json" id="{JSON_ID}">{embedded}</script>',
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _machine(machine: dict[str, Any]) -> str:
    available = [b for b in machine.values() if b["available"]]
    missing = [b for b in machine.values() if not b["available"]]
    text = "; ".join(f"{b['name']}: {b['device']}" for b in available) + "."
    return escape(text + "".join(f" No {b['name']}: {b['reason']}." for b in missing))


def _each_once(rows: list[Row]) -> list[Row]:
    """One row for each kernel: the first that was counted, of those for several targets."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.kernel not in found or (row.counted and not found[row.kernel].counted):
            found[row.kernel] = row
    return list(found.values())


def _shown(rows: list[Row]) -> list[Row]:
    """Without the targets that a kernel cannot be compiled for, if it was counted for others; the remarks name them."""
    counted = {row.kernel for row in rows if row.counted}
    return [row for row in rows if row.counted or row.gflops is not None or row.kernel not in counted]


def _form(row: Row) -> str:
    return "inner" if row.form == "inner" else "outer"


def _table(rows: list[Row]) -> str:
    head = "".join(f'<th title="{escape(text)}">{escape(name)}</th>' for name, text in _HEADERS.items())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_line, rows))}</tbody></table>"


def _line(row: Row) -> str:
    cells = "".join(
        f'<td class="words">{escape(cell)}</td>' if header == "limit" else f"<td>{escape(cell)}</td>"
        for header, cell in zip(_HEADERS, _cells(row), strict=True)
    )
    return f'<tr class="{_form(row)}{"" if row.available or row.counted else " off"}">{cells}</tr>'


def _cells(row: Row) -> list[str]:
    counted = row.counted or {}
    speeds = (row.gflops, row.percent_of_peak, row.percent_of_load_rate, row.percent_of_load_bandwidth)
    return [
        row.kernel + (f" ({counted['target']})" if counted and row.backend != "cpu" else ""),
        f"{row.mr}x{row.nr}",
        number(row.ratio, 2),
        number(counted.get("element_ratio"), 2),
        number(counted.get("instruction_ratio"), 2),
        f"{counted['stores']}, {counted['moves']}, {counted['spills']}" if counted else "-",
        f"{counted['registers']} of {counted['registers_there_are']}" if counted else "-",
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
    """Table of the peaks of a machine."""
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
        f"<h2>Peaks of {escape(found.identity['device'])}</h2>"
        f"<p>Of {whose}: multiply-adds alone (GOP/s for integers), and loads alone from each memory. Measured "
        f"{escape(found.measured_at)} in {found.seconds:.1f} s.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _rooflines(rows: Sequence[Row], peaks: Sequence[Peaks]) -> list[str]:
    """A roofline for each types family with kernels that were measured and counted; nothing if there is none."""
    found = rooflines.rooflines(rows, peaks)
    if not found:
        return []
    pictures = "".join(f"<div>{drawing.svg(rooflines.drawing(x), style=False)}</div>" for x in found)
    return [
        "<h2>Rooflines</h2>",
        "<p>Each kernel at its operations per byte loaded (counted) and its measured speed, on logarithmic axes, "
        "below the roofs of its instruction set, which have the same colour: the bandwidth of L1, and the peak of the "
        "multiply-adds. A kernel whose loads bind by their number, not by their bytes, lies below both. Dashed: the "
        "bandwidth of the other memories, below the highest peak.</p>",
        f'<div class="roofs">{pictures}</div>',
    ]


def _tile(row: Row) -> str:
    try:
        kernel = registry.kernel(row.kernel)
    except UnknownKernelError:  # a report of another version
        return ""
    drawn = tile_drawing.tile(kernel, row.counted, row.uncounted_reason)
    picture = drawing.svg(tile_drawing.drawing(drawn, with_notes=False), style=False)
    notes = "".join(f"<li>{escape(note)}</li>" for note in tile_drawing.notes(drawn))
    name = f'<summary class="name">{escape(row.kernel)}</summary>'
    return f'<details>{name}<div class="wide">{picture}</div><ul>{notes}</ul></details>\n'
