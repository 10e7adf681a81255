/* cpasync_multistage, S17: six panels in shared memory instead of two.
 *
 * step      the copies of five panels are under way while one is multiplied: no wait for the memory at the barrier.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 16 x 8 a thread, in warp tiles of 64 x 64
 * regs      255 at most: 128 sums, 2 x 24 of fragments; local memory 0
 * per k     128 FFMA  24 floats from shared memory, 6 LDS.128
 * ratio     16*8 / (16+8) = 5.33
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_80
 * idea      the multistage pipeline of CUTLASS
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      72.75 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "word.cuh"
#include "async.cuh"
#include "feed.cuh"
#include "tile_loop.cuh"
#include "fragment.cuh"
#include "pipelined.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 1) cpasync_multistage(const __grid_constant__ Gemm p) {
    pipelined<6, 1, LA, LB>(p);
}
