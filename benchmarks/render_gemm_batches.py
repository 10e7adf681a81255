"""Make the table of random batches in docs/cuda.md: ``python benchmarks/render_gemm_batches.py``.

Reads of benchmarks/results and writes the text between the markers ``batches:begin`` and ``batches:end``:

    gemm_batches_h200        ``python benchmarks/gemm_batches.py --seed 81 --count 400 --out ...``
    gemm_batches4_h200       ``--seed 82 --count 300 --least 32 --most 512 --multiple 4``
    gemm_batches_large_h200  ``--seed 83 --count 200 --least 64``
"""

from __future__ import annotations

import textwrap
from statistics import geometric_mean
from typing import Any

import record

PAGE = record.ROOT / "docs" / "cuda.md"
RECORDS = ("gemm_batches_h200", "gemm_batches4_h200", "gemm_batches_large_h200")
NAMES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "bf16f32": "bfloat16, C of float32",
}
LOST_US = 3
"""Named are products that ours takes so many microseconds longer for than cuBLAS."""


def line(types: str, rows: list[dict[str, Any]]) -> list[str]:
    taken = [x["times_cublas"] for x in rows if "us" in x]
    lost = max((x["us"]["pysimd"] - x["us"]["cublas"] for x in rows if "us" in x), default=0)
    return [
        NAMES[types],
        str(len(rows)),
        f"{len(taken)}: {min(taken):.2f} to {max(taken):.2f}, {geometric_mean(taken):.2f}" if taken else "0",
        str(sum(x < 0.95 for x in taken)),
        f"{max(lost, 0):.1f} µs",
        f"{geometric_mean(x['times_cublas'] for x in rows):.3f}",
    ]


def text() -> str:
    documents = [record.read(name) for name in RECORDS]
    rows = [x for document in documents for x in document["rows"]]
    machine = documents[0]["machine"]
    ranges = ", ".join(
        f"{x['least']} to {x['most']}" + (f" in multiples of {x['multiple']}" if x["multiple"] > 1 else "")
        for x in documents
    )
    said = (
        f"{machine['device']}, cuBLAS {machine['cublas']}, commit {machine['commit']}: {len(rows)} random batches of 2 "
        f"to 4096 products, by row-major and transposed operands in turn, m, n and k log-uniform ({ranges}), 0.1 to "
        "600 MB. Of what is taken: how many, the least and the most against cuBLAS, which reads transposed operands as "
        "they are, and the geometric mean; how many of them are below 0.95, and the most that any of them lost."
    )
    table = [line(types, [x for x in rows if x["types"] == types]) for types in NAMES]
    headers = ["", "batches", "taken", "below 0.95", "lost at most", "geometric mean of all"]
    slow = sorted(
        (x for x in rows if "us" in x and x["us"]["pysimd"] - x["us"]["cublas"] > LOST_US),
        key=lambda x: x["times_cublas"],
    )
    named = "; ".join(
        f"{NAMES[x['types']]} {x['batch']} of {x['m']} x {x['n']} x {x['k']}, {x['layout']}, by {x['taken']}: "
        f"{x['us']['pysimd']:.1f} µs beside {x['us']['cublas']:.1f} ({x['times_cublas']:.2f})"
        for x in slow
    )
    return "\n".join(
        [
            *textwrap.wrap(said, 120),
            "",
            *record.table(headers, table),
            "",
            *textwrap.wrap(f"More than {LOST_US} µs were lost by (m x n x k): {named or 'none'}.", 120),
        ]
    )


def rendered(page: str) -> str:
    """The page with what was recorded."""
    return record.replaced(page, text(), "batches")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
