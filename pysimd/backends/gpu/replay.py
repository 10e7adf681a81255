"""Calls seen before: their plans, run again for arrays of the same layout without any check.

All that a call depends on is the key of its plan: what was asked for, devices, and of each array shape, strides, dtype
and alignment. Where the result overlaps an operand there is no replay: such a call is worked out each time.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pysimd.backends.gpu import cupy_arrays, torch_tensors
from pysimd.backends.gpu.plans import C0, A, B, C, NotCapturedError, Plan

MOST = 4096
"""Plans that are kept of each kind of array; then all are forgotten."""

_ALIGNMENT = 31
"""The bits of an address that are in a key: nothing asks for an alignment of more than 32 bytes."""

_FACTORS = frozenset((int, float, np.float32, np.float64))
"""Types of alpha and beta that a key may hold: equal values of these are the same factor."""

_NO_ARRAYS = (AttributeError, RuntimeError, TypeError, ValueError)
"""What ``Replays.look`` raises for arguments that are no arrays of the library: ValueError for NumPy's of bfloat16."""


NARROW_MATMUL = "matmul of 16-bit operands with a new result of their dtype"
"""What ``Gpu.narrow_matmul`` is asked for, as it stands in a key."""


def matmul_call(kernel) -> Hashable:
    """What ``matmul`` is asked for, as it stands in a key."""
    return "matmul" if kernel is None else kernel


def gemm_call(alpha, beta, trans_a, trans_b, kernel) -> Hashable | None:
    """What ``gemm`` is asked for, as it stands in a key; None for what has no plan."""
    if type(alpha) not in _FACTORS or type(beta) not in _FACTORS or alpha == 0:
        return None
    return alpha, beta, bool(trans_a), bool(trans_b), kernel


class _Kept(NamedTuple):
    """A plan and its result.

    Attributes:
        shape, dtype: of the result; the dtype is one of the library of the arrays.
        reach: first byte and the one past the last of A, B, C0 and C, counted from their addresses; None for a C0 that
            is not read.
        c_like_out: C0 has the strides of C, so that at the same address it is C itself.
    """

    plan: Plan
    shape: tuple[int, ...]
    dtype: object
    reach: tuple[tuple[int, int] | None, ...]
    c_like_out: bool

    def overlaps(self, addresses: list[int]) -> bool:
        """Whether C overlaps what is read, other than by being C0."""
        low, high = self.reach[C]
        first, last = addresses[C] + low, addresses[C] + high
        for which in (A, B, C0):
            if self.reach[which] is None:
                continue
            low, high = self.reach[which]
            x = addresses[which]
            if x + low < last and first < x + high and not (which == C0 and self.c_like_out and x == addresses[C]):
                return True
        return False


