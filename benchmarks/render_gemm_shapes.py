"""Make the tables of random products in docs/cuda.md: ``python benchmarks/render_gemm_shapes.py``.

Reads of benchmarks/results and writes the text between the markers ``shapes:begin`` and ``shapes:end``:

    gemm_holdout63_h200, gemm_holdout64_64_h200, gemm_holdout64_8_h200
                         ``python benchmarks/gemm_shapes.py --taken --seed 63 --out ...``, the same with ``--seed 64
                         --multiple 64 --types f16 bf16f32 --count 60`` and ``--seed 64 --multiple 8 --count 60``
    gemm_holdout61_h200, gemm_holdout53_h200, gemm_holdout47_h200, gemm_holdout31_h200
                         ``--choose-again`` has added what would be chosen of them today
    gemm_fit_h200        ``python benchmarks/fit_estimates.py --out ...``
"""

from __future__ import annotations

import textwrap
from statistics import geometric_mean
from typing import Any

import record

PAGE = record.ROOT / "docs" / "cuda.md"
NAMES = {"f32": "float32", "f16": "float16", "bf16f32": "bfloat16"}
HOLDOUTS = ("gemm_holdout63_h200", "gemm_holdout64_64_h200", "gemm_holdout64_8_h200")
FITTED, FIT = (31, 47, 53, 61), "gemm_fit_h200"


def speeds(name: str, rows: list[dict[str, Any]]) -> list[str]:
    ratios = [x["times_cublas"] for x in rows if x["times_cublas"]]
    narrow = [x["times_cublas"] for x in rows if x["taken"] == "narrow"]
    rung = [x["times_cublas"] for x in rows if x["taken"].endswith("_best")]
    return [
        name,
        str(len(ratios)),
        *(f"{len(x)}: {min(x):.2f} to {max(x):.2f}, {geometric_mean(x):.2f}" if x else "0" for x in (narrow, rung)),
        f"{min(ratios):.2f}",
        str(sum(x < 0.95 for x in ratios)),
        f"{geometric_mean(ratios):.3f}",
    ]


def quantiles(found: list[float]) -> list[str]:
    least, low, middle, high, most = (f"{x:.2f}" for x in found)
    return [least, f"{low}, {middle}, {high}", most]


def of_holdouts(documents: list[dict[str, Any]]) -> list[str]:
    machine = documents[0]["machine"]
    seeds = ", ".join(f"{x['count']} of seed {x['seed']}{rounded(x)}" for x in documents)
    said = (
        f"{machine['device']}, cuBLAS {machine['cublas']}, commit {machine['commit']}: shapes that no constant has "
        f"seen, {seeds}, without those that are taken as a batch of small ones. Of what is taken: how many, the least "
        "and the most against cuBLAS, the geometric mean; what is left to cuBLAS is 1 in the others."
    )
    headers = ["", "products", "by `narrow.cu`", "by a rung", "worst", "below 0.95", "geometric mean"]
    table = [
        speeds(NAMES[types] + rounded(found), [x for x in found["rows"] if x["types"] == types])
        for found in documents
        for types in NAMES
        if any(x["types"] == types for x in found["rows"])
    ]
    below = [x for document in documents for x in document["below_0.95"]]
    named = textwrap.wrap(f"Below 0.95 (m x n x k): {'; '.join(below)}.", 120) if below else []
    return [*textwrap.wrap(said, 120), "", *record.table(headers, table), "", *named, *[""] * bool(named)]


def rounded(document: dict[str, Any]) -> str:
    return f", multiples of {document['multiple']}" if document["multiple"] > 1 else ""


def of_fitted(documents: list[dict[str, Any]]) -> list[str]:
    last = documents[-1]
    before = sum(x["below_0.95"] for x in last["summary"].values())
    worst = min(x["worst"] for x in last["summary"].values())
    means = ", ".join(f"{last['summary'][x]['geometric_mean']:.3f} ({NAMES[x]})" for x in NAMES)
    said = (
        f"Seed {last['seed']} was the holdout of the constants before these: {before} of {len(last['rows'])} products "
        f"were below 0.95, the worst at {worst:.2f} (`below_0.95` in its record names them), and the geometric means "
        f"were {means}. What is chosen of it and of the seeds before it today, no prediction any more, as the "
        "constants were fitted to all of them:"
    )
    headers = ["", "products", "by `narrow.cu`", "by a rung", "worst", "below 0.95", "geometric mean"]
    table = [
        [
            f"{NAMES[types]}, seed {document['seed']}",
            *(f"{found[x]}" for x in ("products", "by_narrow", "by_rung")),
            f"{found['worst']:.2f}",
            f"{found['below_0.95']}",
            f"{found['geometric_mean']:.3f}",
        ]
        for document in documents
        for types in NAMES
        for found in [document["again"]["summary"][types]]
    ]
    return [*textwrap.wrap(said, 120), "", *record.table(headers, table), ""]


def of_fit(document: dict[str, Any]) -> list[str]:
    said = (
        "The same for each record by constants and margins that were fitted to the others (the cases and the features "
        "that the constants belong to were chosen with all of them at hand):"
    )
    table = [
        [
            ", ".join([NAMES[name.split(", ")[0]], *name.split(", ")[1:]]),
            *(f"{found[x]}" for x in ("products", "taken", "below_0.95")),
            f"{found['slowest'][0][-1]:.2f}",
            f"{found['geometric_mean']:.3f}",
        ]
        for name, found in document["left_out"].items()
    ]
    headers = ["", "products", "taken", "below 0.95", "worst of these", "geometric mean"]
    margins = ", ".join(f"{name} {x:.2f}" for name, x in document["margins"].items())
    return [
        *textwrap.wrap(said, 120),
        "",
        *record.table(headers, table),
        "",
        *textwrap.wrap(f"Margins (`fitted.py`): {margins}.", 120),
        "",
    ]


def of_errors(document: dict[str, Any]) -> list[str]:
    again = document["again"]["errors"]
    errors = [
        [f"{NAMES[types]}, {side if side != 'cublas' else f'cuBLAS beside {ours}'}", *quantiles(found)]
        for types, ours in (name.split(", ") for name in again)
        for side, found in again[f"{types}, {ours}"].items()
    ]
    said = f"Measured over estimated times, seed {document['seed']}, where the estimates hold:"
    return [said, "", *record.table(["", "least", "quartiles", "most"], errors)]


def text() -> str:
    fitted = [record.read(f"gemm_holdout{seed}_h200") for seed in FITTED]
    parts = [of_fitted(fitted), of_fit(record.read(FIT)), of_errors(fitted[0])]
    parts.insert(0, of_holdouts([record.read(name) for name in HOLDOUTS]))
    return "\n".join(line for part in parts for line in part)


def rendered(page: str) -> str:
    """The page with what was recorded."""
    return record.replaced(page, text(), "shapes")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
