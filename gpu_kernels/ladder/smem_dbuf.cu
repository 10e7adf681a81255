/* smem_dbuf, S14: double-buffered shared memory, one barrier a panel.
 *
 * step      the next panel is stored to a second buffer, so that no barrier is needed before the stores; and the
 *           fragments of its first k are loaded before the last k of this panel is multiplied.
 * covers    blog mysgemm_v11; slides sgemv7; readme sgemm_v3
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, warp tile 32 x 64
 * regs      128 at most: 64 accumulators, 2 x 16 for fragments, two blocks a multiprocessor; local memory 0
 * per k     64 FFMA, 16 f32 from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      double buffering
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      16.25 KiB and 12 bytes of tile coordinates; at most 16.5 KiB for other layouts
 */
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) smem_dbuf(const Gemm p) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    constexpr int WM = 32, WN = 64, GAP_M = WM / 2, GAP_N = WN / 2;
    typedef Panel<BM, BK, THREADS, LA> PanelA;
    typedef Panel<BN, BK, THREADS, LB> PanelB;
    constexpr int SIZE_A = BK * PanelA::PITCH, STAGE = SIZE_A + BK * PanelB::PITCH;
    __shared__ __align__(16) float shared[2 * STAGE];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / WN) * WM + (lane / 16 * 2 + lane % 2) * 4;
    int column = warp % (BN / WN) * WN + lane / 2 % 8 * 4;
    float acc[TM][TN] = {}, fa[2][TM], fb[2][TN];
    int stage = 0;
    auto store = [&](int to) {
        a.template store_mn_major<PanelA::PITCH>(shared + to);
        b.template store_mn_major<PanelB::PITCH>(shared + to + SIZE_A);
    };
    auto load_fragments = [&](int k) {
        load_fragment<TM, GAP_M>(fa[k % 2], shared + stage + k * PanelA::PITCH + row);
        load_fragment<TN, GAP_N>(fb[k % 2], shared + stage + SIZE_A + k * PanelB::PITCH + column);
    };
    if (p.k > 0) {
        a.load(p.k);
        b.load(p.k);
        store(0);
        __syncthreads();
        load_fragments(0);
#pragma unroll 2 /* the stage of each of two panels is a constant: no address arithmetic */
        for (i64 k_left = p.k - BK; k_left > 0; k_left -= BK) {
            a.load(k_left);
            b.load(k_left);
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                /* The other stage is free: all threads passed the last barrier after their last read of it. The stores
                 * are issued one k before the barrier, so that no thread waits for them there. */
                if (k + 2 == BK) store(stage ^ STAGE);
                if (k + 1 == BK) {
                    __syncthreads();
                    stage ^= STAGE;
                }
                load_fragments((k + 1) % BK);
                rank1_update(acc, fa[k % 2], fb[k % 2]);
            }
        }
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) load_fragments(k + 1);
            rank1_update(acc, fa[k % 2], fb[k % 2]);
        }
    }
    store_thread_tile<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, acc);
}
