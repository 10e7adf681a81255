/* tma, S19: panels brought by the tensor memory accelerator.
 *
 * step      f32_best's block, whose producers are one thread that asks for two boxes a panel: no addresses, no guards,
 *           no copies that take turns with the loads of those who multiply. Boxes come as they lie in memory, so both
 *           operands must lie along their rows: one that lies along k is turned by a copy first.
 *           With the time of that copy, row-major operands gain nothing on an H200 (54.1 TFLOP/s at 4096, 56.5 at 8192;
 *           f32_best 56.1 and 57.3).
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, in warp tiles of 32 x 128
 * regs      216 a multiplying thread (sm_90a): 128 sums, 2 x 24 of fragments; 72 a producer; local memory 0
 * per k     128 FFMA  24 floats from shared memory, 6 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one fma per term, k ascending, the parts of a cut tile added in the order of k; then one for alpha and one
 *           for beta; denormals are kept
 * needs     sm_90a
 * idea      the tensor memory accelerator for multiply-adds that are none of tensor cores: cloudrift-ai/emmy
 * lanes     1
 * launch    384 threads a block, 128 of them for one that brings; a grid of as many blocks as the device has
 *           multiprocessors
 * smem      144 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "word.cuh"
#include "async.cuh"
#include "feed.cuh"
#include "schedule.cuh"
#include "tile_loop.cuh"
#include "tma.cuh"
#include "producers.cuh"

template <int BM, int BN>
struct Mapped {
    static constexpr bool MAPPED = true;
    const TensorMap &a, &b;

    __device__ void bring(const Gemm& p, const Place& t, int k, u32 to, u32 barrier) const {
        barrier_expect(barrier, 8 * (BM + BN) * 4);
        tma_load(to, a, barrier, t.row * BM, k, p.a_batch ? t.product : 0);
        tma_load(to + 8 * BM * 4, b, barrier, t.column * BN, k, p.b_batch ? t.product : 0);
    }
};

template <Layout LA, Layout LB, int MR, int NR, int WM, int WN, int LM, int LN, int STAGES>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    tma(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s, const __grid_constant__ TensorMap map_a,
        const __grid_constant__ TensorMap map_b) {
    Mapped<WM * LM * MR, WN * LN * NR> from{map_a, map_b};
    products<F32, false, LA, LB, MR, NR, WM, WN, LM, LN, STAGES>(p, s, from);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256) tma_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<F32, BM, BN>(p, s);
}
