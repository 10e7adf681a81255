"""Programmatic dependent launch: what the driver is given. No GPU."""

import ctypes
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pytest

from pysimd.backends.cuda import dependent_launch, driver
from pysimd.backends.gpu.plans import Argument, KernelLaunch, KernelPlan, Slot

STREAM, HANDLE = 48, 77


@pytest.fixture
def launches(monkeypatch):
    """What cuLaunchKernelEx was called with: a plan that fails to launch gets the status that ``status`` holds."""
    found = SimpleNamespace(calls=[], status=0)

    def launch(config, handle, parameters, extra):
        attribute = config.attributes[0]
        words = [ctypes.c_int64.from_address(address).value for address in parameters]
        sizes = [getattr(config, f"{what}_{axis}") for what in ("grid", "block") for axis in "xyz"]
        attributes = [(attribute.id, attribute.value[0])] * config.attribute_count
        found.calls.append((sizes, config.shared_bytes, config.stream, attributes, handle, words, extra))
        return found.status

    fake_cupy.install(monkeypatch, fake_cupy.module())
    monkeypatch.setattr(driver, "function", lambda name: {"cuLaunchKernelEx": launch}[name])
    monkeypatch.setattr(dependent_launch, "_current_stream", lambda: lambda: SimpleNamespace(ptr=STREAM))
    dependent_launch._launch_kernel.cache_clear()
    yield found
    dependent_launch._launch_kernel.cache_clear()


def plan():
    kernel = dependent_launch.DependentKernel(SimpleNamespace(ptr=HANDLE))
    arguments = (Argument(np.array([0, 5]), (Slot(0, 3),)), Argument(np.array([9])))
    return KernelPlan([KernelLaunch(kernel, (6,), (384,), arguments, 1000)])


def test_a_plan_launches_a_dependent(launches):
    """The addresses of one call after the other are in the arguments, on the stream that is current or given."""
    made = plan()
    made.run([0, 0, 0, 4096, 0, 0])
    made.run([0, 0, 0, 8192, 0, 0], SimpleNamespace(ptr=STREAM + 1))
    same = [6, 1, 1, 384, 1, 1], 1000
    assert launches.calls == [
        (*same, STREAM, [(6, 1)], HANDLE, [4096, 9], None),
        (*same, STREAM + 1, [(6, 1)], HANDLE, [8192, 9], None),
    ]


def test_a_failed_launch_is_told(launches):
    launches.status = 701
    with pytest.raises(RuntimeError, match="cuLaunchKernelEx returned 701"):
        plan().run([0, 0, 0, 4096, 0, 0])


def test_structures_are_those_of_the_driver():
    """Sizes and offsets of cuda.h on 64-bit machines."""
    config = dependent_launch._Config
    assert (ctypes.sizeof(dependent_launch._Attribute), ctypes.sizeof(config)) == (72, 56)
    assert (config.shared_bytes.offset, config.stream.offset, config.attributes.offset) == (24, 32, 40)
