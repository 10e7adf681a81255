/* reg_prefetch, S13: register prefetch of the next panel and the next fragments.
 *
 * step      the next panel is loaded from global memory into registers before the multiply-adds of the panel in shared
 *           memory, and stored to shared memory after them; the fragments of k + 1 are loaded before those of k are
 *           used. So the latency of both loads is hidden.
 * covers    blog mysgemm_v10
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, warp tile 32 x 64
 * regs      128 at most: 64 accumulators, 2 x 16 for fragments, two blocks a multiprocessor; local memory 0
 * per k     64 FFMA, 16 f32 from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      software pipelining through registers
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      8.125 KiB and 12 bytes of tile coordinates; at most 8.25 KiB for other layouts
 */
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) reg_prefetch(const Gemm p) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    constexpr int WM = 32, WN = 64, GAP_M = WM / 2, GAP_N = WN / 2;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    __shared__ __align__(16) float as[BK * PanelA::PITCH], bs[BK * PanelB::PITCH];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / WN) * WM + (lane / 16 * 2 + lane % 2) * 4;
    int column = warp % (BN / WN) * WN + lane / 2 % 8 * 4;
    float acc[TM][TN] = {}, fa[2][TM], fb[2][TN];
    auto store = [&] {
        a.template store_mn_major<PanelA::PITCH>(as);
        b.template store_mn_major<PanelB::PITCH>(bs);
        __syncthreads();
    };
    auto load_fragments = [&](int k) {
        load_fragment<TM, GAP_M>(fa[k % 2], as + k * PanelA::PITCH + row);
        load_fragment<TN, GAP_N>(fb[k % 2], bs + k * PanelB::PITCH + column);
    };
    auto multiply = [&] {
        load_fragments(0);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) load_fragments(k + 1);
            rank1_update(acc, fa[k % 2], fb[k % 2]);
        }
    };
    if (p.k > 0) {
        a.load(p.k);
        b.load(p.k);
        store();
        for (i64 k_left = p.k - BK; k_left > 0; k_left -= BK) {
            a.load(k_left);
            b.load(k_left);
            multiply();
            __syncthreads();
            store();
        }
        multiply();
    }
    store_thread_tile<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, acc);
}
