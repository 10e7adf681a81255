"""The rungs of a GPU ladder, listed or timed on the current device: on CUDA compared with cuBLAS and with the peak of
their instruction, on HIP with rocBLAS, in interleaved rounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pysimd import dtypes, registry
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.backends.hip import rocblas
from pysimd.bench import cuda_peaks, timing
from pysimd.bench.data import random_array
from pysimd.errors import OptionError, UnavailableError
from pysimd.microkernel import Rung

TYPES = ("f32", "f16f32", "bf16f32", "i8i32", "f64")
"""The families that are timed: they accumulate in f32, int8 in int32, f64 in f64."""

CUBLAS, CUBLAS_NARROW, ROCBLAS = "cuBLAS", "cuBLAS, 16-bit C", "rocBLAS"

_INSTRUCTIONS = {"f32": ("FFMA", 1), "f16f32": ("HMMA", 32)}
"""The instruction whose peak is measured for a family, and how many threads execute one: rungs of so many lanes are
compared with it. The instruction of 128 threads, wgmma, reads shared memory, and its peak is not measured."""

_PEAK_SECONDS = 0.2


@dataclass(frozen=True)
class Row:
    """One rung, or its peer, at one size. What only a rung has is None for the peer; what is measured is None in a
    list without measurement.

    Attributes:
        types: family; it accumulates in f32, int8 in int32, f64 in f64.
        size: m = n = k.
        tflops: 10^12 floating-point operations per second, two per multiply-add.
        percent_of_cublas: 100 * tflops / tflops of cuBLAS with a C of 32 bits at this size in the same run; on HIP of
            rocBLAS.
        percent_of_peak: 100 * tflops / tflops of independent multiply-adds in registers in the same run; None for rungs
            of other instructions (wgmma, bfloat16, int8), for cuBLAS on tensor cores, which chooses its own, and on
            HIP.
        within_bound: whether the result kept ``(K + 3) u |A||B|`` against float64, which for f64 may be off by as much
            itself; int8 is exact.
    """

    number: str | None
    name: str
    new: str | None
    tile: str | None
    threads: int | None
    ratio: float | None
    types: str = "f32"
    registers: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    size: int | None = None
    ms: float | None = None
    tflops: float | None = None
    percent_of_cublas: float | None = None
    percent_of_peak: float | None = None
    within_bound: bool | None = None


_UNITS = {1: "", 32: " a warp", 128: " a warpgroup"}


def _row(rung: Rung, **measured) -> Row:
    block = f"{rung.bm}x{rung.bn}" + (f"x{rung.bk}" if rung.bk else "")
    return Row(
        number=rung.number,
        name=rung.name,
        new=rung.new,
        tile=f"{block}, {rung.tm}x{rung.tn}{_UNITS[rung.lanes]}",
        threads=rung.threads,
        ratio=rung.ratio.value,
        types=rung.types,
        registers=rung.registers,
        shared_bytes=rung.shared_bytes,
        local_bytes=rung.local_bytes,
        **measured,
    )


def listed(backend: str = "cuda") -> list[Row]:
    """The rungs of ``cuda`` or ``hip`` without measurement."""
    return [_row(rung) for rung in registry.rungs(backend)]


def check_available(backend: str = "cuda") -> None:
    """Raises unless the ladder can be measured here: a GPU, and a cuBLAS that computes in float32, or rocBLAS."""
    found = registry.implementations()[backend].backend()
    if not found.available:
        raise UnavailableError(found.reason)
    if backend == "hip" and rocblas.reason():
        raise UnavailableError(f"the ladder is compared with rocBLAS, which does not start here: {rocblas.reason()}")
    if backend == "cuda" and os.environ.get("CUPY_TF32") == "1":
        raise OptionError("CUPY_TF32=1 makes cuBLAS compute in TF32, which is no peer of float32: unset it")


def measure(
    sizes: Sequence[int],
    seconds: float,
    say: Callable[[str], Any],
    types: Sequence[str] = ("f32",),
    backend: str = "cuda",
    names: Sequence[str] | None = None,
) -> tuple[list[Row], dict[str, float | None]]:
    """Rows of every rung of these families and of cuBLAS at every size, and the peaks of the families in TFLOP/s.

    Args:
        sizes: m = n = k.
        seconds: time given to each rung and to cuBLAS at each size; three calls at least.
        say: called with lines of progress.
        types: any of f32, f16f32, bf16f32, i8i32, f64; on HIP f32.
        backend: ``cuda`` or ``hip``.
        names: of the rungs; without them all.

    Raises:
        OptionError: another family.
        UnavailableError: there is no GPU.
    """
    able = TYPES if backend == "cuda" else ("f32",)
    unknown = [name for name in types if name not in able]
    if unknown:
        raise OptionError(f"types {unknown[0]!r}: the ladder of {backend} is timed for {', '.join(able)}")
    check_available(backend)
    rows: list[Row] = []
    peaks = {}
    for family in types:
        peaks[family] = peak_tflops(family) if backend == "cuda" else None
        if peaks[family]:
            say(f"peak, {family}: {peaks[family]:.1f} TFLOP/s")
        rungs = [rung for rung in registry.rungs(backend) if rung.available and rung.types == family]
        rungs = [rung for rung in rungs if names is None or rung.name in names]
        for i, size in enumerate(sizes, 1):
            say(f"[{i}/{len(sizes)}] {size} x {size} x {size}, {family} ...")
            rows += _rows(rungs, family, size, at_size(rungs, family, size, seconds), peaks[family])
    return rows, peaks


def _rows(rungs: Sequence[Rung], types: str, size: int, timed: dict[str, Timed], peak: float | None):
    compared = _INSTRUCTIONS[types][1] if peak else None
    names = [name for name in timed if name not in {rung.name for rung in rungs}]

    def measured(name: str, lanes: int) -> dict[str, Any]:
        tflops = timed[name].tflops
        return {
            "size": size,
            "ms": 2e-9 * size**3 / tflops,
            "tflops": tflops,
            "percent_of_cublas": 100 * tflops / timed[names[0]].tflops,
            "percent_of_peak": 100 * tflops / peak if lanes == compared else None,
            "within_bound": timed[name].within_bound,
        }

    for rung in rungs:
        yield _row(rung, **measured(rung.name, rung.lanes))
    for peer in names:
        lanes = 1 if types == "f32" else 0
        yield Row(None, peer, None, None, None, None, types=types, **measured(peer, lanes))


def peers(types: str, backend: str = "cuda") -> tuple[str, ...]:
    """cuBLAS with a C of 32 bits; of 16-bit operands also with a C of their type. For int8 cuBLAS is given a B that is
    column-major: its tensor-core kernels take no other. On HIP rocBLAS."""
    if backend == "hip":
        return (ROCBLAS,)
    return (CUBLAS, CUBLAS_NARROW) if types in ("f16f32", "bf16f32") else (CUBLAS,)


def peak_tflops(types: str) -> float | None:
    """TFLOP/s of the peak of a family: FFMA, or mma.sync. None for bfloat16 and int8."""
    if types not in _INSTRUCTIONS:
        return None
    work = cuda_peaks.peak_work(cuda_peaks.PEAKS[_INSTRUCTIONS[types][0]])
    times = timing.times({"peak": timing.repeated(work.launch)}, timing.CudaEvents(), seconds=_PEAK_SECONDS)
    return work.amount / times["peak"].median_ns / 1000


class Timed(NamedTuple):
    """The speed of a rung or a peer at a size, and whether its result kept ``(K + 3) u |A||B|`` against float64."""

    tflops: float
    within_bound: bool


def at_size(rungs: Sequence[Rung], types: str, size: int, seconds: float) -> dict[str, Timed]:
    """Peers and rungs of one family and one backend by name, on random matrices of m = n = k = size."""
    import cupy

    names = peers(types, rungs[0].backend if rungs else "cuda")

    sets = operand_sets(12 * size * size)
    rng = cupy.random.default_rng(0)
    family = dtypes.FAMILIES[types]
    a, b = (random_array(name, (sets, size, size), rng) for name in (family.a, family.b))
    out = cupy.empty((sets, size, size), family.c)
    narrow_out = cupy.empty_like(a) if CUBLAS_NARROW in names else None
    functions = {
        name: [_peer(name, types, a[i], b[i], (narrow_out if name == CUBLAS_NARROW else out)[i]) for i in range(sets)]
        for name in names
    }
    for rung in rungs:
        functions[rung.name] = [gpu_rungs.prepared(rung, a[i], b[i], out[i]) for i in range(sets)]
    holds = _within_bound({name: calls[0] for name, calls in functions.items()}, types, a[0], b[0], out, narrow_out)
    runs = {name: timing.cycled(calls) for name, calls in functions.items()}
    times = timing.times(runs, timing.QueuedCudaEvents(), seconds=seconds)
    return {name: Timed(2e-3 * size**3 / x.median_ns, holds[name]) for name, x in times.items()}


def operand_sets(nbytes: int) -> int:
    """How many sets of operands of ``nbytes`` are used in turn, so that none is read from L2."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    return 1 + 3 * properties["l2CacheSize"] // nbytes


