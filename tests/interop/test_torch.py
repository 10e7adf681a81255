"""torch.ops.pysimd: values, gradients, torch.compile, vmap, autocast; and pysimd.matmul on tensors of the CPU."""

import importlib
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cuda_arrays
import numpy as np
import pytest
from process import output_of

import pysimd
from pysimd import products
from pysimd.backends.cuda.implementation import INSTANCES

with warnings.catch_warnings():  # of torch's own imports
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    importlib.import_module("pysimd.interop.torch")
    torch_dispatch = importlib.import_module("pysimd.interop.torch_dispatch")

matmul, gemm = torch.ops.pysimd.matmul, torch.ops.pysimd.gemm
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SHAPES = [
    ((5, 6), (6, 7)),
    ((9, 4, 4), (9, 4, 4)),
    ((9, 4, 4), (4, 4)),
    ((3, 1, 5, 6), (2, 6, 7)),
    ((6,), (6, 7)),
    ((2, 5, 6), (6,)),
    ((6,), (6,)),
    ((0, 4, 4), (4, 4)),
    ((3, 0), (0, 4)),
]


def why_no_gpu() -> str:
    if not torch.cuda.is_available():
        return "no NVIDIA GPU that torch can use"
    return cuda_arrays.WHY_NOT


@pytest.fixture(autouse=True)
def device(request):
    """Where tensors are made."""
    name = getattr(request, "param", "cpu")
    torch.manual_seed(0)
    torch.set_default_device(name)
    yield name
    torch.set_default_device("cpu")


on_gpu = (pytest.mark.cuda, pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu() or "nothing"))
every_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_gpu)], indirect=True)


def tensors(dtype, *shapes, requires_grad=False):
    return [torch.randn(shape).to(dtype).requires_grad_(requires_grad) for shape in shapes]


def close(result, expected, dtype):
    bound = {torch.float32: 1e-5, torch.float64: 1e-13, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    assert result.shape == expected.shape
    assert ((result.double() - expected.double()).abs() <= bound * (1 + expected.abs())).all()


@every_device
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul(a, b, dtype):
    a, b = tensors(dtype, a, b)
    result = matmul(a, b)
    assert type(result) is torch.Tensor
    assert result.dtype == dtype
    close(result, a.double() @ b.double(), dtype)


@every_device
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_narrow_results_are_rounded_once(dtype, device):
    a, b = tensors(dtype, (50, 8, 300), (50, 300, 8))
    wide = matmul(a, b, dtype=torch.float32)
    assert wide.dtype == torch.float32
    close(wide, a.double() @ b.double(), torch.float16)
    c = tensors(dtype, (50, 8, 8))[0]
    exact = gemm(a, b, c.float(), alpha=0.5, beta=2, dtype=torch.float32)
    close(exact, 0.5 * (a.double() @ b.double()) + 2 * c.double(), torch.float32)
    if device == "cpu" or dtype == torch.bfloat16:
        assert torch.equal(matmul(a, b), wide.to(dtype))
        INSTANCES.wait()  # on a GPU, by the plan of the call before
        assert torch.equal(matmul(a, b), matmul(a, b))
        assert torch.equal(matmul(a, b), wide.to(dtype))
        assert torch.equal(gemm(a, b, c, alpha=0.5, beta=2), exact.to(dtype))
    else:  # another kernel adds the terms in another order
        assert ((matmul(a, b).double() - wide.double()).abs() <= 2.0**-11 * wide.double().abs() + 1e-3).all()


@every_device
def test_integers():
    a = torch.randint(-128, 128, (5, 6), dtype=torch.int8)
    assert torch.equal(matmul(a, a.mT).cpu(), a.cpu().int() @ a.mT.cpu().int())
    u = torch.randint(0, 256, (5, 6), dtype=torch.uint8)
    if u.is_cpu:
        assert torch.equal(matmul(u, a.mT), u.int() @ a.mT.int())


@every_device
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("c_shape", [(9, 4, 5), (5,), (4, 1)])
def test_gemm(dtype, c_shape):
    a, b, c = tensors(dtype, (9, 6, 4), (9, 6, 5), c_shape)
    result = gemm(a.mT, b, c, alpha=2, beta=-0.5)
    assert result.dtype == dtype
    close(result, 2 * (a.mT.double() @ b.double()) - 0.5 * c.double(), dtype)
    close(gemm(a.mT, b, torch.full_like(c, torch.nan)), a.mT.double() @ b.double(), dtype)
    wider = torch.empty(2, 9, 4, 5, dtype=dtype)
    assert gemm(a.mT, b, wider).shape == gemm(*(x.to("meta") for x in (a.mT, b, wider))).shape == wider.shape


@every_device
def test_what_does_not_fit_is_refused():
    a, b = tensors(torch.float32, (5, 6), (6, 7))
    for fake in (False, True):
        x, y = (t.to("meta") if fake else t for t in (a, b))
        with pytest.raises(pysimd.ShapeError, match="not aligned"):
            matmul(x, x)
        with pytest.raises(pysimd.DTypeError, match="no kernel multiplies"):
            matmul(x, y.double())
        with pytest.raises(pysimd.DTypeError, match="dtype must be"):
            matmul(x, y, dtype=torch.float64)
        with pytest.raises(pysimd.DTypeError, match="c must be"):
            gemm(x, y, y.double(), beta=1)
    with pytest.raises(pysimd.OptionError, match="beta"):
        gemm(a, b, beta=1.0)


@every_device
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_gradients_of_matmul(a, b):
    a, b = tensors(torch.float64, a, b, requires_grad=True)
    assert torch.autograd.gradcheck(matmul, (a, b))
    given = torch.randn_like(matmul(a, b))
    ours = torch.autograd.grad(matmul(a, b), (a, b), given)
    theirs = torch.autograd.grad(a @ b, (a, b), given)
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x, y)


