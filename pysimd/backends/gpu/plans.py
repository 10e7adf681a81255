"""Plans: launches that were worked out once, for any arrays of the same layout.

To work out a launch takes Python some hundred steps, more time than a small product. A plan holds the parameters of its
kernels; to run it, the addresses of the arrays are written into a copy of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pysimd.backends.gpu import memory as gpu_memory
from pysimd.errors import OptionError

A, B, C0, C, SCRATCH, COUNTER = range(6)
"""The addresses that a plan is run with: operands (C0 is what is added, 0 where nothing is), result, scratch memory and
the counter of a grid-wide barrier. A plan sets the last two itself."""


def current_device() -> int:
    import cupy

    return cupy.cuda.runtime.getDevice()


class Slot(NamedTuple):
    """A word of an argument that holds an address.

    Attributes:
        word: which.
        memory: ``A`` to ``COUNTER``.
        offset: bytes from the address of that memory.
    """

    word: int
    memory: int
    offset: int = 0


class Argument(NamedTuple):
    """A parameter of a kernel, passed by value.

    Attributes:
        words: its bytes, as int64.
        slots: its addresses.
        replace_address: ``replace_address(host address of the argument, address)`` for an opaque argument, whose one
            slot tells only which memory it is about.
    """

    words: np.ndarray
    slots: tuple[Slot, ...] = ()
    replace_address: Callable[[int, int], None] | None = None


def operands_argument(fields: np.ndarray, arrays: Sequence, order: Sequence[int] = (A, B, C0, C)) -> Argument:
    """A Call or a Gemm, which begin with the addresses of ``arrays``: A, B, C0 and C, or in the ``order`` given."""
    words = fields.view(np.int64)
    slots = (Slot(i, order[i], int(words[i]) - x.data.ptr) for i, x in enumerate(arrays) if x is not None)
    return Argument(words, tuple(slots))


class KernelLaunch(NamedTuple):
    """One launch of a kernel of the project; ``function`` is CuPy's, compiled for the device of the arrays, or is
    called like it with what its ``arguments`` makes of the host addresses of the arguments."""

    function: Callable
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0
    cooperative: bool = False


class Plan(Protocol):
    """What a product is computed by."""

    def run(self, addresses: list[int], stream=None) -> None:
        """Launch on ``stream``, by default CuPy's current one, for arrays at these addresses (``A`` to ``COUNTER``) on
        the current device."""


_ALIGNMENT = 64
"""Bytes of which the host address of every argument is a multiple: the driver asks for that for tensor maps."""


class KernelPlan:
    """Launches of kernels of the project, one after the other.

    Args:
        launches: with arguments for any arrays.
        scratch_bytes: scratch memory that they share.
        counts: whether they need a counter.
    """

    def __init__(self, launches: Sequence[KernelLaunch], scratch_bytes: int = 0, counts: bool = False):
        self._scratch_bytes, self._counts = scratch_bytes, counts
        self._slots: list[tuple[int, int, int]] = []
        self._opaque: list[tuple[int, int, int, Callable[[int, int], None]]] = []
        self._launches = []
        parts, at = [], 0
        for function, grid, block, arguments, shared_bytes, cooperative in launches:
            offsets = []
            for argument in arguments:
                for word, which, offset in argument.slots:
                    if argument.replace_address:
                        self._opaque.append((at, which, offset, argument.replace_address))
                    else:
                        self._slots.append((at // 8 + word, which, offset))
                words = np.zeros(-(-argument.words.nbytes // _ALIGNMENT) * _ALIGNMENT // 8, np.int64)
                words[: argument.words.size] = argument.words
                parts.append(words)
                offsets.append(at)
                at += words.nbytes
            self._launches.append((function, grid, block, tuple(offsets), shared_bytes, cooperative))
        self._template = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        self._parameters: list[_Parameters] = []  # those that no call is using

    def run(self, addresses: list[int], stream=None) -> None:
        if self._scratch_bytes or self._counts:
            self._run_with_scratch(addresses, stream)
        else:
            self._launch(addresses, stream)

    def _launch(self, addresses: list[int], stream) -> None:
        try:
            parameters = self._parameters.pop()
        except IndexError:
            parameters = _Parameters(self._template, self._launches)
        words = parameters.words
        for word, which, offset in self._slots:
            words[word] = addresses[which] + offset
        for at, which, offset, replace_address in self._opaque:
            replace_address(parameters.address + at, addresses[which] + offset)
        for function, grid, block, arguments, shared_bytes, cooperative in parameters.launches:
            function(grid, block, arguments, shared_bytes, stream, cooperative)
        self._parameters.append(parameters)

    def _run_with_scratch(self, addresses: list[int], stream) -> None:
        import cupy

        if stream is not None:
            with stream:
                return self._run_with_scratch(addresses, None)
        with gpu_memory.temporaries():
            scratch = cupy.cuda.alloc(self._scratch_bytes)
            counter = gpu_memory.barrier_counter() if self._counts else scratch
            self._launch([*addresses[:SCRATCH], scratch.ptr, counter.ptr], None)
        return None


class _Parameters:
    """The parameters of a plan's kernels for one call at a time: two threads may run one plan."""

    def __init__(self, template: np.ndarray, launches):
        import cupy

        def pointers(addresses: list[int]) -> tuple:
            return tuple(map(cupy.cuda.function.CPointer, addresses))

        room = np.zeros(template.size + _ALIGNMENT // 8, np.int64)
        start = -room.ctypes.data % _ALIGNMENT // 8
        words = room[start : start + template.size]
        words[:] = template
        self.words, self.address = memoryview(words), words.ctypes.data
        self.launches = [
            (function, grid, block, arguments([self.address + at for at in offsets]), shared_bytes, cooperative)
            for function, grid, block, offsets, shared_bytes, cooperative in launches
            for arguments in [getattr(function, "arguments", pointers)]
        ]


class NotCapturedError(OptionError):
    """The current stream captures a graph, which cannot have what the plan calls."""


class Work(NamedTuple):
    """A plan, and the arrays that it was worked out for: A, B, C0 or None, and C; copies where operands were copied."""

    plan: Plan
    arrays: tuple

    def run(self) -> None:
        self.plan.run(addresses_of(self.arrays))


def addresses_of(arrays: Sequence) -> list[int]:
    """What a plan is run with for A, B, C0 or None, and C."""
    return [*(0 if x is None else x.data.ptr for x in arrays), 0, 0]


class ArrayWork(NamedTuple):
    """A product in several steps on arrays: there is no plan for it."""

    multiply: Callable[[], None]
    plan: None = None

    def run(self) -> None:
        self.multiply()
