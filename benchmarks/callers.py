"""What a call of a 4x4 float kernel costs from Python, Numba, C and Cython, all on the same arrays in cache.

python benchmarks/callers.py --out benchmarks/results/callers.json     needs pip install -e '.[numba,test]'
"""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from functools import partial
from pathlib import Path

import numba
import numpy as np
import record

import pysimd
import pysimd.interop.numba
from pysimd import _cpu
from pysimd.bench import timing

CALLS = 1_000_000
TILES = 64  # of 192 bytes: they stay in L1


def four_by_four() -> pysimd.MicroKernel:
    """The 4x4 kernel that ``matmul`` takes here."""
    found = pysimd.kernels("cpu", types="f32", form="outer", available=True)
    return [k for k in found if (k.mr, k.nr) == (4, 4)][-1]


def loops(kernel):
    """Two compiled functions of (a, b, c): a million products by the kernel, and by Numba's own loops."""
    tile = pysimd.interop.numba.tile(kernel)

    @numba.njit
    def by_kernel(a, b, c):
        for i in range(CALLS):
            j = i % TILES
            tile(a[j], b[j], c[j])

    @numba.njit(fastmath=True)
    def by_numba(a, b, c):
        for i in range(CALLS):
            t = i % TILES
            for row in range(4):
                for p in range(4):
                    for column in range(4):
                        c[t, row, column] += a[t, row, p] * b[t, p, column]

    return by_kernel, by_numba


def c_program(kernel) -> float | None:
    """Nanoseconds a call in examples/c/tiles.c; None where the interpreter has no shared library."""
    library = Path(sysconfig.get_config_var("LIBDIR")) / sysconfig.get_config_var("INSTSONAME")
    if not library.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        program, source = Path(folder) / "tiles", Path(__file__).parents[1] / "examples/c/tiles.c"
        subprocess.run(["gcc", "-O2", "-I", pysimd.get_include(), source, "-o", program, "-ldl"], check=True)
        command = [program, _cpu.__file__, library, kernel.name]
        lines = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(5)]
    return min(float(line.split()[2]) for line in lines)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="time given to each caller (2)")
    options = parser.parse_args()
    kernel = four_by_four()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((TILES, 4, 4), np.float32) / 1000 for _ in range(2))
    c, out = np.zeros_like(a), np.empty((4, 4), np.float32)
    x, y = a[0], b[0]
    by_kernel, by_numba = loops(kernel)
    runs = {
        "numpy.matmul(a, b, out=)": (timing.repeated(partial(np.matmul, x, y, out=out)), 1),
        "pysimd.matmul(a, b, out=)": (timing.repeated(partial(pysimd.matmul, x, y, out=out)), 1),
        "a bound call": (timing.repeated(kernel.bind(x, y, c[0])), 1),
        "numba: tile(a[i], b[i], c[i])": (timing.repeated(partial(by_kernel, a, b, c)), CALLS),
        "numba: its own loops": (timing.repeated(partial(by_numba, a, b, c)), CALLS),
    }
    times = timing.times({name: run for name, (run, _) in runs.items()}, timing.HostClock(), seconds=options.seconds)
    rows = [{"caller": name, "ns": times[name].best_ns / calls} for name, (_, calls) in runs.items()]
    rows.append({"caller": "a loop in C (examples/c/tiles.c)", "ns": c_program(kernel)})
    versions = {"numba": numba.__version__}
    record.write(record.cpu(), options.out, kernel=kernel.name, versions=versions, rows=rows)


if __name__ == "__main__":
    main()
