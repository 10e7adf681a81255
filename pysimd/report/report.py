"""``compare`` and its ``Report``: ratios of kernels, analytic; on request counted in the machine code, and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from pysimd import arguments, registry
from pysimd.errors import OptionError, UnavailableError
from pysimd.inspection import inspect
from pysimd.microkernel import MicroKernel
from pysimd.report.ratio_table import ratio_table
from pysimd.report.rows import SCHEMA_VERSION, Row, document, to_json

if TYPE_CHECKING:
    from pysimd.bench.peaks import Peaks


@dataclass(frozen=True)
class Report:
    """Rows of ``compare``, the machine they were made on, and its ``Peaks`` by backend where rows were measured and
    counted."""

    rows: tuple[Row, ...]
    machine: dict[str, Any]
    peaks: tuple[Peaks, ...] = ()

    def __str__(self) -> str:
        return ratio_table(self.rows)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data with ``schema_version``."""
        peaks = [found.to_dict() for found in self.peaks]
        return document(machine=self.machine, peaks=peaks, rows=[asdict(row) for row in self.rows])

    def to_json(self, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text; ``indent``: spaces of each level, None for one line."""
        if indent is not None and not isinstance(indent, int):
            raise OptionError(f"indent must be an integer or None, got {indent!r}")
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """The report that ``to_dict`` made, here or on another machine.

        Raises:
            OptionError: another document.
        """
        from pysimd.bench.peaks import Peaks

        names = {field.name for field in fields(Row)}
        try:
            version, rows, machine = data["schema_version"], data["rows"], data["machine"]
            made = tuple(Row(**{key: value for key, value in row.items() if key in names}) for row in rows)
            peaks = tuple(Peaks.from_dict(found) for found in data.get("peaks", ()))
            _need(_COUNTS, (row.counted for row in made if row.counted is not None))
            _need(("name", "available", "device", "reason"), machine.values())
        except (KeyError, TypeError, AttributeError) as error:
            raise OptionError(f"not a report: expected the JSON of `pysimd ratio --json` ({error!r})") from error
        if version != SCHEMA_VERSION:
            raise OptionError(f"a report of schema_version {version}, this is {SCHEMA_VERSION}: make it again")
        return cls(made, machine, peaks)

    def html(self) -> str:
        """One HTML page with tables, drawings and all the numbers; it refers to no other file."""
        from pysimd.report import html

        return html.page(self.rows, self.machine, self.peaks, self.to_json(None))

    def plot(self, path) -> None:
        """Draw the ratio of every kernel as bars, inner and outer product in two colours, with GFLOP/s where measured.

        Args:
            path: PNG, SVG, PDF, ... by its ending.

        Raises:
            UnavailableError: matplotlib, which all but SVG need, is not installed.
            OptionError: an ending that matplotlib does not know.
        """
        from pysimd.report import plots

        plots.ratio_bars(self.rows, path)

    def plot_rooflines(self, path) -> None:
        """Draw a roofline for each types family with kernels that were counted and measured.

        Args:
            path: PNG, SVG, PDF, ... by its ending.

        Raises:
            UnavailableError: matplotlib, which all but SVG need, is not installed.
            OptionError: no kernel was counted and measured, or an ending that matplotlib does not know.
        """
        from pysimd.report import plots, rooflines

        plots.save(rooflines.picture(self.rows, self.peaks), path)


def compare(
    kernels=None,
    *,
    count: bool = False,
    measure: bool = False,
    seconds: float = 0.02,
    targets: Sequence[str] = (),
    fresh: bool = False,
    say: Callable[[str], Any] | None = None,
) -> Report:
    """The math-to-load ratio of kernels.

    Args:
        kernels: kernels or names; all of them by default.
        count: also count the hot loop of each in its machine code (``pysimd.inspect``, for its default target). GPU
            kernels are compiled for it: seconds each. Where a tool is missing, the row says which.
        measure: also time each available kernel, interleaved with the peaks of its target and types. With ``count``,
            the report has the peaks of all memories too (``pysimd.bench.peaks``), which are kept between runs.
        seconds: time given to each kernel and to each of its peaks.
        targets: what GPU kernels are compiled for when they are counted, such as ``sm_80`` or ``gfx1100``: a row for
            each target of a kernel's backend. The row of a kernel that cannot be compiled for one says so.
        fresh: measure the peaks again.
        say: called with lines of progress, such as ``print``, where kernels are counted or measured.

    Returns:
        Report: ``.rows``, ``.to_dict()``, ``.to_json()``, ``.plot(path)``.

    Raises:
        UnknownKernelError: no kernel has that name.
        OptionError: a target that is not the architecture of a GPU, or an argument of another type.
    """
    count, measure, fresh = (
        arguments.flag(name, x) for name, x in (("count", count), ("measure", measure), ("fresh", fresh))
    )
    seconds, say = arguments.positive("seconds", seconds), arguments.function("say", say)
    targets = [arguments.text("target", x) for x in arguments.items("targets", targets, "architectures")]
    wrong = [x for x in targets if not x.startswith(tuple(_ARCHITECTURES.values()))]
    if wrong:
        raise OptionError(f"target {wrong[0]!r}: give architectures of GPUs, such as sm_80 or gfx942")
    given = registry.kernels() if kernels is None else arguments.items("kernels", kernels, "kernels or their names")
    chosen = [x if isinstance(x, MicroKernel) else registry.kernel(x) for x in given]
    cases = [(kernel, target) for kernel in chosen for target in _targets(kernel, targets)]
    rows = []
    for i, (kernel, target) in enumerate(cases, 1):
        if say and (count or measure):
            say(f"[{i}/{len(cases)}] {' '.join(filter(None, (kernel.name, target)))} ...")
        rows.append(_row(kernel, count, seconds if measure else 0, target))
    return Report(
        rows=tuple(replace(row, over_inner=_over_inner(row, rows)) for row in rows),
        machine=machine(),
        peaks=_peaks(rows, fresh, say) if count and measure else (),
    )


def machine() -> dict[str, Any]:
    """The backends of this machine as plain data, by name."""
    return {backend.name: asdict(backend) for backend in registry.backends()}


def _need(keys: Iterable[str], documents: Iterable[dict[str, Any]]) -> None:
    """KeyError for the first key that one of the documents lacks."""
    for found in documents:
        for key in keys:
            found[key]


_COUNTS = ("target", "macs", "multiply_adds", "load_instructions", "load_elements", "element_bytes", "element_ratio")
_COUNTS += ("instruction_ratio", "stores", "moves", "spills", "registers", "registers_there_are", "agrees", "remark")
"""What the page shows of ``Inspection.counts()``."""

_ARCHITECTURES = {"cuda": "sm_", "hip": "gfx"}


def _targets(kernel: MicroKernel, targets: Sequence[str]) -> list[str | None]:
    """Those of the kernel's backend; None stands for its default."""
    prefix = _ARCHITECTURES.get(kernel.backend)
    own: list[str | None] = [target for target in targets if prefix and target.startswith(prefix)]
    return own or [None]


def _peaks(rows: Sequence[Row], fresh: bool, say: Callable[[str], Any] | None) -> tuple[Peaks, ...]:
    from pysimd.bench import peaks

    measured = dict.fromkeys(row.backend for row in rows if row.gflops is not None)
    return tuple(peaks.peaks(backend, fresh=fresh, say=say) for backend in measured)


def _row(kernel: MicroKernel, count: bool, seconds: float, target: str | None) -> Row:
    counted, reason = _counted(kernel, target) if count else (None, "")
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
        **(_measured(kernel, counted, seconds) if seconds and kernel.available else {}),
    )


def _counted(kernel: MicroKernel, target: str | None) -> tuple[dict[str, Any] | None, str]:
    try:
        return inspect(kernel, target=target).counts(), ""
    except (UnavailableError, OptionError) as error:
        return None, str(error)


def _measured(kernel: MicroKernel, counted: dict[str, Any] | None, seconds: float) -> dict[str, Any]:
    from pysimd.bench import tiles

    speed = tiles.tile_speed(kernel, seconds=seconds)
    return {**asdict(speed), "percent_of_peak": speed.percent_of_peak, **_limits(asdict(speed), counted)}


_LANES = {"core": 1, "thread": 1, "warp": 32, "wave": 64}


def _limits(speed: dict[str, Any], counted: dict[str, Any] | None) -> dict[str, Any]:
    """Loads per second of a measured kernel as shares of what its target can load, and which limit binds."""
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
