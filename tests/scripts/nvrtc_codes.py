"""How many codes NVRTC makes of one source, and whether any has a spill: instances compiled in turn in one process.

    python tests/scripts/nvrtc_codes.py --minutes 5 --seed 1 warptile reg_prefetch

NVRTC decides by the addresses of its heap: what the process compiled before changes the code, if only the order and
the registers of some instructions. So one code without spills does not prove that there is none. This draws instances
of the rungs, of every layout, in the order of the seed, and prints those that had more than one code or any spill: how
often each was compiled, its codes, their registers, and how many compilations spilled. It ends with 1 if any did.
LD_PRELOAD of another libnvrtc.so.13 compiles with that one (.ci/run).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from itertools import product

import numpy as np
from pysimd.gpu_kernels import ladder_table

from pysimd.inspection import nvidia

LAYOUTS = ("K_MAJOR", "MN_MAJOR", "K_MAJOR_VEC4", "MN_MAJOR_VEC4")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rungs", nargs="+", choices=[row.name for row in ladder_table.RUNGS], metavar="RUNG")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if nvidia.missing():
        parser.exit(1, f"{nvidia.missing()}\n")
    rows = [ladder_table.BY_NAME[name] for name in options.rungs]
    entries = list({ladder_table.entry(row, a, b): row for row in rows for a, b in product(LAYOUTS, repeat=2)}.items())
    rng, end = np.random.default_rng(options.seed), time.monotonic() + 60 * options.minutes
    found: dict[str, Counter] = defaultdict(Counter)
    while time.monotonic() < end:
        entry, row = entries[rng.integers(len(entries))]
        (code,) = nvidia.compile_together(row.source, (entry,), "90a", "ladder")
        found[entry][code] += 1
    spilled = 0
    for entry, codes in sorted(found.items()):
        spills = sum(count for code, count in codes.items() if code.count("LDL", "STL"))
        spilled += spills
        if len(codes) > 1 or spills:
            registers = sorted({code.registers for code in codes})
            print(f"{entry}: {codes.total()} compilations, {len(codes)} codes, registers {registers}, {spills} spilled")
    return int(spilled > 0)


if __name__ == "__main__":
    sys.exit(main())
