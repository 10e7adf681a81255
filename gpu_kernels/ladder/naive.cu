/* naive, S1: one element of C a thread, lanes along the columns.
 *
 * step      lanes and rows change places, and nothing else: a warp reads 32 adjacent floats of B and one of A, and
 *           writes 32 adjacent floats of C.
 * covers    slides sgemm0; blog mysgemm_v1; readme sgemm_naive_block_tile
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      32 x 32, 1 x 1 a thread
 * regs      35 at most; local memory 0
 * per k     1 FFMA  2 floats from global memory, of 2 or 3 lines for a warp
 * ratio     1*1 / (1+1) = 0.50
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      coalesced access
 * lanes     1
 * launch    1024 threads a block; grid batch * ceil(m/32) * ceil(n/32)
 * smem      12 bytes: the tile's place
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "dot.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(1024) naive(const Gemm p) {
    const Tile& t = tile_of<32, 32>(p);
    i64 i = (i64)t.row * 32 + threadIdx.x / 32, j = (i64)t.column * 32 + threadIdx.x % 32;
    if (i >= p.m || j >= p.n) return;
    float sum = dot<LA, LB>(p, t.product, i, j);
    store_row<1>(p, t.product, i, j, &sum);
}
