"""The HIP kernels on an NVIDIA GPU: ``python benchmarks/hip_on_nvidia.py [--out FILE.json]``.

NVRTC compiles all of them but those of AMD's matrix units (hip_kernels/amd.h is empty for it, f16.h has a branch).
They are launched with the layouts, grids and arguments of the HIP backend, and every result is compared with the exact
product: source and host code run on a real GPU, though not on one of AMD. Speed is not measured. PYSIMD_COMMIT names
the commit where git cannot.
"""

from __future__ import annotations

import itertools
import sys

import cupy
import numpy as np
import record
from pysimd.hip_kernels import table

from pysimd import dtypes, sources
from pysimd.backends.gpu import batched
from pysimd.backends.gpu.launches import CALL, CallOperands
from pysimd.backends.hip import tiles as hip_tiles
from pysimd.backends.hip.implementation import HIP
from pysimd.bench.data import random_array
from pysimd.bench.verify import verify

PORTABLE = [row for row in table.KERNELS if row.requires == "gfx900"]
K_LENGTHS = (0, 1, 2, 3, 5, 16, 17, 64, 255, 256)
SMALL = [(m, k, n) for m, k, n in itertools.product((3, 4, 8, 16), (1, 4, 7, 16), (3, 4, 8, 16)) if m == n or k == 7]


def operand(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Random values; no product of floats is denormal, since the error bound does not cover underflow."""
    if dtype.kind == "i":
        return random_array(dtype.name, shape, rng)
    values = (rng.uniform(0.25, 2, shape) * rng.choice([-1, 1], shape)).astype(np.float32)
    return dtypes.bits_of_float32(values) if dtype.name == "uint16" else values.astype(dtype)


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: cupy.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "columns with gaps": lambda x: cupy.repeat(x.swapaxes(-1, -2), 2, axis=-1)[..., : x.shape[-2]].swapaxes(-1, -2),
    "strided": lambda x: cupy.repeat(cupy.repeat(x, 3, axis=-1), 2, axis=-2)[..., ::-2, ::3][..., ::-1, :],
}


def in_layout(x: np.ndarray, layout: str):
    """The values of ``x`` on the GPU."""
    laid = LAYOUTS[layout](cupy.asarray(x))
    if layout == "columns with gaps":
        laid[...] = cupy.asarray(x)
    return laid


class Compiled:
    """Template instances of the HIP sources, by NVRTC."""

    def __init__(self):
        self.functions = {}

    def get(self, source: str, entry: str):
        if (source, entry) not in self.functions:
            text = sources.joined(f"hip_kernels/{source}")
            module = cupy.RawModule(code=text, options=("-std=c++17",), name_expressions=(entry,))
            self.functions[source, entry] = module.get_function(entry)
        return self.functions[source, entry]


def check_kernel(row: table.Kernel, compiled: Compiled, rng) -> dict[str, object]:
    """Every K, layout and edge of a kernel."""
    family = dtypes.FAMILIES[row.types]
    of_a, of_b, of_c = (dtypes.dtype_of(x) for x in (family.a, family.b, family.c))
    cases, entries, worst, wrong = 0, set(), 0.0, []
    sizes = [(row.mr, row.nr), (1, 1), (row.mr - 1, row.nr + 1), (2 * row.mr + 1, 3 * row.nr)]
    for (m, n), k in itertools.product(sizes, K_LENGTHS):
        a, b = operand(rng, of_a, (301, m, k)), operand(rng, of_b, (301, k, n))
        c = operand(rng, of_c, (301, m, n)) if k % 2 else None
        whole = (m, n) == sizes[0]
        layouts = LAYOUTS if whole else ("rows", "strided")
        for layout_a, layout_b in itertools.product(layouts, layouts):
            x, y = in_layout(a, layout_a), in_layout(b, layout_b)
            z = None if c is None else cupy.asarray(c)
            result = cupy.empty((301, m, n), of_c)
            result.view(cupy.uint8).fill(0xFF)
            entry, launches = hip_tiles.plan(row, CallOperands(x, y, z, result))
            for grid, block, call in launches:
                compiled.get(row.source, entry)(grid, block, (call.view(CALL),))
            seen = verify(row.types, a, b, c, cupy.asnumpy(result))
            cases, worst = cases + 1, max(worst, seen.max_error_over_bound)
            entries.add(entry)
            if not seen.holds:
                wrong.append({"m": m, "n": n, "k": k, "a": layout_a, "b": layout_b})
    return _row(row.name, entries, cases, worst, wrong)


def check_batched(types: str, compiled: Compiled, rng) -> dict[str, object]:
    """Small products as ``matmul`` does them: contiguous, strided, broadcast."""
    family = dtypes.FAMILIES[types]
    of_a, of_b, of_c = (dtypes.dtype_of(x) for x in (family.a, family.b, family.c))
    of_a, of_b = (np.dtype(np.uint16) if x == "bfloat16" else d for x, d in ((family.a, of_a), (family.b, of_b)))
    cases, entries, worst, wrong = 0, set(), 0.0, []
    for m, k, n in SMALL:
        a, b = operand(rng, of_a, (301, m, k)), operand(rng, of_b, (301, k, n))
        for layout, shared in itertools.product(("rows", "columns", "strided"), (False, True)):
            given = b[:1] if shared else b
            x, y = in_layout(a, layout), in_layout(given, layout)
            y = y[0] if shared else y
            result = cupy.empty((301, m, n), of_c)
            result.view(cupy.uint8).fill(0xFF)
            operands = CallOperands(x, y, None, result)
            made = batched.instance(types, operands)
            function = compiled.get(table.BATCHED, made.entry)
            for run, grid, block, call in batched.launches(operands, made, function, hip_tiles.MOST_THREADS):
                run(grid, block, (call.view(CALL),))
            seen = verify(types, a, given, None, cupy.asnumpy(result))
            cases, worst = cases + 1, max(worst, seen.max_error_over_bound)
            entries.add(made.entry)
            if not seen.holds:
                wrong.append({"m": m, "n": n, "k": k, "layout": layout, "shared": shared})
    return _row(f"matmul of small {types} products", entries, cases, worst, wrong)


def _row(name, entries, cases, worst, wrong) -> dict[str, object]:
    return {
        "kernel": name,
        "instances": len(entries),
        "cases": cases,
        "max_error_over_bound": worst,
        "all_within_bound": not wrong,
        "wrong": wrong[:10],
    }


def main() -> int:
    parser = record.parser(__doc__)
    options = parser.parse_args()
    record.need_cuda(parser)
    rng, compiled, rows = np.random.default_rng(0), Compiled(), []
    for row in PORTABLE:
        record.progress(row.name, "...")
        rows.append(check_kernel(row, compiled, rng))
    for types in HIP.offered:
        record.progress(types, "...")
        rows.append(check_batched(types, compiled, rng))
    record.write(record.gpu(), options.out, rows=rows)
    return 0 if all(row["all_within_bound"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
