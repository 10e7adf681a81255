/* mma_sync, T3: the instruction itself, fragments two steps deep, panels without a byte to spare.
 *
 * step      mma.sync and ldmatrix instead of what mma.h makes of them: the fragments of the next 16 k are read while
 *           these are multiplied. Pieces of a line change places (swizzle) instead of being padded: ldmatrix finds eight
 *           lines on 32 different banks, turned or not.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      255 at most: 128 sums, 2 x 32 words of fragments; local memory 0
 * per k     2 mma.sync m16n8k16 and half an ldmatrix.x4 a warp
 * ratio     64*64 / (64+64) = 32.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_80
 * idea      ldmatrix and XOR swizzle: CUTLASS, sgemm_sm80 of its CuTe tutorial
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      144 KiB, dynamic
 */
#include "vector.cuh"
#include "gemm.cuh"
#include "async.cuh"
#include "half_panel.cuh"
#include "mma.cuh"

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 3, TM = 64, TN = 64, THREADS = 256, GROUP = 8;

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(THREADS, 1) mma_sync(const __grid_constant__ Gemm p) {
    typedef HalfPanel<LA, BM, BK, THREADS, Swizzled> PanelA;
    typedef HalfPanel<LB, BN, BK, THREADS, Swizzled> PanelB;
    typedef Squares<SIDE_A, LA, typename PanelA::Place> A;
    typedef Squares<SIDE_B, LB, typename PanelB::Place> B;
    constexpr int STAGE = PanelA::BYTES + PanelB::BYTES, STEPS = BK / 16;
    extern __shared__ __align__(128) u32 panels[];
    Tile t = grouped_tile<BM, BN, GROUP>(p);
    PanelA a((const u16*)p.a + t.product * p.a_batch, p.lda, (i64)t.row * BM, p.m);
    PanelB b((const u16*)p.b + t.product * p.b_batch, p.ldb, (i64)t.column * BN, p.n);
    u32 first = shared_address(panels), here = first, asked = first;
    int k_left = (int)p.k;
    auto ask = [&]() {
        if (k_left > 0) {
            a.fill(asked, k_left);
            b.fill(asked + PanelA::BYTES, k_left);
            k_left -= BK;
        }
        copies_end();
        asked = asked == first + (STAGES - 1) * STAGE ? first : asked + STAGE;
    };
    int warp = threadIdx.x / 32, row = warp / (BN / TN) * TM, column = warp % (BN / TN) * TN;
    u32 at_a = A::first(row), at_b = PanelA::BYTES + B::first(column);
    float sum[TM / 16][TN / 8][4] = {};
    u32 fa[2][TM / 16][4], fb[2][TN / 16][4];
    auto read = [&](int slot, u32 panel, int k) {
#pragma unroll
        for (int i = 0; i < TM / 16; ++i) load_squares<!along_k(LA)>(fa[slot][i], A::at(panel + at_a, i, k));
#pragma unroll
        for (int j = 0; j < TN / 16; ++j) load_squares<!along_k(LB)>(fb[slot][j], B::at(panel + at_b, j, k));
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) ask();
    copies_wait<STAGES - 2>();
    __syncthreads();
    read(0, here, 0);
#pragma unroll 1
    for (i64 k = 0; k < p.k; k += BK) {
        u32 next = here == first + (STAGES - 1) * STAGE ? first : here + STAGE;
        ask(); /* into the panel that all have left behind at the last barrier */
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == STEPS - 1) {
                copies_wait<STAGES - 2>();
                __syncthreads();
            }
            read((step + 1) % 2, step + 1 < STEPS ? here : next, (step + 1) % STEPS);
#pragma unroll
            for (int i = 0; i < TM / 16; ++i)
#pragma unroll
                for (int x = 0; x < TN / 8; ++x) {
                    int j = i % 2 ? TN / 8 - 1 - x : x; /* to and fro */
                    const u32(&f)[4] = fb[step % 2][j / 2];
                    multiply_f16(sum[i][j], fa[step % 2][i], f[j % 2 * 2], f[j % 2 * 2 + 1]);
                }
        }
        here = next;
    }
    store_squares<TM, TN>(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column, sum);
}
