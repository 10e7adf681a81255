/* batched_tma: C[i] = A[i] B[i] for a batch of float32 products of 60 to 224 a side: a persistent block with warp
 * specialisation, whose consumer warpgroups compute tiles of their own.
 *
 * contract  m, n and k are multiples of 4 and k > 0; rows of A, B and C are contiguous and start at multiples of 16
 *           bytes, and so do products. Reads and writes nothing else.
 * tile      C in tiles of BM x BN, one of WARPS warps, TM x TN a thread; 4 / WARPS products of one position together
 * regs      setmaxnreg: 24 a producer, 160 or 240 a consumer (3 or 2 warpgroups): TM*TN accumulators; no spills
 * per k     TM*TN FFMA, TM + TN elements from shared memory
 * ratio     TM*TN / (TM + TN)
 * rounding  one fma per term, k ascending from 0: bit-equal to batched.cu and f32_best
 * needs     sm_90a
 * idea      one thread for each consumer warpgroup loads panels by TMA into a ring of its own, across tiles. Warpgroups
 *           are at different steps: while one stores its tile, the others multiply. A panel of A stays along k, and a
 *           thread reads LOAD_K k of a row at a time. Written here
 * lanes     32 * WARPS
 * launch    128 * (GROUPS + 1) threads a block; persistent grid, one block a multiprocessor
 * smem      GROUPS * STAGES panels of BK k, dynamic
 *
 * Where to try again: 23 % (6 x 12) to 55 % (8 x 16) of the multiply-adds read two registers of one port, in f32_best
 * 11 % (tile_loop.cuh). With 40 and 232 registers instead of 24 and 240 an 8 x 16 has 32 % and a 12 x 12 33 % (56 %
 * before); neither was timed. (32 and 240 are more than there are: the kernel does not end.) batched_tma_mn.cu has 8 to
 * 17 %, but a row-major A must be transposed for it, which costs more: docs/cuda.md.
 */
#include "batched_tma.cuh"

/* TM x TN a thread, WARPS warps below each other, of 4 x 8 lanes; BK k and STAGES stages of a ring; GROUPS consumer
 * warpgroups; LOAD_K k in a load of A. */
template <int TM_, int TN_, int WARPS_, int BK_, int STAGES_, int LOAD_K_, int GROUPS_>
struct TmaTile {
    static constexpr int TM = TM_, TN = TN_, WARPS = WARPS_, BK = BK_, STAGES = STAGES_, LOAD_K = LOAD_K_,
                         GROUPS = GROUPS_;
    static constexpr int LANES_M = 4, LANES_N = 8, PRODUCTS = 4 / WARPS, THREADS = 128 * (GROUPS + 1);
    static constexpr int BM = WARPS * LANES_M * TM, BN = LANES_N * TN;
    static constexpr int A_BYTES = BM * BK * 4, B_BYTES = BN * BK * 4, STAGE_BYTES = (A_BYTES + B_BYTES) * PRODUCTS;
    static constexpr int VECTOR = TN % 4 == 0 ? 4 : 2, RING_BYTES = STAGES * STAGE_BYTES;
};

template <class T, bool PRODUCER>
__device__ inline void reallocate_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if constexpr (PRODUCER) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    else if constexpr (T::GROUPS == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
#endif
}

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

/* A fragment of A: LOAD_K k of row i of the thread. */
template <class T>
__device__ inline void load_a(u32 (&a)[T::LOAD_K], u32 from, int i) {
    shared_load<T::LOAD_K>(a, from + i * T::LANES_M * T::BK * 4);
}
template <class T>
__device__ inline void load_b(u32 (&b)[T::TN], u32 from) {
#pragma unroll
    for (int q = 0; q < T::TN; q += T::VECTOR) shared_load<T::VECTOR>(b + q, from + q * T::LANES_N * 4);
}

/* Four k. `a` and b[0] hold the first fragments, and those at next_a and next_b at the end. A row of `a` is loaded
 * again as soon as it has been multiplied. */
