/* batched_tma: C[i] = A[i] B[i] for a batch of float32 products of 60 to 256 a side: a persistent block with warp
 * specialisation, whose consumer warpgroups compute tiles of their own.
 *
 * contract  m, n and k are multiples of 4 and k > 0; rows of A, B and C are contiguous and start at multiples of 16
 *           bytes, and so do products. Reads and writes nothing else.
 * tile      C in tiles of BM x BN, one of WARPS warps, TM x TN a thread; 4 / WARPS products of one position together
 * regs      setmaxnreg: a producer 24, 40 or 56 and a consumer 240, 232 or 224 (2 warpgroups), 24 and 160 (3): TM*TN
 *           accumulators; no spills
 * per k     TM*TN FFMA, TM + TN elements from shared memory
 * ratio     TM*TN / (TM + TN)
 * rounding  one fma per term, k ascending from 0: bit-equal to batched.cu and f32_best
 * needs     sm_90a
 * idea      one thread for each consumer warpgroup loads panels by TMA into a ring of its own, across tiles. Warpgroups
 *           are at different steps: while one stores its tile, the others multiply. A panel of A stays along k; its
 *           rows are 128 bytes, swizzled, so that the four that a warp reads together are on different banks. Written
 *           here
 * lanes     32 * WARPS
 * launch    128 * (GROUPS + 1) threads a block; persistent grid, one block a multiprocessor
 * smem      GROUPS * STAGES panels of 32 k, dynamic
 *
 * A multiply-add that reads two registers of one port takes two cycles (tile_loop.cuh). How many do is up to the
 * compiler: of some 800 variants, these have the fewest, 10 % (12 x 12) to 20 % (10 x 10) with NVRTC 13.0 and 13.5.
 * What counts is LOAD_K: one k of a row in a load leaves the compiler every register for it, two or four in a vector do
 * not, so that 27 to 55 % of the large tiles' do; but the loads are instructions, too, and the small tiles have
 * LOAD_K 4. Random orders of the columns, and code that has a panel of 8 k in one piece, have more conflicts.
 */
#include "batched_tma.cuh"

/* Order of the columns in the rows of a thread's tile: ascending and descending rows in turn; the same, beginning with
 * the other in every second k; rows that start and end at even columns, in every second k at odd ones. */
enum ColumnOrder { SERPENTINE, ALTERNATING, BY_PARITY };

/* TM x TN a thread, WARPS warps below each other, of 4 x 8 lanes; STAGES stages of a ring; GROUPS consumer warpgroups;
 * LOAD_K k in a load of A. Of its A_BUFFERS fragments of A, one is loaded again row by row as its rows have been
 * multiplied, two in turn as a whole. */
template <int TM_, int TN_, int WARPS_, int STAGES_, int LOAD_K_, int GROUPS_, int PRODUCER_REGISTERS_,
          ColumnOrder ORDER_, int A_BUFFERS_>
struct TmaTile {
    static constexpr int TM = TM_, TN = TN_, WARPS = WARPS_, BK = 32, STAGES = STAGES_, LOAD_K = LOAD_K_,
                         GROUPS = GROUPS_, PRODUCER_REGISTERS = PRODUCER_REGISTERS_, A_BUFFERS = A_BUFFERS_;
    static constexpr ColumnOrder ORDER = ORDER_;
    static constexpr int LANES_M = 4, LANES_N = 8, PRODUCTS = 4 / WARPS, THREADS = 128 * (GROUPS + 1);
    static constexpr int BM = WARPS * LANES_M * TM, BN = LANES_N * TN;
    static constexpr int A_BYTES = BM * BK * 4, B_BYTES = BN * BK * 4, STAGE_BYTES = (A_BYTES + B_BYTES) * PRODUCTS;
    static constexpr int VECTOR_M = 1, VECTOR_N = TN % 4 == 0 ? 4 : 2, RING_BYTES = STAGES * STAGE_BYTES;
    static_assert(A_BUFFERS == 1 || LOAD_K < 4, "four k end with the first buffer");
    static_assert(A_BYTES % 1024 == 0 && B_BYTES % 1024 == 0, "the pattern of the swizzle");
};

/* One thread loads the panels of a consumer warpgroup. */
template <class T>
__device__ __forceinline__ void produce(const TmaBatch& p, const TensorMap& map_a, const TensorMap& map_b, TmaRing ring,
                                        u32 first, u32 stride) {
    u32 stage = 0, parity = 1;
    for (u32 tile = first; tile < (u32)p.tiles; tile += stride) {
        TmaPosition at = position_of<T>(p, tile);
        for (int k = 0; k < (int)p.k; k += T::BK) {
            u32 full = ring.barriers + 8 * stage, panel = ring.panels + stage * T::STAGE_BYTES;
            mbarrier_wait(full + 8 * T::STAGES, parity);
            mbarrier_arrive_expect_tx(full, T::STAGE_BYTES);
            tma_load(panel, map_a, full, k, at.row, at.product * (int)p.a_step);
            tma_load(panel + T::A_BYTES * T::PRODUCTS, map_b, full, at.column, k, at.product * (int)p.b_step);
            if (++stage == T::STAGES) stage = 0, parity ^= 1;
        }
    }
}

/* LOAD_K k of row i of the thread. Its rows are 4 apart, so chunks of 16 bytes that lie at c in row 0 lie at c ^ 4 in
 * every second row. */
template <class T>
__device__ inline void load_a(u32 (&a)[T::LOAD_K], u32 from, int i) {
    shared_load<T::LOAD_K>(a, (from ^ i % 2 * 64) + i * T::LANES_M * T::BK * 4);
}
template <class T>
__device__ inline void load_b(u32 (&b)[T::TN], u32 from) {
    load_vectors<T::TN, T::VECTOR_N, T::LANES_N>(b, from);
}

