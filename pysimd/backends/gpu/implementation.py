"""What the CUDA and the HIP backend do alike with CuPy arrays: calls, bound calls, ``matmul``, launches replayed.

A backend brings its tables: functions that turn operands into launches, each a compiled function, a grid, a block and a
``Call``. Calls go to the current stream and wait for nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from pysimd import operands as arrays
from pysimd.backends.gpu import cupy_arrays, plans
from pysimd.backends.gpu.launches import CALL
from pysimd.backends.gpu.plans import current_device
from pysimd.errors import DTypeError, OptionError, ShapeError, UnavailableError
from pysimd.registry import Backend, MicroKernel

__all__ = ["Gpu", "current_device", "library", "tile_calls"]


class Gpu:
    """A backend on CuPy arrays.

    Args:
        name: ``cuda`` or ``hip``.
        backend: what there is on this machine.
        offered: types families that ``matmul`` multiplies.
        tile_launches: ``(kernel, a, b, c0, c)`` to launches that do ``c = c0 + a @ b`` with a kernel of the table.
        matmul_launches: ``(types, a, b, c)`` to the ``plans.Launch`` es that do ``c = a @ b``.
    """

    def __init__(
        self,
        name: str,
        backend: Callable[[], Backend],
        offered: tuple[str, ...],
        tile_launches: Callable,
        matmul_launches: Callable,
    ):
        self.name = name
        self.backend = backend
        self.offered = offered
        self.tile_launches = tile_launches
        self.matmul_launches = matmul_launches
        self.plans = plans.Plans()
        """Of ``matmul`` and ``gemm``."""

    # --- what there is ---

    def kernel(self, row, source_path: str, reason: str) -> MicroKernel:
        """A row of the backend's table as what users get; ``reason``: why it cannot run here, empty if it can."""
        return MicroKernel(
            name=row.name,
            backend=self.name,
            target=self.name,
            types=row.types,
            form=row.form,
            mr=row.mr,
            nr=row.nr,
            k_group=row.k_group,
            requires=(row.requires,),
            available=not reason,
            unavailable_reason=reason,
            source_path=source_path,
            _implementation=self,
        )

    # --- calls of a kernel ---

    def call(self, kernel: MicroKernel, a, b, c, out):
        """``MicroKernel.__call__`` on arrays of this backend's GPUs."""
        self._check_device(kernel, {"a": a, "b": b, "c": c, "out": out})
        with cupy_arrays.place_of(a, b, c, out):
            given = a, out
            a, b, c, out, shape = _operands(kernel, a, b, c, out)
            make = functools.partial(self._tile_calls, kernel)
            result = _into(make, a, b, c, out, shape, kernel.c_dtype)
            return cupy_arrays.like(result, given[0]) if given[1] is None else given[1]

    def bind(self, kernel: MicroKernel, a, b, c):
        """``MicroKernel.bind``; the returned function launches on the stream that is current when called."""
        if c is None:
            raise DTypeError("bind needs an array c to add to, got None")
        self._check_device(kernel, {"a": a, "b": b, "c": c})
        given = (a, b, c)
        with cupy_arrays.place_of(a, b, c):
            a, b, _, c, _ = _operands(kernel, a, b, None, c, out_name="c")
            if not cupy_arrays.storable(c):
                raise ShapeError(
                    f"bind needs a c with whole, aligned elements and none repeated, got strides {c.strides}"
                )
            for name, x in (("a", a), ("b", b)):
                if cupy_arrays.overlap(c, x):
                    raise ShapeError(f"bind needs a c apart from {name}: their memory overlaps")
                if not cupy_arrays.whole_elements(x):
                    raise ShapeError(f"bind needs an {name} of whole, aligned elements, got strides {x.strides}")
            launches = list(self.tile_launches(kernel, a, b, c, c))
        prepared = [functools.partial(f, grid, block, (call.view(CALL),)) for f, grid, block, call in launches]
        run = prepared[0] if len(prepared) == 1 else functools.partial(_run_all, prepared)
        run.operands = given  # kept alive with the function
        return run

    def _tile_calls(self, kernel: MicroKernel, a, b, c0, c):
        return tile_calls(self.tile_launches(kernel, a, b, c0, c))

    def _check_device(self, kernel: MicroKernel, operands: dict) -> None:
        device = arrays.backend_for(operands)
        if device != self.name:
            family = self.name.upper()
            raise DTypeError(
                f"{kernel.name} is a {family} kernel, the arrays are on {device}: copy them with cupy.asarray()"
            )

    # --- matmul ---

    def matmul(self, a, b, out, kernel: MicroKernel | None, threads: int | None):
        """``pysimd.matmul`` on arrays of this backend's GPUs."""
        if not self.backend().available:
            raise UnavailableError(self.backend().reason)
        if threads is not None:
            raise OptionError(f"threads={threads} is for arrays on the CPU: leave it out for arrays on a GPU")
        key = None
        one_type = type(a) is type(b) and (out is None or type(out) is type(a))
        if kernel is None and one_type and type(a).__module__ == "cupy":
            key = plans.key(a, b, out)
            result = self.plans.replay(key, a, b, out)
            if result is not None:
                return result
        with cupy_arrays.place_of(a, b, out):
            return self._matmul(a, b, out, kernel, key)

    def _matmul(self, a, b, out, kernel, key):
        given = a, out
        a, b = cupy_arrays.as_cupy("a", a), cupy_arrays.as_cupy("b", b)
        out = None if out is None else cupy_arrays.as_cupy("out", out)
        product = arrays.check_matmul(kernel, a, b, out, self.offered)
        whole_matrices = a.ndim > 1 and b.ndim > 1
        a, b, out = product.a, product.b, product.out

        def make(x, y, _c0, target):
            if target.size == 0:
                return ()
            if kernel is not None:
                return self._tile_calls(kernel, x, y, None, target)
            launches = list(self.matmul_launches(product.types, x, y, target))
            in_place = x is a and y is b and (out is None or target is out)
            if key is not None and len(launches) == 1 and in_place and whole_matrices:
                self.plans.keep(key, launches[0], x, y, target)
            return launches

        result = _into(make, a, b, None, out, product.full, product.dtype)
        if given[1] is not None:
            return given[1]
        return cupy_arrays.like(result.reshape(product.shape), given[0])


