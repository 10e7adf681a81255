"""Make the tables of docs/cuda.md from recorded results: ``python benchmarks/render_cuda.py``.

Reads benchmarks/results/cuda_micro_h200.json (made by ``python benchmarks/cuda_micro.py --out ...``); writes the text
between the markers ``bench:begin`` and ``bench:end`` of docs/cuda.md.
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cuda_micro_h200.json"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def table(head, rows) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def rate(row, name: str) -> str:
    value = row["tb_per_s"].get(name)
    return "" if value is None else f"{value:.2f}"


def beside_ceiling(row) -> list[str]:
    return [f"{row['tflops']:.1f}", f"{row['ceiling_tflops']:.1f}", f"{row['part_of_ceiling']:.1%}"]


def text(document) -> str:
    machine, ceilings = document["machine"], document["ceilings"]
    batched = []
    for row in document["batched"]:
        gain = f"{row['over_best_peer']:.1f}" if row["over_best_peer"] else ""
        rates = (rate(row, name) for name in ("pysimd", "cupy", "torch"))
        batched.append([row["types"], f"{row['size']}x{row['size']}", *rates, gain])
    calls = ("pysimd_out", "cupy_out", "pysimd", "cupy", "torch")
    small = [
        [f"{row['size']}x{row['size']}", f"{row['batch']:,}", *(f"{row['us_per_call'][name]:.1f}" for name in calls)]
        for row in document["small"]
    ]
    best = {}
    for row in document["tiles"]:
        if row["kernel"] not in best or row["tflops"] > best[row["kernel"]]["tflops"]:
            best[row["kernel"]] = row
    tiles = []
    for name, row in best.items():
        ceiling = [f"{row['ceiling_tflops']:.1f}", f"{row['part_of_ceiling']:.0%}"] if row["ceiling"] else ["", ""]
        tiles.append([f"`{name}`", f"{row['tflops']:.1f}", *ceiling, f"A {row['a']}, B {row['b']}"])
    register_tiles = [[row["types"], row["tile"], *beside_ceiling(row)] for row in document["register_tiles"]]
    gemms = [[f"`{row['rung']}`", f"{row['size']:,}", *beside_ceiling(row)] for row in document["gemms"]]
    return "\n".join(
        [
            f"{machine['device']}, CUDA {machine['cuda_runtime'] // 1000}.{machine['cuda_runtime'] % 1000 // 10}, CuPy "
            f"{machine['cupy']}, cuBLAS {machine['cublas']}, PyTorch {machine['torch']}; {machine['date']}, commit "
            f"{machine['commit']}. In the same run a device-to-device copy moved {ceilings['copy_tb_per_s']:.2f} TB/s; "
            f"chains of FFMA ran at {ceilings['ffma_tflops']:.1f} TFLOP/s, of HFMA2 at {ceilings['hfma2_tflops']:.1f} "
            f"({ceilings['hfma2_broadcast_tflops']:.1f} with one factor taken twice from half a register), of dp4a at "
            f"{ceilings['dp4a_tflops']:.1f} TOP/s.",
            "",
            "Batched products, terabytes of A, B and C per second, arrays of 1.2 GB:",
            "",
            *table(["types", "product", "pysimd", "cupy.matmul", "torch.bmm", "times the best peer"], batched),
            "",
            "`torch.bmm` gives bfloat16 for bfloat16 and moves fewer bytes than it is credited for. Neither has int8.",
            "",
            "Small batches of float32, microseconds per call from Python, many calls in a row:",
            "",
            *table(["product", "batch", "pysimd, out=", "cupy, out=", "pysimd", "cupy", "torch.bmm"], small),
            "",
            "Kernels on two panels that all tiles share, TFLOP/s or TOP/s, in the best of four layouts:",
            "",
            *table(["kernel", "measured", "ceiling", "part", "layout"], tiles),
            "",
            "Register tiles on panels in shared memory, K = 32,768 words (`gpu_kernels/tile_rate.cu`):",
            "",
            *table(["types", "tile of a thread", "measured", "ceiling", "part"], register_tiles),
            "",
            "Products without tensor cores, m = n = k, beside the chain of the same instruction:",
            "",
            *table(["rung", "size", "measured", "ceiling", "part"], gemms),
        ]
    )


def main() -> None:
    page = ROOT / "docs" / "cuda.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    document = json.loads(RESULTS.read_text())
    page.write_text(f"{before}{BEGIN}\n{text(document)}\n{END}{after}")


if __name__ == "__main__":
    main()
