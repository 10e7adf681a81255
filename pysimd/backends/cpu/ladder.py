"""The rungs of the CPU ladder (cpu_kernels/ladder.inc): the rows as what users get, and products by one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from pysimd._cpu import ffi, lib
from pysimd.backends.cpu import numpy_arrays, table
from pysimd.microkernel import Implementation, MicroKernel, Rung
from pysimd.ratio import tile_ratio

TYPES = "f32"
_ROUNDINGS = 3


def rungs(implementation: Implementation) -> tuple[Rung, ...]:
    """The rows of the table."""
    return tuple(_rung(i, implementation) for i in range(lib.pysimd_rung_count))


def _rung(number: int, implementation: Implementation) -> Rung:
    row = lib.pysimd_rungs[number]
    form, rows, columns = table.FORMS[row.form], row.mr, row.nr
    target = table.TARGETS[lib.pysimd_rung_target(lib.pysimd_rungs + number)]
    if row.vectors:
        columns *= _LANES[target]
    if not row.mr:
        kernel = lib.pysimd_ladder_kernel()
        rows, columns, target = kernel.mr, kernel.nr, table.TARGETS[kernel.target]
    blocks = lib.pysimd_ladder_blocks()
    return Rung(
        number=f"C{number}",
        name=table.text(row.name),
        backend="cpu",
        types=TYPES,
        form=form,
        new=table.text(row.adds),
        covers=(),
        bm=blocks.mc if row.blocks else None,
        bn=blocks.nc if row.blocks else None,
        bk=blocks.kc if row.blocks else None,
        tm=rows,
        tn=columns,
        lanes=1,
        threads=table.default_threads() if row.threads else 1,
        ratio=tile_ratio(form, rows, columns, 4, 4),
        roundings=_ROUNDINGS,
        requires=table.names(lib.pysimd_targets[table.TARGETS.index(target)].needs),
        available=True,
        unavailable_reason="",
        source_path=f"cpu_kernels/{table.text(row.source)}",
        _implementation=implementation,
    )


_LANES = {"generic": 4, "avx2": 8, "avx512": 16}
"""float32 lanes of a vector, of the targets that rungs are compiled for."""


@cache
def row(name: str):
    """The row (``pysimd_rung *``) of the rung of that name."""
    rows = (lib.pysimd_rungs + i for i in range(lib.pysimd_rung_count))
    return next(row for row in rows if table.text(row.name) == name)


def microkernel(rung: Rung) -> MicroKernel | None:
    """The microkernel of a rung that is loops around one; None for a rung with a loop along k of its own."""
    if row(rung.name).mr:
        return None
    name = table.text(lib.pysimd_ladder_kernel().name)
    return next(kernel for kernel in rung._implementation.kernels() if kernel.name == name)


def code(rung: Rung) -> tuple[str, int]:
    """Target and address of the code of a rung with a loop along k of its own."""
    found = row(rung.name)
    target = lib.pysimd_rung_target(found)
    return table.TARGETS[target], int(ffi.cast("uintptr_t", found.run[target]))


def is_product(rung: Rung) -> bool:
    """Whether the rung is ``pysimd.gemm`` itself."""
    return row(rung.name).run[lib.GENERIC] == ffi.NULL


def multiply(rung: Rung, a: np.ndarray, b: np.ndarray, out: np.ndarray, alpha: float, beta: float, threads: int):
    """``out = alpha * a @ b + beta * out``; raises ``MemoryError`` where there is none for packed operands.

    ``a`` (..., m, k) and ``b`` (..., k, n) broadcast to ``out`` (..., m, n), which kernels can store to.
    """
    if lib.pysimd_run_rung(row(rung.name), _product(a, b, out, alpha, beta, threads)):
        raise MemoryError("no memory for the packed operands")


def prepared(rung: Rung, a: np.ndarray, b: np.ndarray, out: np.ndarray, threads: int) -> Callable[[], object]:
    """A function that computes ``out = a @ b`` without any checks, for measuring: float32 matrices that fit."""
    if is_product(rung):
        return partial(rung._implementation.door.gemm, a, b, None, 1.0, 0.0, False, False, out, None, threads)
    return partial(lib.pysimd_run_rung, row(rung.name), _product(a, b, out, 1.0, 0.0, threads))


def _product(a: np.ndarray, b: np.ndarray, out: np.ndarray, alpha: float, beta: float, threads: int):
    product = numpy_arrays.product(a, b, out, 0, threads)
    product.alpha, product.beta = alpha, beta
    return product
