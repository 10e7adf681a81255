"""Random calls of every form that the API takes on the CPU, next to what one would write with NumPy.

A call has types, sizes log-uniform from 1 to 64 (a third of them to 300), a batch of up to two dimensions, of which an
operand may have one or none, a memory layout of A, of B and of ``out`` (ORDERS), and in a fifth of the calls alpha,
beta and a C in the memory of ``out``. NumPy multiplies arrays of the same layout, of narrow types float32 copies, then
scales and adds in place. Samples are those of cliffs.py, slower calls are measured again at the end. The
headline is the worst and the geometric mean of numpy / pysimd among calls that take NumPy 1 microsecond or longer.

``python benchmarks/calls_cpu.py --threads 1 --out benchmarks/results/calls_cpu_intel.json`` (needs threadpoolctl)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial

import cliffs
import numpy as np
import record

import pysimd
from pysimd import dtypes
from pysimd.bench import blas
from pysimd.bench.data import random_array

MOST_MACS = 20_000_000  # of a call
FACTORS = ((1, 1), (2, 0), (1, 3), (2, 1))
SHARED = ("A", "B", "outer", "row of A")
"""Of two batches: A or B is one matrix; each has one of two dimensions; A has the last one."""


@dataclass(frozen=True)
class Call:
    """A product: its types, the batch, which operands have which part of it, sizes, the orders in memory of A, B and
    ``out``, and the factors."""

    types: str
    batch: tuple[int, ...]
    shared: str
    m: int
    k: int
    n: int
    order_a: str
    order_b: str
    order_out: str
    alpha: int = 1
    beta: int = 0


# --- orders in memory ---


def every_other(x: np.ndarray) -> np.ndarray:
    room = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    room[..., ::2] = x
    return room[..., ::2]


def every_other_row(x: np.ndarray) -> np.ndarray:
    room = np.zeros((*x.shape[:-2], 2 * x.shape[-2], x.shape[-1]), x.dtype)
    room[..., ::2, :] = x
    return room[..., ::2, :]


def longer_rows(x: np.ndarray) -> np.ndarray:
    room = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
    room[..., :-3] = x
    return room[..., :-3]


def batch_at(axis: int, x: np.ndarray) -> np.ndarray:
    """The first dimension of a batch of matrices is at ``axis`` in memory."""
    if x.ndim < 3:
        return x.copy()
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, axis)), axis, 0)


ORDERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rows": np.copy,
    "columns": lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    "every other element": every_other,
    "every other row": every_other_row,
    "longer rows": longer_rows,
    "elements backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "rows backwards": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
    "batch last": partial(batch_at, -1),
    "batch second": partial(batch_at, 1),
}
OF_OUT = ("new", "rows", "rows", "rows", "columns", "longer rows", "every other element", "batch second")
"""Of ``out``; "new": none is given."""


# --- calls ---


def drawn(rng: np.random.Generator, types: str) -> Call:
    """A call of these types; of operands without a batch the orders of one are that by rows."""
    most = 64 if rng.random() < 2 / 3 else 300
    m, k, n = (round(most**x) for x in rng.random(3))
    some, many = int(rng.integers(2, 12)), int(rng.integers(50, 300))
    batch = ((), (), (some,), (many,), (4, some))[rng.integers(5)]
    shared = SHARED[rng.integers(4)] if batch and rng.random() < 0.25 else ""
    if len(batch) == 1 and shared in ("outer", "row of A"):
        shared = ""
    of_a, of_b = rng.choice(list(ORDERS), 2)
    of_out = OF_OUT[rng.integers(len(OF_OUT))]
    factors = FACTORS[rng.integers(len(FACTORS))] if of_out != "new" and rng.random() < 0.2 else (1, 0)
    return Call(types, batch, shared, m, k, n, str(of_a), str(of_b), of_out, *factors)


def calls(types: tuple[str, ...], count: int, seed: int) -> Iterator[Call]:
    """``count`` calls, the types in turn."""
    rng = np.random.default_rng(seed)
    while count:
        call = drawn(rng, types[count % len(types)])
        if call.m * call.k * call.n * int(np.prod(call.batch, dtype=int)) <= MOST_MACS:
            yield call
            count -= 1


def batches(call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The batch dimensions of A and of B."""
    whole = call.batch
    return {
        "": (whole, whole),
        "A": ((), whole),
        "B": (whole, ()),
        "outer": ((*whole[:1], 1), (1, *whole[1:])),
        "row of A": (whole[1:], whole),
    }[call.shared]


