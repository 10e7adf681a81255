/* warp_specialized.cuh: a persistent block with warp specialisation, 4 producer warps that load panels and 8 consumer
 * warps that multiply them.
 *
 * Producers and consumers synchronise at mbarriers in shared memory, two a stage: at `full` the producers' copies
 * arrive, at `empty` the consumer threads after their last read of a panel. So the consumers' main loop contains only
 * multiply-adds, loads from shared memory, and one wait and one arrival at mbarriers in 8 steps of k. Layout and
 * alignment of the operands concern the producers alone, and while a tile is stored the panels of the next are in
 * flight.
 *
 * A single product may be split along k (tile_scheduler.cuh); products of a batch are not, so that all have the same
 * bits. A second launch adds the partial tiles; where C is small, the blocks of the same launch do (FUSED_FIXUP) after
 * a grid-wide barrier, since a launch takes as long as such a product. That is a kernel of its own: its code costs
 * large products 2 % of their speed, by the registers that the compiler then chooses in the main loop.
 */
#include "panel_loader.cuh"
#include "mbarrier.cuh"
#include "fixup.cuh"
#include "tile_loop.cuh"

constexpr int PRODUCERS = 128, CONSUMERS = 256; /* threads */
constexpr int CONSUMER_WARPS = CONSUMERS / 32;

/* The tile of a block: MR x NR accumulators a consumer thread, WARPS_M x WARPS_N consumer warps, LANES_M x LANES_N
 * lanes a warp, STAGES panels in shared memory. */
template <int MR_, int NR_, int WARPS_M_, int WARPS_N_, int LANES_M_, int LANES_N_, int STAGES_>
struct BlockTile {
    static constexpr int MR = MR_, NR = NR_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, LANES_M = LANES_M_,
                         LANES_N = LANES_N_, STAGES = STAGES_;
    static constexpr int BM = WARPS_M * LANES_M * MR, BN = WARPS_N * LANES_N * NR;
    static constexpr int BK = 8; /* words of k */
    static_assert(WARPS_M * WARPS_N == CONSUMER_WARPS && LANES_M * LANES_N == 32, "");
};

/* A kernel: words of type T_, layouts of the operands, and the block tile. */
template <class T_, Layout LA, Layout LB, class Tile_>
struct Config {
    typedef T_ T;
    typedef Tile_ Tile;
    typedef PanelLoader<T, LA, Tile::BM, Tile::BK, PRODUCERS> LoaderA;
    typedef PanelLoader<T, LB, Tile::BN, Tile::BK, PRODUCERS> LoaderB;
    static constexpr int PITCH_A = LoaderA::PITCH, PITCH_B = LoaderB::PITCH; /* words */
    static constexpr int A_BYTES = Tile::BK * PITCH_A * 4, STAGE_BYTES = A_BYTES + Tile::BK * PITCH_B * 4;
};

/* Register reallocation (setmaxnreg, sm_90a): the producers release registers that the consumers' accumulators need. On
 * other architectures a tile of 8 x 8 a thread fits without. The block is launched with 168 registers for each thread
 * of its twelve warps: what four warps release is what eight can take. */
template <class T>
__device__ inline void reallocate_registers(bool producer) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int CONSUMER_REGISTERS = T::GROUP == 1 ? 216 : 208;
    if (producer) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"((12 * 168 - 8 * CONSUMER_REGISTERS) / 4));
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONSUMER_REGISTERS));
#endif
}

/* Shared addresses of the ring buffer of panels and of its mbarriers. */
struct PanelRing {
    u32 panels, full, empty;
};

template <class C>
__device__ __forceinline__ PanelRing init_panel_ring(u32* panels, u64* barriers, int producer_arrivals) {
    constexpr int STAGES = C::Tile::STAGES;
    PanelRing ring;
    ring.panels = shared_address(panels), ring.full = shared_address(barriers), ring.empty = ring.full + 8 * STAGES;
    if (threadIdx.x < STAGES) {
        mbarrier_init(ring.full + 8 * threadIdx.x, producer_arrivals);
        mbarrier_init(ring.empty + 8 * threadIdx.x, CONSUMERS);
    }
    __syncthreads();
    return ring;
}

template <bool B>
struct Bool {
    static constexpr bool value = B;
};

/* The producers' role: 128 threads load the panels of A and B, by cp.async or through registers (panel_loader.cuh). The
 * consumers load the fragments of one panel more than they multiply: the producers complete its `full` without a
 * copy. */
template <class C>
struct PanelProducer {
    typedef typename C::LoaderA LoaderA;
    typedef typename C::LoaderB LoaderB;
    static constexpr bool COPIES = LoaderA::ASYNC || LoaderB::ASYNC, STORES = !LoaderA::ASYNC || !LoaderB::ASYNC;
    static constexpr int ARRIVALS = PRODUCERS * (COPIES + STORES);