@every_device
@pytest.mark.parametrize("c_shape", [(3, 4, 5), (2, 3, 4, 5), (5,), (4, 1)])
def test_gradients_of_gemm(c_shape):
    a, b, c = tensors(torch.float64, (3, 4, 6), (6, 5), c_shape, requires_grad=True)
    call = lambda a, b, c: gemm(a, b, c, alpha=1.5, beta=-2.0)  # noqa: E731
    assert torch.autograd.gradcheck(call, (a, b, c))
    assert torch.autograd.gradgradcheck(call, (a, b, c))


@every_device
def test_gradients_of_narrow_operands_have_their_dtype():
    a, b = tensors(torch.bfloat16, (5, 6), (6, 7), requires_grad=True)
    for dtype in (None, torch.float32):
        x, y = torch.autograd.grad(matmul(a, b, dtype=dtype).sum(), (a, b))
        assert x.dtype == y.dtype == torch.bfloat16
        close(x, b.double().sum(1).expand(5, 6), torch.bfloat16)


@every_device
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_opcheck(dtype):
    for a, b in [((9, 4, 4), (4, 4)), ((6,), (6, 7)), ((2, 5, 6), (6,))]:
        torch.library.opcheck(matmul.default, tuple(tensors(dtype, a, b, requires_grad=True)))
    a, b, c = tensors(dtype, (3, 4, 6), (6, 5), (5,), requires_grad=True)
    torch.library.opcheck(gemm.default, (a, b, c), {"alpha": 2.0, "beta": 0.5})
    torch.library.opcheck(gemm.default, (a, b))


@every_device
@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_compiled_without_a_graph_break(backend):
    def layer(x, w, bias):
        return torch.relu(gemm(x, w, bias, beta=1.0)) @ w.mT + matmul(x, w) @ w.mT

    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    for rows in (4, 7):
        x, w, bias = tensors(torch.float32, (rows, 6), (6, 5), (5,), requires_grad=True)
        torch.testing.assert_close(compiled(x, w, bias), layer(x, w, bias))
        ours = torch.autograd.grad(compiled(x, w, bias).sum(), (x, w, bias))
        for found, expected in zip(ours, torch.autograd.grad(layer(x, w, bias).sum(), (x, w, bias)), strict=True):
            torch.testing.assert_close(found, expected)


@every_device
@pytest.mark.parametrize(("a", "b"), [((7, 5, 6), (7, 6, 3)), ((7, 5, 6), (6,)), ((6,), (7, 6, 3)), ((7, 6), (7, 6))])
def test_vmap(a, b):
    x, y = tensors(torch.float64, a, b)
    dims = (0 if a[0] == 7 else None, 0 if b[0] == 7 else None)
    expected = torch.vmap(torch.matmul, dims)(x, y)
    torch.testing.assert_close(torch.vmap(matmul, dims)(x, y), expected)
    moved = tuple(t.movedim(0, -1) if d == 0 else t for t, d in zip((x, y), dims, strict=True))
    last = tuple(None if d is None else -1 for d in dims)
    torch.testing.assert_close(torch.vmap(matmul, last)(*moved), expected)


