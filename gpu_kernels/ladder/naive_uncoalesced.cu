/* naive_uncoalesced, S0: one thread per element of C, lanes along the rows.
 *
 * step      the first rung. The lanes of a warp have different rows of A and C: each access is uncoalesced, 32 lines of
 *           memory for 32 elements. For one k a warp reads 33 lines. Kept to show what that costs.
 * covers    none; the first kernel of siboehm/SGEMM_CUDA is similar
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      32 x 32, 1 x 1 a thread
 * regs      34 at most: 1 accumulator; local memory 0
 * per k     1 FFMA, 2 f32 from global memory
 * ratio     1*1 / (1+1) = 0.50
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      the definition of the product
 * lanes     1
 * launch    1024 threads a block; grid batch * ceil(m/32) * ceil(n/32)
 * smem      12 bytes of tile coordinates
 */
#include "dot.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(1024) naive_uncoalesced(const Gemm p) {
    const TileCoordinates& t = tile_coordinates<32, 32>(p);
    i64 i = (i64)t.row * 32 + threadIdx.x % 32, j = (i64)t.column * 32 + threadIdx.x / 32;
    if (i >= p.m || j >= p.n) return;
    float acc = dot<LA, LB>(p, t.product, i, j);
    store_row<1>(p, t.product, i, j, &acc);
}
