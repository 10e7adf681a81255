"""Objects of which a process has one, whichever thread asks for them first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock


def once(function: Callable) -> Callable:
    """``functools.cache`` with a lock around the call.

    Threads that call a function of ``functools.cache`` for the first time at once may each compute a result and each
    return its own. Kernels are compared by identity, so there must not be two of one name.
    """
    cached, lock = cache(function), RLock()

    @wraps(function)
    def call(*arguments):
        with lock:
            return cached(*arguments)

    call.cache_clear = cached.cache_clear
    return call
