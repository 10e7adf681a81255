"""The peaks of this machine: multiply-adds, and loads from each memory, as the package measures them.

They are kept in the user's cache folder (``XDG_CACHE_HOME``, or ``~/.cache``) under ``pysimd``, one JSON file for each
machine. The file holds the identity of the machine and of the build, and is used for exactly that identity.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pysimd import registry
from pysimd._version import __version__
from pysimd.bench import cpu_peaks, cuda_peaks
from pysimd.errors import OptionError, UnavailableError

SCHEMA_VERSION = 1

_MOST_BYTES = 1 << 20
"""Of a cached file; a longer one is not read to its end."""


@dataclass(frozen=True)
class Loads:
    """Loads of whole vectors, nothing multiplied.

    Attributes:
        memory: where they come from: ``L1``, ``L2``, ``L3``, ``memory``; on a GPU also ``shared``.
        window_bytes: what is read repeatedly; on a GPU by each block, or by all blocks together.
        gbytes_per_s: 10^9 bytes per second, of one core or of the whole GPU.
        gloads_per_s: 10^9 load instructions per second; on a GPU of one lane, four bytes each.
    """

    memory: str
    window_bytes: int
    gbytes_per_s: float
    gloads_per_s: float


@dataclass(frozen=True)
class Peak:
    """The peak of one target and types family.

    Attributes:
        instruction: the multiply-add, where a types family has several (on GPUs); empty for CPUs.
        gflops: 10^9 operations per second, two per multiply-add.
        loads: of each memory; empty for types whose loads convert their elements.
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
        identity: of machine and build, as plain data: processor, features, build; or device, driver, compiler.
        measured_at: date and time, UTC.
        seconds: how long the measurement took.
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
        """The peaks of a document that ``to_dict`` made.

        Raises:
            OptionError: another document.
        """
        try:
            if data["schema_version"] != SCHEMA_VERSION:
                raise OptionError(f"peaks of schema_version {data['schema_version']}, this is {SCHEMA_VERSION}")
            names = ("backend", "identity", "measured_at", "seconds")
            peaks = tuple(
                Peak(**{**peak, "loads": tuple(Loads(**load) for load in peak["loads"])}) for peak in data["peaks"]
            )
            return cls(*(data[name] for name in names), peaks)
        except (KeyError, TypeError) as error:
            raise OptionError(f"not peaks: expected the JSON of `pysimd peaks --json` ({error!r})") from error


def peaks(backend: str = "cpu", *, fresh: bool = False, say: Callable[[str], Any] | None = None) -> Peaks:
    """The peaks of a backend of this machine, from the cache if they were measured before.

    A measurement takes some seconds. Where the cache cannot be written, each call measures.

    Args:
        backend: ``cpu`` or ``cuda``.
        fresh: measure again.
        say: called with lines of progress, where peaks are measured.

    Raises:
        OptionError: another backend.
        UnavailableError: the backend cannot run on this machine.
    """
    module = _module(backend)
    identity = {"pysimd": __version__, **module.identity()}
    path = _path(backend, identity)
    found = None if fresh else _read(path, identity)
    if found is None:
        start = time.perf_counter()
        measured = module.measured(say or (lambda line: None))
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


def _module(backend: str):
    """The module that measures a backend."""
    if backend not in ("cpu", "cuda"):
        raise OptionError(f"backend={backend!r}: peaks are measured for cpu and cuda")
    (here,) = (b for b in registry.backends() if b.name == backend)
    if not here.available:
        raise UnavailableError(here.reason)
    return cpu_peaks if backend == "cpu" else cuda_peaks


def _path(backend: str, identity: dict[str, Any]) -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:  # the user has no home folder
        return None
    text = json.dumps(identity, sort_keys=True)
    return folder / "pysimd" / f"peaks-{backend}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _read(path: Path | None, identity: dict[str, Any]) -> Peaks | None:
    """The peaks in a file; None unless they are of this identity."""
    if path is None:
        return None
    with suppress(OSError, ValueError, RecursionError, OptionError, AttributeError), path.open("rb") as file:
        found = Peaks.from_dict(json.loads(file.read(_MOST_BYTES)))
        return found if found.identity == identity else None
    return None


def _write(path: Path | None, found: Peaks) -> None:
    """Write the file whole or not at all; no error where the folder cannot be written."""
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