def ours(call: Call, threads: int | None, a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    if (call.alpha, call.beta) == (1, 0):
        return pysimd.matmul(a, b, out=out, threads=threads)
    return pysimd.gemm(a, b, out, alpha=call.alpha, beta=call.beta, out=out, threads=threads)


def numpys(call: Call, a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    if (call.alpha, call.beta) == (1, 0):
        return np.matmul(a, b, out=out)
    product = np.matmul(a, b)
    if call.alpha != 1:
        product *= call.alpha
    if call.beta == 0:
        out[...] = product
        return out
    if call.beta != 1:
        np.multiply(out, call.beta, out=out)
    return np.add(out, product, out=out)


def measured(call: Call, threads: int | None = None) -> dict:
    """A row: the call, the microseconds of both sides, and numpy / pysimd. C grows from call to call, to infinity."""
    family, rng = dtypes.FAMILIES[call.types], np.random.default_rng(0)
    of_a, of_b = batches(call)
    a, b = random_array(family.a, (*of_a, call.m, call.k), rng), random_array(family.b, (*of_b, call.k, call.n), rng)
    x, y = (v if v.dtype.kind == "f" and v.itemsize > 2 else v.astype(np.float32) for v in (a, b))
    a, x = (ORDERS[call.order_a](v) for v in (a, x))
    b, y = (ORDERS[call.order_b](v) for v in (b, y))
    outs = [None, None]
    if call.order_out != "new":
        shape = (*call.batch, call.m, call.n)
        outs = [ORDERS[call.order_out](np.zeros(shape, v)) for v in (dtypes.dtype_of(family.c), x.dtype)]
    sides = {"pysimd": partial(ours, call, threads, a, b, outs[0]), "numpy": partial(numpys, call, x, y, outs[1])}
    with np.errstate(all="ignore"):
        return {**asdict(call), **cliffs.compared(sides)}


def call_of(row: dict) -> Call:
    return Call(**{field.name: row[field.name] for field in fields(Call)} | {"batch": tuple(row["batch"])})


# --- what the rows say ---


def words(row: dict) -> str:
    """A row in one line."""
    batch = "x".join(map(str, row["batch"])) or "1"
    factors = f", alpha {row['alpha']}, beta {row['beta']}" if (row["alpha"], row["beta"]) != (1, 0) else ""
    shared = f", shared: {row['shared']}" if row["shared"] else ""
    return (
        f"{row['ratio']:6.2f}  {row['types']:8} {batch} of {row['m']}x{row['k']}x{row['n']}, A {row['order_a']}, B "
        f"{row['order_b']}, out {row['order_out']}{shared}{factors}: {row['pysimd_us']} us, NumPy {row['numpy_us']} us"
    )


def parts(rows: list[dict], field: str) -> dict[str, dict]:
    """For each value of a field how many calls it has, the worst ratio, the mean, and how many are slower."""
    found = {}
    for value in sorted({row[field] for row in rows}):
        own = [row for row in rows if row[field] == value]
        found[value] = {
            "calls": len(own),
            "worst": min(row["ratio"] for row in own),
            "geometric_mean": cliffs.mean(own),
            "slower_percent": 100 * sum(row["ratio"] < 1 for row in own) / len(own),
        }
    return found


def summary(rows: list[dict]) -> dict:
    counted = [row for row in rows if row["numpy_us"] >= 1]
    return {
        "calls": len(counted),
        "worst": sorted(counted, key=lambda row: row["ratio"])[:20],
        "geometric_mean": cliffs.mean(counted),
        "slower_percent": 100 * sum(row["ratio"] < 1 for row in counted) / len(counted),
        **{f"by_{field}": parts(counted, field) for field in ("types", "order_a", "order_b", "order_out", "shared")},
    }


def table(found: dict) -> list[str]:
    """A line for each order: the worst ratio and, in parentheses, the mean and the part that is slower."""
    fields_ = ("by_order_a", "by_order_b", "by_order_out")
    names = [*ORDERS, "new"]
    cells = [
        [f"{c['worst']:.2f} ({c['geometric_mean']:.2f}, {c['slower_percent']:.1f} %)" if c else "" for c in line]
        for line in ([found[field].get(name) for field in fields_] for name in names)
    ]
    return record.table(["order", "of A", "of B", "of out"], [[n, *c] for n, c in zip(names, cells, strict=True)])


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--types", nargs="+", choices=cliffs.TYPES, default=cliffs.TYPES)
    parser.add_argument("--count", type=int, default=3000, help="of calls (%(default)s)")
    parser.add_argument("--threads", type=int, default=None, help="of both sides; default: their own choice")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if blas.numpy_blas().forced is not None:
        sys.exit("OPENBLAS_CORETYPE is set: NumPy may run another machine's kernels; unset it")
    if options.threads:
        cliffs.limit_threads(options.threads)
    offered = {kernel.types for kernel in pysimd.kernels("cpu")}
    todo = list(calls(tuple(t for t in options.types if t in offered), options.count, options.seed))
    measure = partial(measured, threads=options.threads)
    start, rows = time.monotonic(), []
    for i, call in enumerate(todo):
        rows.append(measure(call))
        if (i + 1) % 500 == 0:
            record.progress(f"{i + 1} of {len(todo)} calls in {time.monotonic() - start:.0f} s")
    rows = cliffs.settled(rows, measure, call_of)
    found = summary(rows)
    for line in table(found):
        record.progress(line)
    for row in found["worst"]:
        record.progress(words(row))
    record.progress(
        f"{found['calls']} calls: worst {found['worst'][0]['ratio']:.2f}, mean {found['geometric_mean']:.2f}, "
        f"slower than NumPy in {found['slower_percent']:.1f} %"
    )
    record.write(record.cpu(), options.out, threads=options.threads, summary=found, rows=rows)


if __name__ == "__main__":
    main()
