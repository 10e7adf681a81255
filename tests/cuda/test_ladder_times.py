"""How the ladder is timed and checked: NumPy replaces CuPy, and events read a clock that the calls advance. No GPU."""

from functools import partial
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest

import pysimd
from pysimd import dtypes, microkernel
from pysimd.backends.cuda import device as cuda_device
from pysimd.backends.gpu import rungs as gpu_rungs
from pysimd.bench import cuda_ladder as ladder
from pysimd.bench import timing

SECONDS = {"cuBLAS": 1e-3, "smem": 4e-3, "naive": 2.0, "cuBLAS, 16-bit C": 2e-3, "mma_sync": 3e-3, "wgmma": 5e-3}
SECONDS |= {"hip_smem": 4e-3, "hip_naive": 2.0, "ozaki2_f64": 3e-3}


class Clock:
    """Events that read the time that the calls have taken so far."""

    now = 0.0

    def record(self):
        self.at = Clock.now

    def synchronize(self):
        pass


def taking(name, function):
    def call():
        Clock.now += SECONDS[name]
        return function()

    return call


def wide(x):
    return dtypes.widened(x, np.float64)


def gemm_ex(a, b, out):
    """cuBLAS: exact, then rounded to the type of C."""

    def product():
        out[...] = (wide(a) @ wide(b)).astype(np.float32)

    return taking("cuBLAS" if out.itemsize == 4 else "cuBLAS, 16-bit C", product)


@pytest.fixture
def fake(monkeypatch):
    properties = {"l2CacheSize": 40_000}
    runtime = SimpleNamespace(getDevice=lambda: 0, getDeviceProperties=lambda device: properties)
    monkeypatch.setattr(ladder, "gemm_ex", gemm_ex)
    elapsed = SimpleNamespace(
        Event=Clock, get_elapsed_time=lambda begin, end: 1e3 * (end.at - begin.at), runtime=runtime
    )
    cupy = SimpleNamespace(
        random=np.random,
        empty=np.empty,
        empty_like=np.empty_like,
        matmul=lambda a, b, out: taking("cuBLAS", partial(np.matmul, a, b, out=out))(),
        cuda=elapsed,
        RawKernel=lambda code, name: lambda grid, block, arguments: None,
    )
    fake_cupy.install(monkeypatch, cupy)
    wrong = set()

    def prepared(rung, a, b, out):
        def product():
            out[...] = wide(a) @ wide(b)
            if rung.name in wrong:
                out[3, 5] += 0.01

        return taking(rung.name, product)

    monkeypatch.setattr(gpu_rungs, "prepared", prepared)
    return wrong


RUNGS = [pysimd.rung(name) for name in ("naive", "smem")]


def test_speed_and_check(fake):
    timed = ladder.at_size(RUNGS, "f32", 32, 0.05)
    assert list(timed) == ["cuBLAS", "naive", "smem"]
    for name, measured in timed.items():
        assert measured.tflops == pytest.approx(2 * 32**3 / SECONDS[name] / 1e12)
        assert measured.within_bound


@pytest.mark.parametrize(("types", "name"), [("f16f32", "mma_sync"), ("bf16f32", "wgmma"), ("f64", "ozaki2_f64")])
def test_other_families(fake, types, name):
    """cuBLAS, of 16-bit operands also with a C of 16 bits, and the rung; all are right, and an error is seen."""
    timed = ladder.at_size([pysimd.rung(name)], types, 32, 0.05)
    assert list(timed) == [*ladder.peers(types), name]
    assert all(measured.within_bound for measured in timed.values())
    fake.add(name)
    timed = ladder.at_size([pysimd.rung(name)], types, 32, 0.05)
    assert [measured.within_bound for measured in timed.values()] == [True] * len(ladder.peers(types)) + [False]


