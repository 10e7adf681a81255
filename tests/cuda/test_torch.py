"""torch's tensors: calls that repeat, results, streams, and what is refused, the second time as the first."""

import cuda_arrays
import numpy as np
import pytest

import pysimd

pytestmark = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")
torch = pytest.importorskip("torch")

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16f32": torch.bfloat16}


def tensors(dtype, *shapes):
    return [torch.randn(*shape, device="cuda").to(dtype) for shape in shapes]


def close(result, a, b, c=None, alpha=1.0, beta=0.0):
    expected = alpha * (a.double() @ b.double()) + (0 if c is None else beta * c.double())
    bound = 2e-2 if result.dtype == torch.float16 else 1e-4 * a.shape[-1]
    assert type(result) is torch.Tensor
    assert result.is_cuda
    assert ((result.double() - expected).abs() <= bound * (1 + expected.abs())).all()


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("shape", [(300, 4, 4, 4), (7, 5, 9, 3), (2, 40, 50, 60), (1, 300, 300, 300), (1, 64, 9000, 9)])
def test_every_call_is_right(types, shape):
    batch, m, k, n = shape
    for _ in range(4):
        a, b, c = tensors(TYPES[types], (batch, m, k), (batch, k, n), (batch, m, n))
        result = pysimd.matmul(a, b)
        assert result.dtype == (torch.float32 if types == "bf16f32" else TYPES[types])
        close(result, a, b)
        out = torch.full_like(result, 7)
        assert pysimd.matmul(a, b, out=out) is out
        assert torch.equal(out, result)
        c = c.to(result.dtype)
        close(pysimd.gemm(a, b, c, alpha=2, beta=-0.5), a, b, c, 2, -0.5)
        accumulated = c.clone()
        assert pysimd.gemm(a, b, accumulated, beta=1, out=accumulated) is accumulated
        close(accumulated, a, b, c, 1, 1)
        close(pysimd.matmul(a.mT.contiguous().mT, b), a, b)
        close(pysimd.matmul(a, b[0]), a, b[0])


def test_a_kernel_and_a_bound_call():
    kernel = pysimd.kernel("cuda_f32_outer_8x8")
    for _ in range(3):
        a, b, c = tensors(torch.float32, (10, 8, 20), (10, 20, 8), (10, 8, 8))
        close(kernel(a, b), a, b)
        close(kernel(a, b, c), a, b, c, 1, 1)
        before = c.clone()
        assert kernel(a, b, c, out=c) is c
        close(c, a, b, before, 1, 1)
        run = kernel.bind(a, b, c)
        before = c.clone()
        with torch.cuda.stream(torch.cuda.Stream()) as _:
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            run()
        torch.cuda.synchronize()
        close(c, a, b, before, 1, 1)


def test_on_torchs_current_stream():
    """Products wait for what torch's stream does before, and torch's stream for them."""
    a, b = tensors(torch.float32, (2000, 16, 16), (2000, 16, 16))
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream(), torch.cuda.Stream()):
        stream.wait_stream(torch.cuda.current_stream())
        for _ in range(3):
            with torch.cuda.stream(stream):
                x = torch.zeros_like(a)
                torch.cuda._sleep(10_000_000)
                x.copy_(a)
                result = pysimd.matmul(x, b) * 2
                total = result.sum(dtype=torch.float64)
        torch.cuda.synchronize()
        assert torch.equal(result, 2 * pysimd.matmul(a, b))
        assert float(total) == float(result.sum(dtype=torch.float64))


def test_overlapping_and_vectors():
    for _ in range(3):
        a, b = tensors(torch.float32, (50, 6, 6), (50, 6, 6))
        expected = pysimd.matmul(a, b)
        assert pysimd.matmul(a, b, out=torch.empty_like(a)) is not None
        assert pysimd.matmul(a, b, out=a) is a
        assert torch.equal(a, expected)
        v = torch.randn(6, device="cuda")
        assert pysimd.matmul(b, v).shape == (50, 6)
        assert torch.allclose(pysimd.matmul(b, v), b @ v, atol=1e-4)
        assert pysimd.matmul(v, v).shape == ()


def test_what_is_refused_the_second_time_too():
    a, b = tensors(torch.float32, (50, 6, 6), (50, 6, 6))
    for _ in range(2):
        pysimd.matmul(a, b)
        with pytest.raises(pysimd.OptionError, match="gradients"):
            pysimd.matmul(a.clone().requires_grad_(), b, out=torch.empty_like(a))
        with pytest.raises(pysimd.DTypeError, match="a is on cuda, b is on cpu"):
            pysimd.matmul(a, b.cpu())
        with pytest.raises(pysimd.DTypeError, match="float32 @ float32"):
            pysimd.matmul(a, b.double())
        with pytest.raises(pysimd.ShapeError, match="not aligned"):
            pysimd.matmul(a, b[:, :5])
        with pytest.raises(pysimd.DTypeError, match="resolve_neg"):
            pysimd.matmul(torch.conj(torch.complex(a, a)).imag, b)
        with pytest.raises(pysimd.OptionError, match="threads"):
            pysimd.matmul(a, b, threads=2)


def test_gradients_are_recorded_after_a_plan_was_made():
    a, b = tensors(torch.float32, (50, 6, 6), (50, 6, 6))
    for _ in range(3):
        assert not pysimd.matmul(a, b).requires_grad
        x = a.clone().requires_grad_()
        pysimd.matmul(x, b).sum().backward()
        assert torch.allclose(x.grad, b.sum(-1)[:, None].expand_as(x), atol=1e-5)


def test_parameters_are_tensors():
    a, b = tensors(torch.float32, (50, 6, 6), (50, 6, 6))
    for _ in range(2):
        result = pysimd.matmul(torch.nn.Parameter(a, requires_grad=False), b)
        assert type(result) is torch.Tensor
        assert torch.equal(result, pysimd.matmul(a, b))


def test_tensors_of_the_cpu_stay_there():
    a, b = tensors(torch.float32, (5, 6, 6), (5, 6, 6))
    pysimd.matmul(a, b)
    result = pysimd.matmul(a.cpu(), b.cpu())
    assert isinstance(result, np.ndarray) or not result.is_cuda