@every_device
def test_vmap_of_gemm():
    a, b, c = tensors(torch.float64, (7, 5, 6), (6, 3), (7, 3))
    found = torch.vmap(lambda a, c: gemm(a, b, c, beta=2.0))(a, c)
    torch.testing.assert_close(found, a @ b + 2 * c[:, None])


@every_device
def test_autocast(device):
    a, b = tensors(torch.float32, (9, 8), (8, 7))
    with torch.autocast(device, dtype=torch.bfloat16):
        assert torch.equal(matmul(a, b), matmul(a.bfloat16(), b.bfloat16()))
        assert matmul(a, b).dtype == (a @ b).dtype == torch.bfloat16
        assert gemm(a, b.half(), torch.zeros(7), beta=1.0).dtype == torch.bfloat16
        assert matmul(a.double(), b.double()).dtype == torch.float64
    assert matmul(a, b).dtype == torch.float32


CAPTURE = """
import sys, torch, pysimd.interop.torch
matmul, gemm = torch.ops.pysimd.matmul, torch.ops.pysimd.gemm
a, b, c = (torch.randn(300, 8, 8, device="cuda").to(getattr(torch, sys.argv[1])) for _ in range(3))
for _ in range(3):
    gemm(matmul(a, b), b, c, beta=1.0)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = gemm(matmul(a, b), b, c, beta=1.0)
for _ in range(2):
    a.normal_()
    result.zero_()
    graph.replay()
    assert torch.equal(result, gemm(matmul(a, b), b, c, beta=1.0))
"""


@pytest.mark.parametrize("dtype", [pytest.param(x, marks=on_gpu) for x in FLOATS], ids=str)
def test_captured_graph(dtype):
    """In a process of its own: a CUDA module of another test that is unloaded meanwhile ends the capture."""
    output_of("-c", CAPTURE, str(dtype).removeprefix("torch."))


# --- pysimd.matmul and gemm on tensors ---


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_tensors_give_tensors(dtype):
    a, b = tensors(dtype, (9, 4, 4), (4, 4))
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    result = pysimd.matmul(a, b)
    assert type(result) is torch.Tensor
    assert result.dtype == wide
    assert torch.equal(result, matmul(a, b, dtype=wide))
    out = torch.full_like(result, 7)
    assert pysimd.matmul(a, b, out=out, threads=1) is out
    assert torch.equal(out, result)
    assert pysimd.gemm(a, b, out, beta=1, out=out) is out
    close(out, 2 * result.double(), torch.float16)
    assert torch.equal(pysimd.matmul(a.numpy(), b), result) if dtype == torch.float32 else True
    assert torch.equal(pysimd.gemm(a, b, trans_a=True), pysimd.matmul(a.mT, b))


def test_gradients_are_not_lost():
    a, b, c = tensors(torch.float32, (5, 6), (6, 7), (7,), requires_grad=True)
    for product, theirs in (
        (pysimd.matmul(a, b), a @ b),
        (pysimd.gemm(a.mT, b.mT, c, alpha=2, beta=3, trans_a=True, trans_b=True), 2 * a @ b + 3 * c),
    ):
        torch.testing.assert_close(product, theirs)
        torch.testing.assert_close(torch.autograd.grad(product.sum(), a), torch.autograd.grad(theirs.sum(), a))
    with torch.no_grad():
        assert not pysimd.matmul(a, b).requires_grad
    for option in ({"threads": 1}, {"kernel": "generic_f32_outer_4x4"}, {"out": torch.empty(5, 7)}):
        with pytest.raises(pysimd.OptionError, match="gradients"):
            pysimd.matmul(a, b, **option)
    with pytest.raises(pysimd.DTypeError, match="convert the other"):
        pysimd.matmul(a, b.detach().numpy())
    with pytest.raises(pysimd.DTypeError, match="convert the other"):
        pysimd.gemm(a, b, c.detach().numpy(), beta=1)
    with pytest.raises(pysimd.DTypeError, match="out is a tensor"):
        pysimd.matmul(a.detach(), b.detach(), out=torch.empty(5, 7, requires_grad=True))


exchanged = pytest.mark.skipif(
    not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="torch before 2.10 has no exchange API"
)


