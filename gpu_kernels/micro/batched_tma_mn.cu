/* batched_tma_mn: C[i] = A[i] B[i] as batched_tma, for A and B that are not both row-major: all fragments come from
 * MN-major panels.
 *
 * contract  m, n and k are multiples of 4 and k > 0; elements of A and B are adjacent along one axis, those of C along
 *           n; the next ones along the other axis start at multiples of 16 bytes, and so do products. Reads and
 *           writes nothing else.
 * tile      C in tiles of BM x BN, one of WARPS warps, TM x TN a thread; 4 / WARPS products of one position together
 * regs      setmaxnreg: a producer 40, 56 or 88 and a consumer 232, 224 or 208 (2 warpgroups), 56 and 152 (3): TM*TN
 *           accumulators; no spills
 * per k     TM*TN FFMA, TM + TN elements from shared memory
 * ratio     TM*TN / (TM + TN)
 * rounding  one fma per term, k ascending from 0: bit-equal to batched.cu and f32_best
 * needs     sm_90a
 * idea      TMA loads an MN-major operand as it is; a K-major one is transposed in its stage of the ring by the
 *           producer warps. Written here
 * lanes     32 * WARPS
 * launch    128 * (GROUPS + 1) threads a block; persistent grid, one block a multiprocessor
 * smem      GROUPS * STAGES panels of 8 k, dynamic
 *
 * 8 to 17 % of the multiply-adds read two registers of one port (tile_loop.cuh) if the producers have registers enough:
 * one that needs more than setmaxnreg leaves it takes local memory, and the compiler then gives 40 to 80 % of the
 * consumers' multiply-adds two registers of one port. Where to try again: a K-major operand costs a quarter of the
 * speed. As much is lost where cp.async of 4 bytes transposes it, so maybe it is the rows of 32 bytes that are loaded:
 * panels of 16 or 32 k were not tried here. A K-major A need not be transposed: by single loads of one k, as in
 * batched_tma.cu, it had 22 to 34 % in this file's loop, which has 8 k in one piece; in one of 4 k it was not tried.
 */
#include "batched_tma.cuh"

/* TM x TN a thread, WARPS warps below each other, of 4 x 8 lanes; BK k and STAGES stages of a ring; GROUPS consumer
 * warpgroups. A and B may be K-major in memory: along k, not along m or n, elements are adjacent. */
template <int TM_, int TN_, int WARPS_, int STAGES_, int GROUPS_, bool A_K_MAJOR_, bool B_K_MAJOR_>
struct MnTile {
    static constexpr int TM = TM_, TN = TN_, WARPS = WARPS_, BK = 8, STAGES = STAGES_, GROUPS = GROUPS_;
    static constexpr bool A_K_MAJOR = A_K_MAJOR_, B_K_MAJOR = B_K_MAJOR_;
    static constexpr int LANES_M = 4, LANES_N = 8, PRODUCTS = 4 / WARPS, THREADS = 128 * (GROUPS + 1);
    static constexpr int BM = WARPS * LANES_M * TM, BN = LANES_N * TN;
    /* Elements from k to k; where a panel was transposed, 16 bytes more. */
    static constexpr int PITCH_A = BM + (A_K_MAJOR ? 4 : 0), PITCH_B = BN + (B_K_MAJOR ? 4 : 0);
    static constexpr int A_BYTES = PITCH_A * BK * 4, B_BYTES = PITCH_B * BK * 4;
    static constexpr int STAGE_BYTES = (A_BYTES + B_BYTES) * PRODUCTS, RING_BYTES = STAGES * STAGE_BYTES;
    static constexpr int VECTOR_M = TM % 4 == 0 ? 4 : TM % 2 == 0 ? 2 : 1, VECTOR_N = TN % 4 == 0 ? 4 : 2;
    static constexpr bool TRANSPOSES = A_K_MAJOR || B_K_MAJOR;
    static constexpr int PRODUCER_WARPS = 4 / GROUPS, ARRIVALS = TRANSPOSES ? 32 * PRODUCER_WARPS : 1;
    static constexpr int PRODUCER_REGISTERS = GROUPS == 3 ? 56 : !TRANSPOSES ? 40 : TM * TN <= 100 ? 88 : 56;
    static constexpr int LOADED = TRANSPOSES ? 2 : 0, BARRIERS = (TRANSPOSES ? 3 : 2) * STAGES; /* of a ring */
};