template <class T>
__device__ __forceinline__ void multiply4(float (&acc)[T::TM][T::TN], u32 (&a)[T::TM][T::LOAD_K], u32 (&b)[2][T::TN],
                                          u32 at_a, u32 at_b, u32 next_a, u32 next_b) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        load_b<T>(b[(k + 1) % 2], k < 3 ? at_b + (k + 1) * T::BN * 4 : next_b);
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int x = 0; x < T::TN; ++x) {
                int j = i % 2 ? T::TN - 1 - x : x;
                acc[i][j] = multiply_add(__uint_as_float(a[i][k % T::LOAD_K]), __uint_as_float(b[k % 2][j]), acc[i][j]);
            }
            if (k % T::LOAD_K == T::LOAD_K - 1) load_a<T>(a[i], k < 3 ? at_a + (k + 1) * 4 : next_a, i);
        }
    }
}

/* The thread's accumulators to C, of which `rows` and `columns` are left from its first element on. */
template <class T>
__device__ __forceinline__ void store(const TmaBatch& p, float* c, int rows, int columns,
                                      const float (&acc)[T::TM][T::TN]) {
    unrolled<0, T::TM>([&](int i) {
        unrolled<0, T::TN / T::VECTOR>([&](int q) {
            float x[T::VECTOR];
#pragma unroll
            for (int w = 0; w < T::VECTOR; ++w) x[w] = multiply_add(p.one, acc[i][q * T::VECTOR + w], -0.0f);
            float* to = c + i * T::LANES_M * p.ldc + q * T::LANES_N * T::VECTOR;
            if (i * T::LANES_M < rows && q * T::LANES_N * T::VECTOR < columns) {
                if constexpr (T::VECTOR == 4) store4(to, x);
                else __stwb((uint2*)to, make_uint2(__float_as_uint(x[0]), __float_as_uint(x[1])));
            }
        });
    });
}

/* A warpgroup multiplies the panels of its ring, and stores tiles. */
template <class T>
__device__ __forceinline__ void consume(const TmaBatch& p, TmaRing ring, u32 first, u32 stride) {
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, in_stage = warp / T::WARPS;
    int row = warp % T::WARPS * T::LANES_M * T::TM + lane / T::LANES_N, column = lane % T::LANES_N * T::VECTOR;
    u32 offset_a = in_stage * (u32)p.a_step * T::A_BYTES + row * T::BK * 4;
    u32 offset_b = T::A_BYTES * T::PRODUCTS + in_stage * (u32)p.b_step * T::B_BYTES + column * 4;
    u32 stage = 0, parity = 0, panel = ring.panels, at_a = panel + offset_a, at_b = panel + offset_b;
    u32 a[T::TM][T::LOAD_K], b[2][T::TN];
    mbarrier_wait(ring.barriers, 0);
#pragma unroll
    for (int i = 0; i < T::TM; ++i) load_a<T>(a[i], at_a, i);
    load_b<T>(b[0], at_b);
    for (u32 tile = first; tile < (u32)p.tiles; tile += stride) {
        float acc[T::TM][T::TN] = {};
#pragma unroll 1
        for (int left = (int)p.k; left > 0; left -= T::BK) {
#pragma unroll 1
            for (int k = min(left, T::BK); k > 4; k -= 4) {
                multiply4<T>(acc, a, b, at_a, at_b, at_a + 16, at_b + 16 * T::BN);
                at_a += 16, at_b += 16 * T::BN;
            }
            u32 done = ring.barriers + 8 * (T::STAGES + stage);
            panel += T::STAGE_BYTES;
            if (++stage == T::STAGES) stage = 0, parity ^= 1, panel = ring.panels;
            if (left > T::BK || tile + stride < (u32)p.tiles) mbarrier_wait(ring.barriers + 8 * stage, parity);
            multiply4<T>(acc, a, b, at_a, at_b, panel + offset_a, panel + offset_b);
            at_a = panel + offset_a, at_b = panel + offset_b;
            mbarrier_arrive_warp(done, lane);
        }
        TmaPosition at = position_of<T>(p, tile);
        i64 product = at.product + in_stage, i0 = at.row + row, j0 = at.column + column;
        store<T>(p, p.c + product * p.c_batch + i0 * p.ldc + j0, product < p.batch ? (int)(p.m - i0) : 0,
                 (int)(p.n - j0), acc);
    }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    batched_tma(const __grid_constant__ TmaBatch p, const __grid_constant__ TensorMap map_a,
                const __grid_constant__ TensorMap map_b) {
    extern __shared__ __align__(128) u32 memory[];
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
