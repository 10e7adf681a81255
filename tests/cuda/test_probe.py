"""Why CUDA is not available: every reason in words of its own. Needs neither CuPy nor a GPU."""

import importlib.util
import sys
from types import SimpleNamespace

import pytest

from pysimd.backends.gpu import cupy_probe


class CUDARuntimeError(RuntimeError):
    pass


def fake_cupy(count=None, error=None, is_hip=False):
    """As much of CuPy as is asked: how many devices, or the error that asking gives."""

    def get_device_count():
        if error:
            raise CUDARuntimeError(error)
        return count

    runtime = SimpleNamespace(is_hip=is_hip, getDeviceCount=get_device_count, CUDARuntimeError=CUDARuntimeError)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


REASONS = {
    "missing": (None, "CuPy is not installed: pip install 'pysimd[cuda]'"),
    "other build": (fake_cupy(1, is_hip=True), "CuPy is built for ROCm, not CUDA"),
    "no driver": (
        fake_cupy(error="cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"),
        "no NVIDIA driver: install the driver",
    ),
    "no device": (fake_cupy(error="cudaErrorNoDevice: no CUDA-capable device is detected"), "no NVIDIA device: cuda"),
    "hidden": (fake_cupy(0), "no NVIDIA device is visible"),
    "all there": (fake_cupy(1), ""),
}


@pytest.mark.parametrize("case", REASONS)
def test_reason(case, monkeypatch):
    cupy, words = REASONS[case]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: cupy)
    if cupy is not None:
        monkeypatch.setitem(sys.modules, "cupy", cupy)
    reason = cupy_probe.reason("cuda", want_hip=False)
    assert reason.startswith(words)
    assert bool(reason) == bool(words)


def test_reasons_differ():
    words = [text for _, text in REASONS.values()]
    assert len(set(words)) == len(words)
