"""Axes of drawings: where a value lies, and which values are marked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Axis:
    """The values from ``low`` to ``high`` on the pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; a value outside the axis has that of its nearer end."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self, gap: float) -> list[float]:
        """Round values at least ``gap`` pixels from each other: 1, 2 and 5 times powers of ten, or multiples of one."""
        found: list[float] = []
        for found in self._logarithmic_ticks() if self.logarithmic else self._linear_ticks():
            places = [self.at(value) for value in found]
            if all(abs(one - other) >= gap for one, other in pairwise(places)):
                break
        return found

    def _logarithmic_ticks(self) -> Iterable[list[float]]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for apart, steps in ((1, (1, 2, 5)), (1, (1,)), (2, (1,)), (3, (1,)), (6, (1,))):
            values = (step * 10.0**p for p in powers if p % apart == 0 for step in steps)
            yield [value for value in values if self.low <= value <= self.high]

    def _linear_ticks(self) -> Iterable[list[float]]:
        power = math.floor(math.log10(self.high - self.low)) - 2
        for step in (m * 10.0 ** (power + p) for p in range(4) for m in (1, 2, 5)):
            yield [i * step for i in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]


def label(value: float) -> str:
    """A marked value as text: 0.5, 20, 1,000,000."""
    return f"{value:,.0f}" if value >= 1e5 else f"{value:,.6g}"
