"""Memory that the simulated code sees: buffers of the host's arrays, and the LDS of the blocks that run.

Every access is checked: it lies inside one buffer, on bytes that belong to elements of its array, aligned to its size
or to 4 bytes if it is larger (in LDS any alignment is right); it writes no read-only array; and it does not touch what
another wave wrote without a barrier between. Hardware refuses none of this.
"""

from __future__ import annotations

import numpy as np

from pysimd.simulator.errors import AccessError, RaceError, UndefinedRead

_FIRST_ADDRESS = 0x7F00_0000_0000
_GAP = 1 << 16
"""Bytes between two buffers that belong to none, so that a pointer that runs away is noticed."""


class Buffer:
    """The bytes of one array. ``owned`` tells which of them are elements of it; None: all."""

    _NOBODY = 0

    def __init__(self, data: np.ndarray, owned: np.ndarray | None, base: int, name: str, writable: bool):
        self.data = data
        self.owned = owned
        self.base = base
        self.name = name
        self.writable = writable
        self.is_argument = False
        """Whether it is the kernel's argument segment: loads from it are counted apart."""
        self._words = data[: data.size & ~3].view(np.uint32)
        self._writer: np.ndarray | None = None

    def new_launch(self) -> None:
        self._writer = None

    def _check(self, what: str, at: np.ndarray, size: int) -> None:
        if at.min() < 0 or at.max() + size > self.data.size:
            out = int(at.min() if at.min() < 0 else at.max())
            raise AccessError(f"{what} of {size} bytes at byte {out} of {self.name}, which has {self.data.size} bytes")
        if size > 1 and (at & (min(size, 4) - 1)).any():
            out = int(at[(at & (min(size, 4) - 1)) != 0][0])
            raise AccessError(f"{what} of {size} bytes at byte {out} of {self.name}: not aligned to {min(size, 4)}")
        if self.owned is not None:
            inside = self.owned[_bytes(at, size)].all(axis=1)
            if not inside.all():
                out = int(at[~inside][0])
                raise AccessError(f"{what} of {size} bytes at byte {out} of {self.name}: between its elements")

    def load(self, at: np.ndarray, size: int, waves: np.ndarray) -> np.ndarray:
        """The bytes at these offsets, shape (lanes, size)."""
        self._check("load", at, size)
        if self._writer is not None:
            writer = self._writer[_bytes(at, size)]
            self._refuse((writer != self._NOBODY) & (writer != waves[:, None] + 1), "loads", at, waves)
        if size < 4:
            return self.data[_bytes(at, size)]
        return self._words[(at >> 2)[:, None] + np.arange(size // 4)].view(np.uint8)

    def store(self, at: np.ndarray, values: np.ndarray, waves: np.ndarray) -> None:
        """Write bytes, shape (lanes, size)."""
        size = values.shape[1]
        if not self.writable:
            raise AccessError(f"store of {size} bytes at byte {int(at[0])} of {self.name}, which is read-only")
        self._check("store", at, size)
        if self._writer is None:
            self._writer = np.zeros(self.data.size, np.int32)  # costs nothing where it is not touched
        index, me = _bytes(at, size), waves[:, None] + 1
        writer = self._writer[index]
        self._refuse((writer != self._NOBODY) & (writer != me), "stores to", at, waves)
        self._writer[index] = me
        self._refuse(self._writer[index] != me, "stores to", at, waves)
        self.data[index] = values

    def _refuse(self, bad: np.ndarray, does: str, at: np.ndarray, waves: np.ndarray) -> None:
        if bad.any():
            lane = int(np.nonzero(bad.any(axis=1))[0][0])
            raise RaceError(
                f"wave {int(waves[lane])} {does} byte {int(at[lane])} of {self.name}, which another wave wrote in "
                "this launch"
            )


class Memory:
    """The buffers of a launch: arrays of the host, which the kernel reads and writes in place."""

    def __init__(self):
        self._buffers: list[Buffer] = []
        self._next = _FIRST_ADDRESS

    def add(self, array: np.ndarray, name: str = "", writable: bool = True) -> int:
        """Give the kernel an array; the address of its first element, for a pointer argument.

        The array may have any strides; bytes between its elements are out of bounds. A read-only array is never
        written. ``name`` is what errors call it.
        """
        data, owned, first = _span(array)
        base = self._next
        self._next += (data.size + _GAP + 0xFF) & ~0xFF
        name = name or f"buffer {len(self._buffers)}"
        self._buffers.append(Buffer(data, owned, base, name, writable and data.flags.writeable))
        return base + first

    def add_arguments(self, data: bytes, name: str) -> int:
        """A read-only segment of the launch itself; the address."""
        address = self.add(np.frombuffer(data, np.uint8), name, writable=False)
        self._buffers[-1].is_argument = True
        return address

    def new_launch(self) -> None:
        """Forget who wrote what: launches follow one another. Argument segments of earlier launches go."""
        self._buffers = [x for x in self._buffers if not x.is_argument]
        for buffer in self._buffers:
            buffer.new_launch()

    def load(self, addresses: np.ndarray, size: int, waves: np.ndarray) -> tuple[np.ndarray, bool]:
        """Bytes at int64 addresses, shape (lanes, size), and whether they are kernel arguments."""
        buffer = self._holding(addresses)
        if buffer is not None:
            return buffer.load(addresses - buffer.base, size, waves), buffer.is_argument
        result = np.empty((len(addresses), size), np.uint8)
        for buffer, lanes in self._parts("load", addresses, size):
            result[lanes] = buffer.load(addresses[lanes] - buffer.base, size, waves[lanes])
        return result, False

    def store(self, addresses: np.ndarray, values: np.ndarray, waves: np.ndarray) -> None:
        """Write bytes, shape (lanes, size), at int64 addresses."""
        buffer = self._holding(addresses)
        if buffer is not None:
            buffer.store(addresses - buffer.base, values, waves)
            return
        for buffer, lanes in self._parts("store", addresses, values.shape[1]):
            buffer.store(addresses[lanes] - buffer.base, values[lanes], waves[lanes])

    def _holding(self, addresses: np.ndarray) -> Buffer | None:
        """The buffer that holds all addresses, if there is one."""
        low, high = addresses.min(), addresses.max()
        for buffer in self._buffers:
            if buffer.base <= low and high < buffer.base + buffer.data.size:
                return buffer
        return None

    def _parts(self, what: str, addresses: np.ndarray, size: int) -> list[tuple[Buffer, np.ndarray]]:
        """The buffers hit, each with the lanes that hit it."""
        found, left = [], np.ones(len(addresses), bool)
        for buffer in self._buffers:
            lanes = left & (addresses >= buffer.base) & (addresses < buffer.base + buffer.data.size)
            if lanes.any():
                found.append((buffer, lanes))
                left &= ~lanes
        if left.any():
            raise AccessError(f"{what} of {size} bytes at {self.describe(int(addresses[left][0]))}")
        return found

    def describe(self, address: int) -> str:
        """The position of an address outside all buffers, relative to the nearest of them."""
        nearest = min(self._buffers, key=lambda x: max(x.base - address, address - x.base - x.data.size), default=None)
        if nearest is None or not -_GAP < address - nearest.base < nearest.data.size + _GAP:
            return f"address {address:#x}, which is in no buffer"
        return f"byte {address - nearest.base} of {nearest.name}, which has {nearest.data.size} bytes"


class LocalMemory:
    """LDS of all blocks that run together, and which wave of each block read or wrote each byte since the barrier.

    Any alignment: AMD's runtime lets the hardware take unaligned addresses, and compilers count on it (eight adjacent
    f16 are one load of 16 bytes wherever they lie).
    """

    _NOBODY, _SEVERAL = 0, -1

    def __init__(self, blocks: int, size: int):
        self.size = size
        self.data = np.zeros(blocks * size, np.uint8)
        self._written = np.zeros(blocks * size, bool)
        self._writer = np.zeros(blocks * size, np.int8)
        self._reader = np.zeros(blocks * size, np.int8)

    def barrier(self) -> None:
        self._writer.fill(self._NOBODY)
        self._reader.fill(self._NOBODY)

    def _index(self, what: str, blocks: np.ndarray, at: np.ndarray, size: int) -> np.ndarray:
        if at.min() < 0 or at.max() + size > self.size:
            out = int(at.max())
            raise AccessError(f"{what} of {size} bytes at byte {out} of LDS, of which the block has {self.size} bytes")
        return _bytes(blocks * self.size + at, size)

    def load(self, blocks: np.ndarray, at: np.ndarray, size: int, waves: np.ndarray) -> np.ndarray:
        """Bytes at these offsets, shape (lanes, size). ``waves`` counts from 1 within a block."""
        index = self._index("load", blocks, at, size)
        if not self._written[index].all():
            lane = int(np.nonzero(~self._written[index].all(axis=1))[0][0])
            raise UndefinedRead(f"load of {size} bytes at byte {int(at[lane])} of LDS, which nothing has written")
        me = waves.astype(np.int8)[:, None]
        writer, reader = self._writer[index], self._reader[index]
        self._refuse((writer != self._NOBODY) & (writer != me), "loads", "wrote", at, waves)
        alone = (reader == self._NOBODY) | (reader == me)
        self._reader[index] = np.where(alone, me, self._SEVERAL)
        self._reader[index[self._reader[index] != me]] = self._SEVERAL  # waves that run concurrently
        return self.data[index]

    def store(self, blocks: np.ndarray, at: np.ndarray, values: np.ndarray, waves: np.ndarray) -> None:
        """Write bytes, shape (lanes, size)."""
        index = self._index("store", blocks, at, values.shape[1])
        me = waves.astype(np.int8)[:, None]
        writer, reader = self._writer[index], self._reader[index]
        self._refuse((writer != self._NOBODY) & (writer != me), "stores to", "wrote", at, waves)
        self._refuse((reader != self._NOBODY) & (reader != me), "stores to", "read", at, waves)
        self._writer[index] = me
        self._refuse(self._writer[index] != me, "stores to", "writes", at, waves)
        self._written[index] = True
        self.data[index] = values

    def _refuse(self, bad: np.ndarray, does: str, did: str, at: np.ndarray, waves: np.ndarray) -> None:
        if bad.any():
            lane = int(np.nonzero(bad.any(axis=1))[0][0])
            raise RaceError(
                f"wave {int(waves[lane]) - 1} of a block {does} byte {int(at[lane])} of LDS, which another wave {did} "
                "with no barrier between"
            )


def _bytes(at: np.ndarray, size: int) -> np.ndarray:
    return at[:, None] + np.arange(size)


def _span(array: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, int]:
    """All bytes from the array's lowest to its highest, which of them are its own, and where its first element is."""
    if array.size == 0:
        return np.empty(0, np.uint8), None, 0
    forward = array[tuple(slice(None, None, -1 if x < 0 else 1) for x in array.strides)]
    first = sum((n - 1) * -x for n, x in zip(array.shape, array.strides, strict=True) if x < 0)
    size = sum((n - 1) * x for n, x in zip(forward.shape, forward.strides, strict=True)) + array.itemsize
    lowest = forward[(slice(0, 1),) * array.ndim].reshape(-1) if array.ndim else array.reshape(1)
    data = np.lib.stride_tricks.as_strided(lowest.view(np.uint8), (size,), (1,), writeable=array.flags.writeable)
    if size == array.nbytes:
        return data, None, first
    owned = np.zeros(size, bool)
    np.lib.stride_tricks.as_strided(owned, (*forward.shape, array.itemsize), (*forward.strides, 1))[...] = True
    return data, owned, first
