"""DTensors of two processes over gloo, on loopback: the results are those of one process."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from process import run_python


def test_two_processes(tmp_path):
    pytest.importorskip("torch")

    def run(rank):
        return run_python(
            "-m",
            "gloo_pair",
            str(rank),
            str(tmp_path / "store"),
            timeout=150,
            GLOO_SOCKET_IFNAME="lo",
            OMP_NUM_THREADS="1",
        )

    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(run, range(2)):
            assert done.stdout == "OK\n", done.stderr[-3000:]
