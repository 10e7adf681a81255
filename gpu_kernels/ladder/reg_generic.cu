/* reg_generic, S7: any block tile, any register tile: the outer product as a template.
 *
 * step      the tile is a parameter, here 4 x 4 a thread: each element in a register is used four times. Global memory
 *           is read element by element.
 * covers    kernel 5 sgemm_blocktiling_2dthreadtiling; readme sgemm_v1
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      64 x 64 x 8, 4 x 4 a thread
 * regs      64 at most: 16 accumulators; local memory 0
 * per k     16 FFMA, 8 f32 from shared memory
 * ratio     4*4 / (4+4) = 2.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      the plain form of block tile and register tile, which the next rungs make faster
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/64) * ceil(n/64)
 * smem      4 KiB and 12 bytes of tile coordinates
 */
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB, int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM / TM * (BN / TN)) reg_generic(const Gemm p) {
    constexpr int THREADS = BM / TM * (BN / TN);
    __shared__ __align__(16) float as[BM * BK], bs[BK * BN];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    Panel<BM, BK, THREADS, LA> a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    Panel<BN, BK, THREADS, LB> b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / (BN / TN) * TM, column = threadIdx.x % (BN / TN) * TN;
    float acc[TM][TN] = {};
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_k_major<BK>(as);
        b.template store_mn_major<BN>(bs);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float fa[TM], fb[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) fa[i] = as[(row + i) * BK + k];
#pragma unroll
            for (int j = 0; j < TN; ++j) fb[j] = bs[k * BN + column + j];
            rank1_update(acc, fa, fb);
        }
        __syncthreads();
    }
    i64 i = (i64)t.row * BM + row, j = (i64)t.column * BN + column;
#pragma unroll
    for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int s = 0; s < TN; ++s) store_row<1>(p, t.product, i + r, j + s, &acc[r][s]);
}
