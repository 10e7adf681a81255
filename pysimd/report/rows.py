"""The rows of a report, and JSON documents."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pysimd._version import __version__

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Row:
    """One kernel of a report. Fields are None where nothing was counted or measured.

    Attributes:
        ratio: multiply-adds per element loaded, analytic; ``ratio_per_byte`` per byte.
        counted: the hot loop of the machine code (``Inspection.counts()``); ``uncounted_reason`` says what is missing
            where a count was asked for.
        gflops: 10^9 floating-point (or integer) operations per second, two per multiply-add, on one core with both
            panels in cache and K = ``tiles.K``; on a GPU on the whole device.
        peak_gflops: the same of independent multiply-adds of this target that load nothing.
        percent_of_peak: 100 * gflops / peak_gflops.
        peak_gloads_per_s: 10^9 load instructions per second that this target loads from L1 without arithmetic: of whole
            vectors; on a GPU those of a lane, of four bytes. ``peak_load_gbytes_per_s``: 10^9 bytes per second in the
            widest loads. Both were interleaved with the kernel, as its peak was.
        percent_of_load_rate: load instructions of the kernel per second, as a share of that rate.
        percent_of_load_bandwidth: bytes that the kernel loads per second, as a share of ``peak_load_gbytes_per_s``.
            Both shares need the counted loop.
        limit: what takes longer at its measured rate: ``multiply-adds``, or ``loads`` (by number or by bytes).
        over_inner: speed divided by that of the inner-product kernel of the same target and types in the report; of
            the same tile, if there is one.
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
    counted: dict[str, Any] | None = None
    uncounted_reason: str = ""
    gflops: float | None = None
    peak_gflops: float | None = None
    percent_of_peak: float | None = None
    peak_gloads_per_s: float | None = None
    peak_load_gbytes_per_s: float | None = None
    percent_of_load_rate: float | None = None
    percent_of_load_bandwidth: float | None = None
    limit: str | None = None
    over_inner: float | None = None


def in_table_order(rows: Iterable[Row]) -> list[Row]:
    """The rows by target and types in the order of the kernel tables: inner product first, then by size of the tile."""
    rows = list(rows)
    families = {key: i for i, key in enumerate(dict.fromkeys((row.target, row.types) for row in rows))}
    return sorted(rows, key=lambda row: (families[row.target, row.types], row.form != "inner", row.mr * row.nr))


def document(**fields) -> dict[str, Any]:
    """A JSON document of pysimd: its schema, its version, then ``fields``."""
    return {"schema_version": SCHEMA_VERSION, "pysimd": __version__, **fields}


def to_json(data: dict[str, Any], indent: int | None = 2) -> str:
    """JSON text; NaN and infinity, which JSON has not, become null."""
    import json  # when it is needed: `import pysimd` stays fast

    return json.dumps(_finite(data), indent=indent, allow_nan=False)


def _finite(x):
    if isinstance(x, dict):
        return {key: _finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
