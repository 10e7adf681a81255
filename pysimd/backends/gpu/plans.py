"""Plans: launches of calls seen before, replayed for CuPy arrays of the same layout.

To work out a launch takes Python some hundred steps, more time than a small product. All that a launch depends on is
the key of its plan: shapes, strides, dtypes, alignment, devices, factors. A replay writes the new addresses into a
copy of the kernel's parameters. Where operands overlap, there is no replay.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pysimd.backends.gpu import cupy_arrays
from pysimd.operands import Array

MOST = 4096
"""Plans that are kept; then all are forgotten."""

A, B, C0, C = range(4)
"""Pointer slots in the parameters of a Call and of a Gemm."""


def current_device() -> int:
    import cupy

    return cupy.cuda.runtime.getDevice()


class KernelLaunch(NamedTuple):
    """One launch of a kernel of the project.

    Attributes:
        prepare: ``prepare(parameters)`` gives a function that launches on the current stream.
        parameters: what the kernel is given, addresses first.
        operands_swapped: A and B have changed places, for a column-major C.
        keepalive: arrays that the launch reads and that must live until then.
    """

    prepare: Callable[[np.ndarray], Callable[[], object]]
    parameters: np.ndarray
    operands_swapped: bool = False
    keepalive: tuple = ()

    def run(self, a: Array, b: Array, c: Array) -> None:
        self.prepare(self.parameters)()


class LibraryCall(NamedTuple):
    """A product by a library or by several steps: ``multiply(a, b, c)``."""

    multiply: Callable[[Array, Array, Array], None]

    def run(self, a: Array, b: Array, c: Array) -> None:
        self.multiply(a, b, c)


Launch = KernelLaunch | LibraryCall


@dataclass(frozen=True)
class _Plan:
    """A launch for other arrays.

    Attributes:
        launch: what is launched, with parameters of its own.
        slots: pointer slots of A, B and C in the parameters.
        shape, dtype: of the result.
        reach: first byte and the one past the last of A, B and C, counted from their addresses.
    """

    launch: Launch
    slots: tuple[tuple[int, ...], ...]
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
        """Keep the one launch of these operands, unless it reads copies of them. ``c_is_target``: the array that is
        added is the result's."""
        slots: tuple[tuple[int, ...], ...] = ()
        if isinstance(launch, KernelLaunch):
            first, second = (B, A) if launch.operands_swapped else (A, B)
            slots = ((first,), (second,), (C0, C) if c_is_target else (C,))
            parameters = launch.parameters.view(np.int64)
            for x, places in zip((a, b, target), slots, strict=True):
                if any(int(parameters[i]) != x.data.ptr for i in places):
                    return
            launch = KernelLaunch(launch.prepare, parameters.copy())
        spans = [(x.data.ptr, cupy_arrays.span(x)) for x in (a, b, target)]
        reach = tuple((low - pointer, high - pointer) for pointer, (low, high) in spans)
        if len(self._plans) >= MOST:
            self._plans.clear()
        self._plans[key] = _Plan(launch, slots, target.shape, target.dtype, reach)

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
        if isinstance(launch, LibraryCall):
            launch.multiply(a, b, result)
            return result
        parameters = launch.parameters.copy()
        for pointer, places in zip((x, y, z), plan.slots, strict=True):
            for i in places:
                parameters[i] = pointer
        launch.prepare(parameters)()
        return result
