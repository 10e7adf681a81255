"""Products of JAX arrays on a CPU or a GPU: JAX arrays out, bfloat16 included.

``pysimd.matmul`` and ``pysimd.gemm`` call this module. Operands are read in place; the result is wrapped by
``jax.numpy.asarray``, on a GPU by ``jax.numpy.from_dlpack``. Within ``jax.jit``, ``vmap`` and ``grad`` there are no
values to read: there pysimd is called by ``jax.pure_callback`` (docs/interop.md).
"""

from __future__ import annotations

import numpy as np

from pysimd import operands, products, registry
from pysimd.backends.gpu import cupy_arrays
from pysimd.errors import DTypeError, OptionError
from pysimd.interop import extras

jax = extras.module("jax", "jax")
extras.module("jax.numpy", "jax")


def matmul(a, b, out, kernel, threads):
    """``pysimd.matmul`` of JAX arrays, or of one and a NumPy or CuPy array."""
    views = _views(out, a=a, b=b)
    if views is NotImplemented:
        return NotImplemented
    return _wrapped(products.matmul(*views, kernel=kernel, threads=threads))


def gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads):
    """``pysimd.gemm`` of JAX arrays, or of some and NumPy or CuPy arrays."""
    views = _views(out, a=a, b=b, c=c)
    if views is NotImplemented:
        return NotImplemented
    options = {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b, "kernel": kernel}
    return _wrapped(products.gemm(*views, threads=threads, **options))


def _views(out, **given):
    """The operands with views of JAX arrays by NumPy or CuPy; NotImplemented where there is no such view."""
    for name, x in given.items():
        if isinstance(x, jax.core.Tracer):
            raise DTypeError(
                f"{name} is traced by jax.jit, vmap or grad and has no values yet: call pysimd by jax.pure_callback"
            )
    arrays = [x for x in given.values() if isinstance(x, jax.Array)]
    if not all(_on_cpu(x) or _on_usable_gpu(x) for x in arrays):
        return NotImplemented
    if out is not None:
        raise OptionError("out is not for JAX arrays, which are immutable: leave it out, or pass NumPy views of them")
    return tuple(_view(name, x) if isinstance(x, jax.Array) else x for name, x in given.items())


def _on_cpu(x) -> bool:
    return all(device.platform == "cpu" for device in x.devices())


def _on_usable_gpu(x) -> bool:
    """Whether the array is on one GPU of a backend that is available here."""
    if len(x.devices()) > 1:
        return False
    found = registry.implementations().get(operands.device_of(x))
    return found is not None and found.backend().available


def _view(name: str, x):
    return np.asarray(x) if _on_cpu(x) else cupy_arrays.as_cupy(name, x)


def _wrapped(result):
    """The result as a JAX array.

    On a GPU it is complete then: JAX may use the memory of an operand again as soon as the view of it is gone.
    """
    if isinstance(result, np.ndarray):
        return jax.numpy.asarray(result)
    cupy_arrays.synchronize(result)
    return jax.numpy.from_dlpack(result)
