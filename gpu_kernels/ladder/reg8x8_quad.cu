/* reg8x8_quad, S11: the 8 x 8 of a thread as four 4 x 4 quadrants.
 *
 * step      with eight adjacent columns a thread, adjacent lanes read 32 bytes apart and have two-way bank conflicts.
 *           With two groups of four columns, 64 apart, adjacent lanes read adjacent 16 bytes.
 * covers    readme sgemm_v2
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread
 * regs      128 at most: 64 accumulators, two blocks a multiprocessor; local memory 0
 * per k     64 FFMA, 16 f32 from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      the tile of a thread distributed over the block tile, so that each load of a warp is contiguous
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      8.125 KiB and 12 bytes of tile coordinates; at most 8.25 KiB for other layouts
 */
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) reg8x8_quad(const Gemm p) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    constexpr int GAP_M = BM / 2, GAP_N = BN / 2;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    __shared__ __align__(16) float as[BK * PanelA::PITCH], bs[BK * PanelB::PITCH];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
    float acc[TM][TN] = {};
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_mn_major<PanelA::PITCH>(as);
        b.template store_mn_major<PanelB::PITCH>(bs);
        __syncthreads();
#pragma unroll 4 /* all eight k need more registers than two blocks leave a thread */
        for (int k = 0; k < BK; ++k) {
            float fa[TM], fb[TN];
            load_fragment<TM, GAP_M>(fa, as + k * PanelA::PITCH + row);
            load_fragment<TN, GAP_N>(fb, bs + k * PanelB::PITCH + column);
            rank1_update(acc, fa, fb);
        }
        __syncthreads();
    }
    store_thread_tile<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, acc);
}
