"""DTensors of several processes, over gloo on loopback and over NCCL: the results are those of one process."""

import re
import signal
from concurrent.futures import ThreadPoolExecutor

import cuda_arrays
import pytest
from process import run_python


def gpus() -> int:
    """GPUs that torch can use, where this machine has any."""
    if cuda_arrays.WHY_NOT:
        return 0
    return pytest.importorskip("torch").cuda.device_count()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_processes(tmp_path, device):
    """When the last process is killed, the others end with torch's error: over gloo at once, over NCCL after the
    timeout of the process group."""
    pytest.importorskip("torch")
    size = 2 if device == "cpu" else gpus()
    if size < 2:
        pytest.skip("fewer than two NVIDIA GPUs")

    def run(rank):
        return run_python(
            *("-m", "process_group", str(rank), str(tmp_path / "store"), device, str(size)),
            timeout=150,
            GLOO_SOCKET_IFNAME="lo",
            OMP_NUM_THREADS="1",
        )

    with ThreadPoolExecutor(size) as pool:
        *others, last = pool.map(run, range(size))
    for done in (*others, last):
        assert done.stdout == "OK\n", done.stderr[-3000:]
    assert last.returncode == -signal.SIGKILL
    for done in others:
        assert done.returncode != 0
        assert re.search("closed by peer|reset by peer|timeout|timed out", done.stderr), done.stderr[-3000:]
