"""Batches of 4x4 products on several processes, with a progress bar: ``pip install 'pysimd[dask]'``, then
``python examples/dask_products.py --workers 4``. Without ``--workers`` on threads of this process.
"""

import argparse

import dask.array as da
import numpy as np
from dask.diagnostics import ProgressBar

import pysimd


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: threads of this one")
    parser.add_argument("--products", type=int, default=5_000_000)
    options = parser.parse_args()

    # Some MiB a chunk: a task costs about a millisecond, a 4x4 product some ten nanoseconds.
    make = da.random.default_rng(0)
    shape, chunks = (options.products, 4, 4), (100_000, 4, 4)
    a, b = (make.standard_normal(shape, chunks=chunks, dtype=np.float32) for _ in range(2))
    product = pysimd.matmul(a, b)  # lazy: nothing is computed yet
    wide = da.einsum("bik,bkj->bij", a.astype(np.float64), b.astype(np.float64))
    error = abs(product - wide).max()

    if options.workers:
        from distributed import Client, LocalCluster, progress

        with LocalCluster(n_workers=options.workers, threads_per_worker=1) as cluster, Client(cluster) as client:
            future = client.compute(error)
            progress(future, notebook=False)
            found = future.result()
    else:
        with ProgressBar():
            found = error.compute()
    below = "below" if found < 1e-4 else "above"
    print(f"\n{options.products} products in {product.npartitions} chunks: error {below} 1e-4")


if __name__ == "__main__":
    main()
