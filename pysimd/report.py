"""``compare``: the ratio of kernels side by side, analytic and, on request, with their measured speed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from . import registry
from ._version import __version__
from .registry import MicroKernel

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Row:
    """One kernel of a report. Measured fields are None where nothing was measured.

    Attributes:
        ratio: multiply-adds per element loaded, analytic; ``ratio_per_byte`` per byte.
        gflops: 10^9 floating-point (or integer) operations per second, two per multiply-add, on one core with both
            panels in cache and K = ``measure.K``.
        peak_gflops: the same for a chain of this target's multiply-adds that loads nothing.
        percent_of_peak: 100 * gflops / peak_gflops.
    """

    kernel: str
    backend: str
    target: str
    types: str
    form: str
    mr: int
    nr: int
    macs: int
    loads: int
    ratio: float
    ratio_per_byte: float
    available: bool
    unavailable_reason: str
    gflops: float | None = None
    peak_gflops: float | None = None
    percent_of_peak: float | None = None


@dataclass(frozen=True)
class Report:
    """Rows of ``compare``, with the machine they were made on."""

    rows: tuple[Row, ...]
    machine: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data with ``schema_version``."""
        return document(machine=self.machine, rows=[asdict(row) for row in self.rows])

    def to_json(self, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return to_json(self.to_dict(), indent)

    def plot(self, path) -> None:
        """Bars of the ratio of every kernel, inner and outer in two colours, with GFLOP/s where measured; PNG or SVG by
        the ending of ``path``.

        Raises:
            UnavailableError: matplotlib is not installed.
            OptionError: an ending that matplotlib does not know.
        """
        from . import plots

        plots.ratio_bars(self.rows, path)


def compare(kernels=None, *, measure: bool = False, seconds: float = 0.02) -> Report:
    """The math-to-load ratio of kernels side by side.

    Args:
        kernels: kernels or names; all of them by default.
        measure: also time each available kernel and the peak of its target and type.
        seconds: time given to each of these two, per kernel.

    Returns:
        Report: ``.rows``, ``.to_dict()``, ``.to_json()``, ``.plot(path)``.

    Raises:
        UnknownKernelError: a name that is none.
    """
    chosen = (
        registry.kernels() if kernels is None else [registry.kernel(k) if isinstance(k, str) else k for k in kernels]
    )
    return Report(rows=tuple(_row(k, seconds if measure else 0) for k in chosen), machine=machine())


def _row(kernel: MicroKernel, seconds: float) -> Row:
    speed = {}
    if seconds and kernel.available:
        from . import measure  # not before it is needed: it would make `import pysimd` slower

        speed = asdict(measure.tile_speed(kernel, seconds=seconds))
    return Row(
        kernel=kernel.name,
        backend=kernel.backend,
        target=kernel.target,
        types=kernel.types,
        form=kernel.form,
        mr=kernel.mr,
        nr=kernel.nr,
        macs=kernel.ratio.macs,
        loads=kernel.ratio.loads,
        ratio=kernel.ratio.value,
        ratio_per_byte=kernel.ratio.per_byte,
        available=kernel.available,
        unavailable_reason=kernel.unavailable_reason,
        **speed,
    )


def side_by_side(rows: Iterable[Row]) -> list[Row]:
    """The rows by target and types in the order of the tables, inner product first, then outer ones by size of tile."""
    rows = list(rows)
    places = {key: i for i, key in enumerate(dict.fromkeys((row.target, row.types) for row in rows))}
    return sorted(rows, key=lambda row: (places[row.target, row.types], row.form != "inner", row.mr * row.nr))


def machine() -> dict[str, Any]:
    """The backends of this machine as plain data, by name."""
    return {b.name: asdict(b) for b in registry.backends()}


def document(**fields) -> dict[str, Any]:
    """What every JSON document of pysimd starts with, then ``fields``."""
    return {"schema_version": SCHEMA_VERSION, "pysimd": __version__, **fields}


def to_json(data: dict[str, Any], indent: int | None = 2) -> str:
    """JSON text; NaN and infinity, which JSON has not, become null."""
    return json.dumps(_finite(data), indent=indent, allow_nan=False)


def _finite(x):
    if isinstance(x, dict):
        return {key: _finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
