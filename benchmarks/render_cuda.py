"""Make the tables of docs/cuda.md from recorded results: ``python benchmarks/render_cuda.py``.

Reads benchmarks/results/cuda_micro_h200.json (made by ``python benchmarks/cuda_micro.py --out ...``); writes the text
between the markers ``bench:begin`` and ``bench:end`` of docs/cuda.md.
"""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any

import record

PAGE = record.ROOT / "docs" / "cuda.md"


def rate(row, name: str) -> str:
    value = row["tb_per_s"].get(name)
    return "" if value is None else f"{value:.2f}"


def against_peak(row) -> list[str]:
    return [f"{row['tflops']:.1f}", f"{row['peak_tflops']:.1f}", f"{row['part_of_peak']:.1%}"]


def batched(document: dict[str, Any]) -> list[str]:
    lines = []
    for row in document["batched"]:
        gain = f"{row['over_best_peer']:.1f}" if row["over_best_peer"] else ""
        rates = (rate(row, name) for name in ("pysimd", "cupy", "torch"))
        lines.append([row["types"], f"{row['size']}x{row['size']}", *rates, gain])
    return record.table(["types", "product", "pysimd", "cupy.matmul", "torch.bmm", "times the best peer"], lines)


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
        f"{machine['cublas']}, PyTorch {machine['torch']}; {machine['date']}, commit {machine['commit']}. In the same "
        f"run a device-to-device copy moved {peaks['copy_tb_per_s']:.2f} TB/s; independent FFMA in registers ran at "
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


if __name__ == "__main__":
    main()
