"""The lookups: what backends, kernels and rungs there are, and each of them by its name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache

from pysimd import arguments
from pysimd.errors import OptionError, UnavailableError, UnknownKernelError
from pysimd.microkernel import Backend, Implementation, MicroKernel, Rung
from pysimd.once import once


def _cpu() -> Implementation:
    from pysimd.backends.cpu.implementation import CPU

    return CPU


def _cuda() -> Implementation:
    from pysimd.backends.cuda.implementation import CUDA

    return CUDA


def _hip() -> Implementation:
    from pysimd.backends.hip.implementation import HIP

    return HIP


_BACKENDS = {"cpu": _cpu, "cuda": _cuda, "hip": _hip}
"""By their names. Each is imported when it is asked for: the first product on a CPU waits for none of the GPU's."""


@cache
def implementations() -> dict[str, Implementation]:
    """The implementation of every backend by its name. Touches no GPU and does not import CuPy."""
    return {name: load() for name, load in _BACKENDS.items()}


def implementation(device: str) -> Implementation:
    """The implementation for arrays on ``device``; raises ``UnavailableError``, which says what is missing."""
    if device not in _BACKENDS:
        raise UnavailableError(f"no backend for arrays on {device}: there are {', '.join(_BACKENDS)}")
    found = _BACKENDS[device]()
    if not found.backend().available:
        raise UnavailableError(found.backend().reason)
    return found


def backends() -> tuple[Backend, ...]:
    """All backends, available or not: ``Backend(name, available, reason, device, features)``."""
    return tuple(each.backend() for each in implementations().values())


def kernels(
    backend: str | None = None,
    *,
    target: str | None = None,
    types: str | None = None,
    form: str | None = None,
    available: bool | None = None,
) -> list[MicroKernel]:
    """The kernels that match, in the order of their tables; an argument that is None matches every kernel.

    Raises:
        OptionError: ``available`` is not True, False or None, or another argument neither a string nor None.

    >>> [k.name for k in pysimd.kernels(target="avx", form="outer")]
    ['avx_f32_outer_8x8']
    """
    wanted = {"backend": backend, "target": target, "types": types, "form": form, "available": available}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    for key, value in wanted.items():
        (arguments.flag if key == "available" else arguments.text)(key, value)
    return [
        kernel
        for each in implementations().values()
        for kernel in each.kernels()
        if all(getattr(kernel, key) == value for key, value in wanted.items())
    ]


def kernel(name: str) -> MicroKernel:
    """The kernel of that name, whether or not this machine can run it.

    Raises:
        UnknownKernelError: no such kernel; the message names the closest.
    """
    found = _named(name)
    if not isinstance(found, MicroKernel):
        raise _unknown("kernel", name, (k.name for k in kernels()), "pysimd.kernels() lists them all")
    return found


def rungs(backend: str = "cuda") -> list[Rung]:
    """The ladder of a backend (``cpu``, ``cuda`` or ``hip``) from its first rung to its last, whether or not this
    machine can run it.

    Raises:
        OptionError: no such backend.

    >>> [rung.name for rung in pysimd.rungs()][:3]
    ['naive_uncoalesced', 'naive', 'smem_conflict']
    """
    found = implementations().get(backend) if isinstance(backend, str) else None
    if found is None:
        raise OptionError(f"backend={backend!r} has no ladder: give one of {', '.join(map(repr, implementations()))}")
    return list(found.rungs())


def rung(name: str) -> Rung:
    """The rung of that name.

    Raises:
        UnknownKernelError: no such rung; the message names the closest.

    >>> pysimd.rung("smem_dbuf").ratio.value
    4.0
    """
    found = _named(name)
    if not isinstance(found, Rung):
        raise _unknown("rung", name, (r.name for r in _rungs()), "pysimd.rungs() lists them all")
    return found


def kernel_or_rung(name: str) -> MicroKernel | Rung:
    """The microkernel or the rung of that name; raises ``UnknownKernelError`` with the closest of both."""
    found = _named(name)
    if found is None:
        raise _unknown("kernel", name, _by_name(), "pysimd.kernels() and pysimd.rungs() list them all")
    return found


def _named(name: object) -> MicroKernel | Rung | None:
    return _by_name().get(name) if isinstance(name, str) else None


def _rungs() -> list[Rung]:
    return [rung for each in implementations().values() for rung in each.rungs()]


@once
def _by_name() -> dict[str, MicroKernel | Rung]:
    """Every kernel and every rung: what exists does not change while a process lives."""
    return {thing.name: thing for thing in (*kernels(), *_rungs())}


def _unknown(what: str, name: object, names: Iterable[str], where: str) -> UnknownKernelError:
    close = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else where
    return UnknownKernelError(f"no {what} {name!r}: {hint}")
