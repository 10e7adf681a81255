"""Python in a process of its own: for what must be set before the first import, and for what may crash."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

RUNNER = shlex.split(os.environ.get("PYSIMD_TEST_RUNNER", ""))
"""Words before the interpreter: an emulator's children would otherwise run on the real processor."""

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
"""The sanitizers' checks are in the machine code, which takes several times as long."""

SUPPORT = Path(__file__).parent


def run_python(*arguments: str, timeout: float = 600, **environment: str) -> subprocess.CompletedProcess:
    """``python *arguments`` with these environment variables added to the present ones; output is captured as text.

    PYSIMD_ISA and PYSIMD_NUM_THREADS of this process are not passed on. The helpers in tests/support can be imported.
    """
    kept = {k: v for k, v in os.environ.items() if k not in ("PYSIMD_ISA", "PYSIMD_NUM_THREADS")}
    return subprocess.run(
        [*RUNNER, sys.executable, *arguments],
        env={**kept, "PYTHONPATH": str(SUPPORT), "PYTHONFAULTHANDLER": "1", **environment},
        cwd="/",  # away from the checkout: the installed package is what is tested
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def output_of(*arguments: str, **environment: str) -> str:
    """Standard output of a run that must succeed."""
    done = run_python(*arguments, **environment)
    output = done.stdout[-2000:] + done.stderr[-4000:]
    assert done.returncode == 0, f"exit status {done.returncode} of {arguments}:\n{output}"
    return done.stdout
