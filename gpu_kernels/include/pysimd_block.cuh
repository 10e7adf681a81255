/* pysimd_block.cuh: a float32 product inside a CUDA kernel of one's own: a thread block of 256 threads computes a tile
 * of A B, 128 x 128, and the accumulators stay in registers for whatever follows: bias, activation, a reduction.
 *
 *     #include "pysimd_block.cuh"
 *
 *     extern "C" __global__ void __launch_bounds__(256, 2)
 *     relu_of_sum(const float* a, const float* b, const float* bias, float* c, long long m, long long n, long long k) {
 *         typedef pysimd::BlockProduct<> Product;             // A and B row-major
 *         __shared__ Product::Shared shared;
 *         Product product(blockIdx.y, blockIdx.x);            // row and column of the tile in C
 *         product.accumulate(shared, a, k, b, n, m, n, k);    // k and n: leading dimensions of A and of B
 *         product.for_each(m, n, [&] (long long i, long long j, float x) { c[i * n + j] = fmaxf(x + bias[j], 0); });
 *     }
 *
 * The compiler finds it in the folder pysimd.get_include("cuda"): NVRTC and nvcc, C++17, sm_75 or later. The loop is
 * that of the rung smem_dbuf: panels of A and B double-buffered in shared memory, a rank-1 update of 8 x 8 accumulators
 * a thread and k. Any m, n, k, leading dimensions of any sign; not one byte outside A and B is read.
 *
 * registers  128 at most with __launch_bounds__(256, 2), 64 of them accumulators; with layouts that are not _VEC4, some
 *            compilers then spill a few outside of the loop
 * shared     17 KiB a block
 * rounding   one fma per term, k ascending from the accumulator's value
 */
#pragma once

namespace pysimd {
#include "../ladder/double_buffer.cuh"

/* LA and LB: K_MAJOR where k is contiguous (A row-major, B column-major), MN_MAJOR where it is not; with _VEC4 the
 * operand is read 16 bytes at a time, and its address, leading dimension and contiguous extent are multiples of 16
 * bytes. All threads of the block make the same calls. */
template <Layout LA = K_MAJOR, Layout LB = MN_MAJOR>
class BlockProduct {
    typedef DoubleBuffered<LA, LB, 32, 64> Loop;
    u32 tile_row, tile_column;
    float acc[Loop::TM][Loop::TN] = {};

public:
    static constexpr int ROWS = Loop::BM, COLUMNS = Loop::BN, THREADS = Loop::THREADS;
    struct __align__(16) Shared {
        float panels[2 * Loop::STAGE];
    };

    __device__ __forceinline__ BlockProduct(u32 tile_row, u32 tile_column)
        : tile_row(tile_row), tile_column(tile_column) {}

    /* Adds the tile of A[m,k] B[k,n]; lda and ldb count elements. May be called again, for further terms. */
    __device__ __forceinline__ void accumulate(Shared& shared, const float* a, i64 lda, const float* b, i64 ldb, i64 m,
                                               i64 n, i64 k) {
        typename Loop::PanelA panel_a(a, lda, tile_row, m);
        typename Loop::PanelB panel_b(b, ldb, tile_column, n);
        __syncthreads(); /* of an earlier call */
        Loop::multiply(acc, panel_a, panel_b, k, shared.panels);
    }

    /* f(i, j, x) for each element of this thread that C[m,n] has: row, column, value. */
    template <class F>
    __device__ __forceinline__ void for_each(i64 m, i64 n, F f) {
        for_each4(m, n, [&](i64 i, i64 j, float(&x)[4]) {
#pragma unroll
            for (int w = 0; w < 4; ++w)
                if (j + w < n) f(i, j + w, x[w]);
        });
    }

    /* f(i, j, x) for four adjacent columns at a time, x[0] to x[3]; only x[0] is sure to be a column of C. */
    template <class F>
    __device__ __forceinline__ void for_each4(i64 m, i64 n, F f) {
        i64 row = (i64)tile_row * ROWS + Loop::row(), column = (i64)tile_column * COLUMNS + Loop::column();
#pragma unroll
        for (int r = 0; r < Loop::TM; ++r) {
            i64 i = row + r / 4 * Loop::GAP_M + r % 4;
            if (i >= m) continue;
#pragma unroll
            for (int q = 0; q < Loop::TN / 4; ++q) {
                float(&four)[4] = *(float(*)[4])&acc[r][4 * q];
                i64 j = column + q * Loop::GAP_N;
                if (j < n) f(i, j, four);
            }
        }
    }
};
} /* namespace pysimd */
