/* mma_sync, T3: the instruction itself, fragments two steps deep, panels without a byte to spare.
 *
 * step      mma.sync and ldmatrix instead of what mma.h makes of them: addresses of fragments are constants apart,
 *           which mma.h does not let the compiler see, and sums go from registers to C. Pieces of a line change places
 *           (swizzle) instead of being padded: ldmatrix finds eight lines on 32 different banks, turned or not.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      255 at most: 128 sums, 2 x 32 words of fragments; local memory 0
 * per k     2 mma.sync m16n8k16 and half an ldmatrix.x4 a warp
 * ratio     64*64 / (64+64) = 32.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_80
 * idea      ldmatrix and XOR swizzle: CUTLASS, sgemm_sm80 of its CuTe tutorial
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      144 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "async.cuh"
#include "half_panel.cuh"
#include "half_pipeline.cuh"
#include "mma.cuh"

template <class PanelA, class PanelB>
struct MmaWarp {
    typedef Squares<SIDE_A, PanelA::LAYOUT, typename PanelA::Place> A;
    typedef Squares<SIDE_B, PanelB::LAYOUT, typename PanelB::Place> B;
    u32 at_a, at_b, a[2][TM / 16][4], b[2][TN / 16][4];
    float sum[TM / 16][TN / 8][4] = {};

    __device__ MmaWarp(int row, int column) {
        at_a = shared_address(panels) + A::first(row), at_b = shared_address(panels) + PanelA::BYTES + B::first(column);
    }

    __device__ void read(int set, u32 panel, int k) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
            load_squares<!k_major(PanelA::LAYOUT)>(a[set][i], A::at(panel + at_a, i, k));
#pragma unroll
        for (int j = 0; j < TN / 16; ++j)
            load_squares<!k_major(PanelB::LAYOUT)>(b[set][j], B::at(panel + at_b, j, k));
    }

    /* To and fro: what one instruction had of B is the next one's too. */
    __device__ void multiply(int set) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
#pragma unroll
            for (int x = 0; x < TN / 8; ++x) {
                int j = i % 2 ? TN / 8 - 1 - x : x;
                multiply_f16(sum[i][j], a[set][i], b[set][j / 2][j % 2 * 2], b[set][j / 2][j % 2 * 2 + 1]);
            }
    }

    __device__ void store(const Gemm& p, u32 product, i64 i, i64 j) { store_squares<TM, TN>(p, product, i, j, sum); }
};

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(THREADS, 1) mma_sync(const __grid_constant__ Gemm p) {
    half_pipeline<Swizzled, MmaWarp, LA, LB>(p);
}
