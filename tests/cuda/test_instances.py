"""Instances that are compiled in the background, and what computes a shape before there is one. Needs no GPU."""

import contextlib
import threading
import types

import fake_cupy
import numpy as np
import pytest
from pysimd.gpu_kernels import table

from pysimd import operands
from pysimd.backends.cuda import captures, device, implementation, narrow, tiles
from pysimd.backends.cuda.instances import Instances
from pysimd.backends.gpu.plans import ArrayWork
from pysimd.operands import GemmOptions

KEY = "batched.cu", "batched<F32, ...>", 0


@pytest.fixture
def cupy(monkeypatch):
    module = fake_cupy.module()
    fake_cupy.install(monkeypatch, module)
    return module


@pytest.fixture
def made():
    """Makes Instances, and lets their threads end."""
    found = []

    def make(compiled):
        found.append(Instances(compiled))
        return found[-1]

    yield make
    for each in found:
        if each._thread:
            each._stop()


class Driver:
    """Keeps the capture mode of a thread, as the driver does."""

    def __init__(self):
        self.mode = 0
        self.set: list[int] = []

    def cuThreadExchangeStreamCaptureMode(self, pointer):
        mode = pointer._obj
        self.set.append(mode.value)
        self.mode, mode.value = mode.value, self.mode
        return 0


@pytest.fixture
def driver(monkeypatch):
    found = Driver()
    monkeypatch.setattr(captures, "_driver", lambda: found)
    return found


def test_an_instance_that_is_made_now_leaves_captures_alone(driver):
    """Also where the thread has made one meanwhile: to unload either is as bad as to load it."""
    modes = []

    def compiled(*key):
        modes.append(driver.mode)
        found._ready[key] = "made by the thread"
        return "made now"

    found = Instances(compiled)
    assert found.now(*KEY) == found.get(*KEY) == "made by the thread"
    assert modes == [2]
    assert driver.set == [2, 0]


def test_the_mode_is_restored_after_an_error(driver):
    with pytest.raises(ZeroDivisionError), captures.left_alone():
        raise ZeroDivisionError
    assert driver.mode == 0


@pytest.mark.usefixtures("cupy")
class TestInstances:
    def test_the_second_time_starts_the_compiler_in_a_thread(self, made):
        threads, go = [], threading.Event()

        def compiled(*key):
            go.wait(10)
            threads.append(threading.current_thread())
            return f"compiled {key}"

        found = made(compiled)
        assert found.get(*KEY) is None
        assert found._thread is None
        assert found.get(*KEY) is None
        assert found.get(*KEY) is None  # nobody waits
        go.set()
        found.wait()
        assert found.get(*KEY) == f"compiled {KEY}"
        assert len(threads) == 1
        assert threads[0] is not threading.current_thread()

    def test_now(self, made):
        found = made(lambda *key: threading.current_thread())
        assert found.now(*KEY) is threading.current_thread()
        assert found.get(*KEY) is threading.current_thread()

    def test_on_the_device_of_the_key(self, made, cupy):
        current = []

        @contextlib.contextmanager
        def on(device):
            current.append(device)
            yield

        cupy.cuda.Device = on
        found = made(lambda *key: key)
        for _ in range(2):
            found.get(*KEY[:2], 3)
        found.wait()
        assert current == [3]

    def test_what_does_not_compile_is_left(self, made):
        def refuse(*key):
            raise RuntimeError("no such instruction")

        found = made(refuse)
        for _ in range(2):
            found.get(*KEY)
        with pytest.warns(RuntimeWarning, match="batched<F32, ...> was not compiled: no such instruction"):
            found.wait()
        assert found.get(*KEY) is None

    def test_waiting_for_nothing(self, made):
        made(None).wait()


class Array:
    """What a CuPy array is to a launch."""

    def __init__(self, *shape, dtype="f4"):
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)
        self.itemsize, self.size = self.dtype.itemsize, int(np.prod(shape))
        self.strides = tuple(self.itemsize * int(np.prod(shape[i + 1 :])) for i in range(self.ndim))
        self.data = types.SimpleNamespace(ptr=1 << 20)


