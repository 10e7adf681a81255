"""Gradients, vmap and autocast of ``torch.ops.pysimd.matmul`` and ``gemm``; interop/torch.py registers them."""

from __future__ import annotations

from pysimd.interop import extras

torch = extras.module("torch", "torch")

AUTOCAST_KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}
"""The dispatch key of autocast on each type of device."""


# --- gradients ---


def _summed(gradient, shape):
    """The gradient of an operand that was broadcast from ``shape``."""
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def _gradients(needed, gradient, a, b, alpha):
    """Gradients of a and b for ``alpha * a @ b``, None where not needed."""
    product = torch.ops.pysimd.gemm.default
    a_vector, b_vector = a.dim() == 1, b.dim() == 1
    x, y = (a[None, :] if a_vector else a), (b[:, None] if b_vector else b)
    gradient = gradient[..., None] if b_vector else gradient
    gradient = gradient[..., None, :] if a_vector else gradient
    gradient = gradient.to(a.dtype)
    of_a = of_b = None
    if needed[0]:
        of_a = _summed(product(gradient, y.mT, None, alpha=alpha), x.shape).reshape(a.shape)
    if needed[1]:
        of_b = _summed(product(x.mT, gradient, None, alpha=alpha), y.shape).reshape(b.shape)
    return of_a, of_b


def save_matmul(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(*inputs)


def matmul_backward(ctx, gradient):
    a, b = ctx.saved_tensors
    return _gradients(ctx.needs_input_grad, gradient, a, b, 1.0)


def save_gemm(ctx, inputs, keyword_only_inputs, output):
    a, b, c = inputs
    ctx.alpha, ctx.beta = keyword_only_inputs["alpha"], keyword_only_inputs["beta"]
    ctx.c_shape = None if c is None else c.shape
    ctx.save_for_backward(a, b)


def gemm_backward(ctx, gradient):
    a, b = ctx.saved_tensors
    of_a, of_b = _gradients(ctx.needs_input_grad, gradient, a, b, ctx.alpha)
    if of_a is not None:
        of_a = _summed(of_a, a.shape)
    if of_b is not None:
        of_b = _summed(of_b, b.shape)
    of_c = None if ctx.c_shape is None or not ctx.needs_input_grad[2] else _summed(ctx.beta * gradient, ctx.c_shape)
    return of_a, of_b, of_c


# --- vmap ---


def _batched(x, dim, size, least):
    """The operand with the dimension of vmap first, and 1s so that it has ``least`` dimensions after it."""
    if dim is None:
        return x
    x = x.movedim(dim, 0)
    return x.reshape(size, *(1,) * max(0, least - (x.dim() - 1)), *x.shape[1:])


def vmap_matmul(info, dims, a, b, *, dtype=None):
    a_dims, b_dims = a.dim() - (dims[0] is not None), b.dim() - (dims[1] is not None)
    a, b = (x if dim is None else x.movedim(dim, 0) for x, dim in zip((a, b), dims, strict=True))
    a = a.unsqueeze(-2) if a_dims == 1 else a
    b = b.unsqueeze(-1) if b_dims == 1 else b
    least = max(a_dims, b_dims, 2)
    a, b = (_batched(x, None if d is None else 0, info.batch_size, least) for x, d in zip((a, b), dims, strict=True))
    result = torch.ops.pysimd.matmul.default(a, b, dtype=dtype)
    result = result.squeeze(-2) if a_dims == 1 else result
    return (result.squeeze(-1) if b_dims == 1 else result), 0


def vmap_gemm(info, dims, a, b, c=None, *, alpha=1.0, beta=0.0, dtype=None):
    given = [(x, d) for x, d in zip((a, b, c), dims, strict=True) if x is not None]
    least = max(2, *(x.dim() - (d is not None) for x, d in given))
    batched = [_batched(x, d, info.batch_size, least) for x, d in given]
    return torch.ops.pysimd.gemm.default(*batched, alpha=alpha, beta=beta, dtype=dtype), 0


# --- autocast ---


def autocast(product):
    """The operator on operands converted to the dtype of autocast, as torch.matmul's are."""

    def call(*given, **options):
        device = given[0].device.type
        dtype = torch.get_autocast_dtype(device)
        floats = (torch.float32, torch.float16, torch.bfloat16)
        cast = [x.to(dtype) if isinstance(x, torch.Tensor) and x.dtype in floats else x for x in given]
        key = getattr(torch._C.DispatchKey, AUTOCAST_KEYS[device])
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return product(*cast, **options)

    return call
