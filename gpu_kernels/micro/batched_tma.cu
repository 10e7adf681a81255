/* batched_tma: C[i] = A[i] B[i] for a batch of float32 products of 60 to 256 a side: a persistent block with warp
 * specialisation, whose consumer warpgroups compute tiles of their own.
 *
 * contract  m, n and k are multiples of 4 and k > 0; rows of C, and those of A and B that are adjacent along m or n,
 *           start at multiples of 16 bytes, and so do products. Operands adjacent along k have any alignment. Reads and
 *           writes nothing else.
 * tile      C in tiles of BM x BN, one of WARPS warps, TM x TN a thread; 4 / WARPS products of one position together
 * regs      setmaxnreg: 40 a producer and 232 a consumer (2 warpgroups), or 56 and 152 (3): TM*TN accumulators; no spills
 * per k     TM*TN FFMA, TM + TN elements from shared memory
 * ratio     TM*TN / (TM + TN)
 * rounding  one fma per term, k ascending from 0: bit-equal to batched.cu and f32_best
 * needs     sm_90a
 * idea      producer warps fill a ring of panels for each consumer warpgroup, across tiles. Warpgroups are at different
 *           steps: while one stores its tile, the others multiply. Panels are MN-major: TMA loads an operand that is so
 *           in memory, cp.async of 4 bytes transposes the other. Written here
 * lanes     32 * WARPS
 * launch    128 * (GROUPS + 1) threads a block; persistent grid, one block a multiprocessor
 * smem      GROUPS * STAGES panels of BK k, dynamic
 *
 * The compiler places the registers of most multiply-adds on different ports (tile_loop.cuh) if nothing in the kernel is
 * short of registers, the producers included: with 24 registers for these a producer spilled, and 24 to 60 % of the
 * multiply-adds read two registers of one port; now it is 7 to 15 %. With fragments from K-major panels of A it is 25
 * to 40 %.
 */
#include "../ladder/cp_async.cuh"
#include "../ladder/tma.cuh"
#include "../ladder/tile_loop.cuh"

/* Every field is 64 bits wide: on the host it is an array of int64. */
struct TmaBatch {
    const float *a, *b;
    float* c;
    i64 batch, m, n, k, lda, ldb, ldc;
    i64 a_batch, b_batch, c_batch; /* from product to product; 0 for an operand that all products share */
    i64 across, in_product, tiles; /* of C: in a row of tiles, of a product, and of the batch, PRODUCTS products together */
    float one, unused;             /* 1, opaque to the compiler (warp_specialized.cuh) */
};

/* TM x TN a thread, WARPS warps below each other, of 4 x 8 lanes; BK k and STAGES stages of a ring; GROUPS consumer
 * warpgroups. A and B may be K-major in memory: along k, not along m or n, elements are adjacent. */
template <int TM_, int TN_, int WARPS_, int STAGES_, int GROUPS_, bool A_K_MAJOR_, bool B_K_MAJOR_>
struct TmaTile {
    static constexpr int TM = TM_, TN = TN_, WARPS = WARPS_, BK = 8, STAGES = STAGES_, GROUPS = GROUPS_;
    static constexpr bool A_K_MAJOR = A_K_MAJOR_, B_K_MAJOR = B_K_MAJOR_;
    static constexpr int LANES_M = 4, LANES_N = 8, PRODUCTS = 4 / WARPS, THREADS = 128 * (GROUPS + 1);
    static constexpr int BM = WARPS * LANES_M * TM, BN = LANES_N * TN;
    /* Rows of a panel, in elements: copies of 4 bytes to 8 k of 4 rows are to 32 banks. */
    static constexpr int PITCH_A = BM + (A_K_MAJOR ? 4 : 0), PITCH_B = BN + (B_K_MAJOR ? 4 : 0);
    static constexpr int A_BYTES = PITCH_A * BK * 4, B_BYTES = PITCH_B * BK * 4;
    static constexpr int STAGE_BYTES = (A_BYTES + B_BYTES) * PRODUCTS, RING_BYTES = STAGES * STAGE_BYTES;
    static constexpr int TMA_BYTES = (A_K_MAJOR ? 0 : A_BYTES * PRODUCTS) + (B_K_MAJOR ? 0 : B_BYTES * PRODUCTS);
    static constexpr int VECTOR_M = TM % 4 == 0 ? 4 : TM % 2 == 0 ? 2 : 1, VECTOR_N = TN % 4 == 0 ? 4 : 2;
    static constexpr int PRODUCER_WARPS = 4 / GROUPS, COPIED_ROWS = PRODUCTS == 1 ? 4 * PRODUCER_WARPS : 4; /* of a ring */
    static constexpr int ARRIVALS = (TMA_BYTES ? 1 : 0) + (A_K_MAJOR || B_K_MAJOR ? 32 * PRODUCER_WARPS : 0);
};