    __device__ __forceinline__ void run(const Gemm& p, const Schedule& s, TileScheduler scheduler,
                                        const PanelRing& ring) const {
        typedef typename C::Tile Tile;
        typedef typename C::T::Elem Elem;
        constexpr int PANEL_K = Tile::BK * C::T::GROUP;
        u32 stage = 0, parity = 1;
        WorkTile work;
        while (scheduler.next(s, work)) {
            TileCoordinates t = tile_coordinates<Tile::BM, Tile::BN>(p, s, work.tile);
            i64 first_k = (i64)work.first * PANEL_K;
            LoaderA a((const Elem*)p.a + t.product * p.a_batch, p.lda, (i64)t.row * Tile::BM, p.m, first_k);
            LoaderB b((const Elem*)p.b + t.product * p.b_batch, p.ldb, (i64)t.column * Tile::BN, p.n, first_k);
            int k_left = (int)(p.k - first_k), count = work.count;
            int whole = min(count, k_left / PANEL_K);
            auto load_panel = [&](auto tail) {
                constexpr bool TAIL = decltype(tail)::value;
                a.template prefetch<TAIL>(k_left);
                b.template prefetch<TAIL>(k_left);
                mbarrier_wait(ring.empty + 8 * stage, parity);
                u32 panel = ring.panels + stage * C::STAGE_BYTES;
                a.template copy<TAIL>(panel, k_left);
                b.template copy<TAIL>(panel + C::A_BYTES, k_left);
                if constexpr (COPIES) mbarrier_arrive_after_copies(ring.full + 8 * stage);
                if constexpr (STORES) mbarrier_arrive(ring.full + 8 * stage);
                if (++stage == Tile::STAGES) stage = 0, parity ^= 1;
            };
#pragma unroll 1
            for (int n = whole; n > 0; --n) load_panel(Bool<false>());
            k_left -= whole * PANEL_K;
            if (whole < count) load_panel(Bool<true>());
        }
        mbarrier_wait(ring.empty + 8 * stage, parity);
        if constexpr (COPIES) mbarrier_arrive(ring.full + 8 * stage);
        if constexpr (STORES) mbarrier_arrive(ring.full + 8 * stage);
    }
};

/* The accumulators of a consumer thread. Their rows come in groups of 4 that lie 4 * LANES_M rows apart in the tile,
 * columns likewise. */
template <class C>
using Accumulators = typename C::T::Acc[C::Tile::MR][C::Tile::NR];

template <class C>
__device__ constexpr int row_of(int i) {
    return i / 4 * 4 * C::Tile::LANES_M + i % 4;
}

/* The consumers' main loop: fragments of two steps of k, and where the next ones lie. */
template <class C>
struct MainLoop {
    typedef typename C::Tile Tile;
    static constexpr int MR = Tile::MR, NR = Tile::NR;
    u32 a_offset, b_offset, at_a, at_b, barrier, parity;
    u32 a[2][MR], b[2][NR];

    /* row, column: of the thread's first accumulator in the tile. */
    __device__ __forceinline__ MainLoop(const PanelRing& ring, int row, int column) {
        a_offset = row * 4, b_offset = C::A_BYTES + column * 4;
        at_a = ring.panels + a_offset, at_b = ring.panels + b_offset, barrier = ring.full, parity = 0;
        mbarrier_wait(barrier, 0);
        load_fragment<MR, 4 * Tile::LANES_M>(a[0], at_a);
        load_fragment<NR, 4 * Tile::LANES_N>(b[0], at_b);
    }

    /* Multiplies `count` panels. The fragments of the next step of k, in the last step those of the next panel, are
     * loaded before those of this step are multiplied. */
    __device__ __forceinline__ void run(const PanelRing& ring, int count, int lane, Accumulators<C>& acc) {
#pragma unroll 1
        for (int n = count; n > 0; --n) {
            u32 done = barrier + 8 * Tile::STAGES;
            bool wraps = barrier == ring.full + 8 * (Tile::STAGES - 1);
            barrier = wraps ? ring.full : barrier + 8;
            parity ^= wraps;
            u32 next_a = wraps ? ring.panels + a_offset : at_a + C::STAGE_BYTES;
            u32 next_b = wraps ? ring.panels + b_offset : at_b + C::STAGE_BYTES;
            /* Where to try again: the compiler reorders the rows of rank1_update, and 68 of 1024 multiply-adds read two
             * registers of the same port. 170 variants (ordered loads, B before A, rows from the other end, the wait in
             * another step of k) left 35 to 245 such and ran at 52.6 to 54.7 TFLOP/s at 2048 x 2048 x 4096, this one at
             * 54.5: the ports are not the limit. At 8192 the board draws 695 of its 700 W. */
            mbarrier_wait(barrier, parity);
#pragma unroll
            for (int k = 0; k < Tile::BK; ++k) {
                load_fragment<MR, 4 * Tile::LANES_M>(a[(k + 1) % 2],
                                                     k + 1 < Tile::BK ? at_a + (k + 1) * C::PITCH_A * 4 : next_a);
                load_fragment<NR, 4 * Tile::LANES_N>(b[(k + 1) % 2],
                                                     k + 1 < Tile::BK ? at_b + (k + 1) * C::PITCH_B * 4 : next_b);
                rank1_update<typename C::T>(acc, a[k % 2], b[k % 2]);
            }
            at_a = next_a, at_b = next_b;
            mbarrier_arrive_warp(done, lane);
        }
    }
};