@exchanged
def test_plain_tensors_are_taken_in_c(monkeypatch):
    """Results, their lifetime, and that Python is not entered for them; it is for whatever is no plain memory."""
    a, b = tensors(torch.float32, (9, 4, 6), (6, 5))
    c, out = torch.randn(5), torch.empty(9, 4, 5)
    expected = pysimd.matmul(a.numpy(), b.numpy())
    transposed = a.mT.contiguous().mT
    of_transposed = pysimd.matmul(transposed.numpy(), b.numpy())
    refused = [torch._neg_view(a), a.clone().requires_grad_(), a.numpy()]
    monkeypatch.setattr(products.replay, "replayed", lambda *given: NotImplemented)  # what Python does first
    assert (pysimd.matmul(a, b).numpy() == expected).all()
    assert (pysimd.matmul(transposed, b[::1]).numpy() == of_transposed).all()
    assert pysimd.matmul(a, b, out=out) is out
    assert (out.numpy() == expected).all()
    close(pysimd.gemm(a, b, c, alpha=2, beta=3), 2 * torch.from_numpy(expected) + 3 * c, torch.float32)
    narrow = pysimd.matmul(a.bfloat16(), b.bfloat16(), out=torch.empty(9, 4, 5, dtype=torch.bfloat16))
    close(narrow, torch.from_numpy(expected), torch.bfloat16)
    assert pysimd.matmul(a[:0], b).shape == (0, 4, 5)
    for x in refused:
        assert pysimd.matmul(x, b) is NotImplemented
    assert pysimd.matmul(a, b.double()) is NotImplemented
    assert pysimd.gemm(a.char(), b.char(), alpha=0.5) is NotImplemented


@exchanged
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
def test_memory_of_results_is_returned():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    a = torch.randn(100, 64, 64)
    held = [pysimd.matmul(a, a) for _ in range(3)]
    assert len({x.data_ptr() for x in held}) == 3
    assert torch.equal(held[0], held[2])
    before, references = resident(), sys.getrefcount(a)
    for _ in range(200):  # 320 MB of results
        pysimd.matmul(a, a)
    assert resident() - before < 64 << 20
    assert sys.getrefcount(a) == references
    with ThreadPoolExecutor(4) as pool:  # each is freed by another thread than made it
        assert all(torch.equal(x, held[0]) for x in pool.map(lambda _: pysimd.matmul(a, a), range(20)))


@pytest.mark.parametrize("transform", [torch.vmap, torch.func.functionalize], ids=lambda x: x.__name__)
def test_operators_within_transforms(transform):
    """Wrappers of functorch have the type of a tensor, and no memory."""
    a, b = tensors(torch.float32, (7, 5, 6), (7, 6, 3))
    torch.testing.assert_close(transform(matmul)(a, b), a @ b)
    torch.testing.assert_close(transform(lambda x, y: gemm(x, y, x[..., :3], beta=1.0))(a, b), a @ b + a[..., :3])


def test_modes_see_the_operators():
    """A mode of dispatch is called for each operator, also where no gradient is asked for."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        seen = ()

        def __torch_dispatch__(self, operator, types, given=(), options=None):
            self.seen = (*self.seen, operator)
            return operator(*given, **(options or {}))

    a, b = tensors(torch.float32, (5, 6), (6, 7))
    with Mode() as mode:
        matmul(a, b)
        gemm(torch._neg_view(a), b)
    assert matmul.default in mode.seen
    assert gemm.default in mode.seen
    assert torch.equal(matmul(torch._neg_view(a), b), -matmul(a, b))


@every_device
def test_plain_tensors_leave_the_dispatcher_out(monkeypatch, device):
    """And nothing else does: what is recorded, converted or seen by somebody goes through it."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    a, b = tensors(torch.float32, (5, 6), (6, 7))
    if a.is_cuda:  # where the plan of a call must be known: a kernel is compiled for shapes that are seen twice
        pysimd.matmul(a, b)
        pysimd.matmul(a, b)
        INSTANCES.wait()
        pysimd.matmul(a, b)
    expected = a @ b
    torch.set_default_device(None)  # which is a mode
    monkeypatch.setattr(torch._ops.OpOverloadPacket, "__call__", lambda *given, **options: "dispatched")
    torch.testing.assert_close(matmul(a, b), expected)
    torch.testing.assert_close(matmul(a.detach(), torch.nn.Parameter(b, requires_grad=False)), expected)
    with torch.inference_mode():
        torch.testing.assert_close(matmul(a, b), expected)
    assert matmul(a, b, dtype=torch.float32) == "dispatched"
    assert matmul(a, b.clone().requires_grad_()) == "dispatched"
    for dtype, result in ((torch.bfloat16,) * 2, (torch.float16,) * 2, (torch.int8, torch.int32)):
        x, y = a.to(dtype), b.to(dtype)
        if a.is_cpu:
            assert torch.equal(matmul(x, y), pysimd.matmul(x, y).to(result))
        elif dtype == torch.int8:
            assert matmul(x, y) == "dispatched"
    assert matmul(a, b.double()) == matmul(a, b.cpu().numpy()) == matmul(a, 1) == matmul(1, 2) == "dispatched"
    assert matmul(a, b[:5]) == matmul(a, torch.empty(6, 7, device="meta")) == "dispatched"
    for seen in (TorchDispatchMode, TorchFunctionMode, lambda: torch.autocast(device), torch.autograd.profiler.profile):
        with seen():
            assert matmul(a, b) == "dispatched", seen
    inside = []
    torch.func.vmap(lambda x: inside.append(matmul(x, b)) or x)(a[None])
    assert inside == ["dispatched"]


