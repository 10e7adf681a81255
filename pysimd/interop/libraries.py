"""The array libraries that ``matmul`` and ``gemm`` know. Imports none of them: a module of this folder does, when the
first array of its library is multiplied."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

from pysimd import products

_MODULES = {"dask": "dask", "torch": "torch", "jax": "jax", "jaxlib": "jax"}
"""Package of an array's type to the module of this folder that multiplies it."""


def register() -> None:
    """Make ``matmul`` and ``gemm`` take the arrays of these libraries."""
    for package, module in _MODULES.items():
        products.register(package, lambda module=module: _loaded(module))


@cache
def _loaded(module: str) -> ModuleType:
    return importlib.import_module(f"pysimd.interop.{module}")