/* The x-th column of row i in step k. */
template <class T>
__device__ constexpr int column_of(int i, int k, int x) {
    int y = (T::ORDER == ALTERNATING ? i + k : i) % 2 ? T::TN - 1 - x : x;
    if (T::ORDER != BY_PARITY) return y;
    int first = k % 2, last = first + 2;
    if (y == 0 || y == T::TN - 1) return y == 0 ? first : last;
    int others = y - 1 + (y - 1 >= first);
    return others + (others >= last);
}

/* Four k. a[0] and b[0] hold the first fragments, and those at next_a and next_b at the end. */
template <class T>
__device__ __forceinline__ void multiply4(float (&acc)[T::TM][T::TN], u32 (&a)[T::A_BUFFERS][T::TM][T::LOAD_K],
                                          u32 (&b)[2][T::TN], u32 at_a, u32 at_b, u32 next_a, u32 next_b) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (T::A_BUFFERS == 2 && k % T::LOAD_K == T::LOAD_K - 1) {
#pragma unroll
            for (int i = 0; i < T::TM; ++i)
                load_a<T>(a[(k / T::LOAD_K + 1) % T::A_BUFFERS][i], k < 3 ? at_a + (k + 1) * 4 : next_a, i);
        }
        load_b<T>(b[(k + 1) % 2], k < 3 ? at_b + (k + 1) * T::BN * 4 : next_b);
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int x = 0; x < T::TN; ++x) {
                int j = column_of<T>(i, k, x);
                acc[i][j] = multiply_add(__uint_as_float(a[k / T::LOAD_K % T::A_BUFFERS][i][k % T::LOAD_K]),
                                         __uint_as_float(b[k % 2][j]), acc[i][j]);
            }
            if (T::A_BUFFERS == 1 && k % T::LOAD_K == T::LOAD_K - 1)
                load_a<T>(a[0][i], k < 3 ? at_a + (k + 1) * 4 : next_a, i);
        }
    }
}

/* A warpgroup multiplies the panels of its ring, and stores tiles. */
template <class T>
__device__ __forceinline__ void consume(const TmaBatch& p, TmaRing ring, u32 first, u32 stride) {
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, in_stage = warp / T::WARPS;
    int row = warp % T::WARPS * T::LANES_M * T::TM + lane / T::LANES_N, column = lane % T::LANES_N * T::VECTOR_N;
    /* The swizzle puts chunk c of row r of a panel at c ^ r % 8. */
    u32 offset_a = in_stage * (u32)p.a_step * T::A_BYTES + row * T::BK * 4 + row % 8 * 16;
    u32 offset_b = T::A_BYTES * T::PRODUCTS + in_stage * (u32)p.b_step * T::B_BYTES + column * 4;
    u32 stage = 0, parity = 0, panel = ring.panels, at_a = panel + offset_a, at_b = panel + offset_b;
    u32 a[T::A_BUFFERS][T::TM][T::LOAD_K], b[2][T::TN];
    mbarrier_wait(ring.barriers, 0);
#pragma unroll
    for (int i = 0; i < T::TM; ++i) load_a<T>(a[0][i], at_a, i);
    load_b<T>(b[0], at_b);
    for (u32 tile = first; tile < (u32)p.tiles; tile += stride) {
        float acc[T::TM][T::TN] = {};
#pragma unroll 1
        for (int left = (int)p.k; left > 0; left -= T::BK) {
#pragma unroll 1
            for (int k = 4; k < min(left, T::BK); k += 4) {
                u32 next_a = (panel + offset_a) ^ k * 4; /* the next chunk, where the swizzle has put it */
                multiply4<T>(acc, a, b, at_a, at_b, next_a, at_b + 16 * T::BN);
                at_a = next_a, at_b += 16 * T::BN;
            }
            u32 done = ring.barriers + 8 * (T::STAGES + stage);
            panel += T::STAGE_BYTES;
            if (++stage == T::STAGES) stage = 0, parity ^= 1, panel = ring.panels;
            if (left > T::BK || tile + stride < (u32)p.tiles) mbarrier_wait(ring.barriers + 8 * stage, parity);
            multiply4<T>(acc, a, b, at_a, at_b, panel + offset_a, panel + offset_b);
            at_a = panel + offset_a, at_b = panel + offset_b;
            mbarrier_arrive_warp(done, lane);
        }
        store_tile<T>(p, tile, in_stage, row, column, acc);
    }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    batched_tma(const __grid_constant__ TmaBatch p, const __grid_constant__ TensorMap map_a,
                const __grid_constant__ TensorMap map_b) {
    extern __shared__ __align__(1024) u32 memory[];
    __shared__ u64 barriers[T::GROUPS * 2 * T::STAGES];
    if (threadIdx.x < T::GROUPS * 2 * T::STAGES) {
        mbarrier_init(shared_address(barriers) + 8 * threadIdx.x, threadIdx.x / T::STAGES % 2 ? 128 : 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    bool producer = threadIdx.x >= 128 * T::GROUPS;
    u32 group = producer ? threadIdx.x / 32 - 4 * T::GROUPS : threadIdx.x / 128;
    u32 first = blockIdx.x + group * gridDim.x, stride = gridDim.x * T::GROUPS;
    TmaRing ring = {shared_address(memory) + group * T::RING_BYTES, shared_address(barriers) + group * 16 * T::STAGES};
    if (producer) {
        reallocate_registers<T, true>();
        if (group < T::GROUPS && threadIdx.x % 32 == 0) produce<T>(p, map_a, map_b, ring, first, stride);
    } else {
        reallocate_registers<T, false>();
        if (first < (u32)p.tiles) consume<T>(p, ring, first, stride);
    }
}
