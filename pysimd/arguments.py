"""Checks of arguments that are no arrays: each returns the argument or raises ``OptionError``, which names it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from pysimd.errors import OptionError


def flag(name: str, x) -> bool:
    """True or False, also as NumPy's or as 1 or 0. Other objects are refused, whatever their truth value: ``"N"``, "not
    transposed" in BLAS, is true in Python."""
    if isinstance(x, bool | np.bool_) or (isinstance(x, Integral) and x in (0, 1)):
        return bool(x)
    raise OptionError(f"{name} must be True or False, got {x!r}")


def text(name: str, x) -> str:
    """A string."""
    if not isinstance(x, str):
        raise OptionError(f"{name} must be a string, got {x!r}")
    return x


def positive(name: str, x) -> float:
    """A positive real number."""
    if not isinstance(x, Real) or not x > 0:
        raise OptionError(f"{name} must be a positive number, got {x!r}")
    return float(x)


def function(name: str, x):
    """A function, or None."""
    if x is not None and not callable(x):
        raise OptionError(f"{name} must be a function or None, got {x!r}")
    return x


def items(name: str, x, what: str) -> Sequence:
    """A list or another iterable of ``what``, as a tuple; a string is none."""
    try:
        found = None if isinstance(x, str) else tuple(x)
    except TypeError:
        found = None
    if found is None:
        raise OptionError(f"{name} must be a list of {what}, got {x!r}")
    return found
