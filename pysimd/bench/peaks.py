"""What this machine does at most, measured by the package itself: multiply-adds, and loads from each memory.

Kept in the user's cache folder (``XDG_CACHE_HOME``, or ``~/.cache``) under ``pysimd``, one JSON file for each machine:
what it was measured on is in the file, and figures of another processor, driver or build are never taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pysimd import registry
from pysimd._version import __version__
from pysimd.errors import OptionError, UnavailableError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Loads:
    """Loads of whole vectors, nothing multiplied.

    Attributes:
        memory: where they come from: ``L1``, ``L2``, ``L3``, ``memory``; on a GPU also ``shared``.
        window_bytes: what is walked through again and again; on a GPU by each block, or by all of them.
        gbytes_per_s: 10^9 bytes in a second, of one core or of the whole GPU.
        gloads_per_s: 10^9 load instructions in a second (of one lane, on a GPU, where they are of four bytes each).
    """

    memory: str
    window_bytes: int
    gbytes_per_s: float
    gloads_per_s: float


@dataclass(frozen=True)
class Peak:
    """Of one target and types family: 10^9 operations in a second, two per multiply-add, and loads.

    Attributes:
        instruction: the multiply-add, where a types family has several (on GPUs); empty for CPUs.
        loads: of each memory; empty for types whose loads convert, and so are none alone.
    """

    target: str
    types: str
    instruction: str
    gflops: float
    loads: tuple[Loads, ...]


@dataclass(frozen=True)
class Peaks:
    """The peaks of one machine.

    Attributes:
        backend: ``cpu`` (of one core) or ``cuda`` (of the whole device).
        identity: what they belong to, as plain data: processor, features, build; or device, driver, compiler.
        measured_at: date and time, UTC.
        seconds: how long that took.
        peaks: one for each target and types family.
    """

    backend: str
    identity: dict[str, Any]
    measured_at: str
    seconds: float
    peaks: tuple[Peak, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data with ``schema_version``."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Peaks:
        """The peaks that ``to_dict`` made.

        Raises:
            OptionError: not such a document.
        """
        try:
            if data["schema_version"] != SCHEMA_VERSION:
                raise OptionError(f"peaks of schema_version {data['schema_version']}, this is {SCHEMA_VERSION}")
            names = ("backend", "identity", "measured_at", "seconds")
            peaks = tuple(
                Peak(
                    x["target"], x["types"], x["instruction"], x["gflops"], tuple(Loads(**load) for load in x["loads"])
                )
                for x in data["peaks"]
            )
            return cls(*(data[name] for name in names), peaks)
        except (KeyError, TypeError) as error:
            raise OptionError(f"no peaks: expected the JSON of `pysimd peaks --json` ({error!r})") from error


def peaks(backend: str = "cpu", *, fresh: bool = False) -> Peaks:
    """The peaks of a backend of this machine, from the cache if they were measured before.

    The first time this takes some seconds. Where the cache cannot be written, it takes them every time.

    Args:
        backend: ``cpu`` or ``cuda``.
        fresh: measure again.

    Raises:
        OptionError: another backend.
        UnavailableError: it is not there.
    """
    source = _source(backend)
    identity = {"pysimd": __version__, **source.identity()}
    path = _path(backend, identity)
    found = None if fresh else _read(path, identity)
    if found is None:
        start = time.perf_counter()
        measured = source.measured()
        found = Peaks.from_dict(
            {
                "schema_version": SCHEMA_VERSION,
                "backend": backend,
                "identity": identity,
                "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "seconds": time.perf_counter() - start,
                "peaks": measured,
            }
        )
        _write(path, found)
    return found


def _source(backend: str):
    """The module that measures a backend."""
    if backend not in ("cpu", "cuda"):
        raise OptionError(f"backend={backend!r}: peaks are measured for cpu and cuda")
    (here,) = (b for b in registry.backends() if b.name == backend)
    if not here.available:
        raise UnavailableError(here.reason)
    if backend == "cpu":
        from pysimd.bench import cpu_peaks as source
    else:
        from pysimd.bench import cuda_peaks as source
    return source


def _path(backend: str, identity: dict[str, Any]) -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    text = json.dumps(identity, sort_keys=True)
    return folder / "pysimd" / f"peaks-{backend}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _read(path: Path | None, identity: dict[str, Any]) -> Peaks | None:
    """What lies there, if it is of this machine; None for anything else, which is measured anew."""
    if path is None:
        return None
    with suppress(OSError, ValueError, OptionError, AttributeError):
        found = Peaks.from_dict(json.loads(path.read_text()))
        return found if found.identity == identity else None
    return None


def _write(path: Path | None, found: Peaks) -> None:
    """Whole or not at all; a cache that cannot be written is none."""
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        try:
            new.write_text(json.dumps(found.to_dict(), indent=1) + "\n")
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
