"""Make the tables of docs/cuda.md from recorded results: ``python benchmarks/render_cuda.py``.

Reads benchmarks/results/cuda_micro_h200.json (made by ``python benchmarks/cuda_micro.py --out ...``); writes the text
between the markers ``bench:begin`` and ``bench:end`` of docs/cuda.md, and cuda_batched_h200.svg beside the figures.
"""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any

import record

from pysimd.report.axes import Axis, label
from pysimd.report.drawing import Dot, Drawing, Line, Shape, Text, stacked

PICTURE = "cuda_batched_h200.svg"
LINES = {"pysimd": "pysimd", "cupy": "cupy.matmul", "torch": "torch.bmm"}
TITLES = {
    "peaks": "the copy and the peaks",
    "batched": "batches",
    "shapes": "random shapes",
    "small": "small batches",
    "tiles": "kernels on shared panels",
    "register_tiles": "register tiles",
    "gemms": "products without tensor cores",
}
"""What the sections of the record are called on the page."""

BY_TYPES = ("batched", "shapes")
"""Sections of which a run may measure some types only."""

PAGE = record.ROOT / "docs" / "cuda.md"


def rate(row, name: str) -> str:
    value = row["tb_per_s"].get(name)
    return "" if value is None else f"{value:.2f}"


def against_peak(row) -> list[str]:
    return [f"{row['tflops']:.1f}", f"{row['peak_tflops']:.1f}", f"{row['part_of_peak']:.1%}"]


def commits(document: dict[str, Any]) -> str:
    """Which sections, and which types of those that have them, were recorded at which commit."""
    found: dict[str, list[str]] = {}
    for name, title in TITLES.items():
        section = document.get(name, ())
        rows = [section] if isinstance(section, dict) else section
        types_at: dict[str, list[str]] = {}
        for row in rows:
            at = types_at.setdefault(row.get("commit", document["machine"]["commit"]), [])
            if name in BY_TYPES and row["types"] not in at:
                at.append(row["types"])
        for commit, types in types_at.items():
            found.setdefault(commit, []).append(title + (f" ({', '.join(types)})" if types else ""))
    return "; ".join(f"commit {commit}: {', '.join(titles)}" for commit, titles in found.items())


def batched(document: dict[str, Any]) -> list[str]:
    lines = []
    for row in document["batched"]:
        gain = f"{row['over_best_peer']:.1f}" if row["over_best_peer"] else ""
        rates = (rate(row, name) for name in ("pysimd", "cupy", "torch"))
        lines.append([row["types"], f"{row['size']}x{row['size']}", *rates, gain])
    return record.table(["types", "product", "pysimd", "cupy.matmul", "torch.bmm", "times the best peer"], lines)


def picture(document: dict[str, Any]) -> Drawing:
    """Bytes per second of square batches, a panel for each types family."""
    rows = document["batched"]
    families = dict.fromkeys(row["types"] for row in rows)
    roof = document["peaks"]["copy_tb_per_s"]
    return stacked(
        [panel(types, [row for row in rows if row["types"] == types], roof) for types in families], columns=2
    )


def panel(types: str, rows: list[dict[str, Any]], roof: float) -> Drawing:
    """Curves of one family below the bandwidth of a copy; m = n = k along a logarithmic axis."""
    width, height, left, right, top, bottom = 470, 330, 48, 455, 52, 270
    sizes = [row["size"] for row in rows]
    x, y = Axis(min(sizes), max(sizes), left, right, logarithmic=True), Axis(0, 5, bottom, top)
    shapes: list[Shape] = [Text(12, 20, f"{types}: A, B and C of batches, TB/s", kind="title")]
    for value in range(6):
        shapes += [
            Line("grid", ((left, y.at(value)), (right, y.at(value)))),
            Text(left - 6, y.at(value) + 4, str(value), "end"),
        ]
    for size in (4, 8, 16, 32, 64, 128, 256):
        if min(sizes) <= size <= max(sizes):
            shapes.append(Text(x.at(size), bottom + 17, label(size), "middle"))
    shapes += [Line("far", ((left, y.at(roof)), (right, y.at(roof)))), Text(right, y.at(roof) - 5, "a copy", "end")]
    at = left
    for i, (name, said) in enumerate(LINES.items()):
        found = [(row["size"], row["tb_per_s"][name]) for row in rows if name in row["tb_per_s"]]
        if found:
            points = tuple((x.at(size), y.at(speed)) for size, speed in found)
            shapes.append(Line(f"roof-{i}", points))
            shapes += [
                Dot(f"disc-{i}", *point, 2.5, f"{said}, {size}: {speed:.2f} TB/s")
                for point, (size, speed) in zip(points, found, strict=True)
            ]
            shapes += [Line(f"roof-{i}", ((at, height - 20), (at + 16, height - 20))), Text(at + 21, height - 16, said)]
            at += 40 + Text(0, 0, said).box.right
    return Drawing("roof", width, height, tuple(shapes))


