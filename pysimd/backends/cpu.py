"""The CPU backend: the table of ``cpu_kernels`` through cffi, and the arrays handed to it.

Everything that depends on shapes and strides happens here, once per call; the batch is walked in C.
"""

from __future__ import annotations

import functools
import math
import os
import platform
import sys
from functools import cache
from pathlib import Path

import numpy as np

from .. import arrays, dtypes
from .._cpu import ffi, lib
from ..errors import DTypeError, OptionError, ShapeError
from ..registry import Backend, MicroKernel

_FAMILIES = {lib.F32: "f32", lib.F64: "f64", lib.BF16F32: "bf16f32", lib.I8I32: "i8i32", lib.U8I8I32: "u8i8i32"}
OFFERED = tuple(_FAMILIES.values())
_TYPES = {name: number for number, name in _FAMILIES.items()}

#: From this many bytes of result on, C is written past the caches: it would only push A and B out of them. Measured on
#: a Xeon with 2 MiB of L2: at 0.5 MiB per array streaming loses (3.3 against 2.4 ns per 64 bytes), at 64 MiB it gains
#: (9.3 against 11.9); 16 MiB is even.
STREAM_BYTES = 16 << 20

#: One thread below this many nanoseconds of estimated work; starting a thread takes some 20 microseconds.
_NS_WORTH_A_THREAD = 200_000
_MOST_THREADS = 1 << 16  # the driver stops far below; this only keeps any request within a C int
_MACS_PER_NS, _BYTES_PER_NS = 30.0, 24.0

#: Calls within these limits, of C-contiguous arrays, may take the short way into C: one thread, no streaming stores.
SHORT_WAY_MACS, SHORT_WAY_BYTES = 1 << 22, 4 << 20

#: Single products from this many multiply-adds on go to NumPy's BLAS (f32 and f64).
BLAS_MACS = 1 << 21


def _text(pointer) -> str:
    return ffi.string(pointer).decode()


_TARGETS = tuple(_text(lib.pysimd_targets[i].name) for i in range(lib.TARGETS))
_FEATURES = tuple(_text(lib.pysimd_feature_names[i]) for i in range(lib.pysimd_feature_count))


def _names(bits: int) -> tuple[str, ...]:
    return tuple(name for i, name in enumerate(_FEATURES) if bits >> i & 1)


@cache
def start() -> str:
    """Detect the CPU and set the bound that PYSIMD_ISA asks for; returns the bound, the highest target by default."""
    bound = os.environ.get("PYSIMD_ISA", "")
    if bound and bound not in _TARGETS:
        raise OptionError(f"PYSIMD_ISA={bound!r} is no target: use one of {', '.join(_TARGETS)}, or leave it unset")
    default_threads()  # an unusable PYSIMD_NUM_THREADS is told at once, not at the first large product
    lib.pysimd_start(_TARGETS.index(bound) if bound else lib.TARGETS - 1)
    return bound or _TARGETS[-1]


@cache
def default_threads() -> int:
    """PYSIMD_NUM_THREADS, or the number of cores this process may use."""
    text = os.environ.get("PYSIMD_NUM_THREADS", "")
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"PYSIMD_NUM_THREADS={text!r} must be a whole number from 1 up, or unset for all cores")
    return min(int(text), _MOST_THREADS)


@cache
def _device() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return next((name for name in names if name), platform.processor() or platform.machine())


@cache
def backend() -> Backend:
    start()
    return Backend("cpu", True, "", _device(), _names(lib.pysimd_cpu_features()))


@cache
def kernels() -> tuple[MicroKernel, ...]:
    bound = start()
    return tuple(_kernel(lib.pysimd_kernels + i, bound) for i in range(lib.pysimd_kernel_count))


def _kernel(row, bound: str) -> MicroKernel:
    target = _TARGETS[row.target]
    name = _text(row.name)
    needs = _names(lib.pysimd_targets[row.target].needs)
    missing = [feature for feature in needs if feature not in backend().features]
    reason = ""
    if missing:
        reason = f"this CPU has no {', '.join(missing)} ({target} kernels need {', '.join(needs)})"
    elif not lib.pysimd_can_run(row):
        reason = f"PYSIMD_ISA={bound} bounds dispatch below {target}: unset it, or set it to {target} or higher"
    return MicroKernel(
        name=name,
        backend="cpu",
        target=target,
        types=_FAMILIES[row.types],
        form="outer" if row.form == lib.OUTER else "inner",
        mr=row.mr,
        nr=row.nr,
        k_group=row.k_group,
        requires=needs,
        available=not reason,
        unavailable_reason=reason,
        source_path=f"cpu_kernels/{_text(lib.pysimd_targets[row.target].folder)}/{name}.c",
        _implementation=sys.modules[__name__],
    )


