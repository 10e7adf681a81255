"""One large product on all GPUs of a machine, whose operands and result are on the first.

``pip install 'pysimd[torch,cuda]'``, ``python examples/cuda/several_gpus.py``. Each GPU computes a share of the
columns. A is sent in panels of rows, so that a GPU multiplies one panel while the next arrives and the one before is
returned; two streams multiply, so that a panel fills the multiprocessors that the last blocks of the one before leave.
"""

import itertools
import time

import torch

import pysimd

AHEAD = 512
"""Columns that the first GPU computes until the first operands are on the others; it gets so many more."""


def product(a, b, gpus, panels=4):
    """a @ b, on the GPU of a and b, which is the first of ``gpus``."""
    home = torch.cuda.current_stream(gpus[0])
    out = a.new_empty(a.shape[0], b.shape[1])
    others = (b.shape[1] - AHEAD) // len(gpus)
    columns = [b.shape[1] - (len(gpus) - 1) * others, *(len(gpus) - 1) * [others]]
    shares = [(x.contiguous(), y) for x, y in zip(b.split(columns, 1), out.split(columns, 1), strict=True)]
    ready = home.record_event()
    pysimd.matmul(a, shares[0][0], out=shares[0][1])
    finished = [multiply_on(gpu, a, *share, ready, panels) for gpu, share in zip(gpus[1:], shares[1:], strict=True)]
    for event in finished:
        home.wait_event(event)
    return out


def multiply_on(gpu, a, b, out, ready, panels):
    """Compute out = a @ b on another GPU; the event after which ``out`` is complete."""
    there = torch.cuda.current_stream(gpu)
    far_a, far_b = torch.empty_like(a, device=gpu), torch.empty_like(b, device=gpu)
    far_out = far_a.new_empty(out.shape)
    sending, returning = (torch.cuda.Stream(a.device) for _ in range(2))
    arriving, leaving, *multiplying = (torch.cuda.Stream(gpu) for _ in range(4))
    for stream in (sending, returning):
        stream.wait_event(ready)
    arriving.wait_stream(there)
    with torch.cuda.stream(sending), torch.cuda.stream(arriving):  # a copy is ordered by the streams of both GPUs
        far_b.copy_(b, non_blocking=True)
    parts = zip(*(t.tensor_split(panels) for t in (a, far_a, far_out, out)), strict=True)
    for (x, far_x, far_y, y), stream in zip(parts, itertools.cycle(multiplying), strict=False):
        with torch.cuda.stream(sending), torch.cuda.stream(arriving):
            far_x.copy_(x, non_blocking=True)
        stream.wait_stream(arriving)
        with torch.cuda.stream(stream):
            pysimd.matmul(far_x, far_b, out=far_y)
        leaving.wait_stream(stream)
        with torch.cuda.stream(returning), torch.cuda.stream(leaving):
            y.copy_(far_y, non_blocking=True)
    there.wait_stream(leaving)  # the memory of the panels is used again after that
    return returning.record_event()


def seconds(run, rounds=5):
    """The median time of ``run()``; the first call is not counted."""
    found = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return sorted(found[1:])[rounds // 2]


def main():
    gpus = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
    a, b = (torch.randn(8192, 8192, device=gpus[0]) for _ in range(2))
    one, several = (seconds(lambda used=used: product(a, b, used)) for used in (gpus[:1], gpus))
    error = float((product(a, b, gpus) - pysimd.matmul(a, b)).abs().max())
    print(f"8192: {1000 * one:.2f} ms on one GPU, {1000 * several:.2f} ms on {len(gpus)}; difference {error:.1e}")


if __name__ == "__main__":
    main()