/* Epilogue of a partial tile, to the workspace; `one` is 1. An accumulator that is stored as it is, 16 bytes at a time,
 * would be kept in adjacent registers throughout, in the port of the fragment of B. For C the product with alpha avoids
 * that. */
template <class C>
__device__ __forceinline__ void store_partial_tile(u32* to, float one, const Accumulators<C>& acc) {
    typedef typename C::T T;
    typedef typename C::Tile Tile;
    unrolled<0, Tile::MR>([&](int i) {
        unrolled<0, Tile::NR / 4>([&](int q) {
            typename T::Partial x[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) x[w] = T::scaled(one, T::partial(acc[i][4 * q + w]));
            __stwb((uint4*)(to + row_of<C>(i) * Tile::BN + q * 4 * Tile::LANES_N), *(const uint4*)x);
        });
    });
}

/* Epilogue of a whole tile, to C; the thread's first accumulator is element (i0, j0). */
template <class C>
__device__ __forceinline__ void store_tile(const Gemm& p, u32 product, i64 i0, i64 j0, const Accumulators<C>& acc) {
    typedef typename C::T T;
    typedef typename C::Tile Tile;
    typedef typename T::Out Out;
    Out* c = (Out*)p.c + product * p.c_batch + i0 * p.ldc + j0;
    const Out* c0 = (const Out*)p.c0 + product * p.c0_batch + i0 * p.c0_rs + j0 * p.c0_cs;
    unrolled<0, Tile::MR>([&](int i) {
        int r = row_of<C>(i);
        unrolled<0, Tile::NR / 4>([&](int q) {
            typename T::Partial x[4];
#pragma unroll
            for (int w = 0; w < 4; ++w) x[w] = T::partial(acc[i][4 * q + w]);
            i64 left = i0 + r < p.m ? p.n - j0 - q * 4 * Tile::LANES_N : 0;
            store_row4<T>(p, c + r * p.ldc + q * 4 * Tile::LANES_N,
                          p.c0 ? c0 + r * p.c0_rs + q * 4 * Tile::LANES_N * p.c0_cs : nullptr, left, x);
        });
    });
}

/* The consumers' role: 256 threads multiply panels and store tiles. */
template <class C>
__device__ __forceinline__ void consume(const Gemm& p, const Schedule& s, TileScheduler scheduler,
                                        const PanelRing& ring) {
    typedef typename C::Tile Tile;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / Tile::WARPS_N * Tile::LANES_M * Tile::MR + lane / Tile::LANES_N * 4;
    int column = warp % Tile::WARPS_N * Tile::LANES_N * Tile::NR + lane % Tile::LANES_N * 4;
    MainLoop<C> main_loop(ring, row, column);
    WorkTile work;
    while (scheduler.next(s, work)) {
        Accumulators<C> acc = {};
        main_loop.run(ring, work.count, lane, acc);
        if (work.count < (int)s.panels) {
            i64 slot = s.slot(blockIdx.x, work.tile);
            store_partial_tile<C>(s.workspace + slot * Tile::BM * Tile::BN + row * Tile::BN + column, s.one, acc);
        } else {
            TileCoordinates t = tile_coordinates<Tile::BM, Tile::BN>(p, s, work.tile);
            store_tile<C>(p, t.product, (i64)t.row * Tile::BM + row, (i64)t.column * Tile::BN + column, acc);
        }
    }
}

/* Named barrier of the consumer threads. */
__device__ inline void consumer_barrier() { asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory"); }

template <class C, bool FUSED_FIXUP = false, class Producer = PanelProducer<C>>
__device__ __forceinline__ void warp_specialized_gemm(const Gemm& p, const Schedule& s, const Producer& producer = {}) {
    typedef typename C::Tile Tile;
    extern __shared__ __align__(128) u32 panels[];
    __shared__ u64 barriers[2 * Tile::STAGES];
    PanelRing ring = init_panel_ring<C>(panels, barriers, Producer::ARRIVALS);
    TileScheduler scheduler(s);
    if (threadIdx.x >= CONSUMERS) {
        reallocate_registers<typename C::T>(true);
        producer.run(p, s, scheduler, ring);
    } else {
        reallocate_registers<typename C::T>(false);
        consume<C>(p, s, scheduler, ring);
        if constexpr (FUSED_FIXUP) {
            consumer_barrier();
            if (threadIdx.x == 0) s.grid_barrier();
            consumer_barrier();
            fixup<typename C::T, Tile::BM, Tile::BN, 16>(p, s, blockIdx.x + threadIdx.x / 32 * gridDim.x,
                                                        gridDim.x * CONSUMER_WARPS);
        }
    }
}
