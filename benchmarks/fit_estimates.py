"""Fit constants of the estimates that whole products are chosen by: ``python benchmarks/fit_estimates.py [--write]``.

Those are the ones for few rows or columns, and for 16-bit operands. The times are those that benchmarks/gemm_shapes.py
recorded. Times of narrow.cu are fitted by least squares of their logarithm, with little weight for outliers. Of times
of cuBLAS, and of these over those of the rung, a low quantile is fitted: what cuBLAS chooses is not known, and a
product that it takes longer for than estimated is no loss.

By how much ours has to be ahead is chosen by one rule. Each record is left out of the fit in turn, of two that have
most of their cases each sixth, and what is left out is estimated. The margin of a case is the least one with which no
product left out so would be taken that cuBLAS is faster for, times ``SPARE``; times ``SPARE_MANY`` where ``MANY`` such
products are taken. float32 products of the rung have estimates whose constants were fitted by hand, to records up to
``gemm_holdout11_h200``: their margins follow from all records.

Recorded is what would be chosen of each record by the constants and the margins that the others give. Needs SciPy.
``--write`` writes pysimd/backends/cuda/fitted.py and recorded.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import record
from pysimd.gpu_kernels import table

from pysimd.backends.cuda import device, dispatch, fitted, recorded
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
    "gemm_holdout53_h200",
    "gemm_holdout62_64_h200",
    "gemm_holdout62_8_h200",
    "gemm_holdout61_h200",
)
RUNGS = {"f32": "f32_best", "f16": "f16_best", "bf16f32": "bf16_best"}
"""As in gemm_shapes.py, which needs CuPy."""

IN_SIXTHS = ("gemm_random8_h200", "gemm_random64_h200")
"""Records that have most of the products whose operands need no copies; of the rung before it had tiles for a short
side of C."""

FOLDER = record.ROOT / "pysimd" / "backends" / "cuda"

QUANTILE, SMALLEST, FOLDS = 0.1, 12, 6
"""Of times of cuBLAS, and of these over those of the rung, the part that may be below the estimate; products of a case,
at least; parts of the records that are not left out as a whole."""

STEP, SPARE, SPARE_MANY, MANY = 0.05, 1.1, 1.05, 100
"""Of the margins that are tried; by what the least one that would do is multiplied, and for how many products."""

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


# --- 16-bit operands ---


def squares() -> list[Row]:
    """Those of benchmarks/gemm_squares.py whose C has 16 bits."""
    found = []
    for row in record.read("gemm_squares_h200")["rows"]:
        if row.get("c") in ("bfloat16", "float16"):
            types, name = ("bf16f32", "bf16_best") if row["c"] == "bfloat16" else ("f16", "f16_best")
            us = {"cublas": min(row["us"]["cublas"], row["us"]["torch"]), name: row["us"]["pysimd"]}
            found.append({**row, "types": types, "us": us, "record": "gemm_squares_h200"})
    return found


def rung_over(row: Row) -> float | None:
    """How many times faster the rung was than cuBLAS; None where that was not timed, or is not estimated."""
    name = RUNGS[row["types"]]
    return row["us"]["cublas"] / row["us"][name] if name in row["us"] and rungs.case_of(*shape(row)) else None


def fitted_times(rows: Sequence[Row]) -> dict[str, list[float]]:
    cases = defaultdict(list)
    for row in rows:
        if row["types"] != "f32" and rung_over(row):
            cases[rungs.case_of(*shape(row))].append(row)
    return {
        case: quantile_regression(
            [rungs.features(*shape(row)[1:]) for row in found], [rung_over(row) for row in found], QUANTILE
        )
        for case, found in sorted(cases.items())
    }


# --- what is left out ---


def constants(rows: Sequence[Row]) -> dict[str, Any]:
    """Those of fitted.py but the margins, and those of recorded.py."""
    narrow = [row for row in rows if estimates.holds(*shape(row))]
    found = {name: tabled(values) for name, values in fitted_narrow([x for x in narrow if "narrow" in x["us"]]).items()}
    return {
        **found,
        "CUBLAS": fitted_cublas(narrow),
        "TIMES_CUBLAS": fitted_times(rows),
        "CUBLAS_US": recorded_times(narrow),
    }


def recorded_times(rows: Sequence[Row]) -> dict[str, list[tuple[int, int, int, float]]]:
    """Times of cuBLAS, by case."""
    cases = defaultdict(list)
    for row in rows:
        if row["k"] >= estimates.LEAST_K:
            cases[estimates.case_of(*shape(row))].append((*shape(row)[1:], float(f"{row['us']['cublas']:.3g}")))
    return {case: sorted(found) for case, found in sorted(cases.items())}


def tabled(values: np.ndarray) -> dict[Any, Any]:
    """As fitted.py has them: of each of TILES in pairs, of each size, or of each size and each of its layouts."""
    if len(values) == len(TILES):
        return {TILES[i][:2]: tuple(values[i : i + 2]) for i in range(0, len(TILES), 2)}
    half = len(values) // 2
    parts = zip(SIZES, (values[:half], values[half:]), strict=True)
    return {size: tuple(some) if half > 1 else float(some[0]) for size, some in parts}


def use(made: dict[str, Any]) -> None:
    """Lets dispatch estimate with these constants."""
    for name, values in made.items():
        setattr(recorded if name == "CUBLAS_US" else fitted, name, values)
    for function in (
        *(rungs.takes, rungs.takes_narrow),
        *(estimates.narrow_us, estimates.cublas_us),
    ):
        function.cache_clear()


def fold(row: Row) -> tuple[str, int]:
    if row["record"] not in IN_SIXTHS:
        return row["record"], 0
    return row["record"], (row["m"] * 7919 + row["n"] * 104729 + row["k"] * 1299709) % 1000003 % FOLDS


Found = list[tuple[float, float]]
"""Of products: how many times faster than cuBLAS ours is estimated to be, and was."""


def estimated(rows: Sequence[Row]) -> dict[str, Found]:
    """By the constants that are used, for each case that has a margin."""
    found = defaultdict(list)
    for row in rows:
        compared = estimates.cublas_us(*shape(row)) if "narrow" in row["us"] and row["k"] >= estimates.LEAST_K else None
        if compared is not None:
            ratio = row["us"]["cublas"] / row["us"]["narrow"]
            found["narrow"].append((compared / estimates.narrow_us(*shape(row)), ratio))
        if rung_over(row):
            found[rungs.case_of(*shape(row))].append((rungs.times_cublas(*shape(row)), rung_over(row)))
    return found


def margin(case: str, found: Found) -> float:
    """By the rule above."""
    least = 1.0
    while any(ratio < 1 for estimate, ratio in found if estimate >= least):
        least = round(least + STEP, 2)
    many = sum(estimate >= least for estimate, _ in found) >= MANY
    return round(least * (SPARE_MANY if many else SPARE), 2)


def margins(folds: Iterable[dict[str, Found]]) -> dict[str, float]:
    """Of every case, by what was left out."""
    cases: dict[str, Found] = defaultdict(list)
    for found in folds:
        for case, some in found.items():
            cases[case] += some
    return {case: margin(case, some) for case, some in sorted(cases.items())}


def chosen(row: Row) -> float | None:
    """The speed of what dispatch takes against cuBLAS, 1 where that is cuBLAS; None where it was not timed."""
    choice = dispatch.choose(*shape(row), 1)
    if choice.way is dispatch.Way.LIBRARY:
        return 1.0
    types, m, n, k = shape(row)
    name, us = choice.name or choice.way.name.lower(), row.get("us", {})
    old = row["record"] in IN_SIXTHS and types != "f32" and rungs.takes_skinny(m, n, k)
    return us["cublas"] / us[name] if name in us and not old else None


def outcome(found: Sequence[tuple[Row, float]]) -> dict[str, Any]:
    """Of products of one types family and what dispatch makes of them: how many are taken, the worst and the mean."""
    taken = [(ratio, row) for row, ratio in found if ratio != 1]
    logs = np.log([ratio for _, ratio in found])
    return {
        "products": len(found),
        "taken": len(taken),
        "below_0.95": sum(ratio < 0.95 for ratio, _ in taken),
        "worst": min(ratio for _, ratio in found),
        "geometric_mean": float(np.exp(logs.mean())),
        "slowest": [[*shape(row)[1:], round(ratio, 3)] for ratio, row in sorted(taken, key=lambda x: x[0])[:3]],
    }


# --- the constants ---


def text(made: dict[str, Any]) -> str:
    """fitted.py."""

    def rounded(x: float) -> str:
        return f"{x:.3g}" if abs(x) < 1000 else f"{x / 1e6:.3g}e6"

    def row(values: Any) -> str:
        return "(" + ", ".join(map(rounded, values)) + ")" if isinstance(values, (tuple, list)) else rounded(values)

    lines = ['"""Constants of estimates.py and narrow_estimates.py, written by benchmarks/fit_estimates.py."""', ""]
    for name, values in made.items():
        named = (f'"{key}"' if isinstance(key, str) else key for key in values)
        lines += [
            f"{name} = {{",
            *(f"    {key}: {row(x)}," for key, x in zip(named, values.values(), strict=True)),
            "}",
        ]
    return "\n".join(lines) + "\n"


def text_of_times(cases: dict[str, list[tuple[int, int, int, float]]]) -> str:
    """recorded.py."""
    lines = [
        '"""Times of cuBLAS on an H200 for products with few rows or columns: (m, n, k, microseconds) of each case.',
        "",
        "Written by benchmarks/fit_estimates.py, of the records in benchmarks/results that it names.",
        '"""',
        "",
        "# fmt: off",
        "CUBLAS_US = {",
    ]
    for case, products in cases.items():
        words = [f"({m}, {n}, {k}, {us:g})," for m, n, k, us in products]
        lines.append(f'    "{case}": (')
        line = " " * 7
        for word in words:
            if len(line) + 1 + len(word) > 120:
                lines.append(line)
                line = " " * 7
            line += " " + word
        lines += [line, "    ),"]
    return "\n".join([*lines, "}"]) + "\n"


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--write", action="store_true", help="write fitted.py and recorded.py")
    options = parser.parse_args()
    device.why_not = lambda row, where=None: ""  # an H200 runs all of them
    documents = {name: record.read(name) for name in RECORDS}
    every = [{**row, "record": name} for name, x in documents.items() for row in x["rows"]]
    rows = [row for row in every if "us" in row]
    folds = {at: constants([x for x in rows if fold(x) != at] + squares()) for at in sorted({fold(x) for x in rows})}
    found = {}
    for at, made in folds.items():
        use(made)
        found[at] = estimated([x for x in rows if fold(x) == at])
    left_out: dict[str, list[tuple[Row, float]]] = defaultdict(list)
    for at, made in folds.items():
        use({**made, "MARGINS": margins(x for other, x in found.items() if other[0] != at[0])})
        for row in (x for x in every if fold(x) == at):
            ratio = chosen(row)
            if ratio is not None:
                left_out[row["types"]].append((row, ratio))
    chosen_margins = margins(found.values())
    if options.write:
        made = constants(rows + squares())
        (FOLDER / "recorded.py").write_text(text_of_times(made.pop("CUBLAS_US")))
        (FOLDER / "fitted.py").write_text(text({**made, "MARGINS": chosen_margins}))
    of_types = {
        f"{types}{', ' + last if only else ''}": outcome([x for x in some if not only or x[0]["record"] == RECORDS[-1]])
        for types, some in sorted(left_out.items())
        for last in [f"seed {documents[RECORDS[-1]]['seed']}"]
        for only in (False, True)
    }
    machine = {"device": documents[RECORDS[0]]["machine"]["device"], **record.versions()}
    record.write(machine, options.out, margins=chosen_margins, left_out=of_types)


if __name__ == "__main__":
    main()
