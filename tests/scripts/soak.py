"""``python tests/scripts/soak.py --minutes M [--backend cpu|cuda]``: mixed calls from several threads for so long.

Every result is compared with the first one of the same operands, which is checked against float64. The memory of the
process between rounds must stay flat: after a quarter of the time it may rise by ``GROWTH`` bytes at most above what
it was after an earlier round.

On CUDA the calls are on several streams and all devices, on CuPy's and (where torch is installed) torch's arrays, and
in graphs that are captured once and replayed; the memory is that of the devices.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import benchmark_scripts
import numpy as np
from reference import check, random_operand

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

GROWTH = 8 << 20
THREADS = 6
ROUNDS = 12


def resident() -> int:
    """Bytes of this process in memory, after the allocator has given back what it keeps."""
    with contextlib.suppress(AttributeError):  # of glibc
        ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Call:
    """A call that gives the same bits each time."""

    def __init__(self, name: str, call: Callable[[], bytes]):
        self.name, self.call = name, call
        self.expected = call()

    def run(self) -> None:
        assert self.call() == self.expected, f"{self.name} has given another result"


# --- CPU ---

SHAPES = [
    ((1,), 4, 4, 4),
    ((3000,), 4, 4, 4),
    ((40, 3), 8, 9, 8),
    ((500,), 17, 16, 15),
    ((20,), 70, 60, 80),
    ((), 300, 200, 400),
    ((), 5, 900, 2000),
    ((), 1, 500, 700),
    ((), 600, 300, 1),
    ((2,), 60, 1100, 30),
]


def cpu_calls() -> list[Call]:
    """Products of every type and route; results new or given, scaled, bound, and errors."""
    rng, found = np.random.default_rng(0), []
    for types, (batch, m, k, n) in itertools.product(CPU.offered, SHAPES):
        family = dtypes.FAMILIES[types]
        a, b = (
            random_operand(rng, dtypes.dtype_of(name), (*batch, *shape))
            for name, shape in ((family.a, (m, k)), (family.b, (k, n)))
        )
        if a.dtype.name == "uint16":
            continue
        check(pysimd.matmul(a, b), types, a, b)
        threads = (None, 1, 2, 3)[len(found) % 4]
        columns = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        name = f"{types} {batch} {m} x {k} x {n}"
        found.append(Call(name, lambda a=a, b=b, t=threads: pysimd.matmul(a, b, threads=t).tobytes()))
        found.append(Call(f"{name}, by columns", lambda a=a, b=columns: pysimd.matmul(a, b).tobytes()))
        c = random_operand(rng, dtypes.dtype_of(family.c), (*batch, m, n))
        options = {"alpha": 2, "beta": 3}
        found.append(Call(f"gemm {name}", lambda a=a, b=b, c=c, o=options: pysimd.gemm(a, b, c, **o).tobytes()))
    return [*found, *_tile_calls(rng), Call("an error", _refused)]


def _tile_calls(rng) -> list[Call]:
    found = []
    for kernel in pysimd.kernels("cpu", available=True):
        a = random_operand(rng, kernel.a_dtype, (30, kernel.mr, 50))
        b = random_operand(rng, kernel.b_dtype, (30, 50, kernel.nr))

        def call(kernel=kernel, a=a, b=b):
            c = np.zeros((30, kernel.mr, kernel.nr), kernel.c_dtype)
            kernel.bind(a, b, c)()
            return c.tobytes()

        found.append(Call(f"bind {kernel.name}", call))
    return found


def _refused() -> bytes:
    try:
        pysimd.matmul(np.ones((3, 4), np.float32), np.ones((5, 6), np.float32))
    except pysimd.ShapeError as error:
        return str(error).encode()
    return b"not refused"


# --- CUDA ---


def cuda_calls() -> list[Call]:
    """On every device: CuPy's arrays on streams of their own, torch's, and graphs."""
    import cupy

    found = []
    for device in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(device):
            for types, (batch, m, k, n) in itertools.product(("f32", "f64", "f16", "i8i32"), SHAPES):
                found += _cuda_product(cupy, device, types, batch, m, k, n)
    return found


def _cuda_product(cupy, device: int, types: str, batch, m: int, k: int, n: int) -> list[Call]:
    family, rng = dtypes.FAMILIES[types], np.random.default_rng((m, k, n))
    host = [
        random_operand(rng, dtypes.dtype_of(name), (*batch, *shape))
        for name, shape in ((family.a, (m, k)), (family.b, (k, n)))
    ]
    a, b = map(cupy.asarray, host)
    check(cupy.asnumpy(pysimd.matmul(a, b)), types, *host)

    def on_a_stream() -> bytes:
        with cupy.cuda.Device(device), cupy.cuda.Stream(non_blocking=True) as stream:
            result = pysimd.matmul(a, b)
            stream.synchronize()
            return cupy.asnumpy(result).tobytes()

    name = f"device {device}, {types} {batch} {m} x {k} x {n}"
    calls = [Call(name, on_a_stream), *_torch_call(name, a, b)]
    with contextlib.suppress(pysimd.OptionError):  # of a product by cuBLAS, which is not captured
        calls.append(Call(f"{name}, a graph", _replays(cupy, device, a, b)))
    return calls


def _replays(cupy, device: int, a, b) -> Callable[[], bytes]:
    """Launches a graph in which the product was captured."""
    out, lock = pysimd.matmul(a, b), threading.Lock()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        try:
            pysimd.matmul(a, b, out=out)
        finally:
            graph = stream.end_capture()

    def launch() -> bytes:
        with cupy.cuda.Device(device), lock, cupy.cuda.Stream(non_blocking=True) as stream:
            graph.launch(stream)
            stream.synchronize()
            return cupy.asnumpy(out).tobytes()

    return launch


def _torch_call(name: str, a, b) -> list[Call]:
    try:
        import torch
    except ImportError:
        return []
    x, y = torch.from_dlpack(a), torch.from_dlpack(b)
    return [Call(f"{name}, torch", lambda: pysimd.matmul(x, y).cpu().numpy().tobytes())]


def device_memory() -> int:
    """Bytes in use on all devices, after CuPy's and torch's pools have given back what they keep."""
    import cupy

    used = 0
    for device in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(device):
            cupy.get_default_memory_pool().free_all_blocks()
            if "torch" in sys.modules:
                sys.modules["torch"].cuda.empty_cache()
            free, total = cupy.cuda.runtime.memGetInfo()
            used += total - free
    return used


# --- the run ---


def soak(calls: list[Call], seconds: float, memory: Callable[[], int], threads: int) -> dict[str, Any]:
    """Run the calls in random order, on new threads in each of ``ROUNDS``; returns how many there were, and the memory
    between rounds."""
    start, count, errors, used = time.monotonic(), 0, [], []

    def work(seed: tuple[int, int], end: float) -> None:
        nonlocal count
        rng = np.random.default_rng(seed)
        try:
            while not errors:
                calls[rng.integers(len(calls))].run()
                count += 1
                if time.monotonic() >= end:
                    break
        except BaseException as error:
            errors.append(error)

    for i in range(ROUNDS):
        end = start + seconds * (i + 1) / ROUNDS
        workers = [threading.Thread(target=work, args=((i, number), end)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for error in errors:
            raise error
        gc.collect()
        used.append(memory())
    done = {
        "calls": count,  # about: threads count at the same time
        "kinds": len(calls),
        "threads": threads,
        "seconds": round(time.monotonic() - start),
        "mib_between_rounds": [x / 2**20 for x in used],
    }
    print(f"about {count} calls of {len(calls)} kinds on {threads} threads in {done['seconds']} s")
    print("MiB between rounds:", *(x >> 20 for x in used))
    return done


def growth(done: dict[str, Any]) -> float:
    """How many bytes more were in use after a round than after an earlier one, from the end of the first quarter on:
    pools that fill before, and are freed, hide nothing."""
    used = done["mib_between_rounds"][ROUNDS // 4 - 1 :]
    return 2**20 * max(x - least for x, least in zip(used, itertools.accumulate(used, min), strict=True))


def write(done: dict[str, Any], backend: str, out: Path) -> None:
    """The record of a run, as the scripts of benchmarks/ write theirs."""
    with benchmark_scripts.importable() as imported:
        record = imported("record")
        machine = record.cpu() if backend == "cpu" else record.gpu()
        if "torch" in sys.modules:
            machine["torch"] = sys.modules["torch"].__version__
        record.write(machine, out, soak={"backend": backend, **done})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the record of the run here, too")
    options = parser.parse_args()
    if "MALLOC_ARENA_MAX" not in os.environ:  # glibc keeps freed memory in an arena for each thread
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_ARENA_MAX": "1"})
    make, memory = (cpu_calls, resident) if options.backend == "cpu" else (cuda_calls, device_memory)
    done = soak(make(), 60 * options.minutes, memory, options.threads)
    if options.out:
        write(done, options.backend, options.out)
    if (grown := growth(done)) > GROWTH:
        print(f"the memory has grown by {grown:.0f} bytes, more than {GROWTH}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
