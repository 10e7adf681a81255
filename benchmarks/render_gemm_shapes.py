"""Make the tables of random products in docs/cuda.md: ``python benchmarks/render_gemm_shapes.py``.

Reads of benchmarks/results and writes the text between the markers ``shapes:begin`` and ``shapes:end``:

    gemm_holdout53_h200  ``python benchmarks/gemm_shapes.py --taken --seed 53 --out ...``
    gemm_holdout54_h200  the same with ``--seed 54 --multiple 64 --types f16 bf16f32 --count 60``
    gemm_holdout31_h200, gemm_holdout47_h200
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
HOLDOUT, LINES, FITTED, FIT = "gemm_holdout53_h200", "gemm_holdout54_h200", (31, 47), "gemm_fit_h200"


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


def of_holdouts(document: dict[str, Any], lines: dict[str, Any]) -> list[str]:
    machine = document["machine"]
    said = (
        f"{machine['device']}, cuBLAS {machine['cublas']}, commit {machine['commit']}; the first {document['count']} "
        f"shapes of seed {document['seed']}, and {lines['count']} of seed {lines['seed']} rounded up to multiples of "
        f"{lines['multiple']}, without those that are taken as a batch of small ones. Of what is taken: how many, the "
        "least and the most against cuBLAS, the geometric mean; what is left to cuBLAS is 1 in the others."
    )
    headers = ["", "products", "by `narrow.cu`", "by a rung", "worst", "below 0.95", "geometric mean"]
    table = [
        speeds(NAMES[types] + more, [x for x in found["rows"] if x["types"] == types])
        for found, more in ((document, ""), (lines, f", multiples of {lines['multiple']}"))
        for types in NAMES
        if any(x["types"] == types for x in found["rows"])
    ]
    below = [*document["below_0.95"], *lines["below_0.95"]]
    named = textwrap.wrap(f"Below 0.95 (m x n x k): {'; '.join(below)}.", 120) if below else []
    return [*textwrap.wrap(said, 120), "", *record.table(headers, table), "", *named, *[""] * bool(named)]


def of_fitted(documents: list[dict[str, Any]]) -> list[str]:
    before = sum(x["below_0.95"] for x in documents[-1]["summary"].values())
    worst = min(x["worst"] for x in documents[-1]["summary"].values())
    said = (
        f"Seed {documents[-1]['seed']}, of which {documents[-1]['count']} shapes were measured, was the holdout of the "
        f"constants before these: {before} of {len(documents[-1]['rows'])} products were below 0.95, the worst at "
        f"{worst:.2f} (`below_0.95` in its record names them). What is chosen of it and of seed {documents[0]['seed']} "
        "today, no prediction any more, as the constants were fitted to both:"
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
        "The same for products of shapes that were left out of the fit, each sixth of them in turn: how many of those "
        "that were timed ours is faster for, how many are taken, and the part of what could be gained, as a sum of "
        "logarithms:"
    )
    table = [
        [
            name,
            *(f"{found[x]}" for x in ("products", "faster", "taken", "below_0.95")),
            f"{found['worst']:.2f}",
            f"{found['part_of_gain']:.0%}",
        ]
        for name, found in document["left_out"].items()
    ]
    headers = ["", "timed", "faster", "taken", "below 0.95", "worst", "of the gain"]
    return [*textwrap.wrap(said, 120), "", *record.table(headers, table), ""]


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
    if all((record.RESULTS / f"{name}.json").exists() for name in (HOLDOUT, LINES)):
        parts.insert(0, of_holdouts(record.read(HOLDOUT), record.read(LINES)))
    return "\n".join(line for part in parts for line in part)


def rendered(page: str) -> str:
    """The page with what was recorded."""
    return record.replaced(page, text(), "shapes")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
