/* wmma_smem, T2: panels of halves in shared memory, sixteen fragments of sums a warp.
 *
 * step      what S3 to S17 did for floats, at once: panels in shared memory serve eight warps, asynchronous copies bring
 *           the next ones meanwhile, and a fragment once loaded is multiplied by four others. Lines are padded by 16
 *           bytes, so that the eight that are loaded together are on different banks.
 * covers    nothing: beyond the documents
 * contract  gemm.cuh; any m, n, k, operands in either layout
 * tile      128 x 256 x 64, 64 x 64 a warp
 * regs      255 at most: 128 sums; local memory 0
 * per k     1 wmma of 16 x 16 x 16 and half a fragment loaded, a warp
 * ratio     64*64 / (64+64) = 32.00
 * rounding  products exact, sums of 16 k in the tensor core's own order and rounding; one for alpha, one for beta
 * needs     sm_80
 * idea      warp matrix functions: NVIDIA, CUDA C++ Programming Guide, and its sample cudaTensorCoreGemm
 * lanes     32
 * launch    256 threads a block; grid batch * ceil(m/128) * ceil(n/256)
 * smem      162 KiB, dynamic
 */
#include <mma.h>
#include "vector.cuh"
#include "gemm.cuh"
#include "async.cuh"
#include "half_panel.cuh"
#include "wmma.cuh"

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 3, TM = 64, TN = 64, THREADS = 256, GROUP = 8;

/* Fragment i of the rows from `row` on, at step k of 16: its first element, and what is from line to line. */
template <Layout L, class Place>
__device__ inline const half* fragment_at(const u32* panel, int row, int i, int k) {
    int r = row + 16 * i, line = along_k(L) ? r : 16 * k, along = along_k(L) ? 16 * k : r;
    return (const half*)panel + line * (Place::PITCH / 2) + along;
}

template <Layout LA, Layout LB>
__global__ void __launch_bounds__(THREADS, 1) wmma_smem(const __grid_constant__ Gemm p) {
    typedef HalfPanel<LA, BM, BK, THREADS, Padded> PanelA;
    typedef HalfPanel<LB, BN, BK, THREADS, Padded> PanelB;
    typedef typename PanelA::Place PlaceA;
    typedef typename PanelB::Place PlaceB;
    constexpr int STAGE = PanelA::BYTES + PanelB::BYTES;
    extern __shared__ __align__(128) u32 panels[];
    Tile t = grouped_tile<BM, BN, GROUP>(p);
    PanelA a((const u16*)p.a + t.product * p.a_batch, p.lda, (i64)t.row * BM, p.m);
    PanelB b((const u16*)p.b + t.product * p.b_batch, p.ldb, (i64)t.column * BN, p.n);
    u32 first = shared_address(panels), asked = 0, here = 0;
    int k_left = (int)p.k;
    auto ask = [&]() {
        if (k_left > 0) {
            a.fill(first + asked, k_left);
            b.fill(first + asked + PanelA::BYTES, k_left);
            k_left -= BK;
        }
        copies_end();
        asked = asked == (STAGES - 1) * STAGE ? 0 : asked + STAGE;
    };
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / (BN / TN) * TM, column = warp % (BN / TN) * TN;
    Sums sum[TM / 16][TN / 16];
#pragma unroll
    for (int i = 0; i < TM / 16; ++i)
#pragma unroll
        for (int j = 0; j < TN / 16; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) ask();
#pragma unroll 1
    for (i64 n = 0; n < p.k; n += BK) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        ask(); /* into the panel that all have left behind */
        const u32 *panel_a = panels + here / 4, *panel_b = panel_a + PanelA::BYTES / 4;
#pragma unroll
        for (int k = 0; k < BK / 16; ++k) {
            FragmentA<LA> fa[TM / 16];
            FragmentB<LB> fb[TN / 16];
#pragma unroll
            for (int i = 0; i < TM / 16; ++i)
                wmma::load_matrix_sync(fa[i], fragment_at<LA, PlaceA>(panel_a, row, i, k), PlaceA::PITCH / 2);
#pragma unroll
            for (int j = 0; j < TN / 16; ++j)
                wmma::load_matrix_sync(fb[j], fragment_at<LB, PlaceB>(panel_b, column, j, k), PlaceB::PITCH / 2);
#pragma unroll
            for (int i = 0; i < TM / 16; ++i)
#pragma unroll
                for (int j = 0; j < TN / 16; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
        }
        here = here == (STAGES - 1) * STAGE ? 0 : here + STAGE;
    }
    /* Through shared memory, 16 rows of a warp at a time: where in a fragment an element is, mma.h does not say. */
    copies_wait<0>();
    __syncthreads();
    constexpr int PITCH = TN + 4;
    float* rows = (float*)panels + warp * 16 * PITCH;
#pragma unroll
    for (int i = 0; i < TM / 16; ++i) {
        __syncwarp();
#pragma unroll
        for (int j = 0; j < TN / 16; ++j)
            wmma::store_matrix_sync(rows + 16 * j, sum[i][j], PITCH, wmma::mem_row_major);
        __syncwarp();
#pragma unroll 4
        for (int x = 4 * lane; x < 16 * TN; x += 128)
            store_row<4>(p, t.product, (i64)t.row * BM + row + 16 * i + x / TN, (i64)t.column * BN + column + x % TN,
                         rows + x / TN * PITCH + x % TN);
    }
}
