"""pysimd_block.cuh, the product as a part of another kernel: compiled as a user compiles it, and run in the example."""

import importlib.util
from pathlib import Path

import cuda_arrays
import cuda_machine_code as machine
import numpy as np
import pytest
from reference import check

import pysimd
from pysimd.backends.cuda import nvrtc
from pysimd.inspection.nvidia import compile_text

EXAMPLE = Path(__file__).parents[2] / "examples/cuda/fused_layer.py"
needs_gpu = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")
needs_compiler = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")

LAYOUTS = ["K_MAJOR", "MN_MAJOR", "K_MAJOR_VEC4", "MN_MAJOR_VEC4"]
STRIDED = """
#include "pysimd_block.cuh"

template <pysimd::Layout A, pysimd::Layout B>
__global__ void __launch_bounds__(256, 2) twice(const float* a, i64 lda, const float* b, i64 ldb, float* c,
                                                i64 m, i64 n, i64 k, i64 first) {
    typedef pysimd::BlockProduct<A, B> Product;
    __shared__ typename Product::Shared shared;
    Product product(blockIdx.y, blockIdx.x);
    product.accumulate(shared, a, lda, b, ldb, m, n, first);
    long long next_a = first * (A % 2 == 0 ? 1 : lda), next_b = first * (B % 2 == 0 ? 1 : ldb);
    product.accumulate(shared, a + next_a, lda, b + next_b, ldb, m, n, k - first);
    product.for_each4(m, n, [&](long long i, long long j, float(&x)[4]) {
        for (int w = 0; w < 4; ++w)
            if (j + w < n) c[i * n + j + w] = x[w];
    });
}
""".replace("i64", "long long")


def example():
    spec = importlib.util.spec_from_file_location("fused_layer", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source_of_example():
    return EXAMPLE.read_text().split('SOURCE = """')[1].split('"""')[0]


@needs_compiler
@pytest.mark.parametrize("arch", [75, 80, 90, 100])
def test_example_compiles_with_the_include_folder(arch, monkeypatch):
    """And keeps the ratio of its tile, and all of it in registers where the layouts are read 16 bytes at a time."""
    monkeypatch.setattr(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, f"-I{pysimd.get_include('cuda')}"))
    pairs = ("K_MAJOR, pysimd::MN_MAJOR", "K_MAJOR_VEC4, pysimd::MN_MAJOR_VEC4")
    codes = compile_text(source_of_example(), "layer.cu", [f"layer<pysimd::{layouts}>" for layouts in pairs], arch)
    for layouts, code in zip(pairs, codes, strict=True):
        loop = code.hot_loop("FFMA")
        loaded = sum(x.bytes_loaded("LDS.") for x in loop) / 4
        assert code.count("LDL", "STL") <= (0 if "VEC4" in layouts else 16)
        assert code.registers <= 128
        assert sum(x.name.startswith("FFMA") and not x.moves() for x in loop) / loaded == 4


def test_backends_with_headers():
    with pytest.raises(pysimd.OptionError, match="'cpu', 'cuda'"):
        pysimd.get_include("hip")


@needs_gpu
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (128, 128, 8), (129, 257, 65), (300, 200, 0), (64, 1000, 516)])
def test_example(m, n, k):
    import cupy

    x, w = (cupy.random.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    bias = cupy.zeros(n, np.float32)
    exact = np.maximum(x.get().astype(np.float64) @ w.get().astype(np.float64), 0)
    bound = (k + 1) * 2.0**-23 * (abs(x.get().astype(np.float64)) @ abs(w.get().astype(np.float64)))
    assert (abs(example().layer(x, w, bias).get() - exact) <= bound).all()


@needs_gpu
@pytest.mark.parametrize("a_layout", LAYOUTS)
@pytest.mark.parametrize("b_layout", LAYOUTS)
@pytest.mark.parametrize(("m", "n", "k", "first"), [(132, 260, 64, 20), (4, 4, 4, 4), (256, 128, 40, 0)])
def test_two_calls_add_up(a_layout, b_layout, m, n, k, first):
    import cupy

    options = ("-std=c++17", f"-I{pysimd.get_include('cuda')}")
    entry = f"twice<pysimd::{a_layout}, pysimd::{b_layout}>"
    kernel = cupy.RawModule(code=STRIDED, options=options, name_expressions=(entry,)).get_function(entry)
    a, b = (cupy.random.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    stored_a = a if a_layout.startswith("K") else cupy.ascontiguousarray(a.T)
    stored_b = b if b_layout.startswith("MN") else cupy.ascontiguousarray(b.T)
    c = cupy.full((m + 1, n), 7, np.float32)
    arguments = (stored_a, stored_a.shape[1], stored_b, stored_b.shape[1], c, m, n, k, first)
    kernel((-(-n // 128), -(-m // 128)), (256,), arguments)
    check(c[:m].get(), "f32", a.get(), b.get())
    assert (c[m] == 7).all()
