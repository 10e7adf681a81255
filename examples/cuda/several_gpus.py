"""One large product on all GPUs of a machine, whose operands and result are on the first.

``pip install 'pysimd[torch,cuda]'``, ``python examples/cuda/several_gpus.py``. Each GPU computes a share of the rows,
for which it needs a share of A and all of B. They are sent in chunks along k: a GPU multiplies the first as soon as an
eighth of B is there, and adds the product of a chunk to those before while the next arrives. The product of the last
chunk is computed in panels of rows, which are returned while the next is multiplied.
"""

import itertools
import time

import torch

import pysimd

AHEAD = 256
"""Rows that the first GPU computes until the first chunk is on the others, and while the last panel is returned; it
gets so many more. Larger matrices take longer to send, and a row of them as much longer to compute."""
TWO_GPUS, MORE_GPUS = (1, 7), (1, 2, 5)
"""Lengths of the chunks along k, in eighths: to multiply one must take as long as to send the next. More GPUs share the
links of the first, and each has less to multiply."""
PANELS = 4


def product(a, b, gpus):
    """a @ b, on the GPU of a and b, which is the first of ``gpus``."""
    home = torch.cuda.current_stream(gpus[0])
    out = a.new_empty(a.shape[0], b.shape[1])
    others = (a.shape[0] - AHEAD) // len(gpus)
    rows = [a.shape[0] - (len(gpus) - 1) * others, *(len(gpus) - 1) * [others]]
    lengths = TWO_GPUS if len(gpus) == 2 else MORE_GPUS
    ends = [a.shape[1] * eighths // 8 for eighths in itertools.accumulate(lengths[:-1])]
    own_a, *shares = a.split(rows)
    own_out, *results = out.split(rows)
    sent_a = [[x.contiguous() for x in share.tensor_split(ends, 1)] for share in shares]
    ready = home.record_event()
    pysimd.matmul(own_a, b, out=own_out)
    chunks = [list(zip(x, b.tensor_split(ends), strict=True)) for x in sent_a]
    finished = [multiply_on(gpu, *given, ready) for gpu, *given in zip(gpus[1:], chunks, results, strict=True)]
    for event in finished:
        home.wait_event(event)
    return out


def multiply_on(gpu, chunks, out, ready):
    """Compute out = the sum of a @ b over the chunks on another GPU; the event after which ``out`` is complete."""
    there = torch.cuda.current_stream(gpu)
    far_chunks = [[torch.empty_like(x, device=gpu) for x in chunk] for chunk in chunks]
    far_out = torch.empty_like(out, device=gpu)
    sending, returning = (torch.cuda.Stream(out.device) for _ in range(2))
    arriving, leaving = (torch.cuda.Stream(gpu) for _ in range(2))
    sending.wait_event(ready)
    returning.wait_event(ready)
    arriving.wait_stream(there)
    for chunk, far_chunk in zip(chunks, far_chunks, strict=True):
        with torch.cuda.stream(sending), torch.cuda.stream(arriving):  # a copy is ordered by the streams of both GPUs
            for x, far_x in zip(chunk, far_chunk, strict=True):
                far_x.copy_(x, non_blocking=True)
        there.wait_stream(arriving)
        is_last = chunk is chunks[-1]
        far_a, far_b = far_chunk
        panels = PANELS if is_last else 1
        for x, y, far_y in zip(*(t.tensor_split(panels) for t in (far_a, out, far_out)), strict=True):
            with torch.cuda.stream(there):
                pysimd.gemm(x, far_b, far_y, beta=0 if chunk is chunks[0] else 1, out=far_y)
            if is_last:
                leaving.wait_stream(there)
                with torch.cuda.stream(returning), torch.cuda.stream(leaving):
                    y.copy_(far_y, non_blocking=True)
    there.wait_stream(leaving)  # the memory is used again after that
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
