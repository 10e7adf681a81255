"""Everything that times: one tile in cache beside the peak of its instructions, a kernel on arrays, ``matmul`` beside
NumPy's. What is compared is timed turn by turn in one process, because the clock of a busy machine moves."""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pysimd import dtypes
from pysimd import products as api
from pysimd.backends.cpu import dispatch as cpu_dispatch
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU
from pysimd.bench.verify import verify
from pysimd.microkernel import MicroKernel

K = 256
"""Length of the panels, in k."""


@dataclass(frozen=True)
class Speed:
    """GFLOP/s (GOP/s for integers), two per multiply-add, of a kernel and of its target's peak; and what the target can
    load from the first-level cache at most, in 10^9 load instructions (of one lane, on a GPU) and in GB per second."""

    gflops: float | None = None
    peak_gflops: float | None = None
    percent_of_peak: float | None = None
    peak_gloads_per_s: float | None = None
    peak_load_gbytes_per_s: float | None = None

    @classmethod
    def beside(cls, gflops: float, chain: dict[str, float] | None = None, loads: dict[str, float] | None = None):
        """Of a kernel's own figure, and of what ``rates`` say of its chain and its loads."""
        peak = None if chain is None else chain["gflops"]
        percent = None if peak is None else 100 * gflops / peak
        return cls(gflops, peak, percent, *((loads or {}).get(key) for key in ("gloads_per_s", "gbytes_per_s")))


