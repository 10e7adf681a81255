"""Launches of every rung of the GEMM ladder for compute-sanitizer:
``compute-sanitizer --tool TOOL python tests/cuda_sanitize_ladder.py``.

Shapes that end within tiles, pieces of 16 bytes and panels of k. Every array is an allocation of its own, so that
memcheck sees the end of each; results are compared too. TOOL: memcheck, racecheck, initcheck, synccheck.
"""

import sys

import cupy
import numpy as np
from cuda_arrays import on_host
from cuda_sanitize import on_gpu
from reference import check, random_operand

import pysimd

SHAPES = (
    (1, 1, 1),  # m, n, k
    (3, 5, 2),
    (33, 65, 9),
    (130, 127, 17),
    (129, 132, 36),
    (4, 260, 12),
    (128, 64, 33),
    (64, 128, 0),
)


def launches(rung, rng) -> int:
    done = 0
    for m, n, k in SHAPES:
        a, b = random_operand(rng, np.dtype("f4"), (m, k)), random_operand(rng, np.dtype("f4"), (k, n))
        c = random_operand(rng, np.dtype("f4"), (m, n))
        check(on_host(rung(on_gpu(a), on_gpu(b))), "f32", a, b)
        check(on_host(rung(on_gpu(a), on_gpu(b), on_gpu(c), beta=1)), "f32", a, b, c)
        turned = (on_gpu(np.ascontiguousarray(x.T)) for x in (a, b))
        check(on_host(rung(*turned, trans_a=True, trans_b=True)), "f32", a, b)
        done += 3
    a, b = random_operand(rng, np.dtype("f4"), (3, 35, 20)), random_operand(rng, np.dtype("f4"), (20, 36))
    out = on_gpu(np.zeros((3, 36, 35), np.float32)).swapaxes(1, 2)
    check(on_host(rung(on_gpu(a), on_gpu(b), out=out)), "f32", a, b)
    return done + 1


def main() -> None:
    cupy.cuda.set_allocator(None)
    rng = np.random.default_rng(0)
    done = sum(launches(rung, rng) for rung in pysimd.rungs() if rung.available and rung.types == "f32")
    print(f"{done} products by rungs, all within the bound", file=sys.stderr)


if __name__ == "__main__":
    main()
