"""``python fault_probe.py NAME``, with the library of tests/support/faults.c preloaded: one call of the package, whose
first, second, ... allocation or new thread is refused, until the call asks for no more. Prints one line of JSON for
each; test_memory_faults.py reads them.

Each runs in a child of its own, which has neither threads nor memory of an earlier call.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from any_work import divide_any_work
from faults import HANDLER, MEMORY, NOTHING, THREAD, Faults
from reference import check, random_operand

import pysimd
from pysimd import _cpu

NAMES = {NOTHING: "nothing", MEMORY: "memory", THREAD: "thread", HANDLER: "handler"}


@dataclass
class Case:
    """A call that returns its result, the array that it writes into (None: a new one), and a check of the result."""

    call: Callable[[], np.ndarray]
    out: np.ndarray | None
    check: Callable[[np.ndarray], None]
    atomic: bool = True
    """Whether nothing is written without the memory for all of it."""


def _pair(m: int, k: int, n: int, batch=(), dtype: str = "f4"):
    rng = np.random.default_rng((m, k, n))
    return (random_operand(rng, np.dtype(dtype), (*batch, *shape)) for shape in ((m, k), (k, n)))


def _matmul(
    m, k, n, batch=(), dtype="f4", types="f32", *, columns=False, new=False, result="f4", step=1, **options
) -> Case:
    a, b = _pair(m, k, n, batch, dtype)
    if columns:
        a, b = (np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) for x in (a, b))
    out = None if new else np.full((*batch, m, n * step), 7, result)[..., ::step]

    def verify(found):
        if found.dtype == np.float16:
            np.testing.assert_allclose(found, a.astype("f8") @ b.astype("f8"), rtol=2e-3, atol=k * 2e-3)
        else:
            check(found, types, a, b)

    return Case(lambda: pysimd.matmul(a, b, out=out, **options), out, verify)


def _gemm(m, k, n, *, alpha=1.0, beta=1.0, where="other", atomic=True, columns=False, **options) -> Case:
    a, b = _pair(m, k, n)
    b = np.asfortranarray(b) if columns else b
    c = random_operand(np.random.default_rng(1), np.dtype("f4"), (m, n))
    out = {"c": c.copy(), "other": np.full((m, n), 7, np.float32), "new": None}[where]
    start = c.copy()

    def call():
        given = c
        if where == "c":
            given = out
        return pysimd.gemm(a, b, given, alpha=alpha, beta=beta, out=out, **options)

    def verify(found):
        wanted = alpha * (a.astype("f8") @ b.astype("f8")) + beta * start.astype("f8")
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=k * 1e-4)

    return Case(call, out, verify, atomic)


def _bound(k: int) -> Case:
    kernel = pysimd.kernel("generic_f32_outer_4x4")
    a, b = _pair(4, k, 4, (3,))
    c = np.zeros((3, 4, 4), np.float32)
    run = kernel.bind(a, b, c)

    def call():
        run()
        return c

    return Case(call, c, lambda found: check(found, "f32", a, b))


def _tile(k: int) -> Case:
    kernel = pysimd.kernel("generic_f32_outer_4x4")
    a, b = _pair(4, k, 4, (3,))
    c, out = np.ones((3, 4, 4), np.float32), np.full((3, 4, 4), 7, np.float32)
    return Case(lambda: kernel(a, b, c, out=out), out, lambda found: check(found, "f32", a, b, c))


CASES = {
    "blocks": lambda: _matmul(300, 700, 200, threads=1),
    "blocks, a new result": lambda: _matmul(300, 700, 200, threads=1, new=True),
    "blocks, threads": lambda: _matmul(300, 700, 200, threads=4),
    "strips": lambda: _matmul(5, 700, 3000, threads=2),
    "strips in pieces": lambda: _matmul(40, 700, 3000, threads=2),
    "batch, threads": lambda: _matmul(120, 70, 130, (9,), threads=3),
    "panels": lambda: _matmul(16, 16, 16, (64,), "i1", "i8i32", columns=True, result="i4", threads=1),
    "panels, threads": lambda: _matmul(16, 16, 16, (64,), "i1", "i8i32", columns=True, result="i4", threads=3),
    "every other element, threads": lambda: _matmul(33, 20, 70, (50,), threads=3, step=2),
    "16-bit results": lambda: _matmul(300, 700, 200, dtype="f2", types="f16f32", result="f2", threads=2),
    "gemm adds to another array": lambda: _gemm(200, 300, 100, threads=1),
    "gemm scales in place": lambda: _gemm(200, 300, 100, alpha=0.5, beta=2.0, where="c", threads=2),
    "small gemm scales in place": lambda: _gemm(40, 5, 40, alpha=0.5, beta=2.0, where="c"),
    "gemm, a new result": lambda: _gemm(200, 300, 100, beta=2.0, where="new", threads=1),
    "bound": lambda: _bound(20_000),
    "a named kernel": lambda: _tile(20_000),
    **{
        f"rung {name}": lambda name=name: _gemm(70, 300, 90, kernel=name, columns=True, threads=3, atomic=False)
        for name in ("simd", "packing", "cache_blocks", "prefetch", "threads", "gemm")
    },
}


def _one(faults: Faults, name: str, nth: int) -> dict:
    """The call with its nth request refused, then four times without; ``live`` is memory that is left after each.

    Some of it is NumPy's, which keeps small blocks for its next arrays."""
    case = CASES[name]()
    before = None if case.out is None else case.out.tobytes()
    gc.collect()
    gc.disable()
    references = None if case.out is None else sys.getrefcount(case.out)
    start = faults.live()
    faults.refuse(nth)
    try:
        result, error = case.call(), None
    except MemoryError as caught:
        result, error = None, str(caught)
    refused = faults.refused()
    if error is None:
        case.check(result)
    elif case.atomic and case.out is not None:
        assert case.out.tobytes() == before, f"something was written before {error!r}"
    del result
    live = []
    for _ in range(4):
        if case.out is not None:
            case.out[...] = np.frombuffer(before, case.out.dtype).reshape(case.out.shape)
        result = case.call()
        case.check(result)
        del result
        live.append(faults.live() - start)
    if case.out is not None:
        assert sys.getrefcount(case.out) == references, "a reference to out was lost"
    return {"refused": NAMES[refused], "error": error, "live": live}


def main(name: str) -> None:
    faults = Faults()
    divide_any_work()
    CASES[name]()  # all is loaded, nothing is multiplied
    pysimd.matmul(np.ones((2, 2), "f4"), np.ones((2, 2), "f4"))
    faults.watch(_cpu.__file__)
    faults.watch(np.core._multiarray_umath.__file__ if np.__version__ < "2" else np._core._multiarray_umath.__file__)
    for nth in range(1, 200):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                text = json.dumps(_one(faults, name, nth))
            except BaseException:
                text = json.dumps({"failed": traceback.format_exc()})
            os.write(writer, text.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            text = file.read()
        os.waitpid(child, 0)
        print(text or json.dumps({"failed": "the process has died"}), flush=True)
        if not text or json.loads(text).get("refused", "nothing") == "nothing":
            return
    raise SystemExit("200 requests in one call")


if __name__ == "__main__":
    main(sys.argv[1])