@pytest.fixture
def work(cupy, monkeypatch):
    """The work of a product of 100 matrices, and the sources and entries that are compiled for it."""
    compiled = []
    monkeypatch.setattr(tiles, "function", lambda *key: compiled.append(key[:2]) or (lambda *_: None))
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    monkeypatch.setattr(implementation, "INSTANCES", Instances(lambda *key: tiles.function(*key)))

    def make(types="f32", c=False, **factors):
        dtype, dtype_c = {"f32": ("f4", "f4"), "f16": ("f2", "f2"), "i8i32": ("i1", "i4")}[types]
        a, b, c0 = Array(100, 4, 5, dtype=dtype), Array(100, 5, 6, dtype=dtype), Array(100, 4, 6, dtype=dtype_c)
        options = GemmOptions.checked(factors.get("alpha", 1), factors.get("beta", 0), 0, 0, c0)
        product = operands.check_gemm(None, a, b, c0 if c else None, None, options, (types,))
        product = product._replace(out=Array(100, 4, 6, dtype=dtype_c))
        assert implementation.CUDA.applies_factors(product, None)
        return implementation.CUDA.product_work(product, None), compiled

    yield make
    if implementation.INSTANCES._thread:
        implementation.INSTANCES._stop()


def test_a_new_shape_takes_the_kernel_for_all(work):
    """And has no plan, so that its own instance is taken when it is there."""
    for _ in range(2):
        found, compiled = work()
        assert isinstance(found, ArrayWork)
    implementation.INSTANCES.wait()
    found, compiled = work()
    assert found.plan is not None
    assert sorted(set(compiled))[0][0] == table.BATCHED
    assert ("batched_any.cu", "batched_any<F32>") in compiled


def test_a_graph_is_given_the_instance_at_once(work, cupy):
    cupy.cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=1 << 30)
    cupy.cuda.runtime.streamIsCapturing = lambda handle: True
    found, compiled = work()
    assert found.plan is not None
    assert [source for source, _ in compiled] == [table.BATCHED]


@pytest.fixture
def narrow_work(work, monkeypatch):
    """The work of a product with few rows and columns; the sources that are compiled, by this thread and by others."""
    here = threading.current_thread()
    compiled = {"here": [], "elsewhere": []}

    def function(source, entry, *where):
        compiled["here" if threading.current_thread() is here else "elsewhere"].append(source)
        return lambda *_: None

    monkeypatch.setattr(tiles, "function", function)
    monkeypatch.setattr(implementation, "INSTANCES", Instances(function))
    monkeypatch.setattr(narrow, "DependentKernel", lambda function, cluster: function)
    monkeypatch.setattr(narrow, "multiprocessors", lambda device: 132)

    def make(**factors):
        a, b, c = Array(203, 6645), Array(6645, 3), Array(203, 3)
        options = GemmOptions.checked(factors.get("alpha", 1), factors.get("beta", 0), 0, 0, c)
        product = operands.check_gemm(None, a, b, c if factors else None, None, options, ("f32",))
        return implementation.CUDA.product_work(product._replace(out=Array(203, 3)), None), compiled

    return make


@pytest.mark.parametrize("factors", [{}, {"alpha": 3, "beta": 2}])
def test_a_narrow_product_waits_for_no_instance(narrow_work, factors):
    """narrow_any.cu computes it, without a plan, until a thread has compiled the instance of narrow.cu."""
    for _ in range(2):
        found, compiled = narrow_work(**factors)
        assert isinstance(found, ArrayWork)
    implementation.INSTANCES.wait()
    found, compiled = narrow_work(**factors)
    assert found.plan is not None
    assert set(compiled["here"]) == {table.Narrow.any_source}
    assert compiled["elsewhere"] == [table.Narrow.source]


def test_a_graph_is_given_the_instance_of_a_narrow_product(narrow_work, cupy):
    cupy.cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=1 << 30)
    cupy.cuda.runtime.streamIsCapturing = lambda handle: True
    found, compiled = narrow_work()
    assert found.plan is not None
    assert compiled == {"here": [table.Narrow.source], "elsewhere": []}


@pytest.mark.parametrize("factors", [{"alpha": 2}, {"beta": 1, "c": True}, {"alpha": 3, "beta": 2, "c": True}])
@pytest.mark.parametrize("types", ["f32", "f16", "i8i32"])
def test_factors_are_applied_by_the_kernel(work, types, factors):
    found, compiled = work(types, **factors)
    assert found.plan is not None
    assert [source for source, _ in compiled] == [table.BATCHED_ANY]
    (call, rest), dtype = found.plan._launches[0][3], {"i8i32": np.int32}.get(types, np.float32)
    words = found.plan._template[rest // 8 :]
    alpha, beta = words[:2].view(dtype)[::2]
    assert (alpha, beta) == (factors.get("alpha", 1), factors.get("beta", 0))
    assert bool(found.plan._template[call // 8 + 2]) == factors.get("c", False)
