"""State of waves that run in lockstep: registers, EXEC, and what has been written.

Waves of one launch run the same instructions, mostly on the same path. A gang holds as many of them as stand at the
same instruction; each instruction is one NumPy operation over all lanes of all its waves. Where a branch parts the
waves the gang is split, and gangs that reach the same instruction again are merged (``run.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pysimd.simulator.counts import Traffic
from pysimd.simulator.errors import UndefinedRead
from pysimd.simulator.memory import LocalMemory, Memory

VCC, TTMP, M0, EXEC, NULL = 106, 108, 124, 126, 128
"""Where special registers stand among the SGPRs: a numbering of our own, the text has only names."""
SGPRS = 130

POISON = 0x7FD57FD5
"""What registers hold before anything is written: NaN as float32 and as two float16, a huge number as an integer."""


@dataclass(frozen=True)
class Shared:
    """What all gangs of a launch have in common."""

    memory: Memory
    lds: LocalMemory
    traffic: Traffic


class Gang:
    """Waves at one instruction.

    Shapes, with W waves of L lanes: ``v`` and ``a`` (registers, W, L) uint32, ``s`` (W, 130) uint32, ``exec`` (W, L)
    bool, ``scc`` (W,) bool. ``waves`` numbers the waves in the launch, ``blocks`` the blocks that run now, ``in_block``
    the waves of a block, from 1.
    """

    def __init__(self, waves, blocks, in_block, lanes: int, registers: tuple[int, int], shared: Shared):
        count = len(waves)
        vgprs, agprs = registers
        self.waves, self.blocks, self.in_block = waves, blocks, in_block
        self.lanes = lanes
        self.shared = shared
        self.pc = 0
        self.v = np.full((vgprs, count, lanes), POISON, np.uint32)
        self.a = np.full((agprs, count, lanes), POISON, np.uint32)
        self.s = np.full((count, SGPRS), POISON, np.uint32)
        self.scc = np.zeros(count, bool)
        self.scc_known = False
        self.s_known = bytearray(SGPRS)
        self.v_known = np.zeros((vgprs, count, lanes), bool)
        self.a_known = np.zeros((agprs, count, lanes), bool)
        self.exists = np.zeros((count, lanes), bool)
        """Lanes that are threads of the block; a block of 48 has 16 of 64 lanes without one."""
        self.arrived = False
        """Whether a split barrier was signalled and not yet waited for."""
        self.start_step()
        for index in (NULL, NULL + 1, EXEC, EXEC + 1):
            self.write_s(index, np.uint32(0))

    @property
    def count(self) -> int:
        return len(self.waves)

    # Values that nothing has defined
    #
    # Compilers read registers that they know nothing of, where it does not matter: the upper half of a 64-bit sum of
    # which they take the lower. So an undefined operand makes the result undefined, no more. It is refused where it
    # decides something: an address, a stored value, a branch, EXEC.

    def taint(self, lanes, name: str) -> None:
        """This instruction has read something undefined, in these lanes (bool, any shape that broadcasts to (W, L))."""
        if self.tainted is None:
            self.tainted, self.tainted_by = lanes, name
        else:
            self.tainted = self.tainted | lanes

    def taint_only(self, read, where: np.ndarray) -> np.ndarray:
        """What ``read`` gives; what is undefined in it matters only in these lanes, the others do not take it."""
        value, found, name = self.read_apart(read)
        if found is not None and (found & where).any():
            self.taint(found & where, name)
        return value

    def read_apart(self, read) -> tuple[np.ndarray, np.ndarray | None, str]:
        """What ``read`` gives, in which lanes (None: in none) it is undefined, and by what; without remembering it."""
        before = self.tainted, self.tainted_by
        self.tainted = None
        value, found, name = read(self), self.tainted, self.tainted_by
        self.tainted, self.tainted_by = before
        return value, found, name

    def require_defined(self, use: str) -> None:
        """Raise UndefinedRead if this instruction has read something undefined."""
        if self.tainted is not None:
            raise UndefinedRead(f"{use} depends on {self.tainted_by}, which nothing has written")

    def start_step(self) -> None:
        """A new instruction, which has read nothing yet."""
        self.tainted, self.tainted_by = None, ""
        self.tainted_above = []

    # Scalar registers

    def read_s(self, index: int) -> np.ndarray:
        """uint32, shape (W,)."""
        if not self.s_known[index]:
            self.taint(np.True_, scalar_name(index))
        return self.s[:, index]

    def read_s64(self, index: int) -> np.ndarray:
        """Two neighbours as uint64, shape (W,)."""
        return self.read_s(index).astype(np.uint64) | self.read_s(index + 1).astype(np.uint64) << np.uint64(32)

    def write_s(self, index: int, value) -> None:
        self.s[:, index] = value if index < NULL else 0
        self.s_known[index] = self.tainted is None or index >= NULL
        if index in (EXEC, EXEC + 1):
            self.require_defined("EXEC")
            self.new_exec()

    def read_scc(self) -> np.ndarray:
        """bool, shape (W,)."""
        if not self.scc_known:
            self.taint(np.True_, "SCC")
        return self.scc

    def write_scc(self, value) -> None:
        self.scc[:] = value
        self.scc_known = self.tainted is None

    def read_mask(self, index: int) -> np.ndarray:
        """One bit per lane, from one SGPR (32 lanes) or two: bool (W, L)."""
        for i in range(self.lanes // 32):
            self.read_s(index + i)
        words = np.ascontiguousarray(self.s[:, index : index + self.lanes // 32])
        return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").view(bool)

    def write_mask(self, index: int, mask: np.ndarray) -> None:
        """Write one bit per lane; lanes that EXEC leaves out give 0."""
        words = np.packbits(mask & self.exec, axis=1, bitorder="little").view(np.uint32)
        for i in range(self.lanes // 32):
            self.write_s(index + i, words[:, i])

    def new_exec(self) -> None:
        """EXEC was written: unpack it, and forget which registers are known to be defined under it."""
        words = np.ascontiguousarray(self.s[:, EXEC : EXEC + self.lanes // 32])
        self.exec = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").view(bool)
        self._active_in_wave = self.exec.sum(axis=1)
        self.active = int(self._active_in_wave.sum())
        self.full = self.active == self.exec.size
        self._known_now = ([False] * len(self.v), [False] * len(self.a))

    # Vector registers: ``acc`` chooses the accumulation registers

    def read_v(self, index: int, acc: bool = False) -> np.ndarray:
        """uint32, shape (W, L): not a copy."""
        if not self._known_now[acc][index]:
            unknown = self.exec & ~(self.a_known if acc else self.v_known)[index]
            if unknown.any():
                self.taint(unknown, _vector_name(index, acc))
            else:
                self._known_now[acc][index] = True
        return (self.a if acc else self.v)[index]

    def write_v(self, index: int, value, acc: bool = False) -> None:
        """Write uint32 to the lanes in EXEC."""
        register = (self.a if acc else self.v)[index]
        if self.full:
            register[...] = value
        else:
            np.copyto(register, value, where=self.exec)
        if self.tainted is not None:
            known = (self.a_known if acc else self.v_known)[index]
            np.copyto(known, ~np.asarray(self.tainted), where=self.exec)
            self._known_now[acc][index] = False
        elif not self._known_now[acc][index]:
            (self.a_known if acc else self.v_known)[index] |= self.exec
            self._known_now[acc][index] = True

    def read_everywhere(self, index: int, acc: bool = False) -> np.ndarray:
        """A register for an instruction that does not look at EXEC: all lanes that are threads must be defined."""
        if not ((self.a_known if acc else self.v_known)[index] | ~self.exists).all():
            raise UndefinedRead(f"{_vector_name(index, acc)} is read, which nothing has written in some lanes")
        return self.register(index, acc)

    def write_everywhere(self, index: int, value, acc: bool = False) -> None:
        """Write all lanes."""
        self.register(index, acc)[...] = value
        (self.a_known if acc else self.v_known)[index] = True

    def register(self, index: int, acc: bool = False) -> np.ndarray:
        """All lanes of a register, defined or not."""
        return (self.a if acc else self.v)[index]

    def write_one_lane(self, index: int, lane: np.ndarray, value: np.ndarray) -> None:
        """Write one lane of each wave, in EXEC or not."""
        waves = np.arange(self.count)
        self.v[index][waves, lane] = value
        self.v_known[index][waves, lane] = True

    def lanes_of(self, per_wave: np.ndarray) -> np.ndarray:
        """A value per wave, repeated for each lane in EXEC."""
        return np.repeat(per_wave, self._active_in_wave)

    def write_lanes(self, index: int, values: np.ndarray, acc: bool = False) -> None:
        """Write one value for each lane in EXEC, given in the order of waves and lanes."""
        if self.full:
            self.write_v(index, values.reshape(self.exec.shape), acc)
            return
        spread = np.empty(self.exec.shape, np.uint32)
        spread[self.exec] = values
        self.write_v(index, spread, acc)

    # Splitting and merging

    def part(self, chosen: np.ndarray) -> Gang:
        """The waves of a boolean mask as a gang of their own."""
        new = object.__new__(Gang)
        new.lanes, new.shared = self.lanes, self.shared
        new.pc, new.scc_known, new.arrived = self.pc, self.scc_known, self.arrived
        new.s_known = bytearray(self.s_known)
        for name, axis in _PER_WAVE.items():
            setattr(new, name, np.compress(chosen, getattr(self, name), axis))
        new.start_step()
        new.new_exec()
        return new

    @staticmethod
    def merged(gangs: list[Gang]) -> Gang:
        """One gang of several that stand at the same instruction."""
        first = gangs[0]
        if len(gangs) == 1:
            return first
        new = object.__new__(Gang)
        new.lanes, new.shared, new.pc = first.lanes, first.shared, first.pc
        new.scc_known = all(x.scc_known for x in gangs)
        new.arrived = all(x.arrived for x in gangs)
        new.s_known = bytearray(map(min, *(x.s_known for x in gangs)))
        for name, axis in _PER_WAVE.items():
            setattr(new, name, np.concatenate([getattr(x, name) for x in gangs], axis))
        new.start_step()
        new.new_exec()
        return new


_PER_WAVE = {
    "waves": 0,
    "blocks": 0,
    "in_block": 0,
    "s": 0,
    "scc": 0,
    "exists": 0,
    "v": 1,
    "a": 1,
    "v_known": 1,
    "a_known": 1,
}
"""The arrays of a gang that have an axis of waves, and which axis that is."""


def _vector_name(index: int, acc: bool) -> str:
    return f"{'a' if acc else 'v'}{index}"


def scalar_name(index: int) -> str:
    """What the assembly calls an SGPR of this module's numbering."""
    special = {VCC: "vcc_lo", VCC + 1: "vcc_hi", M0: "m0", NULL: "null", EXEC: "exec_lo", EXEC + 1: "exec_hi"}
    return special.get(index) or (f"ttmp{index - TTMP}" if index >= TTMP else f"s{index}")
