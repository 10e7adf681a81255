/* producers.cuh: a block whose warps have roles: four bring panels, eight multiply; and the sum of what was cut.
 *
 * The roles meet at barriers in shared memory, two a stage: `full`, where the producers' copies arrive, and `empty`,
 * where the multiplying threads arrive after their last read of a panel. So the loop that multiplies has nothing in it
 * but multiply-adds, loads from shared memory and one barrier in 8 steps of k; any layout and any alignment is the
 * producers' business, and while a tile is stored the panels of the next are on their way.
 * A product alone may be cut along k (schedule.cuh); products of a batch are not, so that all have the same bits. The
 * parts are added by a second launch, or, where C is small, by the blocks themselves once all have theirs (FUSED_FIXUP): a
 * launch costs as much as such a product. The code for it costs large products 2 % of their speed, by way of the
 * registers that the compiler chooses for the loop that multiplies.
 */

/* Registers that the producers do not need, for the consumers' sums: sm_90a. Elsewhere a tile of 8x8 fits as it is.
 * The block is launched with 168 registers for each of its twelve warps: what four give is all that eight can take. */
template <class T>
__device__ inline void reallocate_registers(bool gives) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int CONSUMER_REGISTERS = T::GROUP == 1 ? 216 : 208;
    if (gives) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"((12 * 168 - 8 * CONSUMER_REGISTERS) / 4));
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONSUMER_REGISTERS));
#endif
}

template <bool B>
struct Bool {
    static constexpr bool value = B;
};

constexpr int PRODUCERS = 128, CONSUMERS = 256, WARPS = CONSUMERS / 32;

/* Four sums of a row of C, those of them that exist. */
template <class T>
__device__ inline void store_row(const Gemm& p, typename T::Out* c, const typename T::Out* c0, i64 left,
                                 const typename T::Part* sum) {
    typedef typename T::Out Out;
    if (left >= 4 && p.c_vector) {
        Out x[4];
        if (c0) {
            struct alignas(4 * sizeof(Out)) Four {
                Out x[4];
            } old = *(const Four*)c0;
#pragma unroll
            for (int w = 0; w < 4; ++w) x[w] = T::out(T::scaled(p.alpha, sum[w], p.beta, old.x[w]));
        } else {
#pragma unroll
            for (int w = 0; w < 4; ++w) x[w] = T::out(T::scaled(p.alpha, sum[w]));
        }
        if constexpr (sizeof(Out) == 4) __stwb((uint4*)c, *(const uint4*)x);
        else __stwb((uint2*)c, *(const uint2*)x);
        return;
    }
#pragma unroll
    for (int w = 0; w < 4; ++w)
        if (w < left)
            c[w] = T::out(c0 ? T::scaled(p.alpha, sum[w], p.beta, c0[w * p.c0_cs]) : T::scaled(p.alpha, sum[w]));
}

/* Adds the parts of the tiles that were cut. Where there are more threads than pieces of 16 bytes, groups of lanes add
 * parts that follow each other in k, then each other's sums. */
template <class T, int BM, int BN, int LOADS>
__device__ __forceinline__ void fixup(const Gemm& p, const Schedule& s, int warp, int warps) {
    typedef typename T::Part Part;
    typedef typename T::Out Out;
    constexpr int PIECES = BM * BN / 4;
    int pieces = (int)s.cut * PIECES, groups = 1;
    while (groups < 16 && 2 * groups * pieces <= 32 * warps) groups *= 2;
    int lane = threadIdx.x % 32, width = 32 / groups;
    for (int x = warp * width; x < pieces; x += warps * width) {
        int tile = x / PIECES, e = (x % PIECES + lane % width) * 4, first, count;
        s.parts_of(tile, first, count);
        if (count == 1) continue; /* one block did it whole, and stored it */
        int each = (count + groups - 1) / groups, skip = lane / width * each, left = min(each, count - skip);
        const u32* from = s.work + s.part(first + skip, tile) * BM * BN + e;
        Part sum[4] = {};
#pragma unroll 1
        for (int done = 0; done < each; done += LOADS) {
            uint4 v[LOADS];
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                v[i] = done + i < left ? __ldcg((const uint4*)(from + (i64)(done + i) * BM * BN)) : uint4{};
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
#pragma unroll
                for (int w = 0; w < 4; ++w) sum[w] = T::add(sum[w], ((const Part*)&v[i])[w]);
        }
#pragma unroll
        for (int w = 0; w < 4; ++w)
            for (int far = width; far < 32; far *= 2) sum[w] = T::add(sum[w], __shfl_xor_sync(~0u, sum[w], far));
        Place t = place_of<BM, BN>(p, s, tile);
        i64 i = (i64)t.row * BM + e / BN, j = (i64)t.column * BN + e % BN;
        if (lane >= width || i >= p.m || j >= p.n) continue;
        Out* c = (Out*)p.c + t.product * p.c_batch + i * p.ldc + j;
        const Out* c0 = p.c0 ? (const Out*)p.c0 + t.product * p.c0_batch + i * p.c0_rs + j * p.c0_cs : nullptr;
        store_row<T>(p, c, c0, p.n - j, sum);
    }
}