def shapes(document: dict[str, Any]) -> list[str]:
    """The worst and the mean of the random shapes; records from before there were any have none."""
    rows_of: dict[str, list[dict[str, Any]]] = {}
    for row in document.get("shapes", ()):
        rows_of.setdefault(row["types"], []).append(row)
    said = []
    for types, rows in rows_of.items():
        mean = geometric_mean([row["over_best_peer"] for row in rows])
        worst = min(rows, key=lambda row: row["over_best_peer"])
        shape = ", ".join(str(worst[x]) for x in "mnk")
        said.append(
            f"{len(rows)} of {types} ran at {mean:.2f} times the best peer in the geometric mean, at worst at "
            f"{worst['over_best_peer']:.2f} ({shape})"
        )
    if not said:
        return []
    words = "Random shapes beyond 32 x 32 (m, n, k log-uniform from 4 to 256) that `matmul` does not leave to cuBLAS: "
    return [words + "; ".join(said) + ".", ""]


def small(document: dict[str, Any]) -> list[str]:
    calls = ("pysimd_out", "cupy_out", "pysimd", "cupy", "torch")
    lines = [
        [f"{row['size']}x{row['size']}", f"{row['batch']:,}", *(f"{row['us_per_call'][name]:.1f}" for name in calls)]
        for row in document["small"]
    ]
    return record.table(["product", "batch", "pysimd, out=", "cupy, out=", "pysimd", "cupy", "torch.bmm"], lines)


def tiles(document: dict[str, Any]) -> list[str]:
    """The best layout of every kernel."""
    best = {}
    for row in document["tiles"]:
        if row["kernel"] not in best or row["tflops"] > best[row["kernel"]]["tflops"]:
            best[row["kernel"]] = row
    lines = []
    for name, row in best.items():
        peak = [f"{row['peak_tflops']:.1f}", f"{row['part_of_peak']:.0%}"] if row["peak"] else ["", ""]
        lines.append([f"`{name}`", f"{row['tflops']:.1f}", *peak, f"A {row['a']}, B {row['b']}"])
    return record.table(["kernel", "measured", "peak", "part", "layout"], lines)


def register_tiles(document: dict[str, Any]) -> list[str]:
    lines = [[row["types"], row["tile"], *against_peak(row)] for row in document["register_tiles"]]
    return record.table(["types", "tile of a thread", "measured", "peak", "part"], lines)


def gemms(document: dict[str, Any]) -> list[str]:
    lines = [[f"`{row['rung']}`", f"{row['size']:,}", *against_peak(row)] for row in document["gemms"]]
    return record.table(["rung", "size", "measured", "peak", "part"], lines)


def rendered(page: str) -> str:
    """The page with what was recorded."""
    document = record.read("cuda_micro_h200")
    machine, peaks = document["machine"], document["peaks"]
    lines = [
        f"{machine['device']}, CUDA {record.cuda_version(machine)}, CuPy {machine['cupy']}, cuBLAS "
        f"{machine['cublas']}, PyTorch {machine['torch']}; {machine['date']}. Recorded at {commits(document)}. "
        f"A device-to-device copy moved {peaks['copy_tb_per_s']:.2f} TB/s; independent FFMA in registers ran at "
        f"{peaks['ffma_tflops']:.1f} TFLOP/s, HFMA2 at {peaks['hfma2_tflops']:.1f} "
        f"({peaks['hfma2_broadcast_tflops']:.1f} with one factor broadcast from half a register), dp4a at "
        f"{peaks['dp4a_tflops']:.1f} TOP/s.",
        "",
        "Batched products, terabytes of A, B and C per second, arrays of 1.2 GB:",
        "",
        *batched(document),
        "",
        "`torch.bmm` gives bfloat16 for bfloat16 and moves fewer bytes than are counted for it. Neither peer has int8.",
        "",
        f"![bytes per second by size](../benchmarks/results/{PICTURE})",
        "",
        *shapes(document),
        "Small batches of float32, microseconds per call from Python, many calls in a row:",
        "",
        *small(document),
        "",
        "Kernels on two panels that all tiles share, TFLOP/s or TOP/s, in the best of four layouts:",
        "",
        *tiles(document),
        "",
        "Register tiles on panels in shared memory, K = 32,768 words (`gpu_kernels/tile_rate.cu`):",
        "",
        *register_tiles(document),
        "",
        "Products without tensor cores, m = n = k, compared with the peak of their instruction:",
        "",
        *gemms(document),
    ]
    return record.replaced(page, "\n".join(lines))


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))
    record.draw({PICTURE: picture(record.read("cuda_micro_h200"))})


if __name__ == "__main__":
    main()
