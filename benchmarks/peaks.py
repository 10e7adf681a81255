"""Do the peaks hold? ``python benchmarks/peaks.py [--backend cuda] [--out FILE.json]``: twice, and beside other code.

Sections:
    runs   every peak measured twice from the start (pysimd.peaks, fresh): the second over the first
    loops  (CPU) the chain of each target and type beside the loop of benchmarks/peaks_fma.c, which shares no code with
           the package and is compiled here by cc; turn by turn, the median of the ratios of neighbouring turns, since
           the clock moves

The machine should do nothing else. Exit code 1 if a ratio is farther than 3 % from 1. PYSIMD_COMMIT names the commit
where git cannot.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import median

import pysimd
from pysimd.bench import cpu_peaks, peaks

SOURCE = Path(__file__).with_name("peaks_fma.c")
WITHIN = 0.03
TURNS = 400
TURN_NS = 5e5


def machine(identity: dict[str, object]) -> dict[str, object]:
    """What a figure needs to be understood later."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True)
    return {
        **identity,
        "load_average": os.getloadavg()[0],
        "compiler": compiler.stdout.splitlines()[0],
        "kernel": platform.release(),
        "commit": os.environ.get("PYSIMD_COMMIT") or git.stdout.strip() or "unknown",
        "date": date.today().isoformat(),
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


def runs(first: peaks.Peaks, second: peaks.Peaks) -> list[dict[str, object]]:
    print(f"all peaks measured in {first.seconds:.1f} s, and in {second.seconds:.1f} s")
    again = rates(second)
    rows = [
        {"peak": name, "first": rate, "second": again[name], "second_over_first": again[name] / rate}
        for name, rate in rates(first).items()
    ]
    for row in rows:
        print(f"{row['peak']:34s} {row['first']:9.1f} {row['second']:9.1f} {row['second_over_first']:7.3f}")
    return rows


class Loop:
    """A function of peaks_fma.c, in turns of about TURN_NS."""

    def __init__(self, library: ctypes.CDLL, name: str):
        self.function = getattr(library, name)
        self.function.argtypes, self.function.restype = [ctypes.c_int64], ctypes.c_double
        self.macs = ctypes.c_int64.in_dll(library, f"{name}_macs").value
        self.steps = 10_000
        self.steps = max(1, int(TURN_NS / min(self.ns() for _ in range(5))))

    def ns(self) -> float:
        start = time.perf_counter_ns()
        self.function(self.steps)
        return (time.perf_counter_ns() - start) / self.steps


def loops() -> list[dict[str, object]]:
    rows = []
    families = dict.fromkeys((k.target, k.types) for k in pysimd.kernels("cpu", available=True))
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder)
        for target, types in families:
            name = f"{target}_{types}"
            if not hasattr(library, name):
                continue
            chain, loop = cpu_peaks.Chain(cpu_peaks.index(target, types), TURN_NS), Loop(library, name)
            pairs = []
            for turn in range(TURNS):  # the one goes first as often as the other
                two = (chain.ns, loop.ns) if turn % 2 else (loop.ns, chain.ns)
                ns = [function() for function in two]
                ours, theirs = ns if turn % 2 else ns[::-1]
                pairs.append((chain.rates(ours)["gflops"], 2 * loop.macs / theirs))
            row = {
                "target": target,
                "types": types,
                "package_gflops": median(ours for ours, _ in pairs),
                "loop_gflops": median(theirs for _, theirs in pairs),
                "package_over_loop": median(ours / theirs for ours, theirs in pairs),
            }
            rows.append(row)
            speeds = f"{row['package_gflops']:9.1f} {row['loop_gflops']:9.1f}"
            print(f"{name:34s} {speeds} {row['package_over_loop']:7.3f}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="whose peaks (%(default)s)")
    options = parser.parse_args()
    if options.backend == "cpu" and platform.machine() != "x86_64":
        print("the loops of peaks_fma.c are for x86-64", file=sys.stderr)
        return 2
    both = [peaks.peaks(options.backend, fresh=True) for _ in range(2)]
    document = {"schema_version": 1, "machine": machine(both[0].identity), "runs": runs(*both)}
    ratios = {"second_over_first": [row["second_over_first"] for row in document["runs"]]}
    if options.backend == "cpu":
        document["loops"] = loops()
        ratios["package_over_loop"] = [row["package_over_loop"] for row in document["loops"]]
    document["farthest_from_1"] = {name: max(found, key=lambda x: abs(x - 1)) for name, found in ratios.items()}
    if options.out:
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    for name, ratio in document["farthest_from_1"].items():
        print(f"{name}: farthest from 1: {ratio:.3f}")
    return int(any(abs(ratio - 1) > WITHIN for ratio in document["farthest_from_1"].values()))


if __name__ == "__main__":
    sys.exit(main())