/* Where a thread that loads stands: a tile, a panel of it, and a stage of the ring whose `empty` it waits for. */
template <class T>
struct TmaCursor {
    u32 tile, stage, parity;
    int k;

    __device__ __forceinline__ void advance(const TmaBatch& p, u32 stride) {
        if (++stage == T::STAGES) stage = 0, parity ^= 1;
        k += T::BK;
        if (k >= (int)p.k) k = 0, tile += stride;
    }
};

/* The panels of a K-major operand, a product each, as 4 x R / 4 rows (batched_tma.py): row 4 g + i as row i R / 4 + g.
 * A loop where there are two such operands, else not: so the producers need the fewest registers. */
template <class T>
__device__ __forceinline__ void load_k_major(u32 to, const TensorMap& map, u32 loaded, int k, int row, int product,
                                             int products) {
    if constexpr (T::A_K_MAJOR && T::B_K_MAJOR) {
#pragma unroll 1
        for (int q = 0; q < products; ++q) tma_load(to + q * T::A_BYTES, map, loaded, k, row / 4, 0, product + q);
    } else {
        constexpr int BYTES = T::A_K_MAJOR ? T::A_BYTES : T::B_BYTES;
        for (int q = 0; q < products; ++q) tma_load(to + q * BYTES, map, loaded, k, row / 4, 0, product + q);
    }
}

/* Loads the panels of A and B at a cursor. */
template <class T>
__device__ __forceinline__ void load(const TmaBatch& p, const TensorMap& map_a, const TensorMap& map_b, TmaRing ring,
                                     const TmaCursor<T>& x) {
    u32 loaded = ring.barriers + 8 * (T::LOADED * T::STAGES + x.stage), a = ring.panels + x.stage * T::STAGE_BYTES;
    u32 b = a + T::A_BYTES * T::PRODUCTS;
    TmaPosition at = position_of<T>(p, x.tile);
    int products_a = p.a_step ? T::PRODUCTS : 1, products_b = p.b_step ? T::PRODUCTS : 1;
    int product_a = p.a_step ? at.product : 0, product_b = p.b_step ? at.product : 0;
    mbarrier_arrive_expect_tx(loaded, (T::A_K_MAJOR ? products_a : T::PRODUCTS) * T::BM * T::BK * 4 +
                                          (T::B_K_MAJOR ? products_b : T::PRODUCTS) * T::BN * T::BK * 4);
    if constexpr (T::A_K_MAJOR) load_k_major<T>(a, map_a, loaded, x.k, at.row, product_a, products_a);
    else tma_load(a, map_a, loaded, at.row, x.k, product_a);
    if constexpr (T::B_K_MAJOR) load_k_major<T>(b, map_b, loaded, x.k, at.column, product_b, products_b);
    else tma_load(b, map_b, loaded, at.column, x.k, product_b);
}

/* The warps of a ring: all have read what they will write. */
template <class T>
__device__ inline void transpose_barrier(u32 group) {
    if constexpr (T::PRODUCER_WARPS == 1) __syncwarp();
    else asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(32 * T::PRODUCER_WARPS) : "memory");
}

/* The warps of a ring transpose a panel of 8 k where it lies, 4 x 4 elements a lane. */
template <class T>
__device__ __forceinline__ void transpose(u32 panel, u32 group, int warp, int lane) {
    constexpr int GROUPS_OF_4 = T::BM / 4;
    static_assert(T::BM == T::BN && GROUPS_OF_4 <= 16 * T::PRODUCER_WARPS, "");
    int g = lane / 2 + 16 * warp, first_k = lane % 2 * 4;
    u32 x[4][4];
    if (g < GROUPS_OF_4)
#pragma unroll
        for (int i = 0; i < 4; ++i) shared_load4(x[i], panel + ((i * GROUPS_OF_4 + g) * T::BK + first_k) * 4);
    transpose_barrier<T>(group);
    if (g < GROUPS_OF_4)
#pragma unroll
        for (int k = 0; k < 4; ++k)
            shared_store4(panel + ((first_k + k) * (T::BM + 4) + 4 * g) * 4, x[0][k], x[1][k], x[2][k], x[3][k]);
}