/* In a launch of its own, of a thread for each piece. */
template <class T, int BM, int BN>
__device__ __forceinline__ void fixup(const Gemm& p, const Schedule& s) {
    fixup<T, BM, BN, 8>(p, s, blockIdx.x * WARPS + threadIdx.x / 32, gridDim.x * WARPS);
}

/* The multiplying threads of the block alone. */
__device__ inline void consumer_barrier() { asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory"); }

/* Where panels come from: memory that the producers read, or maps (tma.cu). */
struct Copied {
    static constexpr bool MAPPED = false;
};

template <class T, bool FUSED_FIXUP, Layout LA, Layout LB, int MR, int NR, int WM, int WN, int LM, int LN, int STAGES,
          class From = Copied>
__device__ __forceinline__ void products(const Gemm& p, const Schedule& s, const From& from = {}) {
    constexpr int BK = 8, BM = WM * LM * MR, BN = WN * LN * NR;
    static_assert(WM * WN == WARPS && LM * LN == 32, "");
    typedef typename T::Elem Elem;
    typedef typename T::Part Part;
    typedef Feed<T, LA, BM, BK, PRODUCERS> FeedA;
    typedef Feed<T, LB, BN, BK, PRODUCERS> FeedB;
    constexpr int STAGE = BK * (FeedA::PITCH + FeedB::PITCH);
    constexpr bool COPIES = FeedA::WAY <= COPY_R || FeedB::WAY <= COPY_R,
                   STORES = FeedA::WAY > COPY_R || FeedB::WAY > COPY_R;
    extern __shared__ __align__(128) u32 panels[];
    __shared__ u64 barriers[2 * STAGES];
    u32 first_panel = shared_address(panels), full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x < STAGES) {
        barrier_init(full + 8 * threadIdx.x, From::MAPPED ? 1 : PRODUCERS * (COPIES + STORES));
        barrier_init(empty + 8 * threadIdx.x, CONSUMERS);
    }
    __syncthreads();
    Share share(s);
    Span span;

    if (threadIdx.x >= CONSUMERS) {
        reallocate_registers<T>(true);
        u32 stage = 0, parity = 1;
        if constexpr (From::MAPPED) {
            if (threadIdx.x > CONSUMERS) return;
            while (share.next(s, span)) {
                Place t = place_of<BM, BN>(p, s, span.tile);
#pragma unroll 1
                for (int n = 0; n < span.count; ++n) {
                    barrier_wait(empty + 8 * stage, parity);
                    from.bring(p, t, (span.first + n) * BK, first_panel + stage * STAGE * 4, full + 8 * stage);
                    if (++stage == STAGES) stage = 0, parity ^= 1;
                }
            }
            barrier_wait(empty + 8 * stage, parity);
            barrier_arrive(full + 8 * stage); /* the panel more, see below */
            return;
        }
        while (share.next(s, span)) {
            Place t = place_of<BM, BN>(p, s, span.tile);
            i64 first_k = (i64)span.first * BK * T::GROUP;
            FeedA a((const Elem*)p.a + t.product * p.a_batch, p.lda, (i64)t.row * BM, p.m, first_k);
            FeedB b((const Elem*)p.b + t.product * p.b_batch, p.ldb, (i64)t.column * BN, p.n, first_k);
            int k_left = (int)(p.k - first_k), count = span.count;
            int whole = min(count, k_left / (BK * T::GROUP));
            auto panel = [&](auto tail) {
                constexpr bool TAIL = decltype(tail)::value;
                a.template load<TAIL>(k_left);
                b.template load<TAIL>(k_left);
                barrier_wait(empty + 8 * stage, parity);
                u32 panel = first_panel + stage * STAGE * 4;
                a.template fill<TAIL>(panel, k_left);
                b.template fill<TAIL>(panel + BK * FeedA::PITCH * 4, k_left);
                if constexpr (COPIES) barrier_arrive_after_copies(full + 8 * stage);
                if constexpr (STORES) barrier_arrive(full + 8 * stage);
                if (++stage == STAGES) stage = 0, parity ^= 1;
            };
#pragma unroll 1
            for (int n = whole; n > 0; --n) panel(Bool<false>());
            k_left -= whole * BK * T::GROUP;
            if (whole < count) panel(Bool<true>());
        }
        /* The consumers wait for one panel more than there are. */
        barrier_wait(empty + 8 * stage, parity);
        if constexpr (COPIES) barrier_arrive(full + 8 * stage);
        if constexpr (STORES) barrier_arrive(full + 8 * stage);
    } else {
        reallocate_registers<T>(false);
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        int row = warp / WN * LM * MR + lane / LN * 4, column = warp % WN * LN * NR + lane % LN * 4;
        u32 a_offset = row * 4, b_offset = (BK * FeedA::PITCH + column) * 4;
        u32 at_a = first_panel + a_offset, at_b = first_panel + b_offset, barrier = full, parity = 0;
        u32 a[2][MR], b[2][NR];
        barrier_wait(barrier, 0);
        fragment<MR, 4 * LM>(a[0], at_a);
        fragment<NR, 4 * LN>(b[0], at_b);
        while (share.next(s, span)) {
            typename T::Acc sum[MR][NR] = {};
#pragma unroll 1
            for (int n = span.count; n > 0; --n) {
                u32 done = barrier + 8 * STAGES;
                bool wraps = barrier == full + 8 * (STAGES - 1);
                barrier = wraps ? full : barrier + 8;
                parity ^= wraps;
                u32 next_a = wraps ? first_panel + a_offset : at_a + STAGE * 4;
                u32 next_b = wraps ? first_panel + b_offset : at_b + STAGE * 4;
                /* The compiler walks rank1's rows as it likes: of 1024 multiply-adds 68 read two registers through one
                 * port. Loads that may not be exchanged, those of B first, rows walked from the other end and the wait
                 * in another step leave 35 to 245; 170 such programs gave 52.6 to 54.7 TFLOP/s at 2048 x 2048 x 4096,
                 * this one 54.5, so that this is not what limits it. At 8192 the board takes 695 of its 700 W. */
                barrier_wait(barrier, parity);
#pragma unroll
                for (int k = 0; k < BK; ++k) {
                    fragment<MR, 4 * LM>(a[(k + 1) % 2], k + 1 < BK ? at_a + (k + 1) * FeedA::PITCH * 4 : next_a);
                    fragment<NR, 4 * LN>(b[(k + 1) % 2], k + 1 < BK ? at_b + (k + 1) * FeedB::PITCH * 4 : next_b);
                    rank1<T>(sum, a[k % 2], b[k % 2]);
                }
                at_a = next_a, at_b = next_b;
                barrier_arrive_together(done, lane);
            }
            if (span.count < (int)s.panels) {
                /* Times 1: a sum stored as it is would have to lie beside its neighbours all along, which takes the
                 * register port of the fragment of B. Where C is stored, alpha does this. */
                u32* part = s.work + s.part(blockIdx.x, span.tile) * BM * BN + row * BN + column;
                each<0, MR>([&](int i) {
                    each<0, NR / 4>([&](int q) {
                        Part x[4];
#pragma unroll
                        for (int w = 0; w < 4; ++w) x[w] = T::scaled(s.one, T::part(sum[i][4 * q + w]));
                        __stwb((uint4*)(part + (i / 4 * 4 * LM + i % 4) * BN + q * 4 * LN), *(const uint4*)x);
                    });
                });
            } else {
                typedef typename T::Out Out;
                Place t = place_of<BM, BN>(p, s, span.tile);
                i64 i0 = (i64)t.row * BM + row, j0 = (i64)t.column * BN + column;
                Out* c = (Out*)p.c + t.product * p.c_batch + i0 * p.ldc + j0;
                const Out* c0 = (const Out*)p.c0 + t.product * p.c0_batch + i0 * p.c0_rs + j0 * p.c0_cs;
                each<0, MR>([&](int i) {
                    int r = i / 4 * 4 * LM + i % 4;
                    each<0, NR / 4>([&](int q) {
                        Part x[4];
#pragma unroll
                        for (int w = 0; w < 4; ++w) x[w] = T::part(sum[i][4 * q + w]);
                        i64 left = i0 + r < p.m ? p.n - j0 - q * 4 * LN : 0;
                        store_row<T>(p, c + r * p.ldc + q * 4 * LN,
                                     p.c0 ? c0 + r * p.c0_rs + q * 4 * LN * p.c0_cs : nullptr, left, x);
                    });
                });
            }
        }
        if constexpr (FUSED_FIXUP) {
            consumer_barrier();
            if (threadIdx.x == 0) s.grid_barrier();
            consumer_barrier();
            fixup<T, BM, BN, 16>(p, s, blockIdx.x + threadIdx.x / 32 * gridDim.x, gridDim.x * WARPS);
        }
    }
}
