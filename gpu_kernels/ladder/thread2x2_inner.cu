/* thread2x2_inner, S4: 2 x 2 elements of C a thread, one inner product after the other.
 *
 * step      a block tile of twice the edge halves the loads from global memory. Those from shared memory stay the same:
 *           each element of C is an inner product of its own, with two loads for every multiply-add. The elements of a
 *           thread are 32 rows and columns apart.
 * covers    slides sgemm2
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      64 x 64 x 32, 2 x 2 a thread
 * regs      42 at most: 4 accumulators; local memory 0
 * per k     4 FFMA, 8 f32 from shared memory
 * ratio     1*1 / (1+1) = 0.50 for each of 2 x 2 elements
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      the inner-product order, to compare with reg2x2_outer: same tile, same threads
 * lanes     1
 * launch    1024 threads a block; grid batch * ceil(m/64) * ceil(n/64)
 * smem      16 KiB and 12 bytes of tile coordinates
 */
#include "panel.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(1024) thread2x2_inner(const Gemm p) {
    constexpr int BM = 64, BN = 64, BK = 32, THREADS = 1024;
    __shared__ __align__(16) float as[BM * BK], bs[BK * BN];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    Panel<BM, BK, THREADS, LA> a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    Panel<BN, BK, THREADS, LB> b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 32, column = threadIdx.x % 32;
    float acc[2][2] = {};
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_k_major<BK>(as);
        b.template store_mn_major<BN>(bs);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll 8
                for (int k = 0; k < BK; ++k)
                    acc[i][j] = multiply_add(as[(row + 32 * i) * BK + k], bs[k * BN + column + 32 * j], acc[i][j]);
        __syncthreads();
    }
    i64 i = (i64)t.row * BM + row, j = (i64)t.column * BN + column;
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int s = 0; s < 2; ++s) store_row<1>(p, t.product, i + 32 * r, j + 32 * s, &acc[r][s]);
}