struct TmaPosition {
    int product, row, column;
};

template <class T>
__device__ inline TmaPosition position_of(const TmaBatch& p, u32 tile) {
    u32 group = tile / (u32)p.in_product, rest = tile - group * (u32)p.in_product, down = rest / (u32)p.across;
    return {(int)group * T::PRODUCTS, (int)down * T::BM, (int)(rest - down * (u32)p.across) * T::BN};
}

template <class T, bool PRODUCER>
__device__ inline void reallocate_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int OF_PRODUCER = T::GROUPS == 2 ? 40 : 56, OF_CONSUMER = T::GROUPS == 2 ? 232 : 152;
    if constexpr (PRODUCER) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(OF_PRODUCER));
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(OF_CONSUMER));
#endif
}

/* A ring of panels, and its mbarriers: `full` of each stage, then `empty`. */
struct TmaRing {
    u32 panels, barriers;
};

/* Copies of a lane that transpose the panel of a K-major operand: 8 k of 4 rows a warp. `from` is the lane's first
 * element; of the panel `rows` and `k` are left from there on. What lies beyond becomes 0. */
template <class T, int R, int PITCH>
__device__ __forceinline__ void copy_transposed(u32 to, const float* from, i64 ld, int rows, int k) {
    constexpr int STEP = T::COPIED_ROWS;
    static_assert(R % STEP == 0, "");
    if (rows > R - STEP && k > 0) {
#pragma unroll 2
        for (int i = 0; i < R; i += STEP, from += STEP * ld) cp_async4(to + i * 4, from);
    } else {
#pragma unroll 1
        for (int i = 0; i < R; i += STEP) {
            bool exists = i < rows && k > 0;
            cp_async4(to + i * 4, exists ? from + i * ld : from, exists ? 4 : 0);
        }
    }
}

/* The panels of an operand that a warp transposes: of one product, or its part of the rows of all. `row` is the tile's
 * first one, of `rows` of the matrix. */
template <class T, int R, int PITCH>
__device__ __forceinline__ void copy_panels(u32 panel, const float* x, i64 ld, i64 step, i64 batch, int product, int row,
                                            int rows, int k, int k_end, int warp, int lane) {
    constexpr bool OWN = T::COPIED_ROWS == 4; /* a product of its own, if there are two */
    int own = lane / 8 + (OWN ? 0 : 4 * warp), own_k = lane % 8, left = rows - row - own, k_left = k_end - k - own_k;
    int q = OWN && T::PRODUCER_WARPS > 1 ? warp : 0;
    panel += (own_k * PITCH + own) * 4;
#pragma unroll 1
    for (; q < T::PRODUCTS; q += T::PRODUCER_WARPS)
        if (q == 0 || step) {
            const float* from = x + min((i64)product + q, batch - 1) * step;
            bool none = left <= 0 || k_left <= 0;
            copy_transposed<T, R, PITCH>(panel + q * PITCH * T::BK * 4, none ? from : from + (row + own) * ld + k + own_k,
                                         ld, left, k_left);
        }
}

/* The warps of a ring: one thread loads by TMA, all copy what has to be transposed. The consumers load the fragments of
 * one panel more than they multiply: its `full` completes without a copy. */
template <class T>
__device__ __forceinline__ void produce(const TmaBatch& p, const TensorMap& map_a, const TensorMap& map_b, TmaRing ring,
                                        u32 first, u32 stride, int warp, int lane) {
    u32 stage = 0, parity = 1;
    bool loads = T::TMA_BYTES && warp == 0 && lane == 0;
    if (!loads && !T::A_K_MAJOR && !T::B_K_MAJOR) return;
    for (u32 tile = first; tile < (u32)p.tiles; tile += stride) {
        TmaPosition at = position_of<T>(p, tile);
#pragma unroll 1
        for (int k = 0; k < (int)p.k; k += T::BK) {
            u32 full = ring.barriers + 8 * stage, a = ring.panels + stage * T::STAGE_BYTES;
            u32 b = a + T::A_BYTES * T::PRODUCTS;
            mbarrier_wait(full + 8 * T::STAGES, parity);
            if (loads) {
                mbarrier_arrive_expect_tx(full, T::TMA_BYTES);
                if constexpr (!T::A_K_MAJOR) tma_load(a, map_a, full, at.row, k, p.a_batch ? at.product : 0);
                if constexpr (!T::B_K_MAJOR) tma_load(b, map_b, full, at.column, k, p.b_batch ? at.product : 0);
            }
            if constexpr (T::A_K_MAJOR)
                copy_panels<T, T::BM, T::PITCH_A>(a, p.a, p.lda, p.a_batch, p.batch, at.product, at.row, (int)p.m, k,
                                                  (int)p.k, warp, lane);
            if constexpr (T::B_K_MAJOR)
                copy_panels<T, T::BN, T::PITCH_B>(b, p.b, p.ldb, p.b_batch, p.batch, at.product, at.column, (int)p.n, k,
                                                  (int)p.k, warp, lane);
            if constexpr (T::A_K_MAJOR || T::B_K_MAJOR) mbarrier_arrive_after_copies(full);
            if (++stage == T::STAGES) stage = 0, parity ^= 1;
        }
    }
    u32 full = ring.barriers + 8 * stage;
    mbarrier_wait(full + 8 * T::STAGES, parity);
    if (loads) mbarrier_arrive(full);
    if constexpr (T::A_K_MAJOR || T::B_K_MAJOR) mbarrier_arrive(full);
}

