/* cpasync, S15: cp.async multistage pipeline, 16 x 8 a thread.
 *
 * step      cp.async copies from global to shared memory without registers, so that 128 accumulators fit; A, which must
 *           be transposed, is copied 4 bytes at a time to its transposed place. Six panels in shared memory: the copies
 *           of five are in flight while one is multiplied. The rank-1 update takes its rows in serpentine order
 *           (tile_loop.cuh), and the blocks take the tiles of C in grouped raster order, eight rows of tiles together.
 *           On an H200 the gain is that of the tile: with two stages it measured 49.8 TFLOP/s at 8192, with six 49.4,
 *           with six and the grouped order 49.4. One panel in flight already hides the latency there, and the L2 of 60
 *           MiB holds the panels in any order.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 16 x 8 a thread, warp tile 64 x 64
 * regs      212 at most: 128 accumulators, 2 x 24 for fragments; local memory 0
 * per k     128 FFMA, 24 f32 from shared memory, 6 LDS.128
 * ratio     16*8 / (16+8) = 5.33
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_80
 * idea      the multistage pipeline of CUTLASS; the tile of salykova/sgemm.cu; grouped order as in Triton's tutorial on
 *           matrix multiplication
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      72.75 KiB dynamic; at most 73.5 KiB dynamic for other layouts
 */
#include "panel_loader.cuh"
#include "tile_loop.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 1) cpasync(const __grid_constant__ Gemm p) {
    constexpr int BM = 128, BN = 256, BK = 8, TM = 16, TN = 8, WM = 64, WN = 64, THREADS = 256;
    constexpr int STAGES = 6, GROUP = 8, GAP_M = WM / 4, GAP_N = WN / 2;
    typedef PanelLoader<F32, LA, BM, BK, THREADS> LoaderA;
    typedef PanelLoader<F32, LB, BN, BK, THREADS> LoaderB;
    constexpr int STAGE = BK * (LoaderA::PITCH + LoaderB::PITCH) * 4;
    extern __shared__ __align__(16) u32 panels[];
    TileCoordinates t = grouped_tile_coordinates<BM, BN, GROUP>(p);
    /* The first panel has the remainder of k, so that the loop copies whole panels only. */
    int count = (int)((p.k + BK - 1) / BK), rest = (int)(p.k - (i64)(count - 1) * BK);
    LoaderA a(p.a + t.product * p.a_batch, p.lda, (i64)t.row * BM, p.m, 0);
    LoaderB b(p.b + t.product * p.b_batch, p.ldb, (i64)t.column * BN, p.n, 0);
    u32 first = shared_address(panels), write = first, read = first;
    auto copy_panel = [&](bool exists) {
        if (exists) {
            a.template copy<false>(write, BK);
            b.template copy<false>(write + BK * LoaderA::PITCH * 4, BK);
        }
        cp_async_commit();
        write = write == first + (STAGES - 1) * STAGE ? first : write + STAGE;
    };
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / WN) * WM + lane / 8 * 4, column = warp % (BN / WN) * WN + lane % 8 * 4;
    u32 a_offset = row * 4, b_offset = (BK * LoaderA::PITCH + column) * 4;
    float acc[TM][TN] = {};
    if (count > 0) {
        a.template copy<true>(write, rest);
        b.template copy<true>(write + BK * LoaderA::PITCH * 4, rest);
        a.from -= (BK - rest) * a.k_stride, b.from -= (BK - rest) * b.k_stride;
        cp_async_commit();
        write += STAGE;
#pragma unroll
        for (int s = 1; s < STAGES - 1; ++s) copy_panel(s < count);
        u32 fa[2][TM], fb[2][TN];
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        load_fragment<TM, GAP_M>(fa[0], read + a_offset);
        load_fragment<TN, GAP_N>(fb[0], read + b_offset);
#pragma unroll 1
        for (int n = count; n > 0; --n) {
            u32 next = read == first + (STAGES - 1) * STAGE ? first : read + STAGE;
            copy_panel(n >= STAGES); /* into the stage that all threads have read before the last barrier */
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK - 1) {
                    cp_async_wait<STAGES - 2>();
                    __syncthreads();
                }
                u32 a_next = k + 1 < BK ? read + (k + 1) * LoaderA::PITCH * 4 : next;
                u32 b_next = k + 1 < BK ? read + (k + 1) * LoaderB::PITCH * 4 : next;
                load_fragment<TM, GAP_M>(fa[(k + 1) % 2], a_next + a_offset);
                load_fragment<TN, GAP_N>(fb[(k + 1) % 2], b_next + b_offset);
                rank1_update<F32>(acc, fa[k % 2], fb[k % 2]);
            }
            read = next;
        }
    }
    store_thread_tile<GAP_M, GAP_N>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, acc);
}