@cache
def _row(name: str):
    """The C table's row of a kernel."""
    return next(
        row for row in (lib.pysimd_kernels + i for i in range(lib.pysimd_kernel_count)) if _text(row.name) == name
    )


def chosen(types: str, n: int) -> MicroKernel:
    """The kernel that ``matmul`` takes for products with n columns."""
    start()
    name = _text(lib.pysimd_choose(_TYPES[types], n).name)
    return next(k for k in kernels() if k.name == name)


# --- the layout of NumPy arrays, for calls that must not ask for buffers (see door.h) ---


@cache
def knows_array_layout() -> bool:
    """Whether NumPy arrays look in memory as door.c has it; compared with a real array."""
    if platform.python_implementation() != "CPython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    probe = np.zeros((3, 5), np.float32)[:, ::2]
    seen = lib.pysimd_fast_look(id(probe))
    return (seen.data, seen.ndim, seen.first_dimension, seen.first_stride) == (
        probe.__array_interface__["data"][0],
        probe.ndim,
        probe.shape[0],
        probe.strides[0],
    )


@cache
def fast_matmul():
    """``f(id(a), id(b), id(out)) -> done``: the C function, or one that never does anything."""
    start()
    if not knows_array_layout():
        return lambda a, b, out: 0
    for name, number in _TYPES.items():
        family = dtypes.FAMILIES[name]
        if family.a == "bfloat16" and dtypes.dtype_of("bfloat16").name != "bfloat16":
            continue  # uint16 stands for bfloat16 only where a kernel is named
        lib.pysimd_fast_types(id(np.ndarray), number, *(id(dtypes.dtype_of(x)) for x in (family.a, family.b, family.c)))
    lib.pysimd_fast_limits(BLAS_MACS - 1, SHORT_WAY_MACS, SHORT_WAY_BYTES)
    return lib.pysimd_fast_matmul


def _address(x: np.ndarray) -> int:
    return lib.pysimd_fast_look(id(x)).data if x.ndim and knows_array_layout() else x.__array_interface__["data"][0]


# --- products ---


def _readable(x: np.ndarray) -> np.ndarray:
    """``x``, or a copy if its strides are no whole numbers of elements."""
    size = x.itemsize
    return x if all(stride % size == 0 for stride in x.strides) else x.copy()


def _writable_in_place(c: np.ndarray) -> bool:
    """Whether the kernels can store into ``c``: adjacent columns, whole strides, no element twice."""
    size = c.itemsize
    if c.shape[-1] > 1 and c.strides[-1] != size:
        return False
    return all(stride % size == 0 and (stride != 0 or n <= 1) for stride, n in zip(c.strides, c.shape, strict=True))


def _product(a: np.ndarray, b: np.ndarray, c: np.ndarray, flags: int, threads: int):
    """A ``pysimd_product`` of whole arrays; a and b broadcast against c's batch dimensions."""
    product = ffi.new("pysimd_product *")
    _fill(product, a, b, c, flags, threads)
    return product