def _within_bound(calls: dict[str, Callable[[], Any]], types: str, a, b, out, narrow_out) -> dict[str, bool]:
    """Whether each call gives ``a @ b`` in ``out[0]``; ``CUBLAS_NARROW`` writes ``narrow_out[0]`` and rounds to it."""
    a, b = (dtypes.widened(x, np.float64) for x in (a, b))
    expected, bound = a @ b, (a.shape[-1] + 3) * dtypes.FAMILIES[types].roundoff * (abs(a) @ abs(b))
    if types == "f64":
        bound = 2 * bound  # the error of what it is compared with is in it
    rounding = abs(expected) * (2.0**-11 if types == "f16f32" else 2.0**-8)
    holds = {}
    for name, call in calls.items():
        out.fill(-1 if out.dtype.kind == "i" else np.nan)
        call()
        if name == CUBLAS_NARROW:
            error, allowed = abs(dtypes.widened(narrow_out[0], np.float64) - expected), bound + rounding
        else:
            error, allowed = abs(out[0] - expected), bound
        holds[name] = bool((error <= allowed).all())
    return holds


def _peer(name: str, types: str, a, b, out):
    """A function that has cuBLAS do ``out = a @ b``."""
    import cupy

    if types in ("f32", "f64"):
        return partial(cupy.matmul, a, b, out=out)
    return gemm_ex(a, cupy.asfortranarray(b) if types == "i8i32" else b, out)