template <int N>
__device__ inline void shared_load(u32* x, u32 from) {
    if constexpr (N == 4) shared_load4(x, from);
    else if constexpr (N == 2) asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(from));
    else asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x[0]) : "r"(from));
}

/* N elements of a k in groups of VECTOR, of LANES lanes side by side. */
template <int N, int VECTOR, int LANES>
__device__ inline void load_vectors(u32 (&x)[N], u32 from) {
#pragma unroll
    for (int q = 0; q < N; q += VECTOR) shared_load<VECTOR>(x + q, from + q * LANES * 4);
}

/* The thread's accumulators to C, of which `rows` and `columns` are left from its first element on. */
template <class T>
__device__ __forceinline__ void store(const TmaBatch& p, float* c, int rows, int columns,
                                      const float (&acc)[T::TM][T::TN]) {
    constexpr int V = T::VECTOR_N, W = T::VECTOR_M;
    unrolled<0, T::TM>([&](int i) {
        int r = i / W * W * T::LANES_M + i % W;
        unrolled<0, T::TN / V>([&](int q) {
            float x[V];
#pragma unroll
            for (int w = 0; w < V; ++w) x[w] = multiply_add(p.one, acc[i][q * V + w], -0.0f);
            float* to = c + r * p.ldc + q * T::LANES_N * V;
            if (r < rows && q * T::LANES_N * V < columns) {
                if constexpr (V == 4) store4(to, x);
                else __stwb((uint2*)to, make_uint2(__float_as_uint(x[0]), __float_as_uint(x[1])));
            }
        });
    });
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
    u32 offset_a = (p.a_batch ? in_stage : 0) * T::A_BYTES + row * 4;
    u32 offset_b = T::A_BYTES * T::PRODUCTS + (p.b_batch ? in_stage : 0) * T::B_BYTES + column * 4;
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
        TmaPosition at = position_of<T>(p, tile);
        i64 product = at.product + in_stage, i0 = at.row + row, j0 = at.column + column;
        store<T>(p, p.c + product * p.c_batch + i0 * p.ldc + j0, product < p.batch ? (int)(p.m - i0) : 0, (int)(p.n - j0),
                 acc);
    }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    batched_tma(const __grid_constant__ TmaBatch p, const __grid_constant__ TensorMap map_a,
                const __grid_constant__ TensorMap map_b) {
    extern __shared__ __align__(128) u32 memory[];
    __shared__ u64 barriers[T::GROUPS * 2 * T::STAGES];
    if (threadIdx.x < T::GROUPS * 2 * T::STAGES) {
        mbarrier_init(shared_address(barriers) + 8 * threadIdx.x, threadIdx.x / T::STAGES % 2 ? 128 : T::ARRIVALS);
        fence_mbarrier_init();
    }
    __syncthreads();
    bool producer = threadIdx.x >= 128 * T::GROUPS;
    u32 warp = (threadIdx.x - 128 * T::GROUPS) / 32;
    u32 group = producer ? warp / T::PRODUCER_WARPS : threadIdx.x / 128;
    u32 first = blockIdx.x + group * gridDim.x, stride = gridDim.x * T::GROUPS;
    TmaRing ring = {shared_address(memory) + group * T::RING_BYTES, shared_address(barriers) + group * 16 * T::STAGES};
    if (producer) {
        reallocate_registers<T, true>();
        if (group < T::GROUPS && first < (u32)p.tiles)
            produce<T>(p, map_a, map_b, ring, first, stride, warp % T::PRODUCER_WARPS, threadIdx.x % 32);
    } else {
        reallocate_registers<T, false>();
        if (first < (u32)p.tiles) consume<T>(p, ring, first, stride);
    }
}
