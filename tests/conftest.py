"""Fixtures, and the marker of every test: the folder it lies in (tests/cpu is ``cpu``)."""

from collections import Counter

import numpy as np
import pytest
from any_work import divide_any_work
from cases import QUICK, SEED
from hypothesis import HealthCheck, settings

import pysimd
from pysimd.backends.cpu import dispatch
from pysimd.backends.cpu.implementation import CPU

FOLDERS = ("cpu", "cuda", "hip", "cross")
CPU_KERNELS = pysimd.kernels("cpu", available=True)

KERNEL_ARGUMENTS = {
    "cpu_kernel": lambda kernel: True,
    "float_kernel": lambda kernel: kernel.c_dtype.kind == "f",
    "integer_kernel": lambda kernel: kernel.c_dtype.kind == "i",
    "one_dtype_kernel": lambda kernel: kernel.a_dtype == kernel.c_dtype,
}
"""A test with an argument of this name runs for every CPU kernel of this machine that the function accepts."""

# Derandomised: a run in CI and one here see the same cases. No deadline: an emulator is slow, not wrong.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=100)
settings.register_profile(
    "quick", derandomize=True, deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick" if QUICK else "default")


def pytest_collection_modifyitems(items):
    for item in items:
        for folder in set(FOLDERS).intersection(item.path.relative_to(item.config.rootpath).parts[:-1]):
            item.add_marker(getattr(pytest.mark, folder))


def pytest_generate_tests(metafunc):
    for argument, wanted in KERNEL_ARGUMENTS.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, [k for k in CPU_KERNELS if wanted(k)], ids=lambda k: k.name)


def pytest_report_header():
    cpu = pysimd.backends()[0]
    quick = " PYSIMD_TEST_QUICK=1" if QUICK else ""
    return f"cpu: {cpu.device}; {' '.join(cpu.features)}; {len(CPU_KERNELS)} kernels available{quick}"


def pytest_terminal_summary(terminalreporter):
    """How many tests were skipped for each reason."""
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section("skipped")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:6}  {reason}")


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Peaks are kept for the whole run, and not in the home folder of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def many_threads():
    divide_any_work()


@pytest.fixture
def cpu_limits(monkeypatch):
    """A function that changes ``dispatch.Limits`` for a test."""

    def change(**changes):
        new = dispatch.limits()._replace(**changes)
        monkeypatch.setattr(dispatch, "limits", lambda: new)
        CPU.door.set_limits(*new)

    yield change
    monkeypatch.undo()
    CPU.door.set_limits(*dispatch.limits())


@pytest.fixture
def rng(request):
    """A generator seeded by the test's own name, so that a test gives the same numbers alone and in the whole run."""
    return np.random.default_rng((SEED, *request.node.name.encode()))
