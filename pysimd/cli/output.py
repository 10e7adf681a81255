"""What commands print."""

from __future__ import annotations

import codecs
import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pysimd.bench import blas
from pysimd.report import plots
from pysimd.report.rows import document, to_json

_ASCII = str.maketrans({**dict.fromkeys("┌┐└┘", "+"), "│": "|", "─": "-", "µ": "u"})


def _ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII)
    return text.encode("ascii", "replace").decode(), error.end


codecs.register_error("pysimd-ascii", _ascii)


def write_ascii_where_needed(stream) -> None:
    """Let ``stream`` write what its encoding lacks in ASCII: ``+``, ``-`` and ``|`` for the lines of drawings."""
    if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="pysimd-ascii")


def print_json(**fields) -> None:
    """One JSON document on standard output."""
    print(to_json(document(**fields)))


def say(*words: object) -> None:
    """Progress or a warning, on standard error."""
    print(*words, file=sys.stderr, flush=True)


@contextmanager
def said_when_slow(words: str) -> Iterator[None]:
    """Say what is done if it takes longer than a second."""
    timer = threading.Timer(1.0, say, (words,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say_written(what: str, path: Path) -> None:
    say(f"{what} written to {path}")


_COMMANDS = {
    "pysimd.kernels()": "`pysimd kernels`",
    "pysimd.kernels('hip')": "`pysimd kernels --backend hip`",
    "pysimd.rungs()": "`pysimd ladder --list`",
    "target=": "--target ",
}
"""Functions and parameters in messages of the package, and what the command line has instead."""


def check_output(path: Path | None, *, plot: bool = False) -> None:
    """Raise, before anything is measured, where ``path`` cannot be written, or drawn into if it is for a ``plot``."""
    if path is None:
        return
    if plot:
        plots.check(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def fail(error: object, code: int) -> int:
    """One line on standard error; returns the exit code."""
    text = str(error)
    for python, command in _COMMANDS.items():
        text = text.replace(python, command)
    say("pysimd: error:", " ".join(text.split()))
    return code


def numpy_blas() -> blas.Blas:
    """The BLAS inside NumPy, with warnings where its kernels are not known or not those of this processor."""
    found = blas.numpy_blas()
    if blas.missing():
        say(f"the architecture and the threads of NumPy's BLAS are not known: {blas.missing()}")
    if found.forced is not None:
        say(f"warning: OPENBLAS_CORETYPE={found.forced} is set: NumPy may run another machine's kernels; unset it")
    return found


def operations_unit(types: str) -> str:
    """10^9 operations per second of a types family."""
    return "GOP/s" if types.endswith("i32") else "GFLOP/s"
