"""Machine code of the HIP kernels for the tests: ``pysimd.inspection.amd``, and the instances that are read."""

from functools import cache

from pysimd.hip_kernels import table

from pysimd import simulator
from pysimd.errors import UnavailableError
from pysimd.inspection.amd import code_of, code_of_rung, fast_entry

__all__ = ["checked_entries", "code_of", "code_of_rung", "missing", "targets"]


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
    """Template instances that are compiled for every target: the fastest, any strides, edge tiles."""
    return {
        "fast": fast_entry(row),
        "any": table.entry(row, "ANY", "ANY", False),
        "edge": table.entry(row, "ANY", "ANY", True),
    }
