"""The comparisons that scalar and vector instructions name: ``lt``, ``nge``, ``lg``."""

from __future__ import annotations

import numpy as np


def _not(function):
    return lambda a, b: ~np.asarray(function(a, b))


def _ordered(a, b):
    return ~(np.isnan(a) | np.isnan(b))


_ORDER = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal}

COMPARISONS = {
    "integer": {**_ORDER, "ne": np.not_equal, "lg": np.not_equal},
    "float": {
        **_ORDER,
        **{f"n{name}": _not(function) for name, function in _ORDER.items() if name != "eq"},
        "neq": np.not_equal,
        "lg": lambda a, b: (a < b) | (a > b),
        "nlg": _not(lambda a, b: (a < b) | (a > b)),
        "o": _ordered,
        "u": _not(_ordered),
    },
}
"""By the type of the operands. The n-forms of floats are negations: true for NaN."""
