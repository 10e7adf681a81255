/* cpasync, S15: cp.async multistage pipeline, 16 x 8 a thread.
 *
 * step      cp.async copies from global to shared memory without registers, so that 128 accumulators fit; A, which must
 *           be transposed, is copied 4 bytes at a time to its transposed place. Six panels in shared memory: the copies
 *           of five are in flight while one is multiplied. The rank-1 update takes its rows in serpentine order
 *           (tile_loop.cuh), thread blocks take the tiles of C in groups of eight rows of tiles.
 *           On an H200 the gain is that of the tile: with two stages it measured 49.8 TFLOP/s at 8192, with six 49.4,
 *           with six and the grouped order 49.4. One panel in flight already hides the latency there, and the L2 of
 *           60 MiB holds the panels in any order.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 8, 16 x 8 a thread, in warp tiles of 64 x 64
 * regs      255 at most: 128 sums, 2 x 24 of fragments; local memory 0
 * per k     128 FFMA  24 floats from shared memory, 6 LDS.128
 * ratio     16*8 / (16+8) = 5.33
 * rounding  one fma per term, k ascending from 0; then one for alpha and one for beta; denormals are kept
 * needs     sm_80
 * idea      the multistage pipeline of CUTLASS; the tile of salykova/sgemm.cu; grouped order as in Triton's tutorial on
 *           matrix multiplication
 * lanes     1
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      72.75 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "word.cuh"
#include "async.cuh"
#include "feed.cuh"
#include "tile_loop.cuh"
#include "fragment.cuh"

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(256, 1) cpasync(const __grid_constant__ Gemm p) {
    constexpr int BM = 128, BN = 256, BK = 8, TM = 16, TN = 8, THREADS = 256, STAGES = 6, GROUP = 8;
    typedef Feed<F32, LA, BM, BK, THREADS> FeedA;
    typedef Feed<F32, LB, BN, BK, THREADS> FeedB;
    constexpr int STAGE = BK * (FeedA::PITCH + FeedB::PITCH) * 4;
    extern __shared__ __align__(16) u32 panels[];
    Tile t = grouped_tile<BM, BN, GROUP>(p);
    /* The first panel has the k that do not fill one, so that the loop copies whole panels only. */
    int count = (int)((p.k + BK - 1) / BK), rest = (int)(p.k - (i64)(count - 1) * BK);
    FeedA a(p.a + t.product * p.a_batch, p.lda, (i64)t.row * BM, p.m, 0);
    FeedB b(p.b + t.product * p.b_batch, p.ldb, (i64)t.column * BN, p.n, 0);
    u32 first = shared_address(panels), asked = first, here = first;
    auto ask = [&](bool there) {
        if (there) {
            a.template fill<false>(asked, BK);
            b.template fill<false>(asked + BK * FeedA::PITCH * 4, BK);
        }
        copies_end();
        asked = asked == first + (STAGES - 1) * STAGE ? first : asked + STAGE;
    };
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / 4 * 64 + lane / 8 * 4, column = warp % 4 * 64 + lane % 8 * 4;
    u32 to_a = row * 4, to_b = (BK * FeedA::PITCH + column) * 4;
    float sum[TM][TN] = {};
    if (count > 0) {
        a.template fill<true>(asked, rest);
        b.template fill<true>(asked + BK * FeedA::PITCH * 4, rest);
        a.from -= (BK - rest) * a.k_stride, b.from -= (BK - rest) * b.k_stride;
        copies_end();
        asked += STAGE;
#pragma unroll
        for (int s = 1; s < STAGES - 1; ++s) ask(s < count);
        u32 fa[2][TM], fb[2][TN];
        copies_wait<STAGES - 2>();
        __syncthreads();
        fragment<TM, 16>(fa[0], here + to_a);
        fragment<TN, 32>(fb[0], here + to_b);
#pragma unroll 1
        for (int n = count; n > 0; --n) {
            u32 next = here == first + (STAGES - 1) * STAGE ? first : here + STAGE;
            ask(n >= STAGES); /* into the panel that all threads have read before the last barrier */
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK - 1) {
                    copies_wait<STAGES - 2>();
                    __syncthreads();
                }
                fragment<TM, 16>(fa[(k + 1) % 2], (k + 1 < BK ? here + (k + 1) * FeedA::PITCH * 4 : next) + to_a);
                fragment<TN, 32>(fb[(k + 1) % 2], (k + 1 < BK ? here + (k + 1) * FeedB::PITCH * 4 : next) + to_b);
                rank1<F32>(sum, fa[k % 2], fb[k % 2]);
            }
            here = next;
        }
    }
    store_fragment<16, 32>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, sum);
}
