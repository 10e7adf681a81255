/* warptile, S12: warp tiles of 32 x 64.
 *
 * step      the 32 lanes are arranged 4 x 8 instead of 2 x 16: a warp reads 32 + 64 elements per k instead of 16 + 128.
 *           Lanes are numbered such that adjacent lanes read the same or the next 16 bytes.
 * covers    blog mysgemm_v9
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 128 x 8, 8 x 8 a thread, warp tile 32 x 64
 * regs      128 at most: 64 accumulators, two blocks a multiprocessor; local memory 0
 * per k     64 FFMA, 16 f32 from shared memory, 4 LDS.128
 * ratio     8*8 / (8+8) = 4.00
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_75
 * idea      block tile, warp tile, register tile: one for each level of the memory hierarchy
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/128)
 * smem      8.125 KiB and 12 bytes of tile coordinates; at most 8.25 KiB for other layouts
 */
#include "panel.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 2) warptile(const Gemm p) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = 256;
    constexpr int WM = 32, WN = 64, GAP_M = WM / 2, GAP_N = WN / 2;
    /* A panel that is loaded element by element recomputes its thread's place: else such an instance takes all 128
     * registers, and in a few of a hundred compilations NVRTC 13.0 spills one. Which code it makes of a source depends
     * on the addresses of its heap, so on what its process did before. */
    typedef Panel<BM, BK, THREADS, LA, width(LA) == 1> PanelA;
    typedef Panel<BN, BK, THREADS, LB, width(LB) == 1> PanelB;
    __shared__ __align__(16) float as[BK * PanelA::PITCH], bs[BK * PanelB::PITCH];
    const TileCoordinates& t = tile_coordinates<BM, BN>(p);
    PanelA a(p.a + t.product * p.a_batch, p.lda, t.row, p.m);
    PanelB b(p.b + t.product * p.b_batch, p.ldb, t.column, p.n);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / WN) * WM + (lane / 16 * 2 + lane % 2) * 4;
    int column = warp % (BN / WN) * WN + lane / 2 % 8 * 4;
    float acc[TM][TN] = {};
    for (i64 k_left = p.k; k_left > 0; k_left -= BK) {
        a.load(k_left);
        b.load(k_left);
        a.template store_mn_major<PanelA::PITCH>(as);
        b.template store_mn_major<PanelB::PITCH>(bs);
        __syncthreads();
#pragma unroll
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
