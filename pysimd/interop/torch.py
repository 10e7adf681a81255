"""``torch.ops.pysimd.matmul`` and ``gemm``: operators of torch, registered when this module is imported.

    matmul(Tensor a, Tensor b, *, ScalarType? dtype=None) -> Tensor
    gemm(Tensor a, Tensor b, Tensor? c=None, *, float alpha=1, float beta=0, ScalarType? dtype=None) -> Tensor

Shapes are those of ``pysimd.matmul`` and ``pysimd.gemm`` (transposed operands are views: ``a.mT``). The result has the
dtype of the operands, as in ``torch.matmul``, also for float16 and bfloat16: these are accumulated in float32 and
rounded once. ``dtype=torch.float32`` returns the accumulators of 16-bit operands as they are (for float16 on a GPU,
where pysimd's products are float16, the operands are converted first). int8 gives int32.

The operators have fake implementations (torch.compile, torch.export), gradients that are products by pysimd, and a rule
for vmap. Under autocast, operands on a device where it is enabled are converted to its dtype, as for torch.matmul.
``pysimd.matmul`` and ``pysimd.gemm`` return tensors for tensors, with gradients where an operand requires them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

from pysimd import dtypes, operands, products, registry
from pysimd.backends.gpu import replay
from pysimd.errors import DTypeError, OptionError
from pysimd.interop import extras

torch = extras.module("torch", "torch")

_LIBRARY = torch.library.Library("pysimd", "DEF")
_LIBRARY.define("matmul(Tensor a, Tensor b, *, ScalarType? dtype=None) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
_LIBRARY.define(
    "gemm(Tensor a, Tensor b, Tensor? c=None, *, float alpha=1.0, float beta=0.0, ScalarType? dtype=None) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_matmul_op, _gemm_op = torch.ops.pysimd.matmul.default, torch.ops.pysimd.gemm.default

_RESULTS = {
    (torch.float32, torch.float32): torch.float32,
    (torch.float64, torch.float64): torch.float64,
    (torch.float16, torch.float16): torch.float16,
    (torch.bfloat16, torch.bfloat16): torch.bfloat16,
    (torch.int8, torch.int8): torch.int32,
    (torch.uint8, torch.int8): torch.int32,
}
_NARROW = (torch.float16, torch.bfloat16)
_WIDE = (torch.float32, torch.float64)
_FLOATS = (*_WIDE, *_NARROW)


def _result_dtype(a, b, dtype):
    """The dtype of a result; raises ``DTypeError`` for operands or a ``dtype`` that there is no product of."""
    found = _RESULTS.get((a.dtype, b.dtype))
    if found is None:
        pairs = ", ".join(f"{x} @ {y} -> {z}".replace("torch.", "") for (x, y), z in _RESULTS.items())
        raise DTypeError(f"no kernel multiplies {a.dtype} by {b.dtype}; there are {pairs}. Convert with .to()")
    if dtype is None or dtype == found:
        return found
    if dtype == torch.float32 and found in _NARROW:
        return dtype
    also = " or torch.float32" if found in _NARROW else ""
    raise DTypeError(f"dtype must be {found}{also} for operands of {a.dtype}, got {dtype}")


# --- values ---


def _numpy(name: str, tensor):
    """A NumPy view of a tensor on the CPU."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    bfloat16 = dtypes.dtype_of("bfloat16")
    if bfloat16.name != "bfloat16":
        raise DTypeError(f"{name} is bfloat16, which NumPy has with ml_dtypes: pip install 'pysimd[torch]'")
    return tensor.view(torch.int16).numpy().view(bfloat16)


def _accumulated(a):
    """The dtype of ``pysimd.matmul`` where it is not that of the operands: float32 for bfloat16, and for float16 on a
    CPU."""
    narrow = a.dtype == torch.bfloat16 or (a.dtype == torch.float16 and a.device.type != "cuda")
    return torch.float32 if narrow else None


def _compute(a, b, c, alpha, beta, dtype):
    """``alpha * a @ b + beta * c`` by pysimd, rounded to ``dtype``, which c has too.

    On a GPU bfloat16 is rounded by the kernel. On a CPU torch rounds the float32 result of 16-bit operands.
    """
    a, b, c = (x if x is None or not x.requires_grad else x.detach() for x in (a, b, c))
    out = None
    if a.is_cuda and dtype == torch.bfloat16:
        shape = _shape_of(a, b, matrices=c is not None)
        out = a.new_empty(shape if c is None else torch.broadcast_shapes(shape, c.shape), dtype=dtype)
    elif c is not None:
        c = c.to(_accumulated(a) or dtype)
    if dtype == torch.float32 and a.dtype == torch.float16 and a.is_cuda:  # whose product on a GPU is float16
        a, b = a.float(), b.float()
    if c is None and alpha == 1:
        result = products.matmul(a, b, out=out)
    else:
        result = products.gemm(a, b, c, alpha=alpha, beta=beta, out=out)
    return result if result.dtype == dtype else result.to(dtype)


