"""Objects of which a process has one, whichever thread asks for them first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock


def once(function: Callable) -> Callable:
    """``functools.cache``, but one thread computes a result while others wait for it.

    Threads that call a function of ``functools.cache`` for the first time at once may each compute a result and each
    return its own. Kernels are compared by identity, so there must not be two of one name. The outer cache returns
    known results without the lock.
    """
    computed, lock = cache(function), RLock()

    @cache
    @wraps(function)
    def call(*arguments):
        with lock:
            return computed(*arguments)

    def cache_clear() -> None:
        computed.cache_clear()
        clear()

    clear, call.cache_clear = call.cache_clear, cache_clear
    return call
