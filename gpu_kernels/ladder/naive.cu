/* naive, S1: one thread per element of C, coalesced.
 *
 * step      the thread's row and column are exchanged, nothing else: a warp reads 32 adjacent elements of B and one of
 *           A, two or three lines of memory for one k, and writes 32 adjacent elements of C.
 * covers    slides sgemm0; blog mysgemm_v1; readme sgemm_naive_block_tile
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      32 x 32, 1 x 1 a thread
 * regs      34 at most: 1 accumulator; local memory 0
 * per k     1 FFMA, 2 f32 from global memory
 * ratio     1*1 / (1+1) = 0.50
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      coalesced access
 * lanes     1
 * launch    1024 threads a block; grid batch * ceil(m/32) * ceil(n/32)
 * smem      12 bytes of tile coordinates
 */
#include "dot.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(1024) naive(const Gemm p) {
    const TileCoordinates& t = tile_coordinates<32, 32>(p);
    i64 i = (i64)t.row * 32 + threadIdx.x / 32, j = (i64)t.column * 32 + threadIdx.x % 32;
    if (i >= p.m || j >= p.n) return;
    float acc = dot<LA, LB>(p, t.product, i, j);
    store_row<1>(p, t.product, i, j, &acc);
}