def _matmul(a, b, *, dtype=None):
    if dtype is None and a.dtype in _WIDE and a.dtype == b.dtype and not (a.requires_grad or b.requires_grad):
        return products.matmul(a, b)  # as below: nothing is to be converted
    return _compute(a, b, None, 1.0, 0.0, _result_dtype(a, b, dtype))


def _gemm(a, b, c=None, *, alpha=1.0, beta=0.0, dtype=None):
    dtype = _result_dtype(a, b, dtype)
    if c is None and beta != 0:
        raise OptionError(f"beta={beta} needs an array c to multiply: pass c, or leave beta at 0")
    if c is not None:
        _check_c(c, dtype)
    return _compute(a, b, c, alpha, beta, dtype)


def _check_c(c, dtype) -> None:
    if c.dtype != dtype:
        raise DTypeError(f"c must be {dtype}, the dtype of the result, got {c.dtype}")


# --- shapes ---


def _shape(a: Sequence[int], b: Sequence[int], matrices: bool) -> tuple[int, ...]:
    """The shape of ``a @ b``."""
    least, words = (2, "(..., {})") if matrices else (1, "(..., {}) or (k,)")
    operands.check_dimensions("a", tuple(a), least, words.format("m, k"))
    operands.check_dimensions("b", tuple(b), least, words.format("k, n"))
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    operands.check_inner(tuple(a), tuple(b) if columns else (*b, 1))
    return (*torch.broadcast_shapes(a[:-2], b[:-2]), *rows, *columns)


def _shape_of(a, b, matrices: bool) -> tuple[int, ...]:
    """The same for tensors with memory. ``torch.broadcast_shapes`` takes longer than a small product, and batches are
    mostly equal."""
    x, y = a.shape, b.shape
    if len(x) == len(y) >= 2 and x[:-2] == y[:-2] and x[-1] == y[-2]:
        return *x[:-1], y[-1]
    return _shape(x, y, matrices)


def _fake_matmul(a, b, *, dtype=None):
    return a.new_empty(_shape(a.shape, b.shape, False), dtype=_result_dtype(a, b, dtype))


def _fake_gemm(a, b, c=None, *, alpha=1.0, beta=0.0, dtype=None):
    shape = _shape(a.shape, b.shape, True)
    if c is not None:
        _check_c(c, _result_dtype(a, b, dtype))
        shape = torch.broadcast_shapes(shape, c.shape)
    return a.new_empty(shape, dtype=_result_dtype(a, b, dtype))


# --- gradients ---


def _summed(gradient, shape):
    """The gradient of an operand that was broadcast from ``shape``."""
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def _gradients(needed, gradient, a, b, alpha):
    """Gradients of a and b for ``alpha * a @ b``, None where not needed."""
    a_vector, b_vector = a.dim() == 1, b.dim() == 1
    x, y = (a[None, :] if a_vector else a), (b[:, None] if b_vector else b)
    gradient = gradient[..., None] if b_vector else gradient
    gradient = gradient[..., None, :] if a_vector else gradient
    gradient = gradient.to(a.dtype)
    of_a = of_b = None
    if needed[0]:
        of_a = _summed(_gemm_op(gradient, y.mT, None, alpha=alpha), x.shape).reshape(a.shape)
    if needed[1]:
        of_b = _summed(_gemm_op(x.mT, gradient, None, alpha=alpha), y.shape).reshape(b.shape)
    return of_a, of_b


def _save_matmul(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(*inputs)


def _matmul_backward(ctx, gradient):
    a, b = ctx.saved_tensors
    return _gradients(ctx.needs_input_grad, gradient, a, b, 1.0)


def _save_gemm(ctx, inputs, keyword_only_inputs, output):
    a, b, c = inputs
    ctx.alpha, ctx.beta = keyword_only_inputs["alpha"], keyword_only_inputs["beta"]
    ctx.c_shape = None if c is None else c.shape
    ctx.save_for_backward(a, b)


def _gemm_backward(ctx, gradient):
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


def _vmap_matmul(info, dims, a, b, *, dtype=None):
    a_dims, b_dims = a.dim() - (dims[0] is not None), b.dim() - (dims[1] is not None)
    a, b = (x if dim is None else x.movedim(dim, 0) for x, dim in zip((a, b), dims, strict=True))
    a = a.unsqueeze(-2) if a_dims == 1 else a
    b = b.unsqueeze(-1) if b_dims == 1 else b
    least = max(a_dims, b_dims, 2)
    a, b = (_batched(x, None if d is None else 0, info.batch_size, least) for x, d in zip((a, b), dims, strict=True))
    result = _matmul_op(a, b, dtype=dtype)
    result = result.squeeze(-2) if a_dims == 1 else result
    return (result.squeeze(-1) if b_dims == 1 else result), 0


def _vmap_gemm(info, dims, a, b, c=None, *, alpha=1.0, beta=0.0, dtype=None):
    given = [(x, d) for x, d in zip((a, b, c), dims, strict=True) if x is not None]
    least = max(2, *(x.dim() - (d is not None) for x, d in given))
    batched = [_batched(x, d, info.batch_size, least) for x, d in given]
    return _gemm_op(*batched, alpha=alpha, beta=beta, dtype=dtype), 0


# --- autocast ---


def _autocast(product):
    """The operator on operands converted to the dtype of autocast, as torch.matmul's are."""

    def call(*given, **options):
        device = given[0].device.type
        dtype = torch.get_autocast_dtype(device)
        floats = (torch.float32, torch.float16, torch.bfloat16)
        cast = [x.to(dtype) if isinstance(x, torch.Tensor) and x.dtype in floats else x for x in given]
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEYS[device]))):
            return product(*cast, **options)

    return call


_KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


# --- calls that are not recorded ---


def _raw(*names: str) -> int:
    """The bits of a set of dispatch keys."""
    sets = (torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)) for name in names)
    return functools.reduce(operator.or_, sets).raw_repr()


_OTHER_KEYS = ~_raw(
    *("CPU", "AutogradCPU", "AutocastCPU", "CUDA", "AutogradCUDA", "AutocastCUDA"), "ADInplaceOrView", "BackendSelect"
)
"""Those of tensors that are not plain memory: views to be negated, fake and functional tensors, levels of vmap."""


def _forward_level() -> int:
    """The level of forward-mode differentiation; below 0 outside of it."""
    return getattr(torch.autograd.forward_ad, "_current_level", -1)  # private to torch


def _has_tangent(x) -> bool:
    return _is_tensor(x) and torch.autograd.forward_ad.unpack_dual(x).tangent is not None


def _refuse_tangents(given) -> None:
    """Raise where the derivative of an operand would be lost."""
    if any(_has_tangent(x) for x in given):
        raise OptionError("pysimd has no forward-mode derivatives (torch.func.jvp): use torch.autograd.grad")


class _Kept:
    """Keeps the kernel that is registered with it, as with a library."""

    def impl(self, name, kernel, *key, **options):
        self.kernel = kernel


def _unless_recorded(run, recorded):
    """A kernel of autograd that calls ``run`` at once where no gradient is asked for, and ``recorded`` elsewhere: this
    returns to the dispatcher, which takes several times as long as a small product."""

    def call(keys, *given, **options):
        if _forward_level() >= 0:
            _refuse_tangents(given)
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*given):
            if torch._C._are_functorch_transforms_active():
                raise OptionError("pysimd has no gradients for torch.func.grad and vjp: use torch.autograd.grad")
            return recorded(keys, *given, **options)
        return recorded(keys, *given, **options) if keys.raw_repr() & _OTHER_KEYS else run(*given, **options)

    return call


for _name, _operator, _run, _fake, _save, _backward, _vmap in (
    ("matmul", _matmul_op, _matmul, _fake_matmul, _save_matmul, _matmul_backward, _vmap_matmul),
    ("gemm", _gemm_op, _gemm, _fake_gemm, _save_gemm, _gemm_backward, _vmap_gemm),
):
    _kept = _Kept()
    for _library in (_LIBRARY, _kept):
        torch.library.register_autograd(f"pysimd::{_name}", _backward, setup_context=_save, lib=_library)
    for _key in ("CPU", "CUDA"):
        _LIBRARY.impl(_name, _run, _key)
        _LIBRARY.impl(_name, _unless_recorded(_run, _kept.kernel), f"Autograd{_key}", with_keyset=True)
    for _key in _KEYS.values():
        _LIBRARY.impl(_name, _autocast(_operator), _key)
    torch.library.register_fake(f"pysimd::{_name}", _fake, lib=_LIBRARY)
    torch.library.register_vmap(f"pysimd::{_name}", _vmap, lib=_LIBRARY)


# --- calls without the dispatcher ---


def _observers():
    """Functions of C that return something true where somebody sees the calls of operators; None for a torch that has
    not all of them, since they are private to it. Transforms of torch.func need none: their tensors have no memory."""
    c = torch._C
    try:
        modes = c._len_torch_dispatch_stack, c._is_torch_function_mode_enabled
        return *modes, c._get_tracing_state, c._autograd._profiler_enabled, c._is_any_autocast_enabled
    except AttributeError:
        return None


def _dispatched(*given, **options):
    return torch._ops.OpOverloadPacket.__call__(torch.ops.pysimd.matmul, *given, **options)


