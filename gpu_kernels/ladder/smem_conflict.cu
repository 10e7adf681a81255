/* smem_conflict, S2: block tiles of A and B in shared memory, with bank conflicts.
 *
 * step      a block loads an element of A or B from global memory once instead of 32 times. But B is stored transposed:
 *           what the lanes of a warp read together is 32 elements apart, on the same bank, and is read one lane after
 *           the other. Kept to show that shared memory with bank conflicts can be slower than none.
 * covers    blog mysgemm_v2, mysgemm_v3
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      32 x 32 x 32, 1 x 1 a thread
 * regs      54 at most: 1 accumulator; local memory 0
 * per k     1 FFMA, 2 f32 from shared memory
 * ratio     1*1 / (1+1) = 0.50
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      a counterexample: the tile of the next rung, with the two indices of B exchanged
 * lanes     1
 * launch    1024 threads a block; grid batch * ceil(m/32) * ceil(n/32)
 * smem      8 KiB and 12 bytes of tile coordinates
 */
#include "panel.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(1024) smem_conflict(const Gemm p) {
    constexpr int BM = 32, BN = 32, BK = 32, THREADS = 1024;
    __shared__ __align__(16) float as[BM * BK], bs[BK * BN];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    Panel<BM, BK, THREADS, LA> a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    Panel<BN, BK, THREADS, LB> b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 32, column = threadIdx.x % 32;
    float acc = 0;
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_k_major<BK>(as);
        b.template store_k_major<BK>(bs);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) acc = multiply_add(as[row * BK + k], bs[column * BK + k], acc);
        __syncthreads();
    }
    store_row<1>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, &acc);
}
