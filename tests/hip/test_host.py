"""Why HIP is not available, and what calls and simulations refuse: each in words of its own. Needs no compiler."""

import importlib.util
import inspect
import json
import shutil
import sys
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest
from hip_machine_code import missing

import pysimd
from pysimd import simulator
from pysimd.backends.gpu import cupy_probe
from pysimd.backends.hip import device as hip_device
from pysimd.backends.hip.implementation import HIP
from pysimd.cli import command as cli

needs_compiler = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")


class CUDARuntimeError(RuntimeError):
    pass


def cupy_of(count=1, error=None, is_hip=True, arch=b"gfx90a:sramecc+:xnack-"):
    """As much of CuPy as is asked."""

    def get_device_count():
        if error:
            raise CUDARuntimeError(error)
        return count

    runtime = SimpleNamespace(
        is_hip=is_hip,
        getDeviceCount=get_device_count,
        getDevice=lambda: 0,
        getDeviceProperties=lambda device: {"name": b"AMD Instinct", "gcnArchName": arch},
        CUDARuntimeError=CUDARuntimeError,
    )
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


class Broken:
    """A finder that lets CuPy's import fail as it does where ROCm is missing."""

    def find_spec(self, name, path=None, target=None):
        if name == "cupy":
            raise ImportError("libamdhip64.so.7: cannot open shared object file: No such file or directory")


REASONS = {
    "missing": (None, "hipcc", "CuPy is not installed: pip install 'pysimd[rocm]'"),
    "no ROCm": (Broken(), "hipcc", "CuPy is installed but does not import (libamdhip64.so.7: cannot open"),
    "other build": (cupy_of(is_hip=False), "hipcc", "CuPy is built for CUDA, not ROCm: uninstall it, then pip"),
    "no device": (cupy_of(error="hipErrorNoDevice: no ROCm-capable device"), "hipcc", "no AMD device: hipError"),
    "hidden": (cupy_of(0), "hipcc", "no AMD device is visible"),
    "no hipcc": (cupy_of(), None, "hipcc is not on PATH"),
    "too old": (cupy_of(arch=b"gfx803"), "hipcc", "AMD Instinct is gfx803: the kernels need gfx9, gfx10"),
    "all there": (cupy_of(), "hipcc", ""),
}


@pytest.fixture
def seen(monkeypatch):
    """The backend as it is seen with this CuPy and this hipcc."""

    def see(cupy, hipcc):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: cupy)
        monkeypatch.delitem(sys.modules, "cupy", raising=False)
        if isinstance(cupy, Broken):
            monkeypatch.setattr(sys, "meta_path", [cupy, *sys.meta_path])
        elif cupy is not None:
            fake_cupy.install(monkeypatch, cupy)
        monkeypatch.setattr(shutil, "which", lambda name: hipcc)
        hip_device.backend.cache_clear()
        return HIP.backend()

    yield see
    hip_device.backend.cache_clear()


@pytest.mark.parametrize("case", REASONS)
def test_reason(case, seen):
    cupy, hipcc, words = REASONS[case]
    backend = seen(cupy, hipcc)
    assert backend.reason.startswith(words)
    assert backend.available == (not words)
    assert bool(backend.reason) == bool(words)


def test_reasons_differ():
    words = [x[2] for x in REASONS.values()]
    assert len(set(words)) == len(words)


def test_features_of_the_device(seen):
    assert seen(cupy_of(), "hipcc").features == ("gfx90a", "gfx900", "mfma")
    available = {k.name: k.unavailable_reason for k in inspect.unwrap(type(HIP).kernels)(HIP)}
    assert available["hip_f32_mfma_32x32"] == ""
    assert available["hip_f16f32_wmma_16x16"] == (
        "AMD Instinct is gfx90a: hip_f16f32_wmma_16x16 needs wmma, which gfx11, gfx12 have, gfx90a not"
    )


