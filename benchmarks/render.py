"""Make README's table and the plot from recorded results: ``python benchmarks/render.py``.

Reads cpu.json (made by ``python benchmarks/cpu.py --out benchmarks/results/cpu.json``) and, for tiles, cpu_quiet.json
(the same on a machine with no other work) in benchmarks/results; writes cpu_batched.svg there and the text between the
markers ``bench:begin`` and ``bench:end`` of README.md.
"""

from __future__ import annotations

from typing import Any

import record

import pysimd
from pysimd.report.axes import Axis, label
from pysimd.report.drawing import SERIES, Dot, Drawing, Line, Shape, Text, text_width

PAGE = record.ROOT / "README.md"
PICTURE = "cpu_batched.svg"


def short(name: str) -> str:
    """A name without its version."""
    return name.split(" 2.")[0].split(" 0.")[0]


def contenders(rows: list[dict[str, Any]]) -> list[str]:
    """All names, ours first."""
    names = dict.fromkeys(name for row in rows for name in row["median_ns"])
    return sorted(names, key=lambda name: not name.startswith("pysimd"))


def batched(document: dict[str, Any]) -> list[str]:
    """The products of pysimd and of its peers."""
    rows, machine = document["batched"], document["machine"]
    names = contenders(rows)
    headers = ["product", "batch", *map(short, names), "floor: fma", "floor: memory"]
    lines = []
    for row in rows:
        cells = [f"{row['size']}x{row['size']}", f"{row['batch']:,}"]
        cells += [f"{row['median_ns'][n]:.1f}" if n in row["median_ns"] else "" for n in names]
        lines.append([*cells, f"{row['fma_limit_ns']:.1f}", f"{row['memory_limit_ns']:.1f}"])
    versions = ", ".join(n for n in names if not n.startswith("pysimd"))
    calls = document["one"][0]["median_ns"]
    return [
        "float32, nanoseconds per product, one thread, median of 25 samples, interleaved in one run; lower is better. "
        f"{machine['device']} with {features(machine)}, {versions}, NumPy on {machine['numpy_blas'][0]}; "
        f"{machine['date']}, commit {machine['commit']}.",
        "",
        *record.table(headers, lines),
        "",
        "The floors are what this machine takes for the multiply-adds alone and for moving A, B and C alone. "
        '"pysimd" is called from Python, which costs the smallest batches most; "pysimd in C" is repeated in C, as '
        "Eigen and LIBXSMM are.",
        "",
        f"One 4x4 product from Python: numpy.matmul(out=) {calls['numpy.matmul(out=)']:.0f} ns, "
        f"pysimd.matmul(out=) {calls['pysimd.matmul(out=)']:.0f} ns, "
        f"a bound kernel {calls['pysimd bound']:.0f} ns.",
        "",
        f"![time per product](benchmarks/results/{PICTURE})",
    ]


def tiles(document: dict[str, Any]) -> list[str]:
    """The kernels that fill the register file, compared with the peak of their instructions."""
    by_family: dict[tuple[str, str], tuple[int, Any]] = {}
    for row in document["tiles"]:
        kernel = pysimd.kernel(row["kernel"])
        key = (kernel.target, kernel.types)
        if kernel.form == "outer" and kernel.target != "generic":
            by_family[key] = max(by_family.get(key, (0, None)), (kernel.mr * kernel.nr, row), key=lambda x: x[0])
    headers = ["kernel", "GFLOP/s", "peak", "%"]
    lines = [
        [f"`{row['kernel']}`", f"{row['gflops']:.0f}", f"{row['peak_gflops']:.0f}", f"{row['percent_of_peak']:.1f}"]
        for _, row in by_family.values()
    ]
    machine = document["machine"]
    return [
        "The largest tile of each target and type on packed panels in cache, K = 256, compared with the peak: "
        "independent multiply-adds in registers that load nothing (GOP/s for integers; one core of an "
        f"{machine['device']}, {machine['date']}):",
        "",
        *record.table(headers, lines),
        "",
        "SSE has no broadcast load: a shuffle for each element of A takes a port of multiply and add.",
    ]


def features(machine) -> str:
    return "AVX-512" if "avx512f" in machine["features"] else "AVX2" if "avx2" in machine["features"] else "SSE2"


_LEFT, _RIGHT, _TOP, _ROW = 172.0, 720.0, 62.0, 24.0


def drawn(document: dict[str, Any]) -> Drawing:
    """The products: a line for each, with a dot for each contender and a mark at the floor."""
    rows, names = document["batched"], contenders(document["batched"])
    times = [ns for row in rows for ns in row["median_ns"].values()]
    axis = Axis(min(times) / 2, max(times) * 1.5, _LEFT, _RIGHT, logarithmic=True)
    bottom = _TOP + _ROW * len(rows)
    shapes: list[Shape] = [
        Text(10, 19, "ns per product, float32, one thread, logarithmic: lower is better", kind="title")
    ]
    shapes += [Line("grid", ((axis.at(value), _TOP), (axis.at(value), bottom))) for value in axis.ticks(40)]
    shapes += [Text(axis.at(value), bottom + 17, label(value), "middle") for value in axis.ticks(40)]
    for i, row in enumerate(rows):
        y = _TOP + _ROW * (i + 0.5)
        floor = axis.at(max(row["fma_limit_ns"], row["memory_limit_ns"]))
        shapes.append(Text(_LEFT - 10, y + 4, f"{row['size']}x{row['size']}, batch {row['batch']:,}", "end"))
        shapes += [Line("grid", ((_LEFT, y), (_RIGHT, y))), Line("pick", ((floor, y - 8), (floor, y + 8)))]
        for j, name in reversed(list(enumerate(names))):
            if name in row["median_ns"]:
                ns = row["median_ns"][name]
                shapes.append(Dot(f"disc-{j % SERIES}", axis.at(ns), y, 5, f"{name}: {ns:.1f} ns"))
    x = 10.0
    for j, name in enumerate([*map(short, names), "floor"]):
        swatch = Line("pick", ((5, -8), (5, 4))) if name == "floor" else Dot(f"disc-{j % SERIES}", 5, -4, 5, name)
        shapes += [swatch.moved(x, 42), Text(x + 15, 42, name)]
        x += 30 + text_width(name)
    return Drawing("bars", max(x, _RIGHT) + 20, bottom + 30, tuple(shapes))


def rendered(page: str) -> str:
    """The page with what was recorded."""
    lines = [*batched(record.read("cpu")), "", *tiles(record.read("cpu_quiet"))]
    return record.replaced(page, "\n".join(lines))


def pictures() -> dict[str, Drawing]:
    """Drawings by the name of their file."""
    return {PICTURE: drawn(record.read("cpu"))}


def main() -> None:
    record.draw(pictures())
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
