/* streamk, S17: the tiles that do not fill the last round are cut along k.
 *
 * step      all multiprocessors end at the same time, whatever the number of tiles (schedule.cuh); a second kernel adds
 *           the parts.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, in warp tiles of 32 x 128
 * regs      216 a multiplying thread (sm_90a): 128 sums, 2 x 24 of fragments; 72 a producer; local memory 0
 * per k     128 FFMA  24 floats from shared memory, 6 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one fma per term, k ascending, the parts of a cut tile added in the order of k; then one for alpha and one
 *           for beta; denormals are kept
 * needs     sm_80
 * idea      Osama et al., Stream-K (2023)
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
    streamk(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    products<F32, false, LA, LB, TILE...>(p, s);
}

template <int BM, int BN>
__global__ void __launch_bounds__(256)
    streamk_fixup(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    fixup<F32, BM, BN>(p, s);
}