def test_on_a_gpu_plans_are_looked_for_by_the_dtype(monkeypatch):
    """A new result of bfloat16 has a plan of its own, which makes it."""
    asked = []
    monkeypatch.setattr(torch_dispatch.replay, "replayed", lambda a, b, c, out, call: asked.append(call))
    monkeypatch.setattr(torch_dispatch, "_dispatched", lambda a, b: "dispatched")
    for dtype in (*FLOATS, torch.int8):
        a = torch.ones(4, 4, dtype=dtype)
        assert torch_dispatch._plain(a, a) == "dispatched"
    assert asked == ["matmul", "matmul", "matmul", torch_dispatch.replay.NARROW_MATMUL, None]


PRIVATE = ["_is_any_autocast_enabled", "_is_torch_function_mode_enabled", "_len_torch_dispatch_stack"]

WITHOUT_PRIVATE = """
import torch
del torch._C._is_any_autocast_enabled
import pysimd.interop.torch
matmul = torch.ops.pysimd.matmul
assert type(matmul) is torch._ops.OpOverloadPacket
a, b = torch.randn(5, 6), torch.randn(6, 7, requires_grad=True)
assert torch.allclose(matmul(a, b.detach()), a @ b, atol=1e-5)
assert torch.allclose(torch.autograd.grad(matmul(a, b).sum(), b)[0], a.sum(0)[:, None].expand(6, 7), atol=1e-5)
assert torch.equal(matmul(a.bfloat16(), b.detach().bfloat16()), matmul(a.bfloat16(), b.bfloat16()))
"""


@pytest.mark.parametrize("name", PRIVATE)
def test_observers_are_asked_by_functions_that_torch_has(name, monkeypatch):
    assert torch_dispatch.observers() is not None
    monkeypatch.delattr(torch._C, name)
    assert torch_dispatch.observers() is None


def test_a_torch_without_the_private_functions():
    """All calls go through the dispatcher, with the same results."""
    output_of("-c", WITHOUT_PRIVATE)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_derivatives_that_are_not_there_are_refused():
    """Otherwise the tangents of forward mode were lost."""
    a, b = tensors(torch.float32, (5, 6), (6, 7))
    for product in (matmul, gemm, pysimd.matmul, pysimd.gemm):
        with pytest.raises(pysimd.OptionError, match=r"torch\.func\.grad"):
            torch.func.grad(lambda x, f=product: f(x, b).sum())(a)
        with pytest.raises(pysimd.OptionError, match="forward-mode"):
            torch.func.jvp(lambda x, f=product: f(x, b), (a,), (a,))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(a, a)
            with pytest.raises(pysimd.OptionError, match="forward-mode"):
                product(dual, b)
            assert torch.equal(product(a, b), product(a.detach(), b))


def test_views_and_shared_memory():
    a = torch.arange(24.0).reshape(2, 3, 4)
    square = a.mT @ a
    assert torch.equal(pysimd.matmul(a.mT, a), square)
    assert torch.equal(pysimd.matmul(torch._neg_view(a).mT, a), -square)
    assert np.shares_memory(a.numpy(), a.detach().numpy())


def test_tensors_without_memory():
    a = torch.empty((3, 4), device="meta")
    assert pysimd.matmul(a, a.mT).shape == (3, 3)
    assert pysimd.matmul(a, a.mT).is_meta
