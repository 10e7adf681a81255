"""Instances of batched.cu, batched_mma.cu and narrow.cu, which are compiled in the background: a call does not wait for
the compiler.

A shape seen for the first time is computed by batched_any.cu, wmma.cu or narrow_any.cu. If its instance is asked for
again, a thread compiles it, and it is taken from then on; both give the same bits.
"""

from __future__ import annotations

import atexit
import threading
import warnings
from collections.abc import Callable
from queue import SimpleQueue

from pysimd.backends.cuda import captures


class Instances:
    """Compiled functions by their key.

    Args:
        compiled: ``compiled(*key)`` compiles for the current device, which is the last element of the key.
    """

    def __init__(self, compiled: Callable):
        self._compiled = compiled
        self._ready: dict[tuple, object] = {}
        self._asked: dict[tuple, int] = {}
        self._waiting: SimpleQueue[tuple | None] = SimpleQueue()
        self._unfinished = 0
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    def get(self, *key):
        """The function, or None while there is none. Compiling starts when it is asked for the second time."""
        found = self._ready.get(key)
        if found is None:
            with self._changed:
                self._asked[key] = asked = self._asked.get(key, 0) + 1
                if asked == 2:
                    self._start(key)
        return found

    def now(self, *key):
        """The function, compiled by this thread if there is none."""
        found = self._ready.get(key)
        if found is None:
            with (
                captures.left_alone()
            ):  # an instance that the thread has made meanwhile stays, and this one is unloaded
                found = self._ready.setdefault(key, self._compiled(*key))
        return found

    def wait(self) -> None:
        """Wait until all that was asked for twice is there."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unfinished)

    def _start(self, key: tuple) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._compile_all, name="pysimd-compile", daemon=True)
            self._thread.start()
            atexit.register(self._stop)
        self._unfinished += 1
        self._waiting.put(key)

    def _stop(self) -> None:
        """Let the thread end: it must not be in the compiler when the process goes."""
        while not self._waiting.empty():
            self._waiting.get()
        self._waiting.put(None)
        self._thread.join()

    def _compile_all(self) -> None:
        import cupy

        while (key := self._waiting.get()) is not None:
            try:
                with cupy.cuda.Device(key[-1]), captures.left_alone():
                    self._ready.setdefault(key, self._compiled(*key))
            except Exception as error:  # the product is right without it
                warnings.warn(f"{key[1]} was not compiled: {error}", RuntimeWarning, stacklevel=1)
            finally:
                with self._changed:
                    self._unfinished -= 1
                    self._changed.notify_all()
