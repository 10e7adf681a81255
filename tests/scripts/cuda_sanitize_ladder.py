"""Launches of every rung of the GEMM ladder for compute-sanitizer: ``PYTHONPATH=tests/support compute-sanitizer
--tool TOOL python tests/scripts/cuda_sanitize_ladder.py [--filled] [RUNG ...]``.

Shapes that end within tiles, pieces of 16 bytes and panels of k. Every array is an allocation of its own, so that
memcheck sees the end of each. A C is NaN before, or a large integer, and is compared after: every element is written.
TOOL: memcheck, racecheck, initcheck, synccheck. initcheck does not see what the tensor memory accelerator stores; so it
reports the sums of the ozaki2 rungs, scratch memory which a kernel reads. With ``--filled``, which needs no TOOL, all
memory, scratch memory too, has bytes of 255 first, so that a sum that is not written makes a result wrong.
"""

import sys

import cupy
import numpy as np
from cuda_arrays import on_host
from cuda_sanitize import allocator, on_gpu
from pysimd.gpu_kernels import ladder_table
from reference import check, moderate, random_result, wide

import pysimd
from pysimd import dtypes

SHAPES = (
    (1, 1, 1),  # m, n, k
    (3, 5, 2),
    (33, 65, 9),
    (130, 127, 17),
    (129, 132, 36),
    (4, 260, 12),
    (128, 64, 33),
    (64, 128, 0),
    (40, 70, 2100),
    (136, 264, 328),
)


def unwritten(shape, dtype):
    """A C in which an element that is not written is found: NaN, or an integer that is no result."""
    return on_gpu(np.full(shape, 2**31 - 1 if dtype == np.int32 else 0x7FFF if dtype == np.uint16 else np.nan, dtype))


def launches(rung, rng) -> int:
    done = 0
    family = dtypes.FAMILIES[rung.types]
    operand, result = dtypes.dtype_of(family.a), dtypes.dtype_of(family.c)
    roundings = 3 if rung.roundings is None else rung.roundings  # of operands of one magnitude
    for m, n, k in SHAPES:
        a, b = moderate(rng, operand, (m, k)), moderate(rng, operand, (k, n))
        c = random_result(rng, result, (m, n))
        transposed = [on_gpu(np.ascontiguousarray(x.T)) for x in (a, b)]
        outs = [unwritten((m, n), result) for _ in range(3)]
        check(on_host(rung(on_gpu(a), on_gpu(b), out=outs[0])), rung.types, a, b, roundings=roundings)
        plus_c = rung(on_gpu(a), on_gpu(b), on_gpu(c), beta=1, out=outs[1])
        check(on_host(plus_c), rung.types, a, b, c, roundings=roundings)
        swapped = rung(*transposed, trans_a=True, trans_b=True, out=outs[2])
        check(on_host(swapped), rung.types, a, b, roundings=roundings)
        done += 3
        if ladder_table.BY_NAME[rung.name].narrow:
            narrow = on_host(rung(on_gpu(a), on_gpu(b), out=unwritten((m, n), operand)))
            assert not np.isnan(wide(narrow, np.float64)).any()
            done += 1
    a, b = moderate(rng, operand, (3, 35, 20)), moderate(rng, operand, (20, 36))
    out = unwritten((3, 36, 35), result).swapaxes(1, 2)
    check(on_host(rung(on_gpu(a), on_gpu(b), out=out)), rung.types, a, b, roundings=roundings)
    return done + 1


def main() -> None:
    names = sys.argv[1:]
    cupy.cuda.set_allocator(allocator(names))
    chosen = [pysimd.rung(name) for name in names] or pysimd.rungs()
    rng = np.random.default_rng(0)
    done = sum(launches(rung, rng) for rung in chosen if rung.available)
    print(f"{done} products by rungs, all within the bound", file=sys.stderr)


if __name__ == "__main__":
    main()