class Replays(ABC):
    """The plans of calls with arrays of one library."""

    def __init__(self):
        import cupy

        self._kept: dict[Hashable, _Kept] = {}
        self._current_device, self._device = cupy.cuda.runtime.getDevice, cupy.cuda.Device

    @abstractmethod
    def look(self, a, b, c, out, call: Hashable) -> tuple[Hashable, int, list[int]]:
        """Key, device and addresses of a call; the key is None where it has no plan. Raises one of ``_NO_ARRAYS``
        for arguments that are no arrays of the library."""

    @abstractmethod
    def new(self, a, shape: tuple[int, ...], dtype) -> tuple[object, int]:
        """A new array like ``a`` on its device, which is current, and its address; ``dtype`` is one of the library."""

    @abstractmethod
    def dtype(self, dtype: np.dtype):
        """The library's dtype of that name."""

    @abstractmethod
    def stream(self, device: int):
        """The library's current stream; None if that is CuPy's."""

    def key(self, a, b, c, out, call: Hashable | None) -> Hashable | None:
        """The key by which the plan of a call may be kept; None if it may not."""
        if call is None:
            return None
        try:
            return self.look(a, b, c, out, call)[0]
        except _NO_ARRAYS:
            return None

    def replay(self, a, b, c, out, call: Hashable | None):
        """The result of a call seen before; None where there is no plan for it, or not for arrays that overlap."""
        if call is None:
            return None
        try:
            key, device, addresses = self.look(a, b, c, out, call)
            kept = self._kept.get(key)
        except _NO_ARRAYS:  # the checks will tell what is wrong
            return None
        if kept is None:
            return None
        if device == self._current_device():
            return self._run(kept, device, addresses, a, out)
        with self._device(device):
            return self._run(kept, device, addresses, a, out)

    def _run(self, kept: _Kept, device: int, addresses: list[int], a, out):
        if out is None:
            out, addresses[C] = self.new(a, kept.shape, kept.dtype)
        elif kept.overlaps(addresses):
            return None
        try:
            kept.plan.run(addresses, self.stream(device))
        except NotCapturedError:  # a kernel may compute what a library cannot
            return None
        return out

    def keep(self, key: Hashable, plan: Plan, arrays: tuple, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Keep the plan of a call whose A, B, C0 (or None) and C are these arrays of CuPy."""
        spans = [None if x is None else (x.data.ptr, cupy_arrays.span(x)) for x in arrays]
        reach = tuple(None if x is None else (x[1][0] - x[0], x[1][1] - x[0]) for x in spans)
        c0, c = arrays[C0], arrays[C]
        c_like_out = c0 is not None and (c0.shape, c0.strides) == (c.shape, c.strides)
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[key] = _Kept(plan, shape, self.dtype(dtype), reach, c_like_out)


class CupyReplays(Replays):
    """Of CuPy's arrays."""

    def __init__(self):
        super().__init__()
        import cupy

        self._ndarray = cupy.ndarray

    def look(self, a, b, c, out, call: Hashable) -> tuple[Hashable, int, list[int]]:
        x, y = a.data, b.data
        p, q, device = x.ptr, y.ptr, x.device_id
        key = (
            *(call, device, a.shape, a.strides, a.dtype, p & _ALIGNMENT),
            *(y.device_id, b.shape, b.strides, b.dtype, q & _ALIGNMENT),
        )
        addresses = [p, q, 0, 0, 0, 0]
        if c is not None:
            x = c.data
            addresses[C0] = p = x.ptr
            key = (*key, "c", x.device_id, c.shape, c.strides, c.dtype, p & _ALIGNMENT)
        if out is not None:
            x = out.data
            addresses[C] = p = x.ptr
            key = (*key, x.device_id, out.shape, out.strides, out.dtype, p & _ALIGNMENT)
        return key, device, addresses

    def new(self, a, shape: tuple[int, ...], dtype) -> tuple[object, int]:
        made = self._ndarray(shape, dtype)
        return made, made.data.ptr

    def dtype(self, dtype: np.dtype):
        return dtype

    def stream(self, device: int):
        return None


_layouts: list[Callable] = []


def read_tensors_by(layouts: Callable) -> None:
    """``layouts`` of ``pysimd._door`` is ``TorchReplays.look`` from now on: C takes less than half of the time."""
    _layouts[:] = [layouts]


@lru_cache(MOST)
def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of an array in C order."""
    return tuple(math.prod(max(1, n) for n in shape[i + 1 :]) for i in range(len(shape)))


class TorchReplays(Replays):
    """Of torch's tensors; those that require gradients have no plans, as they are refused, nor have any while torch
    differentiates in forward mode."""

    def __init__(self):
        super().__init__()
        self._forward_mode = sys.modules["torch"].autograd.forward_ad
        self._empty = torch_tensors.empty_function()
        if _layouts:
            self.look = _layouts[0]

    def look(self, a, b, c, out, call: Hashable) -> tuple[Hashable, int, list[int]]:
        p, q, device = a.data_ptr(), b.data_ptr(), a.get_device()
        key = (
            *(call, device, a.shape, a.stride(), a.dtype, p & _ALIGNMENT),
            *(b.get_device(), b.shape, b.stride(), b.dtype, q & _ALIGNMENT),
        )
        refused = a.requires_grad or b.requires_grad or a.is_neg() or b.is_neg()
        refused = refused or self._forward_mode._current_level >= 0
        addresses = [p, q, 0, 0, 0, 0]
        if c is not None:
            addresses[C0] = p = c.data_ptr()
            key = (*key, "c", c.get_device(), c.shape, c.stride(), c.dtype, p & _ALIGNMENT)
            refused = refused or c.requires_grad or c.is_neg()
        if out is not None:
            addresses[C] = p = out.data_ptr()
            key = (*key, out.get_device(), out.shape, out.stride(), out.dtype, p & _ALIGNMENT)
            refused = refused or out.requires_grad or out.is_neg()
        return None if refused else key, device, addresses

    def new(self, a, shape: tuple[int, ...], dtype) -> tuple[object, int]:
        made = self._empty(shape, _row_major(shape), dtype)
        return made, made.data_ptr()

    def dtype(self, dtype: np.dtype):
        return getattr(sys.modules["torch"], dtype.name)

    def stream(self, device: int):
        return torch_tensors.current_stream(device)


KNOWN: dict[type, Replays] = {}
"""The plans by the type of the arrays."""


def replayed(a, b, c, out, call: Hashable | None):
    """The result of a call seen before with arrays of a GPU; None where there is no plan for it."""
    known = KNOWN.get(type(a))
    return None if known is None else known.replay(a, b, c, out, call)


def of(x) -> Replays | None:
    """The plans for arrays like ``x``, which is on a GPU; None for arrays that are neither CuPy's nor torch's."""
    found = KNOWN.get(type(x))
    if found is None:
        import cupy

        if type(x) is cupy.ndarray:
            found = KNOWN[type(x)] = CupyReplays()
        elif torch_tensors.is_tensor(x):
            found = TorchReplays()
            KNOWN.update(dict.fromkeys(torch_tensors.types(), found))
    return found