def _plain(a, b):
    """The product of tensors that nobody observes and that are not on the CPU, or do not fit. On a GPU the dispatcher
    is left out where the kernel is known from a call before."""
    result = None
    if a.is_cuda and a.dtype is b.dtype and a.dtype in _FLOATS:
        out = a.new_empty(_shape_of(a, b, matrices=False)) if a.dtype is torch.bfloat16 else None
        result = replay.replayed(a, b, None, out, _CALL)
    return _dispatched(a, b) if result is None else result


def _leave_dispatcher_out(observers) -> None:
    """Make ``torch.ops.pysimd.matmul`` a function of C, which multiplies two plain tensors at once, and passes to the
    dispatcher what has options, gradients or an observer.

    A kernel that a C library registers for AutogradCPU by torch's stable ABI (``aoti_torch_library_impl``) was measured
    too. One 4x4 on an AMD EPYC took 2.6 us with a plain loop for the product, torch.bmm 1.7, torch.ops.aten.bmm 3.4,
    and kernels in Python 7.5. That ABI tells neither whether a tensor requires gradients nor whether a mode is active.
    """
    packet, door = torch.ops.pysimd.matmul, registry.implementation("cpu").door
    call = door.operator(_PLAIN, observers, _plain, _dispatched)
    packet.__class__ = type("Matmul", (type(packet),), {"__call__": call})


_CALL = replay.matmul_call(None)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_EXCHANGE = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)  # torch 2.10 and later
if _EXCHANGE is not None:
    registry.implementation("cpu").door.take_tensors(_PLAIN, _EXCHANGE, vars(torch.autograd.forward_ad))
_seen_by = _observers()
if _seen_by is not None:
    _leave_dispatcher_out(_seen_by)


# --- pysimd.matmul and pysimd.gemm ---


def _needs_operator(*given) -> bool:
    """Whether a call is recorded for gradients, or has a tensor that is not plain memory (DTensor, meta tensors)."""
    tensors = [x for x in given if _is_tensor(x)]
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    differentiated = _forward_level() >= 0 and any(_has_tangent(x) for x in tensors)
    return recorded or differentiated or not all(type(x) in _PLAIN and (x.is_cpu or x.is_cuda) for x in tensors)


def _is_tensor(x) -> bool:
    return type(x) in _PLAIN or isinstance(x, torch.Tensor)  # isinstance alone calls Python


def _refuse(out, kernel, threads) -> None:
    """Raise where a call with gradients asks for what the operators do not have."""
    for name, x in (("out", out), ("kernel", kernel), ("threads", threads)):
        if x is not None:
            raise OptionError(
                f"{name} is not for tensors with gradients or of a subclass: leave it out, or .detach() them"
            )


def _check_tensors(*given) -> None:
    """Raise unless all operands of an operator are tensors."""
    if not all(x is None or _is_tensor(x) for x in given):
        raise DTypeError("a tensor with gradients is multiplied by tensors: convert the other by torch.as_tensor()")


def matmul(a, b, out, kernel, threads):
    """``pysimd.matmul`` of tensors on the CPU, of tensors that require gradients, and of subclasses of tensors."""
    if _needs_operator(a, b):
        _refuse(out, kernel, threads)
        _check_tensors(a, b)
        return _matmul_op(a, b, dtype=_accumulated(a))
    views = _views(a=a, b=b, out=out)
    if views is NotImplemented:
        return NotImplemented
    result = products.matmul(views["a"], views["b"], out=views["out"], kernel=kernel, threads=threads)
    return torch.from_numpy(result) if out is None else out


def gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads):
    """``pysimd.gemm`` of the same tensors."""
    if _needs_operator(a, b, c):
        _refuse(out, kernel, threads)
        _check_tensors(a, b, c)
        a, b = a.mT if trans_a else a, b.mT if trans_b else b
        return _gemm_op(a, b, c, alpha=float(alpha), beta=float(beta), dtype=_accumulated(a))
    views = _views(a=a, b=b, c=c, out=out)
    if views is NotImplemented:
        return NotImplemented
    options = {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b, "kernel": kernel}
    result = products.gemm(views["a"], views["b"], views["c"], out=views["out"], threads=threads, **options)
    return torch.from_numpy(result) if out is None else out


def _views(**given):
    """NumPy views of tensors on the CPU, other operands as they are; NotImplemented unless all tensors are there."""
    if not all(x.is_cpu and x.layout == torch.strided for x in given.values() if _is_tensor(x)):
        return NotImplemented
    out = given["out"]
    if _is_tensor(out) and (out.requires_grad or out.is_neg()):
        raise DTypeError("out is a tensor that requires gradients, or a negated view: pass a plain one")
    return {name: _numpy(name, x) if _is_tensor(x) else x for name, x in given.items()}
