"""Batches on the GPUs of one machine by Dask: CuPy chunks on workers of dask-cuda, one process a GPU; one GPU by Dask
and one GPU without Dask in the same run.

    python benchmarks/scaling_dask_cuda.py --out FILE.json     needs dask-cuda and pip install -e '.[cuda,dask]'

The operands are on the workers. A graph multiplies each chunk 1 or 128 times by its peer, ((a @ b) @ b) @ b ..., which
Dask makes one task a chunk; the graph is made before. ``--device cpu`` runs the same with NumPy chunks, to try it.
"""

from __future__ import annotations

import statistics
import time

import dask
import dask.array as da
import distributed
import numpy as np
import record
from distributed import Client, LocalCluster, wait

import pysimd

BATCHES = (4, 16, 128)
PRODUCTS = (128, 1)
CHUNKS = 8
ELEMENTS = 1 << 32
"""Of an operand, over all its chunks."""


def module(device: str):
    """The array module of the chunks."""
    if device == "cpu":
        return np
    import cupy

    return cupy


def made(seed: int, shape: tuple[int, ...], device: str):
    """A chunk, random and scaled so that products of it do not grow."""
    xp = module(device)
    return xp.random.default_rng(seed).standard_normal(shape, dtype=np.float32) / np.float32(shape[-1] ** 0.5)


def operand(client: Client, workers: list[str], shape: tuple[int, ...], device: str) -> da.Array:
    """An array of CHUNKS chunks of this shape, in the memory of the workers, as many on each."""
    meta, parts = module(device).empty((0, 0, 0), np.float32), []
    for i in range(CHUNKS):
        worker = workers[i * len(workers) // CHUNKS]
        chunk = client.submit(made, i, shape, device, workers=[worker], pure=False)
        parts.append(da.from_delayed(chunk, shape, dtype=np.float32, meta=meta))
    (held,) = client.persist((da.concatenate(parts),))
    wait(held)
    return held


def chain(a, b, products: int):
    """((a @ b) @ b) @ b ..."""
    for _ in range(products):
        a = pysimd.matmul(a, b)
    return a


def first(block, again=0):
    """The first matrix of a chunk that the device has computed."""
    if type(block).__module__.startswith("cupy"):
        import cupy

        cupy.cuda.Device().synchronize()
    return block[:1].copy()


def lazy(a, b, products: int, again: int) -> da.Array:
    """The chain of Dask arrays, not yet computed; one matrix a chunk is kept. Each ``again`` has other keys."""
    made = chain(a, b, products)
    made = made.map_blocks(first, again=again, chunks=((1,) * CHUNKS, *a.chunks[1:]), meta=a._meta)
    (fused,) = dask.optimize(made)
    assert len(fused.dask) <= 4 * CHUNKS, "one task a chunk"
    return fused


def median(runs) -> float:
    """Seconds of a run; the first is not counted."""
    taken = []
    for run in runs:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def without_dask(shape: tuple[int, ...], products: int, device: str, rounds: int) -> float:
    """Seconds of the same products in a loop over the chunks, in one process."""
    a, b = ([made(i, shape, device) for i in range(CHUNKS)] for _ in range(2))

    return median([lambda: [first(chain(x, y, products)) for x, y in zip(a, b, strict=True)]] * (rounds + 1))


def rows(client: Client, n: int, elements: int, device: str, rounds: int):
    """Seconds of the products: on all workers, on one, and on one without Dask."""
    workers = sorted(client.scheduler_info()["workers"])
    shape = (elements // CHUNKS // (n * n), n, n)
    seconds: dict[int, dict[str, float]] = {products: {} for products in PRODUCTS}
    for name, used in (("all", workers), ("one", workers[:1])):
        a, b = (operand(client, used, shape, device) for _ in range(2))
        for products in PRODUCTS:
            graphs = [lazy(a, b, products, i) for i in range(rounds + 1)]
            runs = [lambda graph=graph: wait(client.persist(graph, optimize_graph=False)) for graph in graphs]
            seconds[products][name] = median(runs)
            del graphs, runs
        del a, b
    for products in PRODUCTS:
        alone = client.submit(without_dask, shape, products, device, rounds, workers=workers[:1], pure=False)
        seconds[products]["one, without Dask"] = alone.result()
        found = seconds[products]
        record.progress(f"{CHUNKS} x {shape}, {products} products: {found}, {found['one'] / found['all']:.2f} x")
        yield {
            "problem": f"{CHUNKS * shape[0]} x {n}x{n}",
            "products": products,
            "seconds": found,
            "speedup": found["one"] / found["all"],
        }


def cluster(device: str):
    """One worker process on each GPU; on a CPU, two."""
    if device == "cpu":
        return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    import dask_cuda

    return dask_cuda.LocalCUDACluster(memory_limit="24GB", dashboard_address=None)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--least", type=int, default=1, help="divide the batches by this, to try the script (1)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, of which the median counts (3)")
    options = parser.parse_args()
    versions = {"dask": dask.__version__, "distributed": distributed.__version__}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        cluster(options.device) as workers,
        Client(workers) as client,
    ):
        count, found = len(client.scheduler_info()["workers"]), []
        for n in BATCHES:
            for row in rows(client, n, ELEMENTS // options.least, options.device, options.rounds):
                found.append(row)
                machine = record.gpu() if options.device == "cuda" else record.cpu()
                record.write(machine, options.out, gpus=count, versions=versions, rows=found)


if __name__ == "__main__":
    main()
