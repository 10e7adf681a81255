"""Products of JAX arrays on a CPU: JAX arrays out, bfloat16 included.

``pysimd.matmul`` and ``pysimd.gemm`` call this module. Operands are read in place; the result is wrapped by
``jax.numpy.asarray``. Within ``jax.jit``, ``vmap`` and ``grad`` there are no values to read: there pysimd is called by
``jax.pure_callback`` (docs/interop.md).
"""

from __future__ import annotations

import numpy as np

from pysimd import products
from pysimd.errors import DTypeError, OptionError
from pysimd.interop import extras

jax = extras.module("jax", "jax")


def matmul(a, b, out, kernel, threads):
    """``pysimd.matmul`` of JAX arrays, or of one and a NumPy array."""
    views = _views(out, a=a, b=b)
    if views is NotImplemented:
        return NotImplemented
    return _wrapped(products.matmul(*views, kernel=kernel, threads=threads))


def gemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, threads):
    """``pysimd.gemm`` of JAX arrays, or of some and NumPy arrays."""
    views = _views(out, a=a, b=b, c=c)
    if views is NotImplemented:
        return NotImplemented
    options = {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b, "kernel": kernel}
    return _wrapped(products.gemm(*views, threads=threads, **options))


def _views(out, **given):
    """The operands with NumPy views of JAX arrays; NotImplemented where one of these is not on a CPU."""
    for name, x in given.items():
        if isinstance(x, jax.core.Tracer):
            raise DTypeError(
                f"{name} is traced by jax.jit, vmap or grad and has no values yet: call pysimd by jax.pure_callback"
            )
    arrays = [x for x in given.values() if isinstance(x, jax.Array)]
    if any(device.platform != "cpu" for x in arrays for device in x.devices()):
        return NotImplemented
    if out is not None:
        raise OptionError("out is not for JAX arrays, which are immutable: leave it out, or pass NumPy views of them")
    return tuple(np.asarray(x) if isinstance(x, jax.Array) else x for x in given.values())


def _wrapped(result):
    """The result as a JAX array."""
    return jax.numpy.asarray(result)
