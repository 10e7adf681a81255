"""What was executed: instructions, multiply-adds, and bytes by the memory they come from or go to."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

MACS_PER_LANE = {
    **dict.fromkeys(("v_fma_f32", "v_fmac_f32", "v_fmaak_f32", "v_fmamk_f32", "v_mac_f32", "v_mad_f32"), 1),
    **dict.fromkeys(("v_madak_f32", "v_madmk_f32", "v_fma_mix_f32", "v_mad_mix_f32"), 1),
    **dict.fromkeys(("v_fma_f16", "v_fmac_f16", "v_fma_f64", "v_fmac_f64", "v_mad_i32_i24"), 1),
    **dict.fromkeys(("v_pk_fma_f16", "v_pk_fmac_f16", "v_pk_fma_f32", "v_dot2_f32_f16", "v_dot2c_f32_f16"), 2),
    **dict.fromkeys(("v_dot4_i32_i8", "v_dot4c_i32_i8", "v_dot4_i32_iu8", "v_dot4_u32_u8"), 4),
}
"""Multiply-adds of one lane, for the instructions that multiply and add at once."""

_MATRIX = re.compile(r"v_(?:mfma|wmma)_[a-z]+\d+_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?")


def macs_of_wave(mnemonic: str, blocks: int = 1) -> int:
    """Multiply-adds of a matrix instruction, which a whole wave does together; 0 for others."""
    shape = _MATRIX.match(mnemonic)
    return int(shape[1]) * int(shape[2]) * int(shape[3]) * blocks if shape else 0


@dataclass
class Traffic:
    """Bytes loaded and stored, and the instructions that did it (counted per wave), by kind.

    Kinds of loads: ``global``, ``lds``, ``scalar`` (once for a whole wave), ``arguments`` (the
    kernel's own parameters). Kinds of stores: ``global``, ``lds``.
    """

    load_bytes: Counter = field(default_factory=Counter)
    store_bytes: Counter = field(default_factory=Counter)

    def load(self, kind: str, size: int) -> None:
        self.load_bytes[kind] += size

    def store(self, kind: str, size: int) -> None:
        self.store_bytes[kind] += size


@dataclass(frozen=True)
class Executed:
    """How often an instruction ran: counted once per wave, and once per lane that took part."""

    waves: int
    lanes: int


@dataclass(frozen=True)
class Counts:
    """What a launch executed.

    ``instructions`` maps mnemonics (without ``_e32``; both halves of a dual instruction on their own) to ``Executed``.
    ``macs`` counts multiply-adds of single lanes in instructions that do both at once; a product and a sum in two
    instructions are not among them. ``load_bytes`` and ``store_bytes`` sum over lanes, by kind (see ``Traffic``).
    """

    instructions: dict[str, Executed]
    macs: int
    load_bytes: dict[str, int]
    store_bytes: dict[str, int]
    barriers: int

    def waves(self, *prefixes: str) -> int:
        """Instructions executed (per wave) whose mnemonic starts with one of these."""
        return sum(x.waves for name, x in self.instructions.items() if name.startswith(prefixes))

    def lanes(self, *prefixes: str) -> int:
        """The same, per lane."""
        return sum(x.lanes for name, x in self.instructions.items() if name.startswith(prefixes))

    def to_dict(self) -> dict:
        """For JSON."""
        return {
            "instructions": {name: {"waves": x.waves, "lanes": x.lanes} for name, x in self.instructions.items()},
            "macs": self.macs,
            "load_bytes": dict(self.load_bytes),
            "store_bytes": dict(self.store_bytes),
            "barriers": self.barriers,
        }
