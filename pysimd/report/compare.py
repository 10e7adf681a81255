"""``compare``: the ratio of kernels side by side, analytic; on request counted in the machine code, and measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from pysimd import registry
from pysimd._version import __version__
from pysimd.errors import OptionError, UnavailableError
from pysimd.inspection import inspect
from pysimd.microkernel import MicroKernel

if TYPE_CHECKING:
    from pysimd.bench.peaks import Peaks

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Row:
    """One kernel of a report. Fields are None where nothing was counted or measured.

    Attributes:
        ratio: multiply-adds per element loaded, analytic; ``ratio_per_byte`` per byte.
        counted: what the hot loop of the real code does (``Inspection.counts()``); ``uncounted_reason`` says what is
            missing where it was asked for.
        gflops: 10^9 floating-point (or integer) operations per second, two per multiply-add, on one core with both
            panels in cache and K = ``measure.K``.
        peak_gflops: the same for a chain of this target's multiply-adds that loads nothing.
        percent_of_peak: 100 * gflops / peak_gflops.
        peak_gloads_per_s: 10^9 load instructions per second that this target does from the first-level cache, nothing
            multiplied: of whole vectors; on a GPU those of a lane, of four bytes. ``peak_load_gbytes_per_s``: 10^9
            bytes per second, in the widest loads. Both were timed turn by turn with the kernel, as its peak was.
        percent_of_load_rate: load instructions of the kernel per second, of those; 100 * bytes loaded per second over
            ``peak_load_gbytes_per_s`` is ``percent_of_load_bandwidth``. Both need the counted loop.
        limit: which needs more time at its measured rate: ``multiply-adds``, or ``loads`` by number or by bytes.
        over_inner: speed, divided by that of the inner-product kernel of the same target and types in the report: the
            one of the same tile, if there is one.
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


