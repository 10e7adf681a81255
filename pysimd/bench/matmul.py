"""Batched ``pysimd.matmul`` compared with NumPy's on the CPU and with cuBLAS on a CUDA device, C[i] = A[i] @ B[i]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pysimd import dtypes, products
from pysimd.backends.cpu.implementation import CPU
from pysimd.backends.cuda.implementation import CUDA, INSTANCES
from pysimd.bench import timing
from pysimd.bench.data import random_array
from pysimd.bench.verify import verify
from pysimd.errors import OptionError, UnavailableError

CUDA_TYPES = ("f32", "f64", "f16", "i8i32")
"""Families that are compared with cuBLAS; CuPy has no product of int8, and int8 rows have no peer."""

_CHECKED = slice(1000)
"""The products whose results are checked."""


@dataclass(frozen=True)
class CpuRow:
    """``batch`` products of ``size`` x ``size`` on the CPU.

    Attributes:
        size: m = n = k.
        kernel: the kernel that pysimd chose.
        peer: what NumPy was asked for.
        numpy_over_pysimd: NumPy's median time divided by pysimd's.
        pysimd_gflops: 10^9 operations per second, two per multiply-add, of the median.
        pysimd_gbytes_per_s: 10^9 bytes of A, B and C per second, of the median.
        within_bound: whether pysimd's result holds the error bound.
    """

    types: str
    size: int
    batch: int
    threads: int
    kernel: str
    peer: str
    pysimd_best_ns_per_product: float
    pysimd_median_ns_per_product: float
    numpy_best_ns_per_product: float
    numpy_median_ns_per_product: float
    numpy_over_pysimd: float
    pysimd_gflops: float
    pysimd_gbytes_per_s: float
    within_bound: bool


@dataclass(frozen=True)
class CudaRow:
    """``batch`` products of ``size`` x ``size`` on one CUDA device.

    Attributes:
        size: m = n = k.
        pysimd_us: median microseconds of ``pysimd.matmul(out=)``, calls in a row, between two events on the GPU.
        cublas_us: the same of ``cupy.matmul(out=)``; None where CuPy has no such product.
        cublas_over_pysimd: the second divided by the first.
        pysimd_gflops: 10^9 operations per second, two per multiply-add.
        pysimd_gbytes_per_s: 10^9 bytes of A, B and C per second.
        within_bound: whether pysimd's result holds the error bound.
    """

    types: str
    size: int
    batch: int
    pysimd_us: float
    cublas_us: float | None
    cublas_over_pysimd: float | None
    pysimd_gflops: float
    pysimd_gbytes_per_s: float
    within_bound: bool


def against_numpy(
    types: str, size: int, batch: int, *, threads: int = 1, seconds: float = 0.3, seed: int = 0
) -> CpuRow:
    """Check and time products of random operands; each side takes about ``seconds``, in interleaved rounds.

    NumPy is asked for the nearest product that it has: int8 with ``dtype=int32``, bfloat16 as float32 copies that are
    made beforehand.
    """
    family, rng = dtypes.FAMILIES[types], np.random.default_rng(seed)
    a, b = (random_array(name, (batch, size, size), rng) for name in (family.a, family.b))
    out, numpy_out = (np.zeros((batch, size, size), dtypes.dtype_of(family.c)) for _ in range(2))
    kernel = CPU.chosen(types, size, size, size).name
    options = {"kernel": kernel} if a.dtype.name == "uint16" else {}  # the dtype does not say that it holds bfloat16
    nbytes = a.nbytes + b.nbytes + out.nbytes
    ours = partial(products.matmul, a, b, out=out, threads=threads, **options)
    peer, numpys = _numpy_peer(types, a, b, numpy_out)
    ours()
    holds = verify(types, a[_CHECKED], b[_CHECKED], None, out[_CHECKED]).holds
    runs = {"pysimd": timing.repeated(ours), "numpy": timing.repeated(numpys)}
    times = timing.times(runs, timing.HostClock(), seconds=seconds)
    pysimd_ns, numpy_ns = times["pysimd"].median_ns, times["numpy"].median_ns
    return CpuRow(
        types=types,
        size=size,
        batch=batch,
        threads=threads,
        kernel=kernel,
        peer=peer,
        pysimd_best_ns_per_product=times["pysimd"].best_ns / batch,
        pysimd_median_ns_per_product=pysimd_ns / batch,
        numpy_best_ns_per_product=times["numpy"].best_ns / batch,
        numpy_median_ns_per_product=numpy_ns / batch,
        numpy_over_pysimd=numpy_ns / pysimd_ns,
        pysimd_gflops=2 * size**3 * batch / pysimd_ns,
        pysimd_gbytes_per_s=nbytes / pysimd_ns,
        within_bound=holds,
    )


def _numpy_peer(types: str, a, b, out):
    """What NumPy is asked for, and the call."""
    if types == "bf16f32":
        copies = (dtypes.widened(x, np.float32) for x in (a, b))
        return "numpy.matmul of float32 copies", partial(np.matmul, *copies, out=out)
    if dtypes.FAMILIES[types].roundoff:
        return "numpy.matmul", partial(np.matmul, a, b, out=out)
    return "numpy.matmul(dtype=int32)", partial(np.matmul, a, b, out=out, dtype=np.int32)


def check_cuda(types: Sequence[str]) -> None:
    """Raises unless there is a CUDA device, and the types are those of ``CUDA_TYPES``."""
    for name in types:
        if name not in CUDA_TYPES:
            raise OptionError(f"--types {name} is not for --backend cuda: give any of {', '.join(CUDA_TYPES)}")
    if not CUDA.backend().available:
        raise UnavailableError(CUDA.backend().reason)


def against_cublas(types: str, size: int, batch: int, *, seconds: float = 0.3, seed: int = 0) -> CudaRow:
    """Check and time products of random operands; each side takes about ``seconds``, in interleaved rounds.

    The operands of all calls are the same, so that small ones stay in L2: what a loop over resident data sees.
    """
    import cupy

    family, rng = dtypes.FAMILIES[types], np.random.default_rng(seed)
    on_host = [random_array(name, (batch, size, size), rng) for name in (family.a, family.b)]
    a, b = (cupy.asarray(x) for x in on_host)
    out, cublas_out = (cupy.zeros((batch, size, size), dtypes.dtype_of(family.c)) for _ in range(2))
    ours = partial(products.matmul, a, b, out=out)
    for _ in range(2):  # the second call has its instance compiled
        ours()
    INSTANCES.wait()
    ours()
    holds = verify(types, *(x[_CHECKED] for x in on_host), None, cupy.asnumpy(out[_CHECKED])).holds
    runs = {"pysimd": timing.repeated(ours)}
    if types != "i8i32":
        runs["cublas"] = timing.repeated(partial(cupy.matmul, a, b, out=cublas_out))
    times = timing.times(runs, timing.CudaEvents(), seconds=seconds)
    ns, cublas_ns = times["pysimd"].median_ns, times["cublas"].median_ns if "cublas" in times else None
    return CudaRow(
        types=types,
        size=size,
        batch=batch,
        pysimd_us=ns / 1000,
        cublas_us=None if cublas_ns is None else cublas_ns / 1000,
        cublas_over_pysimd=None if cublas_ns is None else cublas_ns / ns,
        pysimd_gflops=2 * size**3 * batch / ns,
        pysimd_gbytes_per_s=(a.nbytes + b.nbytes + out.nbytes) / ns,
        within_bound=holds,
    )
