"""What a simulated kernel call gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pysimd.simulator.counts import Counts


@dataclass(frozen=True)
class Simulation:
    """What a simulated call did.

    Attributes:
        result: ``c + a @ b``, as the machine code computed it.
        target: the GPU that it was compiled for.
        entry: the template instance that was launched; empty if there was nothing to compute.
        counts: what was executed, in all launches together (``Counts``).
        macs: multiply-adds executed, those on zeros past the end of K or of C included.
        elements: elements of A and B loaded, by all lanes together.
    """

    result: np.ndarray
    target: str
    entry: str
    counts: Counts
    macs: int
    elements: int

    @property
    def ratio(self) -> float:
        """Multiply-adds per element loaded, counted; NaN if nothing was loaded."""
        return self.macs / self.elements if self.elements else float("nan")
