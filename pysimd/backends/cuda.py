"""The CUDA backend: the table of ``gpu_kernels`` through CuPy, and the arrays handed to it.

Everything that depends on shapes and strides is worked out here, once per call (``matmul``: once per arrangement), and
given to the kernel as one ``Call`` (gpu_kernels/micro/call.cuh). Kernels are compiled when they are first asked for and
kept by CuPy, in memory and on disk. Calls go to the current stream and wait for nothing.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np

from .. import arrays, dtypes
from ..errors import DTypeError, OptionError, ShapeError, UnavailableError
from ..gpu_kernels import table
from ..registry import Backend, MicroKernel
from . import cupy_probe, nvrtc

OFFERED = tuple(table.BATCHED_TYPES)

_DIMS = 4
_BLOCK = 128


# --- what there is ---


@cache
def backend() -> Backend:
    """The current device when first asked; availability does not change while a process lives."""
    reason = cupy_probe.reason("cuda", want_hip=False)
    if reason:
        return Backend("cuda", False, reason, "", ())
    import cupy

    device = cupy.cuda.runtime.getDevice()
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    capability = 10 * properties["major"] + properties["minor"]
    name = properties["name"].decode()
    if capability < 75:
        return Backend("cuda", False, f"{name} is sm_{capability}: the kernels need sm_75 or newer", name, ())
    return Backend("cuda", True, "", name, (f"sm_{capability}",))


@cache
def kernels() -> tuple[MicroKernel, ...]:
    return tuple(_kernel(row) for row in table.KERNELS)


def _kernel(row: table.Kernel) -> MicroKernel:
    here = backend()
    reason = here.reason
    if not reason and int(here.features[0][3:]) < int(row.requires[3:]):
        reason = f"{here.device} is {here.features[0]}: {row.name} needs {row.requires} or newer"
    return MicroKernel(
        name=row.name,
        backend="cuda",
        target="cuda",
        types=row.types,
        form=row.form,
        mr=row.mr,
        nr=row.nr,
        k_group=row.k_group,
        requires=(row.requires,),
        available=not reason,
        unavailable_reason=reason,
        source_path=f"gpu_kernels/micro/{row.source}",
        _implementation=sys.modules[__name__],
    )


@cache
def _function(source: str, entry: str, device: int):
    """The compiled kernel of a template instance; ``device`` is the current one."""
    import cupy

    module = cupy.RawModule(code=nvrtc.source(source), options=nvrtc.OPTIONS, name_expressions=(entry,))
    return module.get_function(entry)


# --- arrays ---


def _as_cupy(name: str, x):
    """A CuPy array on the same memory. The caller has seen that ``x`` is on a CUDA device."""
    import cupy

    if isinstance(x, cupy.ndarray):
        return x
    try:
        return cupy.from_dlpack(x)
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(f"{name} ({type(x).__name__}) cannot be viewed as a CuPy array: {error}") from error


def _like(x, given):
    """``x``, a CuPy array, as the kind of array that ``given`` is: its library takes it through DLPack."""
    import cupy

    if isinstance(given, cupy.ndarray):
        return x
    library = sys.modules.get(type(given).__module__.partition(".")[0])
    from_dlpack = getattr(library, "from_dlpack", None) or getattr(
        getattr(library, "dlpack", None), "from_dlpack", None
    )
    return from_dlpack(x) if from_dlpack else x


class _ForeignStream:
    """A stream of another library as CuPy takes it."""

    def __init__(self, handle: int):
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


@contextlib.contextmanager
def _place_of(*given):
    """The device of the arrays made current, and for torch tensors torch's current stream."""
    import cupy

    devices = {}
    for x in given:
        if x is not None:
            devices[x.device.id if isinstance(x, cupy.ndarray) else int(x.__dlpack_device__()[1])] = x
    if len(devices) > 1:
        raise DTypeError(f"arrays of different GPUs: {sorted(devices)}. Nothing is copied silently: move them to one")
    (device,) = devices
    with contextlib.ExitStack() as stack:
        if device != cupy.cuda.runtime.getDevice():
            stack.enter_context(cupy.cuda.Device(device))
        x = devices[device]
        if type(x).__module__.partition(".")[0] == "torch":
            stream = _ForeignStream(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
            stack.enter_context(cupy.cuda.Stream.from_external(stream))
        yield device


def _whole_elements(x) -> bool:
    """Whether every element is aligned to its own size: kernels can read nothing else."""
    size = x.itemsize
    return not (x.data.ptr % size or any(s % size for s, n in zip(x.strides, x.shape, strict=True) if n > 1))


def _bytes_of(x):
    """The array with its elements as bytes, in one dimension more; any alignment."""
    import cupy

    return cupy.ndarray((*x.shape, x.itemsize), np.uint8, x.data, strides=(*x.strides, 1))


def _readable(x):
    """``x``, or an aligned copy."""

    if x.size == 0 or _whole_elements(x):
        return x
    return _bytes_of(x).copy(order="C").view(x.dtype).reshape(x.shape)


def _copy(to, x) -> None:
    """``to[...] = x``, whatever the alignment of ``to``."""
    if to.size == 0:
        return
    if _whole_elements(to):
        to[...] = x
    else:
        x = x.reshape(*x.shape, 1) if x.flags.c_contiguous else x.copy().reshape(*x.shape, 1)
        _bytes_of(to)[...] = x.view(np.uint8)


def _span(x) -> tuple[int, int]:
    """First byte and the one past the last."""
    low = high = x.data.ptr
    for n, stride in zip(x.shape, x.strides, strict=True):
        if n == 0:
            return low, low
        reach = (n - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + x.itemsize


def _overlap(x, y) -> bool:
    (low_x, high_x), (low_y, high_y) = _span(x), _span(y)
    return low_x < high_y and low_y < high_x and low_x < high_x and low_y < high_y


def _storable(out) -> bool:
    """Whether a kernel can store into ``out``: aligned, and no element twice."""
    return _whole_elements(out) and all(s != 0 or n <= 1 for s, n in zip(out.strides, out.shape, strict=True))


def _same_memory(x, y) -> bool:
    return x is not None and (x.data.ptr, x.shape, x.strides) == (y.data.ptr, y.shape, y.strides)


# --- the arguments of a launch ---


class _Arranged:
    """Operands as the fields of a ``Call``: elements instead of bytes, the batch merged to few dimensions."""

    def __init__(self, a, b, c0, c):
        self.operands = (a, b, c0, c)
        self.batch = c.shape[:-2]
        self.m, self.n, self.k = a.shape[-2], b.shape[-1], a.shape[-1]
        self.sizes = tuple(1 if x is None else x.itemsize for x in self.operands)
        self.strides = tuple((0, 0) if x is None else _matrix_strides(x) for x in self.operands)
        steps = [[0] * len(self.batch) if x is None else arrays.batch_strides(x, self.batch) for x in self.operands]
        dims = arrays.merged(self.batch, *steps) if self.batch else []
        self.dims = [(n, tuple(s // e for s, e in zip(step, self.sizes, strict=True))) for n, step in dims]

    def alignment(self, which: int, skip: int) -> int:
        """Largest power of two up to 16 that divides the address, and all strides but that of axis ``skip`` (0 rows, 1
        columns), of an operand, in bytes."""
        x, size = self.operands[which], self.sizes[which]
        bits = x.data.ptr | 16 | self.strides[which][1 - skip] * size
        for _, step in self.dims:
            bits |= step[which] * size
        return bits & -bits

    def contiguous(self, which: int) -> bool:
        """Whether matrices follow each other without a gap (each may be stored by rows or by columns)."""
        x = self.operands[which]
        rows, columns = x.shape[-2:]
        products = math.prod(self.batch)
        if products <= 1:
            return True
        return len(self.dims) == 1 and self.dims[0][1][which] == rows * columns

    def calls(self, c_vector: bool, tiles: int = 1):
        """The Calls as int64 arrays: one, or several where dimensions, or ``tiles`` for each product, do not fit."""
        outer, inner = self.dims[:-_DIMS], self.dims[-_DIMS:] or [(1, (0, 0, 0, 0))]
        # The first dimension is cut so that a launch has 2**31 tiles at most.
        first, step = inner[0]
        rest = math.prod(n for n, _ in inner[1:])
        piece = max(1, _MOST_TILES // (rest * tiles))
        pointers = [0 if x is None else x.data.ptr for x in self.operands]
        pad = [0] * (_DIMS - len(inner))
        for index in itertools.product(*(range(n) for n, _ in outer)):
            for start in range(0, first, piece):
                offset = [
                    (start * step[which] + sum(i * s[which] for i, (_, s) in zip(index, outer, strict=True))) * size
                    for which, size in enumerate(self.sizes)
                ]
                shape = [min(piece, first - start), *(n for n, _ in inner[1:])]
                fields = [p + o if p else 0 for p, o in zip(pointers, offset, strict=True)]
                fields += [math.prod(shape), self.m, self.n, self.k, *itertools.chain(*self.strides)]
                fields += [int(c_vector), len(inner), *shape, *pad]
                for which in range(4):
                    fields += [s[which] for _, s in inner] + pad
                yield np.array(fields, np.int64)


_MOST_TILES = 1 << 31

_BATCH = 4
"""Where the number of products stands in a Call."""

_CALL = np.dtype(f"V{8 * (18 + 5 * _DIMS)}")
"""The bytes of one Call: CuPy passes an array of one such element by value."""


def _matrix_strides(x) -> tuple[int, int]:
    """Strides of a row and of a column in elements; along a dimension of length 1 they mean nothing and count as 0."""
    return tuple(s // x.itemsize if n > 1 else 0 for s, n in zip(x.strides[-2:], x.shape[-2:], strict=True))


def _layout(arranged: _Arranged, which: int, tile: int, allowed: tuple[str, ...]) -> str:
    """How the kernel may read A (0) or B (1), whose tile has ``tile`` rows or columns."""
    k_axis = 1 - which
    strides, size = arranged.strides[which], arranged.sizes[which]
    along_k, along_r = strides[k_axis], strides[1 - k_axis]
    if "ALONG_K" in allowed and along_k == 1 and arranged.alignment(which, k_axis) == 16:
        return "ALONG_K"
    if "ALONG_R" in allowed and along_r == 1 and arranged.alignment(which, 1 - k_axis) >= min(16, tile * size):
        return "PACKED" if along_k == tile else "ALONG_R"
    return "ANY"


def _c_vector(arranged: _Arranged, tile_bytes: int) -> bool:
    """Whether rows of C can be stored in the widest pieces."""
    return arranged.strides[3][1] == 1 and arranged.alignment(3, 1) >= min(16, tile_bytes)


def _tile_launches(kernel: MicroKernel, a, b, c0, c):
    """Functions and arguments that do ``c = c0 + a @ b`` with a kernel of the table."""
    import cupy

    device = cupy.cuda.runtime.getDevice()
    row = table.BY_NAME[kernel.name]
    arranged = _Arranged(a, b, c0, c)
    products = math.prod(arranged.batch)
    if products * arranged.m * arranged.n == 0:
        return []
    edge = arranged.m % row.mr != 0 or arranged.n % row.nr != 0
    if row.form == "batch2":
        return _pair_launches(row, arranged, edge, device)
    layouts = ("ANY", "ANY") if edge else tuple(_layout(arranged, w, (row.mr, row.nr)[w], row.layouts) for w in (0, 1))
    direct = row.form == "wmma" and not edge and _wmma_direct(arranged)
    entry = table.entry(row, *layouts, edge, direct)
    c_vector = not edge and _c_vector(arranged, (4 if row.form == "wmma" else row.nr) * arranged.sizes[3])
    return _launches(row, entry, arranged, c_vector, device)


def _launches(row, entry: str, arranged: _Arranged, c_vector: bool, device: int, tiles: int = 1):
    function = _function(row.source, entry, device)
    down, across = -(-arranged.m // row.mr), -(-arranged.n // row.nr)
    for call in arranged.calls(c_vector, down * across):
        groups = -(-int(call[_BATCH]) // tiles) * down * across
        blocks = -(-groups * row.lanes // _BLOCK)
        yield function, (blocks,), (_BLOCK,), call


def _wmma_direct(arranged: _Arranged) -> bool:
    """Whether the tensor cores' loads can read the arrays: rows contiguous, 32-byte aligned tiles, whole ld units."""
    for which in (0, 1):
        x, size, (rows, columns) = arranged.operands[which], arranged.sizes[which], arranged.strides[which]
        if columns != 1 or rows <= 0 or rows * size % 32 or rows >= 1 << 31 or x.data.ptr % 32:
            return False
        if any(step[which] * size % 32 for _, step in arranged.dims):
            return False
    return True


def _pair_launches(row, arranged: _Arranged, edge: bool, device: int):
    """Two products at once: read as words of two halves where they lie interleaved."""
    dims = arranged.dims
    present = [w for w, x in enumerate(arranged.operands) if x is not None]
    paired = bool(dims) and dims[-1][0] % 2 == 0 and all(dims[-1][1][w] == 1 for w in present)
    for w in present:
        others = [*arranged.strides[w], *(step[w] for _, step in dims[:-1])]
        paired = paired and arranged.operands[w].data.ptr % 4 == 0 and all(s % 2 == 0 for s in others)
    if not paired:
        return _launches(row, table.entry(row, "GATHERED", "GATHERED", edge, False), arranged, False, device, tiles=2)
    length, step = dims[-1]
    arranged.dims = [(n, tuple(s // 2 for s in steps)) for n, steps in dims[:-1]]
    if length > 2:
        arranged.dims.append((length // 2, step))
    arranged.strides = tuple((rows // 2, columns // 2) for rows, columns in arranged.strides)
    arranged.sizes = (4, 4, 4, 4)
    layouts = ("ANY", "ANY") if edge else tuple(_layout(arranged, w, 4, row.layouts) for w in (0, 1))
    entry = table.entry(row, *layouts, edge, False)
    return _launches(row, entry, arranged, not edge and _c_vector(arranged, 16), device)


def _run(launches) -> None:
    for function, grid, block, call in launches:
        function(grid, block, (call.view(_CALL),))


# --- calls of a kernel ---


def _operands(kernel: MicroKernel, a, b, c, out, out_name="out"):
    """The operands of a kernel call as CuPy arrays, checked; and the result's shape."""
    a, b, c, out = (None if x is None else _as_cupy(n, x) for n, x in (("a", a), ("b", b), ("c", c), (out_name, out)))
    return a, b, c, out, arrays.check_tile_call(kernel, a, b, c, out, out_name)


def _check_device(kernel: MicroKernel, operands: dict) -> None:
    device = arrays.backend_for(operands)
    if device != "cuda":
        raise DTypeError(f"{kernel.name} is a CUDA kernel, the arrays are on {device}: copy them with cupy.asarray()")


def _into(make, a, b, c, out, shape, dtype):
    """``make(a, b, c, target)`` in ``out``, or in a new array if that is None, as if nothing overlapped."""
    import cupy

    in_place = out is not None and _storable(out) and not any(_overlap(out, x) for x in (a, b))
    if in_place and c is not None and not _same_memory(c, out):
        in_place = not _overlap(out, c)
    target = out if in_place else cupy.empty(shape, dtype)
    _run(make(_readable(a), _readable(b), None if c is None else _readable(c), target))
    if out is not None and not in_place:
        _copy(out, target)
    return target if out is None else out


def call(kernel: MicroKernel, a, b, c, out):
    """``MicroKernel.__call__`` on CUDA arrays."""
    _check_device(kernel, {"a": a, "b": b, "c": c, "out": out})
    with _place_of(a, b, c, out):
        given = a, out
        a, b, c, out, shape = _operands(kernel, a, b, c, out)
        result = _into(functools.partial(_tile_launches, kernel), a, b, c, out, shape, kernel.c_dtype)
        return _like(result, given[0]) if given[1] is None else given[1]


def bind(kernel: MicroKernel, a, b, c):
    """``MicroKernel.bind`` on CUDA arrays; the returned function launches on the stream that is current when called."""
    if c is None:
        raise DTypeError("bind needs an array c to add to, got None")
    _check_device(kernel, {"a": a, "b": b, "c": c})
    given = (a, b, c)
    with _place_of(a, b, c):
        a, b, _, c, _ = _operands(kernel, a, b, None, c, out_name="c")
        if not _storable(c):
            raise ShapeError(f"bind needs a c with whole, aligned elements and none repeated, got strides {c.strides}")
        for name, x in (("a", a), ("b", b)):
            if _overlap(c, x):
                raise ShapeError(f"bind needs a c apart from {name}: their memory overlaps")
            if not _whole_elements(x):
                raise ShapeError(f"bind needs an {name} of whole, aligned elements, got strides {x.strides}")
        launches = list(_tile_launches(kernel, a, b, c, c))
    prepared = [functools.partial(f, grid, block, (call.view(_CALL),)) for f, grid, block, call in launches]
    run = prepared[0] if len(prepared) == 1 else functools.partial(_run_all, prepared)
    run.operands = given  # kept alive with the function
    return run


def _run_all(prepared) -> None:
    for launch in prepared:
        launch()


# --- matmul ---


@cache
def tiling(types: str, m: int, n: int, k: int) -> tuple[int, int, int]:
    """Rows and columns of C for a thread, and products for a block, in batched.cu; found by measuring on an H200."""
    family = dtypes.FAMILIES[types]
    size, size_c = dtypes.dtype_of(family.a).itemsize, dtypes.dtype_of(family.c).itemsize
    vector = 16 // size_c
    small = m * n <= 256
    if n % max(4, vector) == 0:  # rows of C go out in whole pieces
        tn = max(4, vector)
        tm = (2 if m * n <= 64 else 8) if types == "f16" else (1 if m * n <= 16 else 2 if small else 4)
    elif m * n <= 25:
        tm, tn = m, n
    else:
        widest, most = (3, 9) if size == 8 else (6, 24 if small else 48)
        tn = -(-n // -(-n // widest))
        tm = -(-m // -(-m // max(1, most // tn)))
    tm = min(tm, m)
    lanes = -(-m // tm) * -(-n // tn)
    whole = math.lcm(*(16 // math.gcd(16, e * s) for e, s in ((m * k, size), (k * n, size), (m * n, size_c))))
    bytes_each = max((m * k + k * n) * size, m * n * size_c)
    products = max(1, min(128 // lanes, 24_000 // bytes_each))
    return tm, tn, -(-products // whole) * whole


def _batched_instance(types: str, arranged: _Arranged) -> table.Batched:
    tm, tn, products = tiling(types, arranged.m, arranged.n, arranged.k)
    size, size_c = arranged.sizes[0], arranged.sizes[3]
    m, n, k = arranged.m, arranged.n, arranged.k

    def shared_bytes(count):
        return max(count * (m * k + k * n) * size + 32, count * m * n * size_c)

    fits = shared_bytes(products) <= table.BATCHED_SHARED_BYTES
    while shared_bytes(products) > table.BATCHED_SHARED_BYTES and products > 1:
        products //= 2
    sources, turned = [], []
    for which in (0, 1):
        rows, columns = arranged.strides[which]
        shape = arranged.operands[which].shape[-2:]
        turned.append(abs(rows) < abs(columns) if min(shape) > 1 else shape[0] > 1)
        by_rows, by_columns = ((shape[1], 1), (1, shape[0]))
        natural = tuple(s if n > 1 else 0 for s, n in zip(by_columns if turned[-1] else by_rows, shape, strict=True))
        dense = (
            (rows, columns) == natural and arranged.contiguous(which) and arranged.operands[which].data.ptr % 16 == 0
        )
        if arranged.batch and all(step[which] == 0 for _, step in arranged.dims):
            sources.append("SHARED")
        else:
            sources.append("CHUNK" if dense and fits else "STRIDED")
    natural = tuple(s if length > 1 else 0 for s, length in ((n, m), (1, n)))
    whole = (
        fits and arranged.strides[3] == natural and arranged.contiguous(3) and arranged.operands[3].data.ptr % 16 == 0
    )
    return table.Batched(types, m, n, k, tm, tn, products, sources[0], turned[0], sources[1], turned[1], whole)


def _batched_launches(types: str, a, b, c):
    import cupy

    arranged = _Arranged(a, b, None, c)
    instance = _batched_instance(types, arranged)
    function = _function(table.BATCHED, instance.entry, cupy.cuda.runtime.getDevice())
    for call in arranged.calls(False):
        yield function, (-(-int(call[_BATCH]) // instance.products),), (instance.threads,), call


def _library_matmul(a, b, c) -> None:
    """Products too large for batched.cu, by CuPy: cuBLAS."""
    import cupy

    if a.shape[-1] == 0:
        c[...] = 0
    elif c.flags.c_contiguous:
        cupy.matmul(a, b, out=c)
    else:
        c[...] = cupy.matmul(a, b)


def _float32(x):
    """bfloat16 (or its bits) widened exactly."""
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _matmul_launches(types: str, kernel: MicroKernel | None, a, b, c):
    """Launches of a product; what CuPy does itself is done at once."""
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    if c.size == 0:
        return ()
    if kernel is not None:
        return _tile_launches(kernel, a, b, None, c)
    small = max(m, n) <= table.BATCHED_MOST_MN and k <= table.BATCHED_MOST_K
    if small and not (types == "f64" and m * n * k >= 1 << 15):  # cuBLAS has tensor cores for float64
        return _batched_launches(types, a, b, c)
    if types == "i8i32":
        return _tile_launches(_named("cuda_i8i32_outer_8x8"), a, b, None, c)
    if types == "bf16f32":
        a, b = _float32(a), _float32(b)
    _library_matmul(a, b, c)
    return ()


def _named(name: str) -> MicroKernel:
    return next(k for k in kernels() if k.name == name)


_plans: dict = {}
"""Launches of ``matmul`` on CuPy arrays seen before, by everything they depend on; emptied when it grows large."""


@dataclass(frozen=True)
class _Plan:
    """One launch, and how far A, B and C reach from their pointers: first byte and the one past the last."""

    function: object
    grid: tuple[int]
    block: tuple[int]
    call: np.ndarray
    shape: tuple[int, ...]
    dtype: np.dtype
    reach: tuple[tuple[int, int], ...]


def matmul(a, b, out, kernel: MicroKernel | None, threads: int | None):
    """``pysimd.matmul`` on CUDA arrays."""
    if not backend().available:
        raise UnavailableError(backend().reason)
    if threads is not None:
        raise OptionError(f"threads={threads} is for arrays on the CPU: leave it out for arrays on a GPU")
    key = None
    if kernel is None and type(a) is type(b) and type(a).__module__ == "cupy" and (out is None or type(out) is type(a)):
        key = _plan_key(a, b, out)
        plan = _plans.get(key)
        if plan is not None:
            result = _replay(plan, a, b, out)
            if result is not None:
                return result
    with _place_of(a, b, out):
        return _matmul(a, b, out, kernel, key)


def _plan_key(a, b, out):
    x, y = a.data, b.data
    operands = (
        a.shape,
        a.strides,
        a.dtype,
        x.ptr % 32,
        x.device_id,
        b.shape,
        b.strides,
        b.dtype,
        y.ptr % 32,
        y.device_id,
    )
    device = _current_device()
    if out is None:
        return operands, device
    return operands, device, out.shape, out.strides, out.dtype, out.data.ptr % 32, out.data.device_id


def _current_device() -> int:
    import cupy

    return cupy.cuda.runtime.getDevice()


def _replay(plan: _Plan, a, b, out):
    """The result, or None where the arrays overlap."""
    import cupy

    x, y = a.data.ptr, b.data.ptr
    if out is None:
        result = cupy.empty(plan.shape, plan.dtype)
        z = result.data.ptr
    else:
        result, z = out, out.data.ptr
        (low_x, high_x), (low_y, high_y), (low_z, high_z) = plan.reach
        first, last = z + low_z, z + high_z
        if (x + low_x < last and first < x + high_x) or (y + low_y < last and first < y + high_y):
            return None
    call = plan.call.copy()
    call[0], call[1], call[3] = x, y, z
    plan.function(plan.grid, plan.block, (call.view(_CALL),))
    return result


def _matmul(a, b, out, kernel, key):
    given = a, out
    a, b = _as_cupy("a", a), _as_cupy("b", b)
    if kernel is None:
        family = dtypes.family_of(a.dtype, b.dtype, OFFERED)
    else:
        family = dtypes.FAMILIES[kernel.types]
        dtypes.check(family, a.dtype, b.dtype)
    arrays.check_dimensions("a", a.shape, 1, "(..., m, k) or (k,)")
    arrays.check_dimensions("b", b.shape, 1, "(..., k, n) or (k,)")
    a_vector, b_vector = a.ndim == 1, b.ndim == 1
    a = a[None, :] if a_vector else a
    b = b[:, None] if b_vector else b
    arrays.check_inner(a.shape, b.shape)
    m, n = a.shape[-2], b.shape[-1]
    batch = arrays.broadcast_batch({"a": a.shape, "b": b.shape})
    shape = (*batch, *(() if a_vector else (m,)), *(() if b_vector else (n,)))
    dtype = dtypes.dtype_of(family.c)
    if out is not None:
        out = _as_cupy("out", out)
        arrays.check_out(out, shape, dtype)
        if a_vector:
            out = out[..., None] if b_vector else out[..., None, :]
        if b_vector:
            out = out[..., None]

    def make(x, y, _c0, target):
        launches = list(_matmul_launches(family.name, kernel, x, y, target))
        in_place = x is a and y is b and (out is None or target is out)
        if key is not None and len(launches) == 1 and in_place and not (a_vector or b_vector):
            reach = tuple((low - v.data.ptr, high - v.data.ptr) for v in (x, y, target) for low, high in [_span(v)])
            if len(_plans) >= 4096:
                _plans.clear()
            _plans[key] = _Plan(*launches[0], shape, dtype, reach)
        return launches

    result = _into(make, a, b, None, out, (*batch, m, n), dtype)
    if given[1] is not None:
        return given[1]
    return _like(result.reshape(shape), given[0])


# --- the speed of a tile ---

#: Chain of ceilings.cu that an instruction is compared with, and operations of one of its instructions.
CEILINGS = {"FFMA": ("ffma", 2), "HFMA2": ("hfma2", 4), "IDP.4A": ("dp4a", 8)}

_CHAIN = 128
"""Instructions of a turn in ceilings.cu."""


def ceiling_run(name: str, operations: int, steps: int = 4000):
    """A function that runs a chain of ceilings.cu on the whole device, and how many operations it does."""
    import cupy

    function = cupy.RawModule(code=nvrtc.source("ceilings.cu", "."), options=nvrtc.OPTIONS).get_function(name)
    processors = cupy.cuda.runtime.getDeviceProperties(_current_device())["multiProcessorCount"]
    rng, threads = np.random.default_rng(0), 256
    given = cupy.asarray(rng.standard_normal(256).astype(np.float16 if name.startswith("hfma2") else np.float32))
    out = cupy.zeros(2 * 8 * processors * threads, np.float32)
    run = functools.partial(function, (8 * processors,), (threads,), (given, out, np.int32(steps)))
    return run, float(8 * processors * threads * steps * _CHAIN * operations)


def tile_run(kernel: MicroKernel, k: int = 2048, *, packed_a: bool = False, columns_b: bool = False):
    """A function that runs ``kernel`` on the whole device, and how many operations it does: 12 rounds of blocks, all
    tiles on the same panel of A and of B, which come from the first-level cache."""
    import cupy

    from .. import measure

    row, family, rng = table.BY_NAME[kernel.name], dtypes.FAMILIES[kernel.types], np.random.default_rng(0)
    processors = cupy.cuda.runtime.getDeviceProperties(_current_device())["multiProcessorCount"]
    batch = 12 * _BLOCK * processors * row.tiles // row.lanes
    a = cupy.asarray(measure.random_array(family.a, (kernel.mr, k), rng), order="F" if packed_a else "C")
    b = cupy.asarray(measure.random_array(family.b, (k, kernel.nr), rng), order="F" if columns_b else "C")
    operations = 2.0 * kernel.mr * kernel.nr * k * batch
    if kernel.form == "batch2":  # the two problems of a pair interleaved
        a, b = (cupy.repeat(x[..., None], 2, axis=-1) for x in (a, b))
        a, b = (cupy.broadcast_to(cupy.moveaxis(x, -1, 0), (batch // 2, 2, *x.shape[:2])) for x in (a, b))
        c = cupy.zeros((batch // 2, kernel.mr, kernel.nr, 2), kernel.c_dtype).transpose(0, 3, 1, 2)
    else:
        a, b = (cupy.broadcast_to(x, (batch, *x.shape)) for x in (a, b))
        c = cupy.zeros((batch, kernel.mr, kernel.nr), kernel.c_dtype)
    return kernel.bind(a, b, c), operations


def tile_gflops(kernel: MicroKernel, rounds: int) -> tuple[float, float | None]:
    """GFLOP/s (GOP/s) of the kernel in the best of its layouts, and of the chain of its instruction, turn by turn."""
    import cupy

    runs = [tile_run(kernel, packed_a=p, columns_b=c) for p in (False, True) for c in (False, True)]
    ceiling = CEILINGS.get(table.BY_NAME[kernel.name].instruction)
    if ceiling:
        runs.append(ceiling_run(*ceiling))
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    for _ in range(rounds + 1):
        for run, _ in runs:
            begin.record()
            run()
            end.record()
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e6)
    medians = np.median(np.reshape(times, (rounds + 1, len(runs)))[1:], axis=0)
    rates = [operations / ns for (_, operations), ns in zip(runs, medians, strict=True)]
    return max(rates[:4]), rates[4] if ceiling else None
