"""``pysimd bench --backend cuda``: batched ``matmul`` on CuPy arrays beside CuPy's own, cuBLAS, in one run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from pysimd import dtypes
from pysimd import products as api
from pysimd.backends.cuda.implementation import CUDA
from pysimd.bench import tiles as measure
from pysimd.bench.verify import verify
from pysimd.errors import OptionError, UnavailableError

FAMILIES = ("f32", "f64", "f16", "i8i32")
"""Types that can be asked for; cuBLAS through CuPy has no int8."""


@dataclass(frozen=True)
class Row:
    """One line: ``pysimd.matmul(out=)`` beside ``cupy.matmul(out=)``, C[i] = A[i] @ B[i] on one GPU.

    Attributes:
        size: m = n = k.
        pysimd_us: median microseconds of a call, of many calls in a row, between two events on the GPU.
        cublas_us: the same of CuPy; None where it has no such product.
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


def check(types) -> None:
    """Raises unless there is a GPU, and the types are those of ``FAMILIES``."""

    for name in types:
        if name not in FAMILIES:
            raise OptionError(f"--types {name} is not for --backend cuda: give any of {', '.join(FAMILIES)}")
    if not CUDA.backend().available:
        raise UnavailableError(CUDA.backend().reason)


def beside_cublas(types: str, size: int, batch: int, *, seconds: float = 0.3, seed: int = 0) -> Row:
    """Check and time ``batch`` products of ``size`` x ``size``, turn by turn, on random operands.

    The operands of a call stay the same, so small ones come from the L2: what a loop over resident data sees.
    """
    import cupy

    from pysimd.bench import ladder_times

    family, rng = dtypes.FAMILIES[types], np.random.default_rng(seed)
    on_host = [measure.random_array(name, (batch, size, size), rng) for name in (family.a, family.b)]
    a, b = (cupy.asarray(x) for x in on_host)
    out, other = (cupy.zeros((batch, size, size), dtypes.dtype_of(family.c)) for _ in range(2))
    runs = {"pysimd": [partial(api.matmul, a, b, out=out)]}
    if types != "i8i32":
        runs["cublas"] = [partial(cupy.matmul, a, b, out=other)]
    runs["pysimd"][0]()
    some = slice(min(batch, 1000))
    holds = verify(types, *(x[some] for x in on_host), None, cupy.asnumpy(out[some])).holds
    times = ladder_times.medians(runs, seconds)
    cublas = times.get("cublas")
    return Row(
        types=types,
        size=size,
        batch=batch,
        pysimd_us=1e6 * times["pysimd"],
        cublas_us=None if cublas is None else 1e6 * cublas,
        cublas_over_pysimd=None if cublas is None else cublas / times["pysimd"],
        pysimd_gflops=2e-9 * size**3 * batch / times["pysimd"],
        pysimd_gbytes_per_s=1e-9 * (a.nbytes + b.nbytes + out.nbytes) / times["pysimd"],
        within_bound=holds,
    )