_CUDA_TYPES = {"float32": 0, "float16": 2, "int8": 3, "int32": 10, "bfloat16": 14, "uint16": 14}
"""cudaDataType; uint16 holds bfloat16 bits."""

_CUBLAS_COMPUTE_32F, _CUBLAS_COMPUTE_32I, _CUBLAS_GEMM_DEFAULT = 68, 72, -1


def gemm_ex(a, b, out):
    """A function that has cuBLAS multiply a row-major A by a B in either order, accumulating in 32 bits; column-major
    C^T = B^T A^T."""
    from cupy.cuda import cublas, device

    (m, k), n = a.shape, b.shape[1]
    factor, compute = (np.int32, _CUBLAS_COMPUTE_32I) if out.dtype == np.int32 else (np.float32, _CUBLAS_COMPUTE_32F)
    one, zero = np.ones((), factor), np.zeros((), factor)
    type_a, type_c = _CUDA_TYPES[a.dtype.name], _CUDA_TYPES[out.dtype.name]
    transposed, ldb = (0, n) if b.flags.c_contiguous else (1, k)

    def call() -> None:
        x, y, z = (b.data.ptr, type_a, ldb), (a.data.ptr, type_a, k), (out.data.ptr, type_c, n)
        handle = device.get_cublas_handle()
        alpha, beta = one.ctypes.data, zero.ctypes.data
        cublas.gemmEx(handle, transposed, 0, n, m, k, alpha, *x, *y, beta, *z, compute, _CUBLAS_GEMM_DEFAULT)

    return call
