"""The module ``pysimd._door``: the entry from Python to the CPU kernels (cpu_kernels/core/door.h).

It is in the shared library of ``pysimd._cpu``: both use the same kernels and the same table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TypeVar

import numpy as np

from pysimd import _cpu, dtypes
from pysimd.backends.cpu import dispatch, table
from pysimd.microkernel import MicroKernel
from pysimd.once import once

Function = TypeVar("Function", bound=Callable)


@once
def _module():
    loader = ExtensionFileLoader("pysimd._door", _cpu.__file__)
    module = module_from_spec(spec_from_file_location("pysimd._door", _cpu.__file__, loader=loader))
    loader.exec_module(module)
    return module


@once
def door(kernels: tuple[MicroKernel, ...]):
    """The module, initialised with the kernels that can run here, NumPy's types and the limits of this process."""
    module = _module()
    rows = {kernel: i for i, kernel in enumerate(kernels) if kernel.available}
    rows |= {kernel.name: i for kernel, i in rows.items()}
    module.set_limits(*dispatch.limits())
    module.start(rows, _type_numbers(), np.ma.MaskedArray)  # from now on entries use it
    return module


def entry(function: Function) -> Function:
    """Decorates ``matmul`` or ``gemm``: a builtin function that calls C at once, and ``function`` for what C does not
    take, and before ``door`` was initialised."""
    parameters = inspect.signature(function).parameters.values()
    plain = [p.replace(annotation=p.empty) for p in parameters]
    text = f"{function.__name__}{inspect.Signature(plain)}\n--\n\n{inspect.getdoc(function)}"
    names = tuple(p.name for p in plain)
    defaults = tuple(p.default for p in plain if p.default is not p.empty)
    by_position = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in plain)
    make = getattr(_module(), f"{function.__name__}_entry")
    return make(function, function.__module__, names, defaults, by_position, text)


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
