"""Products by cuBLAS, called with addresses: its own alpha and beta, and strided batches.

cuBLAS is column-major, so C is computed as the transposed product where it is row-major. 16-bit operands are multiplied
with float32 accumulators, into a C of float32 or of their own type. Where cuBLAS splits k, it may by default round each
partial result to the type of a 16-bit C before it adds them; its math mode is set so that it rounds once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from pysimd.backends.gpu import cupy_arrays, memory
from pysimd.backends.gpu.implementation import library_work
from pysimd.backends.gpu.launches import CallOperands
from pysimd.backends.gpu.plans import C0, A, ArrayWork, B, C, NotCapturedError, Slot, Work
from pysimd.operands import Product

MOST = 1 << 31
"""Sizes and leading dimensions are smaller: cuBLAS takes them in 32 bits."""

_CAPTURED = (
    "this product is computed by cuBLAS, which CuPy does not let a graph capture: name a kernel of pysimd, "
    "gemm(..., kernel='f32_best') for float32, 'f16_best' or 'bf16_best', or capture torch.matmul"
)

_WIDE_REDUCTIONS = 16
"""CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, a flag of cublasMath_t."""

_N, _T = 0, 1
_DEFAULT = -1
"""CUBLAS_GEMM_DEFAULT: cuBLAS chooses the algorithm."""


class _Types(NamedTuple):
    """cudaDataType of A and B and that of C, cublasComputeType_t, and the dtype of alpha and beta."""

    data: int
    data_c: int
    compute: int
    factors: type


_DATA = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14, "uint16": 14}
"""cudaDataType; uint16 holds bfloat16 bits."""

_TYPES = ("f32", "f64", "f16", "bf16f32")


def _types(product: Product) -> _Types:
    data, data_c = (_DATA[dtype.name] for dtype in (product.a.dtype, product.dtype))
    return _Types(data, data_c, *((70, np.float64) if product.types == "f64" else (68, np.float32)))


class _Gemm(NamedTuple):
    """One call: the two operands, in the order of cuBLAS, and C, each with what cuBLAS asks of it."""

    transposed: tuple[int, int]
    m: int
    n: int
    k: int
    slots: tuple[Slot, Slot, Slot]
    ld: tuple[int, int, int]
    steps: tuple[int, int, int]
    count: int


class _Plan:
    """Calls of cuBLAS; before them C0 is copied into C where it is another array of the same layout."""

    def __init__(self, types: _Types, calls: Sequence[_Gemm], factors: np.ndarray, copied_bytes: int):
        self._factors, self._copied_bytes = factors, copied_bytes  # the factors are kept alive: cuBLAS reads them
        alpha = factors.ctypes.data
        self._calls = [_call(types, gemm, alpha, alpha + factors.itemsize) for gemm in calls]

    def run(self, addresses: list[int], stream=None) -> None:
        if stream is not None:
            with stream:
                return self.run(addresses)
        if self._copied_bytes and addresses[C0] != addresses[C]:
            _copy(addresses[C], addresses[C0], self._copied_bytes)
        try:
            self._multiply(_handle(), addresses)
        except NotImplementedError as error:  # CuPy's answer while the stream captures
            raise NotCapturedError(_CAPTURED) from error
        return None

    def _multiply(self, handle: int, addresses: list[int]) -> None:
        for (x, of_x), (y, of_y), (z, of_z), call in self._calls:
            call(handle, addresses[x] + of_x, addresses[y] + of_y, addresses[z] + of_z)


class _NarrowPlan(_Plan):
    """The same into a C of 16 bits; CuPy's handle gets its math mode back."""

    def _multiply(self, handle: int, addresses: list[int]) -> None:
        mode = _cublas().getMathMode(handle)
        _cublas().setMathMode(handle, mode | _WIDE_REDUCTIONS)
        try:
            super()._multiply(handle, addresses)
        finally:
            _cublas().setMathMode(handle, mode)


def _call(types: _Types, gemm: _Gemm, alpha: int, beta: int):
    """Which memory each operand is in and at which offset, and cuBLAS's function of its handle and their addresses."""
    (data, data_c, compute, _), (op_x, op_y), m, n, k = types, gemm.transposed, gemm.m, gemm.n, gemm.k
    (ldx, ldy, ldz), (sx, sy, sz), count = gemm.ld, gemm.steps, gemm.count
    one, batch = _cublas().gemmEx, _cublas().gemmStridedBatchedEx

    # fmt: off
    def multiply(handle: int, x: int, y: int, z: int) -> None:
        one(handle, op_x, op_y, m, n, k, alpha, x, data, ldx, y, data, ldy, beta, z, data_c, ldz, compute, _DEFAULT)

    def multiply_batch(handle: int, x: int, y: int, z: int) -> None:
        batch(handle, op_x, op_y, m, n, k, alpha, x, data, ldx, sx, y, data, ldy, sy, beta, z, data_c, ldz, sz, count,
              compute, _DEFAULT)
    # fmt: on

    return *((slot.memory, slot.offset) for slot in gemm.slots), multiply if count == 1 else multiply_batch


