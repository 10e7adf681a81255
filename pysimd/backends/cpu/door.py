"""The module ``pysimd._door``: the entry from Python to the CPU kernels (cpu_kernels/core/door.h).

It is in the shared library of ``pysimd._cpu``: both use the same kernels and the same table.
"""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np

from pysimd import _cpu, dtypes
from pysimd.backends.cpu import dispatch, table
from pysimd.microkernel import MicroKernel
from pysimd.once import once


@once
def door(kernels: tuple[MicroKernel, ...]):
    """The module, initialised with the kernels that can run here, NumPy's types and the limits of this process."""
    loader = ExtensionFileLoader("pysimd._door", _cpu.__file__)
    module = module_from_spec(spec_from_file_location("pysimd._door", _cpu.__file__, loader=loader))
    loader.exec_module(module)
    rows = {kernel: i for i, kernel in enumerate(kernels) if kernel.available}
    rows |= {kernel.name: i for kernel, i in rows.items()}
    module.start(rows, _type_numbers(), np.ma.MaskedArray)
    module.set_limits(*dispatch.limits())
    return module


def _type_numbers() -> tuple[tuple[int, int, int, int], ...]:
    """For each types family its number in the C table and NumPy's type numbers of A, B and C; -1 for none."""
    found = []
    for name, number in table.TYPES.items():
        family = dtypes.FAMILIES[name]
        if dtypes.dtype_of(family.a).name != family.a:
            # Without ml_dtypes there is no bfloat16; uint16 stands for it only where a kernel is named.
            found.append((number, -1, -1, dtypes.dtype_of(family.c).num))
        else:
            found.append((number, *(dtypes.dtype_of(x).num for x in (family.a, family.b, family.c))))
    return tuple(found)
