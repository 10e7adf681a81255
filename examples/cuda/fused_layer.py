"""A layer of a network in one kernel: relu(x @ w + bias), without an array between the product and the activation.

``pip install 'pysimd[cuda]'``, ``python examples/cuda/fused_layer.py``. Prints the times beside the same by CuPy.
"""

import cupy

import pysimd

SOURCE = """
#include "pysimd_block.cuh"

template <pysimd::Layout X, pysimd::Layout W>
__global__ void __launch_bounds__(256, 2) layer(const float* x, const float* w, const float* bias, float* y,
                                                long long m, long long n, long long k) {
    typedef pysimd::BlockProduct<X, W> Product;
    __shared__ typename Product::Shared shared;
    Product product(blockIdx.y, blockIdx.x);
    product.accumulate(shared, x, k, w, n, m, n, k);
    product.for_each(m, n, [&] (long long i, long long j, float sum) { y[i * n + j] = fmaxf(sum + bias[j], 0.0f); });
}
"""
NARROW, WIDE = "pysimd::K_MAJOR, pysimd::MN_MAJOR", "pysimd::K_MAJOR_VEC4, pysimd::MN_MAJOR_VEC4"
MODULE = cupy.RawModule(
    code=SOURCE,
    options=("-std=c++17", f"-I{pysimd.get_include('cuda')}"),
    name_expressions=(f"layer<{NARROW}>", f"layer<{WIDE}>"),
)


def layer(x, w, bias):
    """relu(x @ w + bias) of row-major float32 x (m, k), w (k, n) and bias (n,)."""
    (m, k), n = x.shape, w.shape[1]
    wide = k % 4 == 0 and n % 4 == 0 and x.data.ptr % 16 == 0 and w.data.ptr % 16 == 0
    y = cupy.empty((m, n), cupy.float32)
    blocks = (-(-n // 128), -(-m // 128))
    MODULE.get_function(f"layer<{WIDE if wide else NARROW}>")(blocks, (256,), (x, w, bias, y, m, n, k))
    return y


def unfused(x, w, bias):
    return cupy.maximum(x @ w + bias, 0)


def microseconds(run, *arguments, repeats=20):
    run(*arguments)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(repeats):
        run(*arguments)
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) * 1000 / repeats


def main():
    for m, n, k in ((65536, 512, 64), (65536, 512, 256), (4096, 4096, 4096)):
        x, w = (cupy.random.standard_normal(shape, dtype=cupy.float32) for shape in ((m, k), (k, n)))
        bias = cupy.random.standard_normal(n, dtype=cupy.float32)
        error = float(abs(layer(x, w, bias) - unfused(x, w, bias)).max())
        times = [microseconds(run, x, w, bias) for run in (layer, unfused)]
        print(f"{m} x {n} x {k}: {times[0]:.0f} us, unfused {times[1]:.0f} us; largest difference {error:.1e}")


if __name__ == "__main__":
    main()
