/* mma_sync, T3: mma.sync and ldmatrix in PTX, swizzled panels.
 *
 * step      mma.sync instead of wmma: the addresses of fragments differ by constants, which wmma.load hides from the
 *           compiler, and the accumulators are stored to C from registers. The 16-byte chunks of a line are
 *           swizzled (XOR with the line) instead of padded: ldmatrix reads eight lines from 32 different banks,
 *           transposed or not.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      236 at most: 128 accumulators, 2 x 32 for fragments; local memory 0
 * per k     2 HMMA.16816, 128 f16 from shared memory, 1/2 LDSM
 * ratio     64*64 / (64+64) = 32.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_80
 * idea      ldmatrix and XOR swizzle: CUTLASS, sgemm_sm80 of its CuTe tutorial
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      144 KiB dynamic
 */
#include "f16_pipeline.cuh"
#include "mma.cuh"

template <class PanelA, class PanelB>
struct MmaWarp {
    typedef FragmentAddress<SIDE_A, PanelA::LAYOUT, typename PanelA::Place> A;
    typedef FragmentAddress<SIDE_B, PanelB::LAYOUT, typename PanelB::Place> B;
    u32 a_address, b_address, a[2][TM / 16][4], b[2][TN / 16][4];
    float acc[TM / 16][TN / 8][4] = {};

    __device__ MmaWarp(int row, int column) {
        a_address = shared_address(panels) + A::first(row);
        b_address = shared_address(panels) + PanelA::BYTES + B::first(column);
    }

    __device__ void load(int set, u32 panel, int k) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
            ldmatrix_x4<!k_major(PanelA::LAYOUT)>(a[set][i], A::at(panel + a_address, i, k));
#pragma unroll
        for (int j = 0; j < TN / 16; ++j)
            ldmatrix_x4<!k_major(PanelB::LAYOUT)>(b[set][j], B::at(panel + b_address, j, k));
    }

    /* Serpentine order: the last operand B of a row is the first of the next. */
    __device__ void multiply(int set) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i)
#pragma unroll
            for (int x = 0; x < TN / 8; ++x) {
                int j = i % 2 ? TN / 8 - 1 - x : x;
                mma_m16n8k16(acc[i][j], a[set][i], b[set][j / 2][j % 2 * 2], b[set][j / 2][j % 2 * 2 + 1]);
            }
    }

    __device__ void store(const Gemm& p, u32 product, i64 i, i64 j) { store_warp_tile<TM, TN>(p, product, i, j, acc); }
};

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(THREADS, 1) mma_sync(const __grid_constant__ Gemm p) {
    f16_pipeline<Swizzled, MmaWarp, LA, LB>(p);
}
