"""Machine code of the HIP kernels: what the compiler made for a target, its loops, and what each does."""

import re
from collections import Counter
from functools import cache

from pysimd.hip_kernels import table

from pysimd import simulator
from pysimd.backends import hip_simulation
from pysimd.errors import UnavailableError

_LOADED = {"dwordx4": 16, "b128": 16, "dwordx3": 12, "b96": 12, "dwordx2": 8, "b64": 8, "dword": 4, "b32": 4}
_LOADED |= {
    "ushort": 2,
    "sshort": 2,
    "short": 2,
    "u16": 2,
    "i16": 2,
    "b16": 2,
    "ubyte": 1,
    "sbyte": 1,
    "u8": 1,
    "i8": 1,
}
_MATRIX = re.compile(r"v_(?:mfma|wmma)_f32_(\d+)x(\d+)x(\d+)")


@cache
def missing() -> str:
    """Why there is no compiler; empty if there is one."""
    try:
        simulator.toolchain()
    except UnavailableError as error:
        return str(error)
    return ""


def targets(row: table.Kernel) -> list[str]:
    """The targets that have what the kernel requires."""
    return [target for target in table.TARGETS if row.requires in table.features(target)]


def checked_entries(row: table.Kernel) -> dict[str, str]:
    """Template instances that are compiled for every target: the fastest, any strides, tiles that stick out."""
    b = "PACKED" if "PACKED" in row.layouts else "ALONG_K"
    return {
        "fast": table.entry(row, "ALONG_K", b, False),
        "any": table.entry(row, "ANY", "ANY", False),
        "edge": table.entry(row, "ANY", "ANY", True),
    }


class Code:
    """One instance for one target. An instruction is its name, without ``dual_``, and whether it is one of a pair."""

    def __init__(self, row: table.Kernel, entry: str, target: str):
        code = hip_simulation.compiled(row.source, entry, target)
        self.kernel = code.kernels[table.symbol(entry)]
        instructions = code.instructions[self.kernel.name]
        self.instructions = _names(instructions)
        self.loops = [
            _names(instructions[x.target : i + 1])
            for i, x in enumerate(instructions)
            if x.target is not None and x.target <= i
        ]

    def hot_loop(self, multiplies: set[str]) -> "Loop":
        """The loop with most of these instructions; the shortest of those."""
        found = [Loop(x) for x in self.loops]
        most = max(found, key=lambda x: (x.count(*multiplies), -len(x.instructions)))
        assert most.count(*multiplies), f"no loop with {', '.join(sorted(multiplies))}"
        return most


class Loop:
    """The instructions of a loop."""

    def __init__(self, instructions: list[tuple[str, bool]]):
        self.instructions = instructions
        self.names = Counter(name for name, _ in instructions)

    def count(self, *names: str) -> int:
        return sum(self.names[name] for name in names)

    def starting(self, *prefixes: str) -> Counter:
        return Counter({name: n for name, n in self.names.items() if name.startswith(prefixes)})

    def paired(self, name: str) -> int:
        """How many of these are half of a dual instruction."""
        return sum(x == name and pair for x, pair in self.instructions)

    def loads(self) -> list[int]:
        """Bytes of each load of a lane from global memory; of whatever else is loaded, nothing is expected."""
        assert not self.starting("flat_load", "buffer_load", "scratch_load", "ds_read", "ds_load")
        words = [
            name.split("_")[2:] for name, n in self.names.items() if name.startswith("global_load") for _ in range(n)
        ]
        return [next(_LOADED[part] for part in reversed(x) if part in _LOADED) for x in words]


def matrix_macs(name: str) -> int:
    """Multiply-adds of a matrix instruction, of the whole wave."""
    m, n, k = map(int, _MATRIX.match(name).groups())
    return m * n * k


def _names(instructions) -> list[tuple[str, bool]]:
    halves = [(x, bool(x.second)) for x in instructions] + [(x.second, True) for x in instructions if x.second]
    return [(re.sub(r"^v_dual_|^v_(?=dual_)", "v_", x.mnemonic), pair) for x, pair in halves]
