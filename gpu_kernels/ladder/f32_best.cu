/* f32_best, S18: tile and cut from the shape.
 *
 * step      of six tiles, from 64 x 64 to 512 x 16, and of cutting or not, what a model of rounds, rates and extra
 *           traffic says is shortest; parts of a small C are added in the same launch. The tile below is what large
 *           products get on sm_90, with the speed of streamk. It gains on other shapes: an H200 took 9.8 us for
 *           64 x 64 x 4096 and 73 us for 16 x 8192 x 8192 (m, n, k), cuBLAS 14.0 and 146 us.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, in warp tiles of 32 x 128
 * regs      216 a multiplying thread (sm_90a): 128 sums, 2 x 24 of fragments; 72 a producer; local memory 0
 * per k     128 FFMA  24 floats from shared memory, 6 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one fma per term, k ascending, the parts of a cut tile added in the order of k; then one for alpha and one
 *           for beta; denormals are kept
 * needs     sm_80
 * idea      auto-selection, as every BLAS does it
 * lanes     1
 * launch    384 threads a block, 128 of them producers; a grid of as many blocks as the device has multiprocessors
 * smem      up to 147 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "word.cuh"
#include "async.cuh"
#include "feed.cuh"
#include "schedule.cuh"
#include "tile_loop.cuh"
#include "producers.cuh"

template <Layout LA, Layout LB, int... TILE>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    f32_best(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    products<F32, false, LA, LB, TILE...>(p, s);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256)
    f32_best_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<F32, BM, BN>(p, s);
}

template <Layout LA, Layout LB, int... TILE>
__global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    f32_best_fused_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    products<F32, true, LA, LB, TILE...>(p, s);
}
