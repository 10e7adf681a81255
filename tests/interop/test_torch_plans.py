"""Plans of calls that go through torch's dispatcher, with tensors of the CPU that say they are on a GPU. No GPU."""

import contextlib
import importlib
import warnings
from types import SimpleNamespace

import fake_cupy
import pytest

from pysimd import dtypes, registry
from pysimd.backends.cuda.implementation import INSTANCES
from pysimd.backends.gpu import replay
from pysimd.backends.gpu.implementation import Gpu
from pysimd.backends.gpu.plans import A, B, C, Work

with warnings.catch_warnings():  # of torch's own imports
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    importlib.import_module("pysimd.interop.torch")


class Plan:
    """Keeps the addresses that it is run with."""

    def __init__(self):
        self.runs = []

    def run(self, addresses, stream=None):
        self.runs.append((addresses[A], addresses[B], addresses[C]))


class Planner(Gpu):
    """A backend that keeps the plans that it is asked for."""

    name, offered = "fake", ("bf16f32",)
    kernels = rungs = tile_launches = resources = None

    def __init__(self):
        self.plans = []

    def backend(self):
        return SimpleNamespace(available=True)

    def applies_factors(self, product, kernel):
        return True

    def rounds(self, product, kernel):
        return True

    def product_work(self, product, kernel):
        self.plans.append(Plan())
        return Work(self.plans[-1], (product.a, product.b, product.c, product.out))


def _viewed(tensor):
    """What ``cupy.from_dlpack`` returns of a tensor of bfloat16."""
    return tensor.view(torch.int16).numpy().view(dtypes.dtype_of("bfloat16")).view(fake_cupy.Array)


def _empty(shape, strides, dtype):
    return torch.empty_strided(shape, strides, dtype=dtype)


@pytest.fixture
def planner(monkeypatch):
    if dtypes.dtype_of("bfloat16").name != "bfloat16":
        pytest.skip("no ml_dtypes")
    INSTANCES.wait()  # its thread imports CuPy for each compilation
    module = fake_cupy.module()
    module.ndarray, module.from_dlpack = fake_cupy.Array, _viewed
    fake_cupy.install(monkeypatch, module)
    monkeypatch.setattr(replay, "KNOWN", {})
    monkeypatch.setattr(replay, "_layouts", [])
    monkeypatch.setattr(replay.torch_tensors, "empty_function", lambda: _empty)
    monkeypatch.setattr(replay.torch_tensors, "current_stream", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    found = Planner()
    monkeypatch.setattr(registry, "implementation", lambda name: found)
    return found


def operands(requires_grad):
    return torch.randn(3, 4, 4).bfloat16().requires_grad_(requires_grad), torch.randn(3, 4, 4).bfloat16()


@pytest.mark.parametrize("call", ["recorded", "dtype"])
def test_a_bfloat16_product_is_planned_once(planner, call):
    """Where an operand requires gradients, and where an option is given; results are new each time."""
    options = {"dtype": torch.bfloat16} if call == "dtype" else {}
    expected, kept = [], []
    for _ in range(3):
        a, b = operands(call == "recorded")
        result = torch.ops.pysimd.matmul(a, b, **options)
        assert result.dtype == torch.bfloat16
        assert result.requires_grad == (call == "recorded")
        expected.append((a.data_ptr(), b.data_ptr(), result.data_ptr()))
        kept.append((a, b, result))
    assert [x.runs for x in planner.plans] == [expected]


def test_its_gradients_are_planned_once(planner):
    for _ in range(3):
        a, b = operands(True)
        torch.ops.pysimd.matmul(a, b).backward(torch.ones_like(b))
        assert a.grad.dtype == torch.bfloat16
    assert [len(x.runs) for x in planner.plans] == [3, 3]