/* Whether a stage is empty; with `must` it waits until it is. */
template <class T>
__device__ inline bool may_load(u32 empty, u32 parity, bool must) {
    if (!must) return mbarrier_test_wait(empty, parity);
    mbarrier_wait(empty, parity);
    return true;
}

/* The warps of a ring where an operand is K-major: one thread loads panels as soon as stages are empty, all transpose
 * those that have come. The consumers load the fragments of one panel more than they multiply: its `full` completes
 * without a copy. */
template <class T>
__device__ __forceinline__ void load_and_transpose(const TmaBatch& p, const TensorMap& map_a, const TensorMap& map_b,
                                                   TmaRing ring, u32 first, u32 stride, u32 group, int warp, int lane) {
    constexpr u32 EMPTY = 8 * T::STAGES, LOADED = 8 * T::LOADED * T::STAGES;
    TmaCursor<T> next = {first, 0, 1, 0};
    u32 stage = 0, parity = 0, ahead = 0;
    u32 tiles = ((u32)p.tiles - first + stride - 1) / stride, panels = ((u32)p.k + T::BK - 1) / T::BK;
#pragma unroll 1
    for (u32 left = tiles * panels; left > 0; --left) {
        if (warp == 0 && lane == 0) {
            while (ahead < left && may_load<T>(ring.barriers + EMPTY + 8 * next.stage, next.parity, ahead == 0))
                load<T>(p, map_a, map_b, ring, next), next.advance(p, stride), ++ahead;
            --ahead;
        }
        __syncwarp();
        mbarrier_wait(ring.barriers + LOADED + 8 * stage, parity);
        u32 panel = ring.panels + stage * T::STAGE_BYTES + (T::A_K_MAJOR ? 0 : T::A_BYTES * T::PRODUCTS);
#pragma unroll 1
        for (int q = 0; q < (T::A_K_MAJOR + T::B_K_MAJOR) * T::PRODUCTS; ++q)
            transpose<T>(panel + q * (T::BM + 4) * T::BK * 4, group, warp, lane);
        fence_proxy_async();
        mbarrier_arrive(ring.barriers + 8 * stage);
        if (++stage == T::STAGES) stage = 0, parity ^= 1;
    }
    mbarrier_wait(ring.barriers + EMPTY + 8 * stage, parity ^ 1);
    mbarrier_arrive(ring.barriers + 8 * stage);
}

/* One thread of a ring, where both operands are MN-major. */
template <class T>
__device__ __forceinline__ void produce(const TmaBatch& p, const TensorMap& map_a, const TensorMap& map_b, TmaRing ring,
                                        u32 first, u32 stride) {
    TmaCursor<T> next = {first, 0, 1, 0};
    while (next.tile < (u32)p.tiles) {
        mbarrier_wait(ring.barriers + 8 * (T::STAGES + next.stage), next.parity);
        load<T>(p, map_a, map_b, ring, next);
        next.advance(p, stride);
    }
    mbarrier_wait(ring.barriers + 8 * (T::STAGES + next.stage), next.parity);
    mbarrier_arrive(ring.barriers + 8 * next.stage);
}

/* f32 in serpentine order. */
template <int MR, int NR>
__device__ __forceinline__ void multiply_fragments(float (&acc)[MR][NR], const u32 (&a)[MR], const u32 (&b)[NR]) {
#pragma unroll
    for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int x = 0; x < NR; ++x) {
            int j = i % 2 ? NR - 1 - x : x;
            acc[i][j] = multiply_add(__uint_as_float(a[i]), __uint_as_float(b[j]), acc[i][j]);
        }
}

/* A warpgroup multiplies the panels of its ring, and stores tiles. The fragments of the next k, after the last those of
 * the next panel, are loaded before those of this k are multiplied. */
