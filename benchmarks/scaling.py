"""One batch and one large product on all cores of a machine: ``matmul(threads=)``, Dask on threads, Dask on processes
whose memory holds the chunks; and what a chunk costs beyond its product.

    python benchmarks/scaling.py --out benchmarks/results/scaling_cpu.json     needs pip install -e '.[dask]'
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import dask
import dask.array as da
import distributed
import numpy as np
import record
from distributed import Client, LocalCluster, wait

import pysimd

PROBLEMS = {
    "2000000 x 4x4": ((2_000_000, 4, 4), (250_000, 4, 4), (2_000_000, 4, 4), (250_000, 4, 4)),
    "16000 x 64x64": ((16_000, 64, 64), (2_000, 64, 64), (16_000, 64, 64), (2_000, 64, 64)),
    "3072x3072x3072": ((3072, 3072), (1536, 1536), (3072, 3072), (1536, 1536)),
}
"""Shape and chunks of A and of B, float32."""
CHUNKS = 1000


def best(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds, the best of interleaved runs; the first is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            found[name].append(time.perf_counter() - start)
    return {name: min(times[1:]) for name, times in found.items()}


def resident(client: Client, *arrays):
    """The arrays with every chunk computed, in the memory of the workers."""
    held = client.persist(arrays)
    wait(held)
    return held


def problem(name: str, client: Client, cores: int, rounds: int) -> dict:
    """Seconds of each way to compute a problem."""
    a_shape, a_chunks, b_shape, b_chunks = PROBLEMS[name]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in (a_shape, b_shape))
    lazy = da.from_array(a, chunks=a_chunks), da.from_array(b, chunks=b_chunks)
    make = da.random.default_rng(0)
    far = resident(
        client,
        *(make.standard_normal(s, chunks=c, dtype=np.float32) for s, c in ((a_shape, a_chunks), (b_shape, b_chunks))),
    )

    def threads():
        """The chunks of the result stay chunks, as those on processes do."""
        with dask.config.set(scheduler="threads", num_workers=cores):
            dask.persist(pysimd.matmul(*lazy))

    runs = {
        "matmul(threads=1)": lambda: pysimd.matmul(a, b, threads=1),
        f"matmul(threads={cores})": lambda: pysimd.matmul(a, b, threads=cores),
        f"Dask, {cores} threads": threads,
        f"Dask, {cores} processes": lambda: wait(client.persist(pysimd.matmul(*far))),
    }
    chunks = pysimd.matmul(*lazy).npartitions
    seconds = best(runs, rounds)
    record.progress(f"{name}: {seconds}")
    return {"problem": name, "chunks": chunks, "seconds": seconds}


def overhead(client: Client, cores: int, rounds: int) -> dict[str, float]:
    """Microseconds a chunk of one 4x4 product, whose own time is less than one."""
    a = da.from_array(np.ones((CHUNKS, 4, 4), np.float32), chunks=(1, 4, 4))
    (far,) = resident(client, a)

    def local(scheduler):
        with dask.config.set(scheduler=scheduler, num_workers=cores):
            dask.persist(pysimd.matmul(a, a))

    runs = {
        "synchronous": lambda: local("synchronous"),
        "threads": lambda: local("threads"),
        "processes": lambda: wait(client.persist(pysimd.matmul(far, far))),
    }
    return {name: 1e6 * seconds / CHUNKS for name, seconds in best(runs, rounds).items()}


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, of which the best counts (3)")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with (
        LocalCluster(n_workers=cores, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        per_chunk = overhead(client, cores, options.rounds)
        record.progress(f"microseconds a chunk: {per_chunk}")
        rows = [problem(name, client, cores, options.rounds) for name in PROBLEMS]
    versions = {"dask": dask.__version__, "distributed": distributed.__version__}
    record.write(record.cpu(), options.out, versions=versions, overhead_us=per_chunk, rows=rows)


if __name__ == "__main__":
    main()
