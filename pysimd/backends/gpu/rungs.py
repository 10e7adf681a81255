"""What the rungs of the GPU GEMM ladder (gpu_kernels/ladder_table.py) need on CUDA and on HIP devices alike: rows as
what users get, and the operands of a product as rungs take them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pysimd import dtypes, operands
from pysimd.backends.gpu import cupy_arrays, gemm_launches
from pysimd.backends.gpu.plans import C0, A, ArrayWork, B, C, Plan, Work, addresses_of
from pysimd.gpu_kernels import ladder_table
from pysimd.microkernel import Implementation, Rung
from pysimd.operands import Product
from pysimd.ratio import Ratio


def rung(row: ladder_table.Rung, implementation: Implementation, name: str, requires: str, reason: str) -> Rung:
    """A row of the table as what users get; ``reason``: why it cannot run here, empty if it can."""
    return Rung(
        number=row.number,
        name=name,
        backend=implementation.name,
        types=row.types,
        form="tensor cores" if row.lanes > 1 else "inner" if row.loads == 2 * row.macs else "outer",
        new=row.new,
        covers=row.covers,
        bm=row.bm,
        bn=row.bn,
        bk=row.bk,
        tm=row.tm,
        tn=row.tn,
        lanes=row.lanes,
        threads=row.threads,
        ratio=Ratio(macs=row.macs, loads=row.loads, load_bytes=_element_bytes(row) * row.loads),
        roundings=row.roundings,
        requires=(requires,),
        available=not reason,
        unavailable_reason=reason,
        source_path=f"gpu_kernels/ladder/{row.source}",
        _implementation=implementation,
    )


def _element_bytes(row: ladder_table.Rung) -> int:
    if row.remainders:
        return row.panel_bytes
    return dtypes.dtype_of(dtypes.FAMILIES[row.types].a).itemsize


def work(into_adjacent: Callable[[Product], Work], product: Product) -> Work | ArrayWork:
    """A product into its ``out``; where neither of its dimensions is adjacent in memory, by way of a row-major copy."""
    if has_adjacent(product.out):
        return into_adjacent(product)
    return ArrayWork(partial(_by_copy, into_adjacent, product))


def _by_copy(into_adjacent: Callable[[Product], Work], product: Product) -> None:
    result = cupy_arrays.empty(product.full, product.dtype)
    into_adjacent(product._replace(out=result)).run()
    cupy_arrays.copy(product.out, result)


def prepared(rung: Rung, a, b, out) -> Callable[[], object]:
    """A function that launches ``out = a @ b`` without any checks, for measuring: matrices of CuPy that fit. Where the
    rung works on copies of them, it makes them."""
    product = operands.check_gemm(rung, a, b, None, out, operands.GemmOptions(), (rung.types,), True)
    work = partial(rung._implementation.product_work, product, rung)
    made = work()
    if {x.data.ptr for x in made.arrays[:2]} != {a.data.ptr, b.data.ptr}:
        return lambda: work().run()
    return partial(made.plan.run, addresses_of(made.arrays))


def arranged(product: Product) -> tuple[tuple, tuple[int, ...]]:
    """A, B, C0 or None, and C, of which C is row-major and A and B have an adjacent dimension; and their slots in the
    order of the product. For a column-major C the operands are swapped: C^T = B^T A^T."""
    a, b, c0, c = (
        None if x is None else cupy_arrays.readable(x) for x in (product.a, product.b, product.c, product.out)
    )
    order = A, B, C0, C
    if not gemm_launches.row_major(c):
        a, b, c0, c = (None if x is None else x.swapaxes(-1, -2) for x in (b, a, c0, c))
        order = B, A, C0, C
    a, b = (x if has_adjacent(x) else x.copy(order="C") for x in (a, b))
    return (a, b, c0, c), order


def work_of(plan: Plan, arrays: tuple, order: tuple[int, ...]) -> Work:
    """The plan with the arrays that it was worked out for, as ``arranged`` gave them."""
    a, b, c0, c = arrays
    return Work(plan, (b, a, c0, c) if order[0] == B else arrays)


def has_adjacent(x) -> bool:
    """Whether one of the two dimensions of the matrices is adjacent in memory."""
    return x.size == 0 or any(n == 1 or s == x.itemsize for n, s in zip(x.shape[-2:], x.strides[-2:], strict=True))
