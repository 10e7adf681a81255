"""Compilation by CuPy, whose errors reach the user as the project's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pysimd.errors import UnavailableError

_LOG_LINES = 3


@contextlib.contextmanager
def explained(entry: str, name: str, needs: str) -> Iterator[None]:
    """Raises UnavailableError with the first lines of the log if the compiler or the driver does not take the template
    instance ``entry`` of the file ``name``: the installation is then one that the kernels were not written for.
    ``needs`` says what they need."""
    import cupy

    try:
        yield
    except (cupy.cuda.compiler.CompileException, RuntimeError, OSError) as error:
        log = " ".join([line.strip() for line in str(error).splitlines() if line.strip()][:_LOG_LINES])
        raise UnavailableError(
            f"{entry} of {name} cannot be compiled here: {log or type(error).__name__}; kernels need {needs}"
        ) from error