@dataclass(frozen=True)
class Report:
    """Rows of ``compare``, with the machine they were made on, and its ``Peaks`` by backend where rows were measured
    and counted."""

    rows: tuple[Row, ...]
    machine: dict[str, Any]
    peaks: tuple[Peaks, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data with ``schema_version``."""
        peaks = [found.to_dict() for found in self.peaks]
        return document(machine=self.machine, peaks=peaks, rows=[asdict(row) for row in self.rows])

    def to_json(self, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """The report that ``to_dict`` made, here or on another machine.

        Raises:
            OptionError: not such a document.
        """
        from pysimd.bench.peaks import Peaks

        names = {field.name for field in fields(Row)}
        try:
            version, rows, machine = data["schema_version"], data["rows"], data["machine"]
            made = tuple(Row(**{key: value for key, value in row.items() if key in names}) for row in rows)
            peaks = tuple(Peaks.from_dict(found) for found in data.get("peaks", ()))
        except (KeyError, TypeError, AttributeError) as error:
            raise OptionError(f"no report: expected the JSON of `pysimd ratio --json` ({error!r})") from error
        if version != SCHEMA_VERSION:
            raise OptionError(f"a report of schema_version {version}, this is {SCHEMA_VERSION}: make it anew")
        return cls(made, machine, peaks)

    def html(self) -> str:
        """One HTML page with tables, pictures and all the numbers, which needs nothing else."""
        from pysimd.report import html as html_report

        return html_report.page(self)

    def plot(self, path) -> None:
        """Bars of the ratio of every kernel, inner and outer in two colours, with GFLOP/s where measured; PNG or SVG by
        the ending of ``path``.

        Raises:
            UnavailableError: matplotlib is not installed.
            OptionError: an ending that matplotlib does not know.
        """
        from pysimd.report import plots

        plots.ratio_bars(self.rows, path)

    def plot_rooflines(self, path) -> None:
        """Kernels that were counted and measured below their measured roofs; files and errors as ``plot`` has them.

        Raises:
            UnavailableError: matplotlib is not installed.
            OptionError: no kernel was counted and measured, or an ending that matplotlib does not know.
        """
        from pysimd.report import plots

        plots.roof_lines(self, path)


def compare(
    kernels=None,
    *,
    count: bool = False,
    measure: bool = False,
    seconds: float = 0.02,
    targets: Sequence[str] = (),
    fresh: bool = False,
) -> Report:
    """The math-to-load ratio of kernels side by side.

    Args:
        kernels: kernels or names; all of them by default.
        count: also read the hot loop of each in its machine code (``pysimd.inspect``, for its default target). Kernels
            of GPUs are compiled for it: seconds each. Where a tool is missing, the row says which.
        measure: also time each available kernel, and turn by turn with it the peaks of its target and type. With
            ``count``, the report has the peaks of all memories too (``pysimd.peaks.peaks``), kept from an earlier time.
        seconds: time given to each of these, per kernel.
        targets: what kernels of GPUs are compiled for when they are counted, such as ``sm_80`` or ``gfx1100``: a row
            for each that is of a kernel's backend. A kernel that one of them lacks has a row that says so.
        fresh: measure the peaks again.

    Returns:
        Report: ``.rows``, ``.to_dict()``, ``.to_json()``, ``.plot(path)``.

    Raises:
        UnknownKernelError: a name that is none.
        OptionError: a target that is none.
    """
    wrong = [x for x in targets if not x.startswith(tuple(_TARGETS_OF.values()))]
    if wrong:
        raise OptionError(f"target {wrong[0]!r}: give architectures of GPUs, such as sm_80 or gfx942")
    chosen = (
        registry.kernels() if kernels is None else [registry.kernel(k) if isinstance(k, str) else k for k in kernels]
    )
    rows = [
        _row(k, count, seconds if measure else 0, target)
        for k in chosen
        for target in ([x for x in targets if x.startswith(_TARGETS_OF.get(k.backend, "no"))] or [None])
    ]
    from pysimd.bench import peaks

    found = dict.fromkeys(row.backend for row in rows if count and row.gflops is not None)
    return Report(
        rows=tuple(replace(row, over_inner=_over_inner(row, rows)) for row in rows),
        machine=machine(),
        peaks=tuple(peaks.peaks(backend, fresh=fresh) for backend in found),
    )


_TARGETS_OF = {"cuda": "sm_", "hip": "gfx"}


def _row(kernel: MicroKernel, count: bool, seconds: float, target: str | None) -> Row:
    speed: dict[str, Any] = {}
    counted, reason = _counted(kernel, target) if count else (None, "")
    if seconds and kernel.available:
        from pysimd.bench import tiles as measure

        speed = asdict(measure.tile_speed(kernel, seconds=seconds))
        speed |= _limits(speed, counted)
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
        counted=counted,
        uncounted_reason=reason,
        **speed,
    )


def _counted(kernel: MicroKernel, target: str | None) -> tuple[dict[str, Any] | None, str]:
    try:
        return inspect(kernel, target=target).counts(), ""
    except (UnavailableError, OptionError) as error:
        return None, str(error)


_LANES = {"core": 1, "thread": 1, "warp": 32, "wave": 64}


def _limits(speed: dict[str, Any], counted: dict[str, Any] | None) -> dict[str, Any]:
    """Loads per second of a measured kernel beside what its target can load, and which limit binds."""
    if counted is None or speed["peak_gloads_per_s"] is None or speed["peak_gflops"] is None:
        return {}
    lanes = _LANES[counted["scope"]]
    loads_per_mac = lanes * sum(counted["load_instructions"].values()) / counted["macs"]
    bytes_per_mac = sum(counted["load_elements"].values()) * counted["element_bytes"] / counted["macs"]
    gmacs = speed["gflops"] / 2
    loads_ns = max(loads_per_mac / speed["peak_gloads_per_s"], bytes_per_mac / speed["peak_load_gbytes_per_s"])
    loads_bind = loads_ns > 2 / speed["peak_gflops"]
    return {
        "percent_of_load_rate": 100 * gmacs * loads_per_mac / speed["peak_gloads_per_s"],
        "percent_of_load_bandwidth": 100 * gmacs * bytes_per_mac / speed["peak_load_gbytes_per_s"],
        "limit": "loads" if loads_bind else "multiply-adds",
    }


def _over_inner(row: Row, rows: Sequence[Row]) -> float | None:
    inner = [x for x in rows if (x.target, x.types, x.form) == (row.target, row.types, "inner") and x.gflops]
    if row.form == "inner" or not inner or row.gflops is None:
        return None
    same = [x for x in inner if (x.mr, x.nr) == (row.mr, row.nr)]
    return row.gflops / (same or inner)[0].gflops


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
