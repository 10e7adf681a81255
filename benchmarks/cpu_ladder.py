"""The CPU ladder against NumPy: ``python benchmarks/cpu_ladder.py [--out FILE.json] [--seconds S]``.

At each size, m = n = k, samples of all rungs, of NumPy on as many threads, and of independent multiply-adds in
registers are interleaved; each result is checked against float64 before it is timed. A rung is left out where a call
takes longer than a second. What the machine code of the hot loops counts is recorded too. OPENBLAS_CORETYPE and
OPENBLAS_L2_SIZE are removed from the environment before NumPy starts.
"""

from __future__ import annotations

import os
import sys

if os.environ.pop("OPENBLAS_CORETYPE", None) or os.environ.pop("OPENBLAS_L2_SIZE", None):
    os.execv(sys.executable, [sys.executable, *sys.argv])

from dataclasses import asdict

import record

from pysimd.bench import cpu_ladder


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=cpu_ladder.SIZES)
    parser.add_argument("--threads", type=int, nargs="+", default=cpu_ladder.THREADS)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each rung at each size (%(default)s)")
    options = parser.parse_args()
    rows, peaks = cpu_ladder.measure(options.sizes, options.seconds, record.progress, options.threads)
    for row in rows:
        record.progress(f"{row.size:5} {row.threads} {row.name:14} {row.gflops:6.1f} {row.percent_of_peak:5.1f} %")
    record.write(record.cpu(), options.out, peak_gflops=peaks, rows=[asdict(row) for row in rows])


if __name__ == "__main__":
    main()