def _fill(p, a, b, c, flags, threads) -> None:
    p.m, p.n, p.k = a.shape[-2], b.shape[-1], a.shape[-1]
    p.a, p.b, p.c = (ffi.cast("void *", _address(x)) for x in (a, b, c))
    size_a, size_b, size_c = a.itemsize, b.itemsize, c.itemsize
    p.rs_a, p.cs_a = (s // size_a for s in a.strides[-2:])
    p.rs_b, p.cs_b = (s // size_b for s in b.strides[-2:])
    p.rs_c = c.strides[-2] // size_c
    # The stride along a dimension of length 1 means nothing: make it one that a kernel can read in place.
    if p.k == 1:
        p.cs_a = 1
    if p.n == 1:
        p.cs_b = 1
    if c.ndim == 2:
        dims = ()
    else:
        batch = c.shape[:-2]
        steps = [arrays.batch_strides(x, batch) for x in (a, b, c)]
        dims = arrays.merged(batch, *steps)
    p.ndim = len(dims)
    for d, (n, (step_a, step_b, step_c)) in enumerate(dims):
        p.shape[d] = n
        p.batch_a[d], p.batch_b[d], p.batch_c[d] = step_a // size_a, step_b // size_b, step_c // size_c
    p.flags, p.threads = flags, threads


def _threads_for(macs: int, nbytes: int, asked: int | None) -> int:
    if asked is not None:
        return min(int(asked), _MOST_THREADS)
    work = macs / _MACS_PER_NS + nbytes / _BYTES_PER_NS
    return default_threads() if work > _NS_WORTH_A_THREAD else 1


def _can_stream(c: np.ndarray) -> bool:
    return c.nbytes >= STREAM_BYTES and _address(c) % 16 == 0 and all(s % 16 == 0 for s in c.strides[:-1])


def _multiply(row, a: np.ndarray, b: np.ndarray, c: np.ndarray, *, accumulate: bool, threads: int | None) -> None:
    """c = a @ b, or c += a @ b; c is apart from a and b, and the kernels can store into it."""
    macs = math.prod(c.shape) * a.shape[-1]
    threads = _threads_for(macs, a.nbytes + b.nbytes + c.nbytes, threads)
    flags = 0 if accumulate else lib.PYSIMD_ZERO
    if not accumulate and _can_stream(c):
        flags |= lib.PYSIMD_STREAM
    a, b = _readable(a), _readable(b)  # named, so that copies live until the product is done
    if lib.pysimd_multiply(row, _product(a, b, c, flags, threads)):
        raise MemoryError("no memory for the packed operands")


def _into(row, a, b, c, out, shape, dtype, threads) -> np.ndarray:
    """c + a @ b (or a @ b) in ``out``, or in a new array if that is None, as if nothing overlapped."""
    if out is None:
        target = np.empty(shape, dtype)
    elif _writable_in_place(out) and not any(np.may_share_memory(out, x) for x in (a, b)):
        target = out
    else:
        target = np.empty(shape, dtype)
    if c is not None and c is not target:
        np.copyto(target, c)
    _multiply(row, a, b, target, accumulate=c is not None, threads=threads)
    if out is not None and target is not out:
        np.copyto(out, target)
    return target if out is None else out


def _operands(kernel: MicroKernel, a, b, c, out, out_name="out"):
    """The operands of a kernel call as NumPy arrays, checked; and the result's shape."""
    device = arrays.backend_for({"a": a, "b": b, "c": c, out_name: out})
    if device != "cpu":
        raise DTypeError(f"{kernel.name} is a CPU kernel, the arrays are on {device}: copy them to the host first")
    a, b, c, out = (
        None if x is None else arrays.as_numpy(name, x) for name, x in (("a", a), ("b", b), ("c", c), (out_name, out))
    )
    return a, b, c, out, arrays.check_tile_call(kernel, a, b, c, out, out_name)


def call(kernel: MicroKernel, a, b, c, out):
    """``MicroKernel.__call__`` on CPU arrays."""
    given = out
    a, b, c, out, shape = _operands(kernel, a, b, c, out)
    result = _into(_row(kernel.name), a, b, c, out, shape, kernel.c_dtype, None)
    return result if given is None else given


def bind(kernel: MicroKernel, a, b, c):
    """``MicroKernel.bind`` on CPU arrays."""
    given = (a, b, c)
    if c is None:
        raise DTypeError("bind needs an array c to add to, got None")
    a, b, _, c, _ = _operands(kernel, a, b, None, c, out_name="c")
    if not _writable_in_place(c):
        raise ShapeError(f"bind needs a c with adjacent columns and no repeated element, got strides {c.strides}")
    for name, x in (("a", a), ("b", b)):
        if np.may_share_memory(c, x):
            raise ShapeError(f"bind needs a c apart from {name}: their memory overlaps")
        if _readable(x) is not x:
            raise ShapeError(f"bind needs an {name} whose strides are whole elements, got {x.strides}")
    bound = ffi.new("pysimd_bound *")
    bound.kernel = _row(kernel.name)
    _fill(bound.product, a, b, c, 0, 1)
    if lib.pysimd_is_one_tile(bound):
        run = functools.partial(lib.pysimd_run_bound, bound)
    else:
        run = functools.partial(_run_product, bound.kernel, ffi.addressof(bound, "product"), bound)
    run.operands = given  # kept alive with the function
    return run


def _run_product(row, product, _owner) -> None:
    if lib.pysimd_multiply(row, product):
        raise MemoryError("no memory for the packed operands")


# --- matmul ---


def left_to_blas(types: str, m: int, n: int, k: int) -> bool:
    """Whether ``matmul`` hands a product of these sizes to NumPy's BLAS when no kernel is named."""
    return types in ("f32", "f64") and m * n * k >= BLAS_MACS and "PYSIMD_ISA" not in os.environ


def matmul(a, b, out, kernel: MicroKernel | None, threads: int | None):
    """``pysimd.matmul`` on CPU arrays."""
    given = out
    a, b = arrays.as_numpy("a", a), arrays.as_numpy("b", b)
    out = None if out is None else arrays.as_numpy("out", out)
    types, a, b, out, full, shape, dtype = arrays.check_matmul(kernel, a, b, out, OFFERED)
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    if kernel is None and left_to_blas(types, m, n, k):
        # NumPy warns of NaN and infinity in the product; here they are values like others.
        with np.errstate(all="ignore"):
            result = np.matmul(a, b, out=out)
    else:
        row = _row(kernel.name) if kernel else lib.pysimd_choose(_TYPES[types], n)
        result = _into(row, a, b, None, out, full, dtype, threads)
    return result.reshape(shape) if given is None else given
