"""DPP: an instruction whose first operand comes from other lanes of the wave, in a fixed pattern."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pysimd.simulator.errors import UnsupportedInstruction
from pysimd.simulator.gang import Gang
from pysimd.simulator.instructions.base import Machine
from pysimd.simulator.operands import Modifiers, Operand, Reader, Writer

_LANES = np.arange(64)
_IN_ROW = _LANES % 16
_ROW = _LANES - _IN_ROW


def quad_permutation(choice: list[int]) -> np.ndarray:
    """For each lane the lane of its four that it reads."""
    return _LANES // 4 * 4 + np.array(choice)[_LANES % 4]


def _within_row(position: np.ndarray) -> np.ndarray:
    """Lanes of the same row of 16; -1 where the position is outside it."""
    return np.where((position >= 0) & (position < 16), _ROW + position, -1)


_PATTERNS = {
    "quad_perm": quad_permutation,
    "dpp8": lambda choice: _LANES // 8 * 8 + np.array(choice)[_LANES % 8],
    "row_shl": lambda n: _within_row(_IN_ROW + n),
    "row_shr": lambda n: _within_row(_IN_ROW - n),
    "row_ror": lambda n: _ROW + (_IN_ROW - n) % 16,
    "row_share": lambda n: _ROW + n,
    "row_newbcast": lambda n: _ROW + n,
    "row_xmask": lambda n: _ROW + (_IN_ROW ^ n),
    "row_mirror": lambda _: _ROW + 15 - _IN_ROW,
    "row_half_mirror": lambda _: _ROW + _IN_ROW // 8 * 8 + 7 - _IN_ROW % 8,
    "wave_shr": lambda n: _LANES - n,
    "row_bcast": lambda n: np.where(n < _LANES, (_LANES // (n + 1)) * (n + 1) - 1, -1),
}
"""For each lane the lane that it reads; -1 where there is none."""


def permuted(read: Reader, modifiers: Modifiers, machine: Machine):
    """The operand as the lanes see it, and which lanes the instruction writes (as a function of the gang)."""
    name = next((x for x in _PATTERNS if x in modifiers.instruction.modifiers), None)
    if name is None:
        raise UnsupportedInstruction(f"`{modifiers.instruction}`: this permutation of lanes is not modelled")
    size = machine.wave_size
    source = _PATTERNS[name](modifiers.take(name, 0))[:size]
    lane = _LANES[:size]
    rows, banks = modifiers.take("row_mask", 15), modifiers.take("bank_mask", 15)
    chosen = (rows >> lane // 16 & 1 & banks >> lane % 16 // 4) == 1
    zero_outside = modifiers.take("bound_ctrl", None) is not None
    inactive_too = bool(modifiers.take("fi", 0))
    index = np.maximum(source, 0)

    def has_source(g: Gang) -> np.ndarray:
        return (source >= 0) & (np.True_ if inactive_too else g.exec[:, index])

    def read_permuted(g: Gang) -> np.ndarray:
        value = np.broadcast_to(read(g), g.exec.shape)[:, index]
        g.require_defined("a value for other lanes")
        return np.where(has_source(g), value, value.dtype.type(0))

    def enabled(g: Gang) -> np.ndarray:
        return np.broadcast_to(chosen, g.exec.shape) if zero_outside else chosen & has_source(g)

    return read_permuted, enabled


def with_disabled_lanes(write: Writer, results: Sequence[Operand], kinds: Sequence[str], enabled) -> Writer:
    """Lanes without a source, or outside the masks, keep what they have."""
    if len(results) != 1 or kinds[0] not in ("u32", "i32", "f32"):
        raise UnsupportedInstruction(f"lane permutation with a result of type {' '.join(kinds)} is not modelled")
    index = results[0].index

    def write_enabled(g, value):
        new = np.broadcast_to(np.asarray(value).view(np.uint32), g.exec.shape)
        write(g, np.where(enabled(g), new, g.v[index]))

    return write_enabled
