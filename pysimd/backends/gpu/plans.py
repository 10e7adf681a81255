"""Products of CuPy arrays seen before: what was launched, to be launched again for arrays that lie in the same way.

Working out a launch takes Python some hundred steps, and a small product less time than those. All that they depend on
is the key of a plan: shapes, strides, dtypes, alignment, devices, factors. New addresses are written into a copy of the
fields that the kernel is given; where operands overlap, the plan is not for them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pysimd.backends.gpu import cupy_arrays

MOST = 4096
"""Plans that are kept; then all are forgotten."""

A, B, C0, C = range(4)
"""Where the addresses stand in the fields of a Call and of a Gemm."""


def current_device() -> int:
    import cupy

    return cupy.cuda.runtime.getDevice()


class Launch(NamedTuple):
    """One launch.

    Attributes:
        begin: ``begin(fields)`` gives a function that launches; without fields ``begin(a, b, c)`` does the product.
        fields: what the kernel is given.
        swapped: it is told of B as A and of A as B, for a C by columns.
        keeps: what must live until then.
    """

    begin: Callable[..., Any]
    fields: np.ndarray | None = None
    swapped: bool = False
    keeps: tuple = ()

    def run(self, a, b, c) -> None:
        if self.fields is None:
            self.begin(a, b, c)
        else:
            self.begin(self.fields)()


@dataclass(frozen=True)
class _Plan:
    """A launch for other arrays: where their addresses stand in its fields, the result's shape and dtype, and how far
    A, B and C reach from their addresses, first byte and the one past the last."""

    launch: Launch
    places: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    reach: tuple[tuple[int, int], ...]


def key(a, b, out, *more: Hashable) -> tuple | None:
    """All that the launches depend on, for arrays of CuPy; None where they are not on the current device."""
    device, x, y = current_device(), a.data, b.data
    if x.device_id != device or y.device_id != device:
        return None
    # fmt: off
    found = (
        device, more,
        a.shape, a.strides, a.dtype, x.ptr % 32,
        b.shape, b.strides, b.dtype, y.ptr % 32,
    )
    # fmt: on
    if out is None:
        return found
    if out.data.device_id != device:
        return None
    return *found, out.shape, out.strides, out.dtype, out.data.ptr % 32


class Plans:
    """The plans of one backend."""

    def __init__(self):
        self._plans: dict[tuple, _Plan] = {}

    def keep(self, key: tuple, launch: Launch, a, b, target, c_is_target: bool = False) -> None:
        """Keep the one launch of these operands, unless it was given copies of them. ``c_is_target``: the array that is
        added is the result's."""
        places = ()
        if launch.fields is not None:
            places = ((B,), (A,)) if launch.swapped else ((A,), (B,))
            places = (*places, (C0, C) if c_is_target else (C,))
            fields = launch.fields.view(np.int64)
            for x, where in zip((a, b, target), places, strict=True):
                if any(int(fields[i]) != x.data.ptr for i in where):
                    return
            launch = Launch(launch.begin, fields.copy())
        spans = [(x.data.ptr, cupy_arrays.span(x)) for x in (a, b, target)]
        reach = tuple((low - pointer, high - pointer) for pointer, (low, high) in spans)
        if len(self._plans) >= MOST:
            self._plans.clear()
        self._plans[key] = _Plan(launch, places, target.shape, target.dtype, reach)

    def replay(self, key: tuple | None, a, b, out):
        """The result; None where there is no plan, or not for arrays that overlap like these."""
        import cupy

        plan = self._plans.get(key)
        if plan is None:
            return None
        x, y = a.data.ptr, b.data.ptr
        if out is None:
            result = cupy.empty(plan.shape, plan.dtype)
            z = result.data.ptr
        else:
            result, z = out, out.data.ptr
            (low_x, high_x), (low_y, high_y), (low_z, high_z) = plan.reach
            first, last = z + low_z, z + high_z
            if (x + low_x < last and first < x + high_x) or (y + low_y < last and first < y + high_y):
                return None
        launch = plan.launch
        if launch.fields is None:
            launch.begin(a, b, result)
            return result
        fields = launch.fields.copy()
        for pointer, where in zip((x, y, z), plan.places, strict=True):
            for i in where:
                fields[i] = pointer
        launch.begin(fields)()
        return result
