/* smem, S3: block tiles of A and B in shared memory, without bank conflicts.
 *
 * step      B is stored row by row: a warp reads 32 adjacent elements of it, and one element of A, which is a
 *           broadcast.
 * covers    slides sgemm1; blog mysgemm_v4
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      32 x 32 x 32, 1 x 1 a thread
 * regs      48 at most: 1 accumulator; local memory 0
 * per k     1 FFMA, 2 f32 from shared memory
 * ratio     1*1 / (1+1) = 0.50
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      the block tile: each element of A and B is read from global memory n/32 and m/32 times instead of n and m
 * lanes     1
 * launch    1024 threads a block; grid batch * ceil(m/32) * ceil(n/32)
 * smem      8 KiB and 12 bytes of tile coordinates
 */
#include "panel.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(1024) smem(const Gemm p) {
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
        b.template store_mn_major<BN>(bs);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) acc = multiply_add(as[row * BK + k], bs[k * BN + column], acc);
        __syncthreads();
    }
    store_row<1>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, &acc);
}
