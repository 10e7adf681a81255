"""Make README's table and the plot from recorded results: ``python benchmarks/render.py``.

Reads cpu.json (made by ``python benchmarks/cpu.py --out benchmarks/results/cpu.json``) and, for tiles, cpu_quiet.json
(the same on a machine with no other work) in benchmarks/results; writes cpu_batched.png there and the text between the
markers ``bench:begin`` and ``bench:end`` of README.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import record

import pysimd

PAGE = record.ROOT / "README.md"
PLOT = record.RESULTS / "cpu_batched.png"


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
        f"![time per product](benchmarks/results/{PLOT.name})",
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


def plot(document, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = document["batched"]
    names = contenders(rows)
    figure, axes = plt.subplots(figsize=(11, 4.5), layout="constrained")
    width = 0.8 / len(names)
    colours = ["#0b5394", "#6fa8dc", *plt.get_cmap("Greys")([0.35, 0.45, 0.55, 0.65, 0.75])]
    for i, name in enumerate(names):
        x = [j + (i - len(names) / 2 + 0.5) * width for j in range(len(rows))]
        axes.bar(x, [row["median_ns"].get(name, 0) for row in rows], width, label=short(name), color=colours[i % 7])
    for j, row in enumerate(rows):
        floor = max(row["fma_limit_ns"], row["memory_limit_ns"])
        axes.plot([j - 0.42, j + 0.42], [floor, floor], color="#cc0000", linewidth=1.5, label=None if j else "floor")
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), [f"{r['size']}x{r['size']}\n{r['batch']:,}" for r in rows])
    axes.set_ylabel("ns per product (log scale)")
    axes.set_xlabel("product and batch")
    axes.set_title("C[i] = A[i] B[i], float32, one thread: lower is better")
    axes.legend(ncols=4, frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def rendered(page: str) -> str:
    """The page with what was recorded."""
    lines = [*batched(record.read("cpu")), "", *tiles(record.read("cpu_quiet"))]
    return record.replaced(page, "\n".join(lines))


def main() -> None:
    plot(record.read("cpu"), PLOT)
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