def _operands(kernel: MicroKernel, a, b, c, out, out_name="out"):
    """The operands of a kernel call as CuPy arrays, checked; and the result's shape."""
    named = (("a", a), ("b", b), ("c", c), (out_name, out))
    a, b, c, out = (None if x is None else cupy_arrays.as_cupy(name, x) for name, x in named)
    return a, b, c, out, arrays.check_tile_call(kernel, a, b, c, out, out_name)


def _into(make, a, b, c, out, shape, dtype):
    """``make(a, b, c, target)`` in ``out``, or in a new array if that is None, as if nothing overlapped."""
    import cupy

    in_place = out is not None and cupy_arrays.storable(out)
    in_place = in_place and not any(cupy_arrays.overlap(out, x) for x in (a, b))
    if in_place and c is not None and not cupy_arrays.same_memory(c, out):
        in_place = not cupy_arrays.overlap(out, c)
    target = out if in_place else cupy.empty(shape, dtype)
    a, b, c = cupy_arrays.readable(a), cupy_arrays.readable(b), None if c is None else cupy_arrays.readable(c)
    for launch in make(a, b, c, target):
        launch.run(a, b, target)
    if out is not None and not in_place:
        cupy_arrays.copy(out, target)
    return target if out is None else out


def _run_all(prepared) -> None:
    for launch in prepared:
        launch()


def tile_calls(launches):
    """Launches of kernels that take a Call, as (function, grid, block, call), as ``plans.Launch`` es."""
    return (plans.Launch(functools.partial(_begin, f, grid, block), call) for f, grid, block, call in launches)


def _begin(function, grid, block, call):
    return functools.partial(function, grid, block, (call.view(CALL),))


# --- products too large for the project's kernels ---


def library(types: str) -> plans.Launch:
    """Products by CuPy: cuBLAS or rocBLAS. bfloat16 is widened to float32, exactly."""
    return plans.Launch(functools.partial(_library_matmul, types))


def _library_matmul(types: str, a, b, c) -> None:
    import cupy

    if a.shape[-1] == 0:
        c[...] = 0
        return
    if types == "bf16f32":
        a, b = _float32(a), _float32(b)
    if c.flags.c_contiguous:
        cupy.matmul(a, b, out=c)
    else:
        c[...] = cupy.matmul(a, b)


def _float32(x):
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