template <class T>
__device__ __forceinline__ void consume(const TmaBatch& p, TmaRing ring, u32 first, u32 stride) {
    constexpr int BK = T::BK;
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, in_stage = warp / T::WARPS;
    int row = warp % T::WARPS * T::LANES_M * T::TM + lane / T::LANES_N * T::VECTOR_M;
    int column = lane % T::LANES_N * T::VECTOR_N;
    u32 offset_a = (p.a_step ? in_stage : 0) * T::A_BYTES + row * 4;
    u32 offset_b = T::A_BYTES * T::PRODUCTS + (p.b_step ? in_stage : 0) * T::B_BYTES + column * 4;
    u32 at_a = ring.panels + offset_a, at_b = ring.panels + offset_b, barrier = ring.barriers, parity = 0;
    u32 a[2][T::TM], b[2][T::TN];
    mbarrier_wait(barrier, 0);
    load_vectors<T::TM, T::VECTOR_M, T::LANES_M>(a[0], at_a);
    load_vectors<T::TN, T::VECTOR_N, T::LANES_N>(b[0], at_b);
    for (u32 tile = first; tile < (u32)p.tiles; tile += stride) {
        float acc[T::TM][T::TN] = {};
#pragma unroll 1
        for (int n = ((int)p.k + BK - 1) / BK; n > 0; --n) {
            u32 done = barrier + 8 * T::STAGES;
            bool wraps = barrier == ring.barriers + 8 * (T::STAGES - 1);
            barrier = wraps ? ring.barriers : barrier + 8;
            parity ^= wraps;
            u32 next_a = wraps ? ring.panels + offset_a : at_a + T::STAGE_BYTES;
            u32 next_b = wraps ? ring.panels + offset_b : at_b + T::STAGE_BYTES;
            mbarrier_wait(barrier, parity);
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                load_vectors<T::TM, T::VECTOR_M, T::LANES_M>(a[(k + 1) % 2],
                                                             k + 1 < BK ? at_a + (k + 1) * T::PITCH_A * 4 : next_a);
                load_vectors<T::TN, T::VECTOR_N, T::LANES_N>(b[(k + 1) % 2],
                                                             k + 1 < BK ? at_b + (k + 1) * T::PITCH_B * 4 : next_b);
                multiply_fragments(acc, a[k % 2], b[k % 2]);
            }
            at_a = next_a, at_b = next_b;
            mbarrier_arrive_warp(done, lane);
        }
        store_tile<T>(p, tile, in_stage, row, column, acc);
    }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    batched_tma_mn(const __grid_constant__ TmaBatch p, const __grid_constant__ TensorMap map_a,
                const __grid_constant__ TensorMap map_b) {
    extern __shared__ __align__(128) u32 memory[];
    __shared__ u64 barriers[T::GROUPS * T::BARRIERS];
    if (threadIdx.x < T::GROUPS * T::BARRIERS) {
        int which = threadIdx.x % T::BARRIERS / T::STAGES;
        mbarrier_init(shared_address(barriers) + 8 * threadIdx.x, which == 0 ? T::ARRIVALS : which == 1 ? 128 : 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    bool producer = threadIdx.x >= 128 * T::GROUPS;
    u32 warp = (threadIdx.x - 128 * T::GROUPS) / 32, lane = threadIdx.x % 32;
    u32 group = producer ? warp / T::PRODUCER_WARPS : threadIdx.x / 128;
    u32 first = blockIdx.x + group * gridDim.x, stride = gridDim.x * T::GROUPS;
    TmaRing ring = {shared_address(memory) + group * T::RING_BYTES, shared_address(barriers) + group * 8 * T::BARRIERS};
    if (producer) {
        reallocate_registers<T, true>();
        if (group >= T::GROUPS || first >= (u32)p.tiles) return;
        warp %= T::PRODUCER_WARPS;
        if constexpr (T::TRANSPOSES) load_and_transpose<T>(p, map_a, map_b, ring, first, stride, group, warp, lane);
        else if (warp == 0 && lane == 0) produce<T>(p, map_a, map_b, ring, first, stride);
    } else {
        reallocate_registers<T, false>();
        if (first < (u32)p.tiles) consume<T>(p, ring, first, stride);
    }
}
