"""The math-to-load ratio of a tile, from its shape alone.

For one step of k an outer product of an mr x nr tile does mr*nr multiply-adds for mr + nr loaded elements; an inner
product loads two elements for every multiply-add, whatever the tile. After A. Atluri, "Musings on GEMM" (2017): 0.5
against 2 for 4x4.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Multiply-adds per loaded element, for one step of k over the tile.

    Attributes:
        macs: multiply-adds of the step.
        loads: elements of A and B loaded for it.
        load_bytes: the same in bytes.
    """

    macs: int
    loads: int
    load_bytes: int

    @property
    def value(self) -> float:
        """Multiply-adds per element loaded: 2.0 for an outer 4x4, 4.0 for 8x8, 0.5 for any inner product."""
        return self.macs / self.loads

    def _repr_html_(self) -> str:
        return (
            f"<b>{self.value:.2f}</b> multiply-adds per element loaded ({self.macs} / {self.loads}), "
            f"{self.per_byte:.3f} per byte"
        )

    @property
    def per_byte(self) -> float:
        """Multiply-adds per byte loaded."""
        return self.macs / self.load_bytes


def tile_ratio(form: str, mr: int, nr: int, a_bytes: int, b_bytes: int) -> Ratio:
    """The ratio of an mr x nr tile: ``inner`` loads an element of A and of B for each product, other forms mr + nr."""
    a, b = (mr * nr, mr * nr) if form == "inner" else (mr, nr)
    return Ratio(macs=mr * nr, loads=a + b, load_bytes=a * a_bytes + b * b_bytes)
