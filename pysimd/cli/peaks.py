"""``pysimd peaks``."""

from __future__ import annotations

import argparse

from pysimd.bench.peaks import Peak, peaks
from pysimd.cli.options import add_fresh
from pysimd.cli.output import print_json, say
from pysimd.report.text import number, table

HELP = "measure the peaks of this machine: multiply-adds, and loads from each memory; kept between runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="whose peaks (%(default)s)")
    add_fresh(parser)


def execute(options) -> int:
    found = peaks(options.backend, fresh=options.fresh, say=say)
    if options.json:
        print_json(**found.to_dict())
        return 0
    whose = "one core" if found.backend == "cpu" else "the whole device"
    print(f"{found.identity['device']}, {whose}; measured {found.measured_at} in {found.seconds:.1f} s\n")
    memories = list(dict.fromkeys(load.memory for peak in found.peaks for load in peak.loads))
    headers = ["target", "types", "GFLOP/s", *(f"{x} GB/s" for x in memories), "10^9 loads/s"]
    print(table(headers, [_cells(peak, memories) for peak in found.peaks], right=headers[2:]))
    print("(integers: GOP/s; loads per second are from the nearest memory; a dash: the loads convert their elements)")
    return 0


def _cells(peak: Peak, memories: list[str]) -> list[str]:
    bandwidths = {load.memory: load.gbytes_per_s for load in peak.loads}
    nearest = next(iter(peak.loads), None)
    return [
        " ".join((peak.target, peak.instruction)).strip(),
        peak.types,
        number(peak.gflops),
        *(number(bandwidths.get(memory)) for memory in memories),
        number(nearest.gloads_per_s if nearest else None),
    ]
