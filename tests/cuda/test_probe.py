"""Why CUDA is not available: every reason in words of its own. Needs neither CuPy nor a GPU."""

import importlib.util
from types import SimpleNamespace

import fake_cupy
import pytest

from pysimd.backends.gpu import cupy_probe


class CUDARuntimeError(RuntimeError):
    pass


def cupy_of(count=None, error=None, is_hip=False):
    """As much of CuPy as is asked: how many devices, or the error that asking gives."""

    def get_device_count():
        if error:
            raise CUDARuntimeError(error)
        return count

    runtime = SimpleNamespace(is_hip=is_hip, getDeviceCount=get_device_count, CUDARuntimeError=CUDARuntimeError)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


REASONS = {
    "missing": (None, "CuPy is not installed: pip install 'pysimd[cuda]'"),
    "other build": (cupy_of(1, is_hip=True), "CuPy is built for ROCm, not CUDA"),
    "no driver": (
        cupy_of(error="cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"),
        "no NVIDIA driver: install the driver",
    ),
    "no device": (cupy_of(error="cudaErrorNoDevice: no CUDA-capable device is detected"), "no NVIDIA device: cuda"),
    "hidden": (cupy_of(0), "no NVIDIA device is visible"),
    "all there": (cupy_of(1), ""),
}


@pytest.mark.parametrize("case", REASONS)
def test_reason(case, monkeypatch):
    cupy, words = REASONS[case]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: cupy)
    if cupy is not None:
        fake_cupy.install(monkeypatch, cupy)
    reason = cupy_probe.reason("cuda", want_hip=False)
    assert reason.startswith(words)
    assert bool(reason) == bool(words)


def test_reasons_differ():
    words = [text for _, text in REASONS.values()]
    assert len(set(words)) == len(words)
