"""Packages that an extra of pysimd installs."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from pysimd.errors import UnavailableError


def module(name: str, extra: str) -> ModuleType:
    """The module ``name``; raises ``UnavailableError``, which names the extra, where its package is not installed."""
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        raise UnavailableError(f"{package} is not installed: pip install 'pysimd[{extra}]'")
    return importlib.import_module(name)
