"""The BLAS inside NumPy: what a figure of ``numpy.matmul`` belongs to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

NOT_INSTALLED = "threadpoolctl is not installed: pip install 'pysimd[bench]'"


@dataclass(frozen=True)
class Blas:
    """The BLAS inside NumPy. Fields are None where they are not known.

    Attributes:
        name, version: as NumPy was built.
        architecture: the processor whose kernels it runs on this machine (OpenBLAS, BLIS); threadpoolctl reads it.
        threads: how many it may use; threadpoolctl reads it.
        forced: value of OPENBLAS_CORETYPE, which can make OpenBLAS run the kernels of another processor; None if unset.
    """

    name: str | None
    version: str | None
    architecture: str | None
    threads: int | None
    forced: str | None

    def __str__(self) -> str:
        words = [" ".join(word for word in (self.name, self.version) if word) or "unknown BLAS"]
        words += [f"{self.architecture} kernels"] if self.architecture else []
        words += [f"{self.threads} thread{'s' * (self.threads != 1)}"] if self.threads else []
        return ", ".join(words)


def numpy_blas() -> Blas:
    """The BLAS that ``numpy.matmul`` calls in this process."""
    built, loaded = _built(), _loaded()
    return Blas(
        name=built.get("name"),
        version=built.get("version") or loaded.get("version"),
        architecture=loaded.get("architecture"),
        threads=loaded.get("num_threads"),
        forced=os.environ.get("OPENBLAS_CORETYPE"),
    )


def missing() -> str:
    """Why ``architecture`` and ``threads`` are not known; empty if threadpoolctl can read them."""
    try:
        import threadpoolctl  # noqa: F401
    except ImportError:
        return NOT_INSTALLED
    return ""


def _built() -> dict[str, Any]:
    """Name and version of the BLAS, as far as NumPy knows them: before 1.26 the name of its library alone."""
    if np.lib.NumpyVersion(np.__version__) >= "1.26.0":
        return np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    found = (np.__config__.get_info(f"blas{kind}_opt_info") for kind in ("", "_ilp64"))
    libraries = [library for info in found for library in info.get("libraries", ())]
    return {"name": libraries[0]} if libraries else {}


def _loaded() -> dict[str, Any]:
    """What threadpoolctl says of NumPy's BLAS; SciPy and others may have loaded another one."""
    if missing():
        return {}
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    own = [library for library in libraries if "numpy" in library["filepath"]]
    return next(iter(own or libraries), {})
