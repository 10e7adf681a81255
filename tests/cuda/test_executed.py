"""CUDA kernels executed on the host: what the host code launches for a product, with the kernels' own code. Operands
are small integers, so that results are equal in any order of summation. Needs neither a GPU nor NVRTC."""

import sys
from types import SimpleNamespace

import fake_cupy
import host_kernels
import numpy as np
import pytest

import pysimd
from pysimd import dtypes, operands
from pysimd.backends.cuda import device as cuda_device
from pysimd.backends.cuda.implementation import CUDA
from pysimd.backends.cuda.ladder import rungs as cuda_ladder
from pysimd.backends.gpu import cupy_arrays
from pysimd.backends.gpu import memory as gpu_memory
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
    monkeypatch.setattr(
        cuda_ladder, "_compiled", lambda source, entry, _: SimpleNamespace(kernel=compiled(f"ladder/{source}", entry))
    )
    monkeypatch.setattr(cuda_ladder, "current_device", lambda: 0)
    monkeypatch.setattr(cuda_ladder, "has_setmaxnreg", lambda device: False)
    monkeypatch.setattr(cuda_ladder, "multiprocessors", lambda device: 3)
    monkeypatch.setattr(cuda_device, "why_not", lambda *_: "")
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module(memory=fake_cupy.HostMemory))
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
