"""Are the peaks repeatable? ``python benchmarks/peaks.py [--backend cuda] [--out FILE.json]``

Sections:
    runs   every peak measured twice from the start (pysimd.bench.peaks, fresh): the second over the first
    loops  (CPU) the multiply-adds of each target and types against a loop of benchmarks/peaks_fma.c, which shares no
           code with the package and is compiled here by cc; samples are interleaved, and the median of the ratios
           of the rounds is recorded, since the clock moves

The machine should do nothing else. Exit code 1 if a ratio is farther than 3 % from 1. PYSIMD_COMMIT names the commit
where git cannot.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import record

import pysimd
from pysimd.bench import cpu_peaks, peaks, timing

SOURCE = Path(__file__).with_name("peaks_fma.c")
WITHIN = 0.03
ROUNDS = 400


def machine(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity of the peaks, and the state and the compiler of the machine."""
    versions = record.versions()
    return {
        **identity,
        "load_average": os.getloadavg()[0],
        "compiler": record.output_of("cc", "--version").splitlines()[0],
        "kernel": platform.release(),
        "commit": versions["commit"],
        "date": versions["date"],
    }


def compiled(folder: str) -> ctypes.CDLL:
    library = Path(folder) / "peaks_fma.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return ctypes.CDLL(str(library))


def rates(found: peaks.Peaks) -> dict[str, float]:
    """Every figure of a run by name, with its unit."""
    by_name = {}
    for peak in found.peaks:
        name = " ".join((peak.target, peak.types, peak.instruction)).strip()
        by_name[f"{name}, GFLOP/s"] = peak.gflops
        by_name |= {f"{name}, {load.memory} GB/s": load.gbytes_per_s for load in peak.loads}
    return by_name


def runs(first: peaks.Peaks, second: peaks.Peaks) -> list[dict[str, Any]]:
    record.progress(f"all peaks measured in {first.seconds:.1f} s, and in {second.seconds:.1f} s")
    again = rates(second)
    rows = [
        {"peak": name, "first": rate, "second": again[name], "second_over_first": again[name] / rate}
        for name, rate in rates(first).items()
    ]
    for row in rows:
        record.progress("{peak:34s} {first:9.1f} {second:9.1f} {second_over_first:7.3f}".format(**row))
    return rows


class Loop:
    """A function of peaks_fma.c, in samples as long as those of the package."""

    def __init__(self, library: ctypes.CDLL, name: str):
        self._function = getattr(library, name)
        self._function.argtypes, self._function.restype = [ctypes.c_int64], ctypes.c_double
        self.macs = ctypes.c_int64.in_dll(library, f"{name}_macs").value
        self._steps = 10_000
        self._steps = max(1, int(cpu_peaks.SAMPLE_NS / min(self.ns() for _ in range(5))))

    def ns(self) -> float:
        """Nanoseconds of a step."""
        return timing.HostClock().ns(self._function, self._steps)


def loops() -> list[dict[str, Any]]:
    rows = []
    families = dict.fromkeys((k.target, k.types) for k in pysimd.kernels("cpu", available=True))
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder)
        for target, types in families:
            name = f"{target}_{types}"
            if not hasattr(library, name):
                continue
            package = cpu_peaks.MultiplyAdds(cpu_peaks.index(target, types), cpu_peaks.SAMPLE_NS)
            loop = Loop(library, name)
            samples = timing.interleaved({"package": package.ns, "loop": loop.ns}, ROUNDS, shuffle=True)
            package_rates = [package.rates(ns)["gflops"] for ns in samples["package"]]
            loop_rates = [2 * loop.macs / ns for ns in samples["loop"]]
            row = {
                "target": target,
                "types": types,
                "package_gflops": median(package_rates),
                "loop_gflops": median(loop_rates),
                "package_over_loop": median(x / y for x, y in zip(package_rates, loop_rates, strict=True)),
            }
            rows.append(row)
            shown = "{package_gflops:9.1f} {loop_gflops:9.1f} {package_over_loop:7.3f}".format(**row)
            record.progress(f"{name:34s} {shown}")
    return rows


def main() -> int:
    parser = record.parser(__doc__)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="whose peaks (%(default)s)")
    options = parser.parse_args()
    if options.backend == "cpu" and platform.machine() != "x86_64":
        parser.exit(2, "the loops of peaks_fma.c are for x86-64\n")
    both = [peaks.peaks(options.backend, fresh=True) for _ in range(2)]
    sections = {"runs": runs(*both)}
    ratios = {"second_over_first": [row["second_over_first"] for row in sections["runs"]]}
    if options.backend == "cpu":
        sections["loops"] = loops()
        ratios["package_over_loop"] = [row["package_over_loop"] for row in sections["loops"]]
    farthest = {name: max(found, key=lambda x: abs(x - 1)) for name, found in ratios.items()}
    record.write(machine(both[0].identity), options.out, **sections, farthest_from_1=farthest)
    for name, ratio in farthest.items():
        record.progress(f"{name}: farthest from 1: {ratio:.3f}")
    return int(any(abs(ratio - 1) > WITHIN for ratio in farthest.values()))


if __name__ == "__main__":
    sys.exit(main())
