"""Calls of ``torch.ops.pysimd.matmul`` that leave torch's dispatcher out, which takes longer than a small product; and
which calls must not, since somebody records, transforms or observes them."""

from __future__ import annotations

import functools
import operator

from pysimd import registry
from pysimd.backends.gpu import replay
from pysimd.errors import OptionError
from pysimd.interop import extras

torch = extras.module("torch", "torch")

TYPES = (torch.Tensor, torch.nn.Parameter)
"""Types of tensors that may be plain memory. Subclasses have a meaning of their own."""


def is_tensor(x) -> bool:
    return type(x) in TYPES or isinstance(x, torch.Tensor)  # isinstance alone calls Python


# --- forward mode ---


def forward_level() -> int:
    """The level of forward-mode differentiation; below 0 outside of it."""
    return getattr(torch.autograd.forward_ad, "_current_level", -1)  # private to torch


def has_tangent(x) -> bool:
    return is_tensor(x) and torch.autograd.forward_ad.unpack_dual(x).tangent is not None


def _refuse_tangents(given) -> None:
    """Raise where the derivative of an operand would be lost."""
    if any(has_tangent(x) for x in given):
        raise OptionError("pysimd has no forward-mode derivatives (torch.func.jvp): use torch.autograd.grad")


# --- calls that are not recorded ---


def _raw(*names: str) -> int:
    """The bits of a set of dispatch keys."""
    sets = (torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)) for name in names)
    return functools.reduce(operator.or_, sets).raw_repr()


_OTHER_KEYS = ~_raw(
    *("CPU", "AutogradCPU", "AutocastCPU", "CUDA", "AutogradCUDA", "AutocastCUDA"), "ADInplaceOrView", "BackendSelect"
)
"""Those of tensors that are not plain memory: views to be negated, fake and functional tensors, levels of vmap."""


def unless_recorded(run, recorded):
    """A kernel of autograd that calls ``run`` at once where no gradient is asked for, and ``recorded`` elsewhere: this
    returns to the dispatcher, which takes several times as long as a small product."""

    def call(keys, *given, **options):
        if forward_level() >= 0:
            _refuse_tangents(given)
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*given):
            if torch._C._are_functorch_transforms_active():
                raise OptionError("pysimd has no gradients for torch.func.grad and vjp: use torch.autograd.grad")
            return recorded(keys, *given, **options)
        return recorded(keys, *given, **options) if keys.raw_repr() & _OTHER_KEYS else run(*given, **options)

    return call


# --- calls without the dispatcher ---


def observers():
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


_GPU_CALLS = {
    **dict.fromkeys((torch.float32, torch.float64, torch.float16), replay.matmul_call(None)),
    torch.bfloat16: replay.NARROW_MATMUL,
}
"""What computes the operator's result on a GPU by the dtype of A."""


def _plain(a, b):
    """The product of tensors that nobody observes and that are not on the CPU, or do not fit. On a GPU the dispatcher
    is left out where the kernel is known from a call before."""
    result = replay.replayed(a, b, None, None, _GPU_CALLS.get(a.dtype))
    return _dispatched(a, b) if result is None else result


def _leave_dispatcher_out(seen_by) -> None:
    """Make ``torch.ops.pysimd.matmul`` a function of C, which multiplies two plain tensors at once, and passes to the
    dispatcher what has options, gradients or an observer.

    A kernel that a C library registers for AutogradCPU by torch's stable ABI (``aoti_torch_library_impl``) was measured
    too. One 4x4 on an AMD EPYC took 2.6 us with a plain loop for the product, torch.bmm 1.7, torch.ops.aten.bmm 3.4,
    and kernels in Python 7.5. That ABI tells neither whether a tensor requires gradients nor whether a mode is active.
    """
    packet, door = torch.ops.pysimd.matmul, registry.implementation("cpu").door
    call = door.operator(TYPES, seen_by, _plain, _dispatched)
    packet.__class__ = type("Matmul", (type(packet),), {"__call__": call})


def read_tensors_in_c() -> None:
    """Let ``pysimd.matmul`` and ``gemm`` read plain tensors in C, and ``torch.ops.pysimd.matmul``, which is defined by
    now."""
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)  # torch 2.10 and later
    if exchange is not None:
        door = registry.implementation("cpu").door
        if door.take_tensors(TYPES, exchange, vars(torch.autograd.forward_ad)):
            replay.read_tensors_by(door.layouts)
    seen_by = observers()
    if seen_by is not None:
        _leave_dispatcher_out(seen_by)
