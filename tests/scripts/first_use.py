"""The first calls of a process, made by 8 threads at once:
``PYTHONPATH=tests/support python tests/scripts/first_use.py PROCESSES [SEED]``.

Every process is a new interpreter. Its threads wait at a barrier, then read the table, detect the CPU, open the door
and time the kernels all at the same moment, each through the public calls in another order. ``--here SEED`` is one such
process; it ends with status 1 if a result is wrong. test_door.py runs a few.
"""

import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

import numpy as np
from reference import narrow, wide

import pysimd
from pysimd import dtypes

THREADS = 8
LARGE = 200
"""Products of 16 x 16 x 16 in a batch, which is worth two threads: the first such call times its kernel."""


def integers(rng: np.random.Generator, name: str, *shape: int) -> np.ndarray:
    """Small integers, of which every type holds the products and their sums exactly."""
    return narrow(rng.integers(0, 5, shape).astype(np.float32), dtypes.dtype_of(name))


def calls(rng: np.random.Generator, types: str) -> Iterator[tuple[str, Callable[[], np.ndarray], np.ndarray]]:
    """Public calls on operands of one types family: what is called, the call, and the exact result."""
    family, name = dtypes.FAMILIES[types], f"generic_{types}_outer_4x4"
    named = {"kernel": name} if dtypes.dtype_of(family.a).name == "uint16" else {}
    values = np.random.default_rng(rng.integers(1 << 32))
    a, b = integers(values, family.a, 4, 4), integers(values, family.b, 4, 4)
    many_a, many_b = integers(values, family.a, LARGE, 16, 16), integers(values, family.b, LARGE, 16, 16)
    c = integers(values, family.c, 4, 4)
    product, many = exact(a) @ exact(b), exact(many_a) @ exact(many_b)

    def bound():
        result = c.copy()
        pysimd.kernel(name).bind(a, b, result)()
        return result

    yield "matmul", lambda: pysimd.matmul(a, b, **named), product
    yield "matmul, large", lambda: pysimd.matmul(many_a, many_b, **named), many
    yield "matmul, threads=2", lambda: pysimd.matmul(many_a, many_b, threads=2, **named), many
    yield "matmul, kernel=", lambda: pysimd.matmul(a, b, kernel=name), product
    yield "gemm", lambda: pysimd.gemm(a, b, c, alpha=2, beta=3, **named), 2 * product + 3 * exact(c)
    yield "a kernel's call", lambda: pysimd.kernel(name)(a, b, c), product + exact(c)
    yield "a bound call", bound, product + exact(c)


def exact(x: np.ndarray) -> np.ndarray:
    return wide(x, np.int64)


def here(seed: int) -> int:
    """Calls of all threads in this process, each in an order of its own; the number of wrong ones."""
    rng, wrong = np.random.default_rng(seed), []
    offered = ("f32", "f64", "bf16f32", "i8i32", "u8i8i32")
    every = [call for types in offered for call in calls(rng, types)]
    orders = [rng.permutation(len(every)) for _ in range(THREADS)]
    barrier = threading.Barrier(THREADS)

    def work(order):
        barrier.wait()
        for i in order:
            what, call, expected = every[i]
            try:
                right = (call() == expected).all()
            except Exception:
                traceback.print_exc()
                right = False
            if not right:
                wrong.append(what)

    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        print(f"seed {seed}: wrong:", *wrong, sep="\n", file=sys.stderr)
    return len(wrong)


def main(processes: int, first: int = 0) -> int:
    """The number of processes that failed."""
    failed = []
    for seed in range(first, first + processes):
        status = subprocess.run([sys.executable, "-X", "faulthandler", __file__, "--here", str(seed)]).returncode
        if status:
            failed.append((seed, status))
    print(f"{processes - len(failed)} of {processes} processes, seeds from {first} on, are right", *failed)
    return len(failed)


if __name__ == "__main__":
    if sys.argv[1] == "--here":
        sys.exit(here(int(sys.argv[2])) > 0)
    sys.exit(main(*map(int, sys.argv[1:3])) > 0)
