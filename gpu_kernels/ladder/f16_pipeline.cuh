/* f16_pipeline.cuh: cp.async multistage pipeline of panels of 16-bit elements for eight warps with tensor cores.
 *
 * What a warp does is a class Warp, with accumulators and two sets of fragments:
 *
 *     load(set, panel, k)   fragments of the 16 k from 16 * k on, of the panel at this offset in shared memory
 *     multiply(set)         adds their product to the accumulators
 *     store(...)            epilogue, to C
 *
 * The fragments of a step are loaded while those of the step before are multiplied, and copies are issued in between, a
 * part of a panel at each step: all at once they would precede the fragments in the queue to shared memory, which is
 * nearly as busy as the tensor cores. The copies of a panel are issued before the panel before it is multiplied.
 */
#include "f16_panel.cuh"

constexpr int BM = 128, BN = 256, TM = 64, TN = 64, THREADS = 256, GROUP = 16;

extern __shared__ __align__(128) u32 panels[];

/* BK counts 16-bit elements of the panels, each of which holds PACKED elements of the operands: with 2 these are int8,
 * and K-major. */
template <template <int> class Placement, template <class, class> class Warp, Layout LA, Layout LB, int BK = 64,
          int STAGES = 3, int PACKED = 1>
__device__ __forceinline__ void f16_pipeline(const Gemm& p) {
    typedef F16Panel<LA, BM, BK, THREADS, Placement> PanelA;
    typedef F16Panel<LB, BN, BK, THREADS, Placement> PanelB;
    constexpr int STAGE = PanelA::BYTES + PanelB::BYTES, STEPS = BK / 16;
    static_assert(STAGES >= 3 && STEPS % 2 == 0, "a panel is complete one panel ahead; steps alternate the two sets");
    TileCoordinates t = grouped_tile_coordinates<BM, BN, GROUP>(p);
    i64 count = (p.k + PACKED - 1) / PACKED;
    PanelA a((const u16*)p.a + t.product * (p.a_batch / PACKED), p.lda / PACKED, (i64)t.row * BM, p.m, count);
    PanelB b((const u16*)p.b + t.product * (p.b_batch / PACKED), p.ldb / PACKED, (i64)t.column * BN, p.n, count);
    u32 read = 0, write = shared_address(panels);
    auto after = [](u32 panel, u32 first) { return panel == first + (STAGES - 1) * STAGE ? first : panel + STAGE; };
    auto copy = [&](int part, int parts) {
        a.copy(write, part, parts);
        b.copy(write + PanelA::BYTES, part, parts);
        if (part < parts - 1) return;
        cp_async_commit();
        write = after(write, shared_address(panels));
    };
    int warp = threadIdx.x / 32, row = warp / (BN / TN) * TM, column = warp % (BN / TN) * TN;
    Warp<PanelA, PanelB> tile(row, column);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) copy(0, 1);
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    tile.load(0, read, 0);
#pragma unroll 1
    for (i64 k = 0; k < count; k += BK) {
        u32 next = after(read, 0);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == STEPS - 1) {
                cp_async_wait<STAGES - 3>();
                __syncthreads();
            }
            tile.load((step + 1) % 2, step + 1 < STEPS ? read : next, (step + 1) % STEPS);
            tile.multiply(step % 2);
            copy(step, STEPS); /* into the panel that all warps finished before the last barrier */
        }
        read = next;
    }
    tile.store(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column);
}