def test_unavailable_kernels_say_why():
    if pysimd.kernel("hip_f32_outer_4x4").available:
        pytest.skip("they are available here")
    with pytest.raises(pysimd.UnavailableError, match=r"hip_f32_outer_4x4 cannot run here: .*CuPy"):
        pysimd.kernel("hip_f32_outer_4x4")(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
    assert cupy_probe.reason("rocm", want_hip=True)


KERNEL = "hip_f32_outer_4x4"
A, B = np.ones((4, 3), np.float32), np.ones((3, 4), np.float32)


class OnGpu:
    """An array of another library on an AMD GPU."""

    def __dlpack_device__(self):
        return 10, 0


REFUSED = {
    "target": (lambda k: k.simulate(A, B, target="gfx9000"), pysimd.OptionError, "the simulator knows gfx900, gfx906"),
    "shape": (lambda k: k.simulate(A, np.ones((3, 5), np.float32)), pysimd.ShapeError, r"takes a \(\.\.\., 4, K\)"),
    "dtype": (lambda k: k.simulate(A.astype(np.float64), B), pysimd.DTypeError, "convert with .astype"),
    "a GPU's array": (
        lambda k: k.simulate(OnGpu(), OnGpu()),
        pysimd.DTypeError,
        "takes NumPy arrays, these are on hip",
    ),
    "mixed": (lambda k: k.simulate(A, OnGpu()), pysimd.DTypeError, "a is on cpu, b is on hip"),
    "no unit": (
        lambda k: pysimd.kernel("hip_f32_mfma_16x16").simulate(A, B, target="gfx1100"),
        pysimd.UnavailableError,
        "needs mfma, which gfx908, gfx90a, gfx942, gfx950 have, gfx1100 not",
    ),
    "another backend": (
        lambda k: pysimd.kernel("cuda_f32_outer_4x4").simulate(A, B),
        pysimd.UnavailableError,
        "cuda_f32_outer_4x4 is no HIP kernel",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_simulate_refuses(case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call(pysimd.kernel(KERNEL))


def test_matmul_on_hip_arrays_without_hip():
    if pysimd.backends()[2].available:
        pytest.skip("HIP is available here")
    with pytest.raises(pysimd.UnavailableError, match="CuPy"):
        pysimd.matmul(OnGpu(), OnGpu())


@needs_compiler
def test_operands_of_any_kind():
    """Read-only, strided, without whole strides; nothing of them changes."""
    kernel = pysimd.kernel(KERNEL)
    records = np.zeros((2, 4, 6), np.dtype([("before", "u1"), ("x", np.float32)]))
    records["x"] = np.arange(48).reshape(2, 4, 6)
    a = records["x"]
    b = np.broadcast_to(np.float32(2), (6, 4))
    run = kernel.simulate(a, b, target="gfx906")
    np.testing.assert_array_equal(run.result, a @ b)
    assert run.target == "gfx906"
    assert run.entry.startswith("outer<F32, 4, 4, ")


@needs_compiler
@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0)])
def test_nothing_to_compute(shape):
    a = np.ones(shape, np.float32)
    c = np.full((4, 4), 5, np.float32)
    run = pysimd.kernel(KERNEL).simulate(a, np.ones((shape[-1], 4), np.float32), c)
    np.testing.assert_array_equal(run.result, np.broadcast_to(c, (shape[0], 4, 4)))
    assert np.isnan(run.ratio)
    assert isinstance(run.counts, simulator.Counts)


@needs_compiler
class TestCommandLine:
    NAME = "hip_i8i32_outer_4x4"

    def test_json(self, capsys):
        arguments = ["run", self.NAME, "--simulate", "gfx1100", "--batch", "3", "--k", "32", "--json"]
        assert cli.main(arguments) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["target"] == "gfx1100"
        assert told["macs"] == 3 * 4 * 4 * 32
        assert told["macs_per_element"] == 2.0
        assert told["counts"]["instructions"]["v_dot4_i32_iu8"]["lanes"] == 3 * 4 * 4 * 32 // 4
        assert told["error"]["holds"]

    def test_text_says_that_no_gpu_ran(self, capsys):
        assert cli.main(["run", self.NAME, "--simulate", "gfx906", "--batch", "2", "--k", "0"]) == 0
        out = capsys.readouterr().out
        assert "gfx906, executed in the functional simulator: not run on a GPU" in out
        assert "error    none: exact" in out

    def test_result_is_saved(self, tmp_path):
        path = tmp_path / "out.npy"
        arguments = ["run", self.NAME, "--simulate", "gfx90a", "--batch", "2", "--k", "5", "--out", str(path)]
        assert cli.main(arguments) == 0
        assert np.load(path).shape == (2, 4, 4)

    def test_unknown_target_is_a_usage_error(self, capsys):
        assert cli.main(["run", self.NAME, "--simulate", "gfx1"]) == 2
        assert "the simulator knows gfx900" in capsys.readouterr().err

    def test_kernel_of_another_backend(self, capsys):
        assert cli.main(["run", "generic_f32_outer_4x4", "--simulate", "gfx942"]) == 1
        assert "is no HIP kernel" in capsys.readouterr().err
