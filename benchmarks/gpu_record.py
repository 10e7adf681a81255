"""What a recorded figure of a GPU needs: the machine that it comes from, and a file."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import date
from pathlib import Path

import cupy
import numpy as np

import pysimd


def output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def machine() -> dict[str, object]:
    """What a figure needs to be understood later."""
    runtime, here = cupy.cuda.runtime, pysimd.backends()[1]
    properties = runtime.getDeviceProperties(0)
    return {
        "device": here.device,
        "capability": here.features[0],
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "driver": runtime.driverGetVersion(),
        "cuda_runtime": runtime.runtimeGetVersion(),
        "nvrtc": list(cupy.cuda.nvrtc.getVersion()),
        "cublas": cupy.cuda.cublas.getVersion(cupy.cuda.device.get_cublas_handle()),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "pysimd": pysimd.__version__,
        "commit": os.environ.get("PYSIMD_COMMIT") or output("git", "rev-parse", "--short", "HEAD") or "unknown",
        "date": date.today().isoformat(),
    }


def deliver(document: dict[str, object], out: Path | None) -> None:
    """Print the document, and write it to ``out`` if that is given."""
    text = json.dumps(document, indent=1)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n")
    print(text)
