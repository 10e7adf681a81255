"""Arrays with an unreadable page right behind, or right before, their memory: one byte too far is a SIGSEGV."""

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)


class GuardedMemory:
    """``pages`` writable pages between two that nobody may touch. Views of it must not outlive it."""

    def __init__(self, pages: int = 16):
        self.size = pages * PAGE
        self._map = mmap.mmap(-1, self.size + 2 * PAGE)
        self._bytes = np.frombuffer(self._map, np.uint8)
        start = self._bytes.__array_interface__["data"][0]
        for guard in (start, start + PAGE + self.size):
            if _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(PAGE), PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")

    def _at(self, offset: int, x: np.ndarray) -> np.ndarray:
        usable = self._bytes[PAGE : PAGE + self.size]
        usable[...] = 0xFF  # NaN, -1 or 255 around the array
        view = usable[offset : offset + x.nbytes].view(x.dtype).reshape(x.shape)
        view[...] = x
        return view

    def ending_at_guard(self, x: np.ndarray) -> np.ndarray:
        """A copy of ``x`` whose last byte is the last one that may be touched."""
        return self._at(self.size - x.nbytes, x)

    def starting_at_guard(self, x: np.ndarray) -> np.ndarray:
        """A copy of ``x`` whose first byte is the first one that may be touched."""
        return self._at(0, x)

    def untouched_around(self, x: np.ndarray) -> bool:
        """Whether every usable byte outside ``x`` still has its first value."""
        start = x.__array_interface__["data"][0] - self._bytes.__array_interface__["data"][0] - PAGE
        usable = self._bytes[PAGE : PAGE + self.size]
        return bool((usable[:start] == 0xFF).all() and (usable[start + x.nbytes :] == 0xFF).all())