def test_the_peer_of_hip_is_rocblas(fake):
    fake.add("hip_smem")
    timed = ladder.at_size([pysimd.rung(name) for name in ("hip_naive", "hip_smem")], "f32", 32, 0.05)
    assert {name: x.within_bound for name, x in timed.items()} == {
        "rocBLAS": True,
        "hip_naive": True,
        "hip_smem": False,
    }
    rows = list(ladder._rows([pysimd.rung(name) for name in timed if name != "rocBLAS"], "f32", 32, timed, None))
    assert [row.name for row in rows] == ["hip_naive", "hip_smem", "rocBLAS"]
    assert rows[-1].percent_of_cublas == 100


def test_a_wrong_result_is_seen(fake):
    fake.add("smem")
    assert {name: t.within_bound for name, t in ladder.at_size(RUNGS, "f32", 32, 0.01).items()} == {
        "cuBLAS": True,
        "smem": False,
        "naive": True,
    }


def test_slow_runs_have_three_samples(fake):
    calls = dict.fromkeys(("slow", "fast"), 0)

    def counted(name, seconds):
        def call():
            calls[name] += 1
            Clock.now += seconds

        return call

    runs = {"slow": timing.repeated(counted("slow", 9.0)), "fast": timing.repeated(counted("fast", 1e-3))}
    found = timing.times(runs, timing.CudaEvents(), seconds=0.1)
    assert {name: x.median_ns for name, x in found.items()} == {"slow": pytest.approx(9e9), "fast": pytest.approx(1e6)}
    assert calls["slow"] == 3 + 3  # three samples, and three calls to see how long one takes
    assert 50 < calls["fast"] < 150


def test_rows_compare_with_cublas_and_the_peak(fake, monkeypatch):
    monkeypatch.setattr(ladder, "check_available", lambda backend: None)
    monkeypatch.setattr(ladder, "peak_tflops", lambda types: 8e-5)
    monkeypatch.setattr(ladder.registry, "rungs", lambda backend: [usable(rung) for rung in RUNGS])
    said = []
    rows, peaks = ladder.measure([32, 48], 0.01, said.append)
    assert peaks == {"f32": 8e-5}
    assert [(row.name, row.size) for row in rows] == [(n, s) for s in (32, 48) for n in ("naive", "smem", "cuBLAS")]
    assert [row.percent_of_cublas for row in rows[:3]] == pytest.approx([0.05, 25, 100])
    assert rows[1].percent_of_peak == pytest.approx(100 * rows[1].tflops / 8e-5)
    assert [row.ratio for row in rows[:3]] == [0.5, 0.5, None]
    assert len(said) == 3


@pytest.mark.parametrize(
    ("types", "compared", "other"), [("f32", "smem", "tf32x3"), ("f16f32", "wmma_naive", "cuBLAS, 16-bit C")]
)
def test_the_peak_of_an_instruction_is_for_its_rungs_alone(types, compared, other):
    rungs = [usable(pysimd.rung(name)) for name in ("smem", "tf32x3", "wmma_naive") if name in (compared, other)]
    timed = dict.fromkeys((compared, other, *ladder.peers(types)), ladder.Timed(10.0, True))
    rows = {row.name: row.percent_of_peak for row in ladder._rows(rungs, types, 64, timed, 20.0)}
    assert (rows[compared], rows[other]) == (50.0, None)
    assert rows["cuBLAS"] == (50.0 if types == "f32" else None)
    assert {row.percent_of_peak for row in ladder._rows(rungs, types, 64, timed, None)} == {None}


def usable(rung):
    """The rung of a machine that can run it."""
    fields = {name: getattr(rung, name) for name in rung.__dataclass_fields__}
    resources = SimpleNamespace(resources=lambda rung: microkernel.Resources(32, 8192, 0))
    return pysimd.Rung(**{**fields, "available": True, "unavailable_reason": "", "_implementation": resources})


def test_tf32_is_no_peer(monkeypatch):
    monkeypatch.setattr(cuda_device, "backend", lambda: pysimd.Backend("cuda", True, "", "a GPU", ("sm_90",)))
    ladder.check_available()
    monkeypatch.setenv("CUPY_TF32", "1")
    with pytest.raises(pysimd.OptionError, match="CUPY_TF32=1"):
        ladder.check_available()
