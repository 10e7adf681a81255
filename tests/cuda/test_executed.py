"""CUDA kernels executed on the host: what the host code launches for a product, with the kernels' own code. Operands
are small integers, so that results are equal in any order of summation. Needs neither a GPU nor NVRTC."""

from types import SimpleNamespace

import fake_cupy
import host_kernels
import numpy as np
import pytest
from pysimd.gpu_kernels import ladder_table, table

import pysimd
from pysimd import dtypes, operands
from pysimd.backends.cuda import device as cuda_device
from pysimd.backends.cuda.implementation import CUDA
from pysimd.backends.cuda.ladder import rungs as cuda_ladder
from pysimd.backends.cuda.ladder import schedule
from pysimd.backends.gpu import batched, cupy_arrays
from pysimd.backends.gpu import memory as gpu_memory
from pysimd.backends.gpu.launches import CallOperands
from pysimd.operands import GemmOptions

pytestmark = pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that gives the kernel of a source and an entry as CuPy does, compiled once."""
    kernels = {}

    def get(source, entry):
        if (source, entry) not in kernels:
            library = host_kernels.Library(source, [entry], tmp_path_factory.mktemp("host"))
            kernels[source, entry] = library.function(entry)
        return kernels[source, entry]

    return get


def whole_numbers(rng, shape, dtype, before=0):
    x = fake_cupy.array(shape, dtype, before)
    x[...] = rng.integers(-3, 4, shape)
    return x


@pytest.fixture
def run(monkeypatch, compiled):
    """Calls a rung as ``gemm`` does."""
    pysimd.rungs("cuda")  # listed with what this machine can run, before why_not is replaced
    monkeypatch.setattr(
        cuda_ladder, "_compiled", lambda source, entry, _: SimpleNamespace(kernel=compiled(f"ladder/{source}", entry))
    )
    monkeypatch.setattr(cuda_ladder, "current_device", lambda: 0)
    monkeypatch.setattr(cuda_ladder, "has_setmaxnreg", lambda device: False)
    monkeypatch.setattr(cuda_ladder, "multiprocessors", lambda device: 3)
    monkeypatch.setattr(cuda_device, "why_not", lambda *_: "")
    fake_cupy.install(monkeypatch, fake_cupy.module(memory=fake_cupy.HostMemory))
    caches = [cuda_ladder._kernel, cuda_ladder._function, cuda_ladder._fixup_function, cuda_ladder._pack_function]
    caches += [gpu_memory._counters]
    for cached in caches:
        cached.cache_clear()

    def call(name, a, b, c, out):
        rung = pysimd.rung(name)
        product = operands.check_gemm(
            rung, a, b, c, out, GemmOptions.checked(2.0, -1.0, False, False, c), (rung.types,)
        )
        return operands.write(
            product, cupy_arrays, lambda target: CUDA._product_work(rung, product._replace(out=target)).run()
        )

    yield call
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize(
    ("name", "m", "n", "k", "transposed"),
    [
        ("wmma_naive", 37, 50, 35, False),
        ("wmma_smem", 70, 131, 35, True),
        ("mma_sync", 70, 131, 67, False),
        ("i8_mma_sync", 70, 131, 67, True),
        ("cpasync", 70, 131, 19, True),
        ("f32_best", 300, 70, 67, False),
        ("streamk", 300, 70, 67, True),
    ],
)
def test_rungs(run, rng, name, m, n, k, transposed):
    family = dtypes.FAMILIES[pysimd.rung(name).types]
    dtype, dtype_c = dtypes.dtype_of(family.a), dtypes.dtype_of(family.c)
    for before in (0, 1):
        a, b = whole_numbers(rng, (2, m, k), dtype, before), whole_numbers(rng, (k, n), dtype, before)
        if transposed:
            a, b = (x.swapaxes(-1, -2).copy().swapaxes(-1, -2) for x in (a, b))
        c, out = whole_numbers(rng, (m, n), dtype_c), fake_cupy.array((2, m, n), dtype_c)
        run(name, a, b, c, out)
        expected = 2 * (np.array(a, np.float64) @ np.array(b, np.float64)) - np.array(c, np.float64)
        assert np.array_equal(np.array(out, np.float64), expected)


def test_partial_tiles_are_added_in_the_same_launch(run, rng, monkeypatch):
    """By all warps of all blocks, each its part of C."""
    row = ladder_table.BY_NAME["f32_best"]
    choice = schedule.choose(row, row.blocks, 1, 60, 50, 600, 1, 6)
    assert (choice.fused_fixup, choice.grid) == (True, 6)
    monkeypatch.setattr(cuda_ladder, "multiprocessors", lambda device: 6)
    a, b, c = (whole_numbers(rng, shape, np.float32) for shape in ((60, 600), (600, 50), (60, 50)))
    out = fake_cupy.array((60, 50), np.float32)
    run("f32_best", a, b, c, out)
    assert np.array_equal(out, 2 * np.array(a) @ np.array(b) - c)


class Words:
    """An argument of a kernel: 64-bit fields."""

    def __init__(self, fields):
        self._fields = np.ascontiguousarray(fields).view(np.int64)
        self.ptr = self._fields.ctypes.data


@pytest.mark.parametrize(("types", "m", "n", "k"), [("f32", 5, 7, 9), ("f16", 3, 9, 5), ("i8i32", 9, 2, 4)])
def test_small_products_of_any_shape(compiled, rng, monkeypatch, types, m, n, k):
    fake_cupy.install(monkeypatch, fake_cupy.module(memory=fake_cupy.HostMemory))
    family = dtypes.FAMILIES[types]
    dtype, dtype_c = dtypes.dtype_of(family.a), dtypes.dtype_of(family.c)
    a, b = whole_numbers(rng, (41, m, k), dtype), whole_numbers(rng, (k, n), dtype)
    c, out = whole_numbers(rng, (41, m, n), dtype_c), fake_cupy.array((41, m, n), dtype_c)
    for x in (a, a.swapaxes(-1, -2).copy().swapaxes(-1, -2)):
        product = operands.check_gemm(None, x, b, c, out, GemmOptions.checked(2.0, -1.0, False, False, c), (types,))
        work = batched.any_work(product, compiled("micro/batched_any.cu", table.batched_any(types)))
        work.run()
        expected = 2 * (np.array(x, np.float64) @ np.array(b, np.float64)) - np.array(c, np.float64)
        assert np.array_equal(np.array(out, np.float64), expected)


@pytest.mark.parametrize(
    ("types", "m", "n", "k", "shared", "turned"),
    [("f16", 33, 34, 35, False, False), ("f16", 48, 40, 32, True, True), ("i8i32", 34, 35, 70, True, False)],
)
def test_small_products_on_tensor_cores(compiled, rng, types, m, n, k, shared, turned):
    """Contiguous or broadcast, rows that divide into chunks or do not, a last block that is not full."""
    family = dtypes.FAMILIES[types]
    dtype, dtype_c = dtypes.dtype_of(family.a), dtypes.dtype_of(family.c)
    a, b = whole_numbers(rng, (5, m, k), dtype), whole_numbers(rng, (k, n) if shared else (5, k, n), dtype)
    if turned:
        b = b.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    out = fake_cupy.array((5, m, n), dtype_c)
    call_operands = CallOperands(a, b, None, out)
    made = batched.instance(types, call_operands, mma=True)
    for function, grid, block, call in batched.launches(
        call_operands, made, compiled("micro/batched_mma.cu", made.entry)
    ):
        function(grid, block, (Words(call),), batched.dynamic_shared_bytes(made))
    assert np.array_equal(np.array(out, np.float64), np.array(a, np.float64) @ np.array(b, np.float64))


@pytest.mark.parametrize("layout", ["K_MAJOR", "MN_MAJOR"])
def test_padded_copies(tmp_path, rng, layout):
    """Lines of any alignment; what follows them is 0."""
    kernel = "\ntemplate <Layout L>\nvoid copy(const Pad s) { pad_rows<L>(s); }\n"
    library = host_kernels.Library("ladder/pad_rows.cuh", [f"copy<{layout}>"], tmp_path, lambda text: text + kernel)
    for before, length, ld in ((0, 21, 24), (1, 40, 43), (1, 3, 5)):
        x = rng.integers(1, 1 << 16, (3, 5, ld)).astype(np.uint16)
        given = fake_cupy.array(x.shape, np.uint16, before)
        given[...] = x
        pitch = -(-length // 8) * 8
        padded = np.full((3, 5, pitch), 0xFFFF, np.uint16)
        rows, k = (5, length) if layout == "K_MAJOR" else (length, 5)
        fields = (given.data.ptr, padded.ctypes.data, rows, k, ld, 5 * ld, 3, pitch)
        library.function(f"copy<{layout}>")((2,), (32,), (Words(np.array(fields, np.int64)),))
        assert np.array_equal(padded[..., :length], x[..., :length])
        assert not padded[..., length:].any()
