/* half_pipeline.cuh: a block of eight warps that multiplies one panel of halves while others are on their way.
 *
 * What a warp does is a Warp, with sums and two sets of fragments:
 *
 *     read(set, panel, k)   fragments of step k of 16 of the panel that lies so many bytes into shared memory
 *     multiply(set)         adds their product
 *     store(...)            the sums into C
 *
 * The fragments of a step are read while those before are multiplied, and copies are asked for in between, a part at
 * each step: in one go they would stand before the fragments in the queue to shared memory, which is nearly as busy as
 * the tensor cores. All of a panel is asked for before the one before it is multiplied.
 */
constexpr int BM = 128, BN = 256, BK = 64, STAGES = 3, TM = 64, TN = 64, THREADS = 256, GROUP = 16;

extern __shared__ __align__(128) u32 panels[];

template <template <int> class Where, template <class, class> class Warp, Layout LA, Layout LB>
__device__ __forceinline__ void half_pipeline(const Gemm& p) {
    typedef HalfPanel<LA, BM, BK, THREADS, Where> PanelA;
    typedef HalfPanel<LB, BN, BK, THREADS, Where> PanelB;
    constexpr int STAGE = PanelA::BYTES + PanelB::BYTES, STEPS = BK / 16;
    static_assert(STAGES >= 3 && STEPS % 2 == 0, "a panel is there a panel before it is multiplied; sets take turns");
    Tile t = grouped_tile<BM, BN, GROUP>(p);
    PanelA a((const u16*)p.a + t.product * p.a_batch, p.lda, (i64)t.row * BM, p.m, p.k);
    PanelB b((const u16*)p.b + t.product * p.b_batch, p.ldb, (i64)t.column * BN, p.n, p.k);
    u32 here = 0, asked = shared_address(panels);
    auto after = [](u32 panel, u32 first) { return panel == first + (STAGES - 1) * STAGE ? first : panel + STAGE; };
    auto ask = [&](int part, int parts) {
        a.fill(asked, part, parts);
        b.fill(asked + PanelA::BYTES, part, parts);
        if (part < parts - 1) return;
        copies_end();
        asked = after(asked, shared_address(panels));
    };
    int warp = threadIdx.x / 32, row = warp / (BN / TN) * TM, column = warp % (BN / TN) * TN;
    Warp<PanelA, PanelB> work(row, column);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) ask(0, 1);
    copies_wait<STAGES - 2>();
    __syncthreads();
    work.read(0, here, 0);
#pragma unroll 1
    for (i64 k = 0; k < p.k; k += BK) {
        u32 next = after(here, 0);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == STEPS - 1) {
                copies_wait<STAGES - 3>();
                __syncthreads();
            }
            work.read((step + 1) % 2, step + 1 < STEPS ? here : next, (step + 1) % STEPS);
            ask(step, STEPS); /* into the panel that all have left behind at the last barrier */
            work.multiply(step % 2);
        }
        here = next;
    }
    work.store(p, t.product, (i64)t.row * BM + row, (i64)t.column * BN + column);
}
