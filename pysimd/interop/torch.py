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

from collections.abc import Sequence

from pysimd import dtypes, operands, products, registry
from pysimd.backends.gpu import replay
from pysimd.errors import DTypeError, OptionError
from pysimd.interop import extras, torch_dispatch, torch_transforms
from pysimd.interop.torch_dispatch import TYPES, is_tensor

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

    On a GPU the product of bfloat16 is rounded by pysimd. On a CPU torch rounds the float32 result of 16-bit operands.
    """
    a, b, c = (x if x is None or not x.requires_grad else x.detach() for x in (a, b, c))
    if a.is_cuda and dtype == torch.bfloat16:
        return _compute_narrow(a, b, c, alpha, beta)
    if c is not None:
        c = c.to(_accumulated(a) or dtype)
    if dtype == torch.float32 and a.dtype == torch.float16 and a.is_cuda:  # whose product on a GPU is float16
        a, b = a.float(), b.float()
    plain = c is None and alpha == 1
    result = products.matmul(a, b) if plain else products.gemm(a, b, c, alpha=alpha, beta=beta)
    return result if result.dtype == dtype else result.to(dtype)


def _compute_narrow(a, b, c, alpha, beta):
    """The same of bfloat16 on a GPU, with a result of bfloat16."""
    if c is None and alpha == 1:
        result = replay.replayed(a, b, None, None, replay.NARROW_MATMUL)
        if result is not None:
            return result
        return registry.implementation(operands.backend_for({"a": a, "b": b})).narrow_matmul(a, b)
    shape = _shape(a.shape, b.shape, matrices=True)
    out = a.new_empty(shape if c is None else torch.broadcast_shapes(shape, c.shape))
    return products.gemm(a, b, c, alpha=alpha, beta=beta, out=out)


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


def _fake_matmul(a, b, *, dtype=None):
    return a.new_empty(_shape(a.shape, b.shape, False), dtype=_result_dtype(a, b, dtype))


def _fake_gemm(a, b, c=None, *, alpha=1.0, beta=0.0, dtype=None):
    shape = _shape(a.shape, b.shape, True)
    if c is not None:
        _check_c(c, _result_dtype(a, b, dtype))
        shape = torch.broadcast_shapes(shape, c.shape)
    return a.new_empty(shape, dtype=_result_dtype(a, b, dtype))


# --- registration ---


class _Kept:
    """Keeps the kernel that is registered with it, as with a library."""

    def impl(self, name, kernel, *key, **options):
        self.kernel = kernel


def _register(operator, run, fake, save, backward, vmap) -> None:
    """All kernels of an operator: values, gradients, autocast, shapes, vmap."""
    name = operator.name().partition("::")[2]
    kept = _Kept()
    for library in (_LIBRARY, kept):
        torch.library.register_autograd(f"pysimd::{name}", backward, setup_context=save, lib=library)
    for key in ("CPU", "CUDA"):
        _LIBRARY.impl(name, run, key)
        _LIBRARY.impl(name, torch_dispatch.unless_recorded(run, kept.kernel), f"Autograd{key}", with_keyset=True)
    for key in torch_transforms.AUTOCAST_KEYS.values():
        _LIBRARY.impl(name, torch_transforms.autocast(operator), key)
    torch.library.register_fake(f"pysimd::{name}", fake, lib=_LIBRARY)
    torch.library.register_vmap(f"pysimd::{name}", vmap, lib=_LIBRARY)


_t = torch_transforms
_register(_matmul_op, _matmul, _fake_matmul, _t.save_matmul, _t.matmul_backward, _t.vmap_matmul)
_register(_gemm_op, _gemm, _fake_gemm, _t.save_gemm, _t.gemm_backward, _t.vmap_gemm)
torch_dispatch.read_tensors_in_c()


# --- pysimd.matmul and pysimd.gemm ---


def _needs_operator(*given) -> bool:
    """Whether a call is recorded for gradients, or has a tensor that is not plain memory (DTensor, meta tensors)."""
    tensors = [x for x in given if is_tensor(x)]
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    differentiated = torch_dispatch.forward_level() >= 0 and any(torch_dispatch.has_tangent(x) for x in tensors)
    return recorded or differentiated or not all(type(x) in TYPES and (x.is_cpu or x.is_cuda) for x in tensors)


def _refuse(out, kernel, threads) -> None:
    """Raise where a call with gradients asks for what the operators do not have."""
    for name, x in (("out", out), ("kernel", kernel), ("threads", threads)):
        if x is not None:
            raise OptionError(
                f"{name} is not for tensors with gradients or of a subclass: leave it out, or .detach() them"
            )


def _check_tensors(*given) -> None:
    """Raise unless all operands of an operator are tensors."""
    if not all(x is None or is_tensor(x) for x in given):
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
    if not all(x.is_cpu and x.layout == torch.strided for x in given.values() if is_tensor(x)):
        return NotImplemented
    out = given["out"]
    if is_tensor(out) and (out.requires_grad or out.is_neg()):
        raise DTypeError("out is a tensor that requires gradients, or a negated view: pass a plain one")
    return {name: _numpy(name, x) if is_tensor(x) else x for name, x in given.items()}