def tile_speed(kernel: MicroKernel, *, rounds: int = 41, seconds: float = 0.02) -> Speed:
    """Time ``kernel`` on packed panels in cache (K = 256), the multiply-add chain and the loads of its target and type.

    Each takes about ``seconds`` in all, in ``rounds`` turns; medians, because a best would set the one's luckiest clock
    beside the other's. The peaks' fields are None for a target and type without an
    entry in peaks.inc, those of loads also where a load converts what it reads. CUDA kernels are timed on the whole
    device, all tiles on the same two panels (K = 2048), in nine turns beside the chains of peaks.cu and the loads of
    loads.cu; fields are None for kernels of other GPUs.
    """
    from pysimd.bench import cpu_peaks

    if kernel.backend == "cuda":
        from pysimd.bench import cuda_tiles

        return Speed.beside(*cuda_tiles.tile_rates(kernel))
    if kernel.backend != "cpu":
        return Speed()
    ffi, lib = cpu_table.ffi, cpu_table.lib
    row = cpu_table.row(kernel.name)
    groups = K // kernel.k_group
    rng = np.random.default_rng(0)
    # Wide panels hold two bytes per value and a correction row may follow: room for both.
    room = 4 * (K + 8) * max(kernel.mr, kernel.nr) * max(kernel.a_dtype.itemsize, 2)
    family = dtypes.FAMILIES[kernel.types]
    a, b = (random_array(name, (room // dtypes.dtype_of(name).itemsize,), rng) for name in (family.a, family.b))
    c = np.zeros(kernel.mr * kernel.nr, kernel.c_dtype)
    kept = [cpu_peaks.aligned(x.nbytes) for x in (a, b, c)]  # as a packer lays panels: no load straddles cache lines
    for new, x in zip(kept, (a, b, c), strict=True):
        new[:] = x.view(np.uint8)
    pointers = [ffi.from_buffer(x) for x in kept]
    macs = kernel.mr * kernel.nr * K

    place = cpu_peaks.index(kernel.target, kernel.types)
    one = lib.pysimd_time_tile(row, groups, *pointers, 10, 2)
    calls = max(1, int(seconds / rounds * 1e9 / one))
    chains = () if place is None else cpu_peaks.beside(place, seconds / rounds * 1e9)
    tile_ns, chain_ns = [], []
    for _ in range(rounds):
        tile_ns.append(lib.pysimd_time_tile(row, groups, *pointers, calls, 1))
        chain_ns.append([chain.ns() for chain in chains])
    gflops = 2 * macs / float(np.median(tile_ns))
    rates = [chain.rates(float(ns)) for chain, ns in zip(chains, np.median(chain_ns, axis=0), strict=True)]
    return Speed.beside(gflops, *rates)


# --- calls on arrays ---


@dataclass(frozen=True)
class Times:
    """Nanoseconds per call: the best turn, the median turn, and how often the function ran."""

    best_ns: float
    median_ns: float
    calls: int


def interleaved(
    functions: Sequence[Callable[[], object]], *, seconds: float = 0.3, rounds: int = 9, on_gpu: bool = False
) -> list[Times]:
    """Time functions turn by turn, each for about ``seconds`` in all after one call to warm up.

    Args:
        functions: called without arguments.
        seconds: wall time given to each.
        rounds: turns; each is one figure of which best and median are taken.
        on_gpu: time with events on CuPy's current stream instead of the host's clock.
    """
    clock = _ns_on_gpu if on_gpu else _ns_on_host
    counts = []
    for function in functions:
        function()
        once = clock(function, 1)
        counts.append(max(1, int(seconds / rounds * 1e9 / max(once, 1.0))))
    turns = [[clock(f, n) for f, n in zip(functions, counts, strict=True)] for _ in range(rounds)]
    return [
        Times(min(ns), float(np.median(ns)), n * rounds) for ns, n in zip(zip(*turns, strict=True), counts, strict=True)
    ]


def _ns_on_host(function, calls: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(calls):
        function()
    return (time.perf_counter_ns() - start) / calls


def _ns_on_gpu(function, calls: int) -> float:
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(calls):
        function()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end) * 1e6 / calls


def random_array(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Seeded random values of the dtype of that name: normal floats, integers over their whole range."""
    dtype = dtypes.dtype_of(name)
    if name == "bfloat16":
        bits = rng.standard_normal(shape, np.float32).view(np.uint32) >> 16
        return bits.astype(np.uint16).view(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape, np.float64 if name == "float64" else np.float32).astype(dtype)


def random_operands(kernel: MicroKernel, batch: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """NumPy arrays A (batch, mr, k) and B (batch, k, nr) for a kernel; an inner-product kernel gets the B it reads in
    place, whose columns are contiguous."""
    family, rng = dtypes.FAMILIES[kernel.types], np.random.default_rng(seed)
    a = random_array(family.a, (batch, kernel.mr, k), rng)
    if kernel.form == "inner":
        return a, random_array(family.b, (batch, kernel.nr, k), rng).swapaxes(-1, -2)
    return a, random_array(family.b, (batch, k, kernel.nr), rng)


@dataclass(frozen=True)
class Run:
    """A kernel called on arrays: its result on the host, and the times of the whole call; NaN per product if none."""

    result: np.ndarray
    products: int
    times: Times

    @property
    def best_ns_per_product(self) -> float:
        return self.times.best_ns / self.products if self.products else float("nan")

    @property
    def median_ns_per_product(self) -> float:
        return self.times.median_ns / self.products if self.products else float("nan")


def run(kernel: MicroKernel, a, b, c=None, *, seconds: float = 0.3) -> Run:
    """Call ``kernel`` on NumPy arrays again and again, and time it; any batch shape.

    For a kernel of a GPU the arrays are copied to its device first, and only the calls are timed.

    Raises:
        ShapeError, DTypeError, UnavailableError: as for the call.
    """
    kernel._check_available()
    on_gpu = kernel.backend != "cpu"
    if on_gpu:
        import cupy

        a, b, c = (None if x is None else cupy.asarray(x) for x in (a, b, c))
    out = kernel(a, b, c)
    (times,) = interleaved([lambda: kernel(a, b, c, out=out)], seconds=seconds, on_gpu=on_gpu)
    products = out.size // (kernel.mr * kernel.nr)
    return Run(cupy.asnumpy(out) if on_gpu else out, products, times)


# --- matmul beside NumPy's ---


@dataclass(frozen=True)
class Beside:
    """One line of ``bench``: batched ``pysimd.matmul`` beside ``numpy.matmul``, C[i] = A[i] @ B[i].

    Attributes:
        size: m = n = k.
        peer: what NumPy was asked for.
        kernel: the kernel that pysimd chose, or NumPy's BLAS for a large product.
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


def beside_numpy(types: str, size: int, batch: int, *, threads: int = 1, seconds: float = 0.3, seed: int = 0) -> Beside:
    """Check and time ``batch`` products of ``size`` x ``size`` beside NumPy, turn by turn, on random operands.

    NumPy gets the nearest thing it has: int8 with ``dtype=int32``, bfloat16 as float32 copies made beforehand.
    """
    from pysimd.backends.cpu import implementation as cpu

    family, rng = dtypes.FAMILIES[types], np.random.default_rng(seed)
    a, b = (random_array(name, (batch, size, size), rng) for name in (family.a, family.b))
    out, out_numpy = (np.zeros((batch, size, size), dtypes.dtype_of(family.c)) for _ in range(2))
    kernel = CPU.chosen(types, size).name
    by_name = {"kernel": kernel} if a.dtype.name == "uint16" else {}  # bfloat16 bits are not known by their dtype
    if not by_name and cpu_dispatch.left_to_blas(types, size, size, size):
        kernel = "NumPy's BLAS"
    if family.roundoff and types != "bf16f32":
        peer, theirs, options = "numpy.matmul", (a, b), {}
    elif types == "bf16f32":
        peer, theirs, options = "numpy.matmul of float32 copies", (_float32(a), _float32(b)), {}
    else:
        peer, theirs, options = "numpy.matmul(dtype=int32)", (a, b), {"dtype": np.int32}
    # Work this small never takes a second thread, and the shortest way is the one without options.
    small = batch * size**3 <= cpu.FAST_PATH_MACS and a.nbytes + b.nbytes + out.nbytes <= cpu.FAST_PATH_BYTES
    bound = None if threads == 1 and small else threads

    def ours():
        api.matmul(a, b, out=out, threads=bound, **by_name)

    def numpys():
        np.matmul(*theirs, out=out_numpy, **options)

    ours()
    some = slice(min(batch, 1000))
    checked = verify(types, a[some], b[some], None, out[some])
    mine, other = interleaved([ours, numpys], seconds=seconds)
    nbytes = a.nbytes + b.nbytes + out.nbytes
    return Beside(
        types=types,
        size=size,
        batch=batch,
        threads=threads,
        kernel=kernel,
        peer=peer,
        pysimd_best_ns_per_product=mine.best_ns / batch,
        pysimd_median_ns_per_product=mine.median_ns / batch,
        numpy_best_ns_per_product=other.best_ns / batch,
        numpy_median_ns_per_product=other.median_ns / batch,
        numpy_over_pysimd=other.median_ns / mine.median_ns,
        pysimd_gflops=2 * size**3 * batch / mine.median_ns,
        pysimd_gbytes_per_s=nbytes / mine.median_ns,
        within_bound=checked.holds,
    )


def _float32(x: np.ndarray) -> np.ndarray:
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class Blas:
    """The BLAS inside NumPy. Fields are None where they could not be found out.

    Attributes:
        name, version: as NumPy was built.
        architecture: whose kernels it runs on this machine (OpenBLAS).
        threads: how many it may use.
        forced: value of OPENBLAS_CORETYPE, which may make it run another machine's kernels; None if unset.
    """

    name: str | None
    version: str | None
    architecture: str | None
    threads: int | None
    forced: str | None


def numpy_blas() -> Blas:
    """Which BLAS ``numpy.matmul`` uses here, asked from the loaded library itself."""
    np.matmul(np.ones((2, 2)), np.ones((2, 2)))
    built = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    architecture = threads = None
    for path in _loaded_libraries("openblas"):
        library = ctypes.CDLL(path)
        for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
            corename = getattr(library, f"{prefix}openblas_get_corename{suffix}", None)
            if corename is None:
                continue
            corename.restype = ctypes.c_char_p
            architecture = corename().decode()
            count = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
            threads = count() if count is not None else None
            break
    return Blas(built.get("name"), built.get("version"), architecture, threads, os.environ.get("OPENBLAS_CORETYPE"))


def _loaded_libraries(word: str) -> Iterable[str]:
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return ()
    return sorted({m for m in re.findall(r"(/\S.*)$", maps, re.MULTILINE) if word in Path(m).name})
