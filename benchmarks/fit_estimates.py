"""Fit constants of the estimates that whole products are chosen by: ``python benchmarks/fit_estimates.py [--write]``.

Those are the ones for few rows or columns, and for 16-bit operands that need no copies. The times are those that
benchmarks/gemm_shapes.py recorded; a record that is a holdout is not among them. Times of narrow.cu are fitted by least
squares of their logarithm, with little weight for outliers. Of times of cuBLAS, and of these over those of the rung, a
low quantile is fitted: what cuBLAS chooses is not known, and a product that it takes longer for than estimated is no
loss. Recorded is what the estimates would choose of products of shapes that the constants were not fitted to: each
sixth is left out in turn. Needs SciPy. ``--write`` writes pysimd/backends/cuda/fitted.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import record
from pysimd.gpu_kernels import table

from pysimd.backends.cuda import estimates as rungs
from pysimd.backends.cuda import narrow_estimates as estimates

RECORDS = (
    "gemm_random_h200",
    "gemm_random8_h200",
    "gemm_random64_h200",
    "gemm_holdout_h200",
    "gemm_holdout11_h200",
    "gemm_holdout31_h200",
    "gemm_skinny_holdout_h200",
    "gemm_holdout47_h200",
    "gemm_short48_h200",
)
TARGET = record.ROOT / "pysimd" / "backends" / "cuda" / "fitted.py"

QUANTILE, SMALLEST, FOLDS = 0.2, 12, 6
"""Of the times of cuBLAS, the part that may be below the estimate; products of a case, at least; parts that are left
out in turn."""

SIZES = {4: table.NARROW_SHORT["f32"], 2: table.NARROW_SHORT["f16"]}
TILES = [(size, short, many) for size, shorts in SIZES.items() for short in shorts for many in (False, True)]

Row = dict[str, Any]


def shape(row: Row) -> tuple[str, int, int, int]:
    return row["types"], row["m"], row["n"], row["k"]


# --- narrow.cu ---

_START = {
    "LAUNCH_US": [2.0] * len(TILES),
    "PANEL_US": [2.0] * len(TILES),
    "SPLIT_US": [1.0] * 2,
    "BYTES_PER_US": [3.5e6, 3.0e6, 2.0e6, 1.5e6, 2.5e6, 2.0e6, 1.0e6, 1.4e6],
    "PANEL_FACTOR": [1.0] * 8,
    "PART_OF_PANEL": [0.3] * 2,
    "STORE_US": [5e-7] * 2,
}
"""What the fit begins with, and is held to where there are few times: of each of TILES, of each size, or of each size
and each of its layouts."""

_HELD, _ERROR = 0.03, 0.1


def named(logarithms: np.ndarray) -> dict[str, np.ndarray]:
    ends = np.cumsum([len(values) for values in _START.values()])
    return dict(zip(_START, np.split(np.exp(logarithms), ends[:-1]), strict=True))


def narrow_parts(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """What the estimates are made of."""
    launches = [estimates.launch_of(*shape(row)) for row in rows]
    found = {name: np.array([getattr(x, name) for x in launches]) for name in estimates.Launch._fields}
    sizes = np.array([x.size for x in launches])
    found["tile"] = np.array([TILES.index((x.size, x.short, bool(x.many))) for x in launches])
    found["which"] = (sizes == 2).astype(int)
    found["layout"] = 4 * found["which"] + found["rows"]
    return found


def narrow_times(x: dict[str, np.ndarray], p: dict[str, np.ndarray]) -> np.ndarray:
    """``narrow_estimates.narrow_us`` for all rows."""
    panel = x["PANEL_US"][p["tile"]] * x["PANEL_FACTOR"][p["layout"]]
    panel = panel * np.where(p["panels"] == 1, p["filled"] ** x["PART_OF_PANEL"][p["which"]], 1)
    moved = p["nbytes"] / x["BYTES_PER_US"][p["layout"]]
    launch = x["LAUNCH_US"][p["tile"]] + x["SPLIT_US"][p["which"]] * p["split"]
    both = moved**estimates.NORM + (p["panels"] * panel) ** estimates.NORM
    return launch + x["STORE_US"][p["which"]] * p["elements"] + both ** (1 / estimates.NORM)


def fitted_narrow(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    from scipy.optimize import least_squares

    start, parts = np.log(np.concatenate(list(_START.values()))), narrow_parts(rows)
    measured = np.log([row["us"]["narrow"] for row in rows])

    def residuals(x: np.ndarray) -> np.ndarray:
        error = np.log(narrow_times(named(x), parts)) - measured
        return np.concatenate([error / _ERROR, _HELD / _ERROR * (x - start)])

    return named(least_squares(residuals, start, loss="soft_l1", max_nfev=200).x)


# --- cuBLAS ---

_WEIGHT = 0.02


def fitted_cublas(rows: Sequence[Row]) -> dict[str, list[float]]:
    """The weights of the features, for each case of which there are enough products."""
    cases = defaultdict(list)
    for row in rows:
        cases[estimates.case_of(*shape(row))].append(row)
    return {
        case: quantile_regression(
            [estimates.features(*shape(row)) for row in found], [row["us"]["cublas"] for row in found], QUANTILE
        )
        for case, found in sorted(cases.items())
        if len(found) >= SMALLEST
    }


def quantile_regression(features: Sequence[Sequence[float]], values: Sequence[float], quantile: float) -> list[float]:
    """The weights of the logarithm that minimize the pinball loss, and a little of themselves, as a linear program."""
    from scipy.optimize import linprog

    x, y = np.array(features), np.log(values)
    count, width = x.shape
    cost = np.concatenate([np.full(count, quantile), np.full(count, 1 - quantile), np.full(2 * width, _WEIGHT)])
    cost[[2 * count, 2 * count + width]] = 0
    equal = np.hstack([np.eye(count), -np.eye(count), x, -x])
    found = linprog(cost, A_eq=equal, b_eq=y, bounds=(0, None), method="highs").x[2 * count :]
    return (found[:width] - found[width:]).tolist()


def cublas_time(weights: dict[str, list[float]], row: Row) -> float | None:
    found = weights.get(estimates.case_of(*shape(row)))
    return None if found is None else float(np.exp(np.dot(found, estimates.features(*shape(row)))))


# --- 16-bit operands that need no copies ---

RUNG_QUANTILE = 0.1
"""Of the times of cuBLAS over those of the rung, the part that may be below the estimate."""


def squares() -> list[Row]:
    """Those of benchmarks/gemm_squares.py whose C has 16 bits."""
    found = []
    for row in record.read("gemm_squares_h200")["rows"]:
        if row.get("c") in ("bfloat16", "float16"):
            types, name = ("bf16f32", "bf16_best") if row["c"] == "bfloat16" else ("f16", "f16_best")
            us = {"cublas": min(row["us"]["cublas"], row["us"]["torch"]), name: row["us"]["pysimd"]}
            found.append({**row, "types": types, "us": us})
    return found


def rung_over(row: Row) -> float | None:
    """How many times faster the rung was than cuBLAS; None where that was not timed, or is another case."""
    types, m, n, k = shape(row)
    name = {"f16": "f16_best", "bf16f32": "bf16_best"}.get(types)
    holds = name in row["us"] and rungs.is_aligned(types, m, n, k) and k >= rungs.LEAST_ALIGNED_K
    return row["us"]["cublas"] / row["us"][name] if holds else None


def fitted_aligned(rows: Sequence[Row]) -> dict[str, list[float]]:
    cases = defaultdict(list)
    for row in rows:
        if rung_over(row):
            cases[rungs.aligned_case(*shape(row)[1:])].append(row)
    return {
        case: quantile_regression(
            [rungs.aligned_features(*shape(row)[1:]) for row in found], [rung_over(row) for row in found], RUNG_QUANTILE
        )
        for case, found in sorted(cases.items())
    }


def validated_aligned(rows: Sequence[Row]) -> dict[str, Any]:
    """What the estimates would choose of products of shapes that they were not fitted to."""
    rows = [row for row in rows if rung_over(row)]
    estimated = []
    for fold in range(FOLDS):
        weights = fitted_aligned([row for row in rows if _fold(row) != fold])
        for row in (row for row in rows if _fold(row) == fold):
            found, features = weights[rungs.aligned_case(*shape(row)[1:])], rungs.aligned_features(*shape(row)[1:])
            estimated.append((float(np.exp(np.dot(found, features))), rung_over(row), row))
    return outcome([(measured, ratio >= rungs.ALIGNED_MARGIN, row) for ratio, measured, row in estimated])


# --- what is left out ---


def outcome(found: Sequence[tuple[float, bool, Row]]) -> dict[str, Any]:
    """Of products: how many times faster than cuBLAS ours was, and whether it would be taken."""
    taken = [(ratio, row) for ratio, whether, row in found if whether]
    ratios = np.array([ratio for ratio, _ in taken])
    possible = sum(np.log(max(1.0, ratio)) for ratio, _, _ in found)
    return {
        "products": len(found),
        "faster": sum(ratio > 1 for ratio, _, _ in found),
        "taken": len(taken),
        "below_0.95": int(sum(ratios < 0.95)),
        "worst": float(ratios.min()),
        "part_of_gain": float(np.log(ratios).sum() / possible),
        "slowest": [[*shape(row), round(ratio, 3)] for ratio, row in sorted(taken, key=lambda x: x[0])[:5]],
    }


def validated(rows: Sequence[Row]) -> list[tuple[float, float, float | None]]:
    """Of products that narrow.cu was timed for: how many times faster it was than cuBLAS, and the estimates of both by
    the products of other shapes."""
    found = []
    for fold in range(FOLDS):
        fitted = [row for row in rows if _fold(row) != fold]
        left = [row for row in rows if _fold(row) == fold and "narrow" in row["us"]]
        times = narrow_times(fitted_narrow([row for row in fitted if "narrow" in row["us"]]), narrow_parts(left))
        weights = fitted_cublas(fitted)
        for row, time in zip(left, times, strict=True):
            ratio = row["us"]["cublas"] / row["us"]["narrow"]
            found.append((ratio, row["us"]["narrow"] / time, cublas_time(weights, row), time, row))
    return found


def _fold(row: Row) -> int:
    return (row["m"] * 7919 + row["n"] * 104729 + row["k"] * 1299709) % 1000003 % FOLDS


def validated_narrow(rows: Sequence[Row]) -> dict[str, Any]:
    found = validated(rows)
    errors = np.quantile([x[1] for x in found], [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    return {
        **outcome([(x[0], _taken(x), x[4]) for x in found]),
        "narrow_over_estimate": errors.round(3).tolist(),
    }


def _taken(found) -> bool:
    _, _, compared, time, row = found
    holds = row["k"] >= estimates.LEAST_K and compared is not None
    return holds and estimates.margin(*shape(row)) * time <= compared


# --- the constants ---


def text(narrow: dict[str, np.ndarray], **weights: dict[str, list[float]]) -> str:
    """fitted.py."""

    def rounded(x: float) -> str:
        return f"{x:.3g}" if abs(x) < 1000 else f"{x / 1e6:.3g}e6"

    def row(values: Sequence[float]) -> str:
        return "(" + ", ".join(map(rounded, values)) + ")"

    lines = [
        '"""Constants of estimates.py and narrow_estimates.py, written by benchmarks/fit_estimates.py."""',
        "",
    ]
    for name, values in narrow.items():
        lines.append(f"{name} = {{")
        if len(values) == len(TILES):
            for i in range(0, len(TILES), 2):
                lines.append(f"    {TILES[i][:2]}: {row(values[i : i + 2])},")
        else:
            half = len(values) // 2
            for size, some in zip(SIZES, (values[:half], values[half:]), strict=True):
                lines.append(f"    {size}: {row(some) if half > 1 else rounded(some[0])},")
        lines.append("}")
    for name, cases in weights.items():
        lines += ["", f"{name} = {{", *(f'    "{case}": {row(x)},' for case, x in cases.items()), "}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    options = parser.parse_args()
    documents = [record.read(name) for name in RECORDS if (record.RESULTS / f"{name}.json").exists()]
    every = [row for document in documents for row in document["rows"] if "us" in row]
    aligned = every + squares()
    rows = [row for row in every if estimates.holds(*shape(row))]
    left_out = {"few rows or columns": validated_narrow(rows), "aligned, 16 bits": validated_aligned(aligned)}
    if options.write:
        timed = [row for row in rows if "narrow" in row["us"]]
        made = text(fitted_narrow(timed), CUBLAS=fitted_cublas(rows), ALIGNED=fitted_aligned(aligned))
        TARGET.write_text(made)
    record.write({"device": documents[0]["machine"]["device"], **record.versions()}, options.out, left_out=left_out)


if __name__ == "__main__":
    main()