@cache
def _cublas():
    from cupy_backends.cuda.libs import cublas

    return cublas


def _handle() -> int:
    from cupy.cuda.device import get_cublas_handle

    return get_cublas_handle()


def _copy(to: int, source: int, nbytes: int) -> None:
    from cupy.cuda import get_current_stream, runtime

    runtime.memcpyAsync(to, source, nbytes, runtime.memcpyDeviceToDevice, get_current_stream().ptr)


def takes(product: Product) -> bool:
    """Whether cuBLAS itself computes a product. With alpha = 0 it would not look at A and B, where NaN may be."""
    return product.types in _TYPES and product.alpha != 0 and product.sizes[2] > 0 and max(product.sizes) < MOST


def work(product: Product) -> Work | ArrayWork:
    """A product into its ``out``; with alpha, beta and C if ``takes`` says so. Raises OptionError while a graph is
    captured: CuPy does not call cuBLAS then."""
    if memory.capturing():
        raise NotCapturedError(_CAPTURED)
    if not takes(product):
        return library_work(product)
    c0, c = product.c, product.out
    writable = _order(c) is not None and min(c.strides[:-2], default=0) >= 0
    if not writable or (c0 is not None and not cupy_arrays.same_memory(c0, c) and not _one_piece(c0, c)):
        return ArrayWork(partial(_by_copies, product, writable))
    a, b = (x if _order(x) else x.copy(order="C") for x in (product.a, product.b))
    types = _types(product)
    with np.errstate(over="ignore"):  # a factor beyond the result's dtype is infinity there
        factors = np.array([_factor(x, product.dtype) for x in (product.alpha, product.beta)], types.factors)
    made_plan = _NarrowPlan if c.itemsize == 2 else _Plan
    plan = made_plan(types, list(_calls(a, b, c)), factors, 0 if c0 is None else c.nbytes)
    made = Work(plan, (a, b, c0, c))
    # A C0 at another address would have to be copied: no plan where it is not one piece of memory.
    return made if c0 is None or _one_piece(c0, c) else ArrayWork(made.run)


def _factor(x: float, dtype: np.dtype) -> float:
    """alpha or beta, rounded to the dtype of the result where NumPy has it."""
    return x if dtype.kind not in "f" else dtype.type(x)


def _calls(a, b, c) -> Iterator[_Gemm]:
    """One for every index of the batch but its longest dimension."""
    operands = CallOperands(a, b, None, c)
    orders, size = [_order(x) for x in (a, b, c)], (operands.m, operands.n)
    columns, which = "columns", (A, B)
    if orders[2][0] == "rows":  # C^T = B^T A^T, and rows are the columns of that
        size, columns, which = size[::-1], "rows", (B, A)
    dims = sorted(operands.dims, key=lambda dim: dim[0]) or [(1, (0, 0, 0, 0))]
    steps = dims[-1][1]
    for pointers, count in operands.walk(dims[:-1], dims[-1], MOST - 1):
        slots = [Slot(0, i, pointers[i] - x.data.ptr) for i, x in ((A, a), (B, b))]
        yield _Gemm(
            tuple(_N if orders[i][0] == columns else _T for i in which),
            *size,
            operands.k,
            (*(slots[i] for i in which), Slot(0, C, pointers[C] - c.data.ptr)),
            (*(orders[i][1] for i in which), orders[2][1]),
            (*(steps[i] for i in which), steps[C]),
            count,
        )


def _order(x) -> tuple[str, int] | None:
    """What lies one after the other in memory, ``rows`` or ``columns``, and the leading dimension; None if cuBLAS
    cannot take these matrices."""
    (rows, columns), (rs, cs) = x.shape[-2:], (s // x.itemsize for s in x.strides[-2:])
    if (cs == 1 or columns == 1) and (rows == 1 or columns <= rs < MOST):
        return "rows", rs if rows > 1 else columns
    if (rs == 1 or rows == 1) and (columns == 1 or rows <= cs < MOST):
        return "columns", cs if columns > 1 else rows
    return None


def _one_piece(c0, c) -> bool:
    """Whether C0 and C are each one piece of memory, in the same order."""
    return (c0.shape, c0.strides) == (c.shape, c.strides) and (c.flags.c_contiguous or c.flags.f_contiguous)


def _by_copies(product: Product, writable: bool) -> None:
    """With C0 copied into C, or into an array in its place where cuBLAS cannot write to it."""
    c = product.out if writable else cupy_arrays.empty(product.full, product.dtype)
    if product.c is not None:
        cupy_arrays.copy(c, cupy_arrays.readable(product.c))
        product = product._replace(c=c)
    work(product._replace(out=c)).run()
    if not writable:
        cupy_arrays.copy(product.out, c)
