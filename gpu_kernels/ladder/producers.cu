/* producers, S16: warps with roles: four bring panels, eight multiply.
 *
 * step      the loop that multiplies is nothing but multiply-adds and loads; blocks stay and take tile after tile, and
 *           the panels of the next are on their way while one is stored. On sm_90 the producers give registers away;
 *           elsewhere, where that cannot be, the tile is 128 x 128, 8 x 8 a thread.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 8 x 16 a thread, in warp tiles of 32 x 128
 * regs      216 a multiplying thread (sm_90a): 128 sums, 2 x 24 of fragments; 72 a producer; local memory 0
 * per k     128 FFMA  24 floats from shared memory, 6 LDS.128
 * ratio     8*16 / (8+16) = 5.33
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_80
 * idea      warp specialisation, persistent blocks: CUTLASS
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
    producers(const __grid_constant__ Gemm p, const __grid_constant__ Schedule s) {
    products<F32, false, LA, LB, TILE...>(p, s);
}
