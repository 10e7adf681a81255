"""DTensors of several processes, over gloo on loopback and over NCCL: the results are those of one process."""

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
        for done in pool.map(run, range(size)):
            assert done.stdout == "OK\n", done.stderr[-3000:]
