"""``python -m dask_cluster WHAT``: pysimd on two worker processes of Dask, each with a memory limit; prints JSON."""

import json
import os
import signal
import sys
import tempfile
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import pysimd

LIMIT = 600 << 20  # a worker process takes some 150 MiB before it has an array


def arrays(count, k_chunks=4):
    """Two float32 arrays of (count * 1024, k), with k in chunks."""
    make = da.random.default_rng(7)
    a = make.standard_normal((count * 1024, 4096), chunks=(1024, 4096 // k_chunks), dtype=np.float32)
    b = make.standard_normal((4096, 64), chunks=(4096 // k_chunks, 64), dtype=np.float32)
    return a, b


def same_bits(client):
    a, b = arrays(2)
    product = pysimd.matmul(a, b)
    return bool((product.compute() == product.compute(scheduler="synchronous")).all())


def larger_than_a_worker(client):
    """A of 768 MiB, in a cluster whose workers have 600 each."""
    a, b = arrays(48)
    assert a.nbytes > LIMIT
    assert pysimd.matmul(a[-1024:], b).compute().std() > 1
    ones = da.ones(a.shape, chunks=a.chunks, dtype=np.float32)
    return bool(
        (pysimd.matmul(ones + a * 0, da.ones_like(b)).sum(axis=1, dtype=np.float64) == 64 * 4096.0).all().compute()
    )


def killed_worker(client):
    """One worker ends in the middle; its nanny starts another, and what it had computed is computed again."""
    marks = tempfile.mkdtemp()

    def slow(block, block_info=None):
        open(os.path.join(marks, "-".join(map(str, block_info[0]["chunk-location"]))), "a").close()
        time.sleep(0.05)
        return block

    a, b = arrays(6)
    a = a.map_blocks(slow, meta=np.empty((0, 0), np.float32))
    product = pysimd.matmul(a, b).persist()
    while len(os.listdir(marks)) < 8:
        time.sleep(0.01)
    workers = client.run(os.getpid)
    os.kill(next(iter(workers.values())), signal.SIGKILL)
    wait(product)
    found = client.gather(client.compute(product))
    survivors = client.run(os.getpid)
    assert set(survivors.values()) != set(workers.values()), "nobody was killed"
    for name in os.listdir(marks):
        os.remove(os.path.join(marks, name))
    os.rmdir(marks)
    return bool((found == pysimd.matmul(*arrays(6)).compute(scheduler="synchronous")).all())


def worker_without_pysimd(client):
    """The import fails on the workers: the error comes to the caller, and names what is missing."""

    def hide():
        for name in [name for name in sys.modules if name.partition(".")[0] == "pysimd"]:
            del sys.modules[name]
        sys.modules["pysimd"] = None

    client.run(hide)
    try:
        pysimd.matmul(*arrays(1)).compute()
    except Exception as error:
        causes = [repr(error), repr(error.__cause__), repr(error.__context__)]
        print(causes)
        return any("pysimd" in cause for cause in causes)
    return False


def main() -> None:
    what = {f.__name__: f for f in (same_bits, larger_than_a_worker, killed_worker, worker_without_pysimd)}[sys.argv[1]]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        print(json.dumps({"right": what(client)}))


if __name__ == "__main__":
    main()
