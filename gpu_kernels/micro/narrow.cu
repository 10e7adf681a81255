/* narrow: C = alpha A B + beta C0 with few rows or few columns: nearly all bytes are those of the long operand
 * (narrow.cuh), and each is read once, from global memory to registers.
 *
 * contract  ladder/gemm.cuh with one product: any m and n of which one is at most N, any k below 2^30, operands in
 *           either layout, rows at any multiple of an element
 * tile      32 (f32), 64 (16 bits) or 128 (int8) of the long side, ACROSS times, by N
 * regs      at most 128 a thread where two blocks are to be resident, else 255; local memory 0
 * per k     N fma a row, or N / 8 mma.sync for 16 rows
 * ratio     N / 1: the short operand is read again from L2 for each tile
 * rounding  f32: one fma per term, k in steps of 16; the sums of lanes, warps and blocks are added in a fixed order; 16
 *           bits: by the tensor cores; int8 is exact. The same bits for all layouts and alignments
 * needs     sm_90a
 * idea      fragments of mma.sync come from global memory as they are: the k of a fragment may be permuted. Written
 *           here
 * lanes     32
 * launch    256 threads a block; 1, 2, 4 or 8 blocks of a cluster split a tile along k
 * smem      two panels of the short operand, or the tiles of the warps, dynamic
 *
 * Where to try again: a panel takes the latency of memory, because the next one is not loaded before it has been
 * multiplied; unaligned operands of 16 bits have one block a multiprocessor, as two vectors are held for each one.
 * (Shuffles between lanes would need five for four.) With 9 rows and more of f32 the multiply-adds bound it.
 */
#include "narrow.cuh"

/* The operands as this kernel sees them. */
struct Narrow {
    i64 swapped;      /* B is the long operand */
    i64 short_k_major; /* layout of the short operand */
    i64 short_vector; /* that is K-major, and read 16 bytes at a time */
    i64 split;        /* blocks of a cluster, which split a tile along k: 1, 2, 4 or 8 */
};

/* The panel of the short operand from element `first` on: N rows of LENGTH bytes along k, zeros beyond `count` rows and
 * beyond k. */
template <int BYTES, int N, int LENGTH, int PITCH>
__device__ __forceinline__ void load_short(char* to, const void* from, i64 ld, int count, int k, int first,
                                           const Narrow& s) {
    typedef typename Element<BYTES>::Type Elem;
    constexpr int ELEMENTS = LENGTH / BYTES, CHUNKS = LENGTH / 16;
    if (s.short_vector) {
#pragma unroll
        for (int e = threadIdx.x; e < N * CHUNKS; e += NARROW_THREADS) {
            int j = e / CHUNKS, c = e % CHUNKS, q = first + c * (16 / BYTES);
            uint4 x = make_uint4(0, 0, 0, 0);
            if (j < count && q < k) x = __ldg((const uint4*)((const Elem*)from + j * ld + q));
            *(uint4*)(to + j * PITCH + c * 16) = x;
        }
    } else {
        constexpr int EACH = N * ELEMENTS / NARROW_THREADS;
        i64 j_step = s.short_k_major ? ld : 1, q_step = s.short_k_major ? 1 : ld;
        Elem x[EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            int e = threadIdx.x + i * NARROW_THREADS, j = e / ELEMENTS, q = first + e % ELEMENTS;
            x[i] = j < count && q < k ? __ldg((const Elem*)from + (j * j_step + q * q_step)) : (Elem)0;
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            int e = threadIdx.x + i * NARROW_THREADS;
            *(Elem*)(to + e / ELEMENTS * PITCH + e % ELEMENTS * BYTES) = x[i];
        }
    }
}

/* A word at the address `at` of this block, in block `rank` of the cluster. */
template <class Partial>
__device__ inline Partial cluster_load(const Partial* at, u32 rank) {
    Partial x;
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %1, %2; ld.shared::cluster.b32 %0, [there]; }"
                 : "=r"(*(u32*)&x)
                 : "r"(shared_address(at)), "r"(rank)
                 : "memory");
    return x;
}

__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

template <class T>
__device__ __forceinline__ void store_element(const Gemm& p, i64 i, i64 j, typename T::Partial sum) {
    typedef typename T::Out Out;
    const Out* c0 = (const Out*)p.c0 + i * p.c0_rs + j * p.c0_cs;
    ((Out*)p.c)[i * p.ldc + j] = T::out(p.c0 ? T::scaled(p.alpha, sum, p.beta, *c0) : T::scaled(p.alpha, sum));
}

/* Steps of a warp in a panel, which are loaded together, and blocks of a multiprocessor: as registers allow. A short
 * long side (ACROSS is less than 4) has few blocks, and its time is that of its panels one after the other. */
template <int BYTES, Layout L, bool ALIGNED, int N, int ACROSS>
struct Occupancy {
    static constexpr bool FEW = ACROSS < 4;
    static constexpr int STEPS = BYTES == 4 ? (FEW || N == 16 ? 4 : 2) : BYTES == 2 && FEW && N < 32 ? 2 : 1;
    static constexpr bool ONE = FEW || BYTES == 1 || N == 32 || (BYTES == 4 && N == 16);
    static constexpr bool ONE_UNALIGNED = !ALIGNED && (BYTES == 2 || (N == 8 && k_major(L)));
    static constexpr int RESIDENT = ONE || ONE_UNALIGNED ? 1 : 2;
};

/* ACROSS of the warps are side by side along the long side, the others split the steps of a panel. */
template <class E, Layout L, bool ALIGNED, int N, int ACROSS, class T>
__global__ void __launch_bounds__(NARROW_THREADS, Occupancy<E::BYTES, L, ALIGNED, N, ACROSS>::RESIDENT)
    narrow(const __grid_constant__ Gemm p, const __grid_constant__ Narrow s) {
    typedef typename T::Partial Partial;
    typedef LongOperand<E::BYTES, L, ALIGNED> Long;
    constexpr int STEPS = Occupancy<E::BYTES, L, ALIGNED, N, ACROSS>::STEPS, ALONG = NARROW_WARPS / ACROSS;
    constexpr int LENGTH = ALONG * STEPS * STEP_BYTES, PITCH = LENGTH + 64, PANEL = LENGTH / E::BYTES;
    constexpr int ROWS = Long::ROWS * ACROSS, P = ROWS + 4, TILE = N * P;
    extern __shared__ __align__(16) char memory[];
    grid_dependency_wait();
    int split = (int)s.split, rank = blockIdx.x % split, warp = threadIdx.x / 32, along = warp / ACROSS;
    i64 first_row = (i64)(blockIdx.x / split) * ROWS, rows = s.swapped ? p.n : p.m;
    Long operand(s.swapped ? p.b : p.a, s.swapped ? p.ldb : p.lda, rows, p.k,
                 first_row + warp % ACROSS * Long::ROWS);
    const void* across = s.swapped ? p.a : p.b;
    i64 ld = s.swapped ? p.lda : p.ldb;
    int count = (int)(s.swapped ? p.m : p.n), k = (int)p.k;
    i64 panels = (p.k + PANEL - 1) / PANEL;
    int first = (int)(panels * rank / split), end = (int)(panels * (rank + 1) / split);
    typename AccumulatorsOf<E, Partial, N>::Type acc;
#pragma unroll 1
    for (int n = first; n < end; ++n) {
        u32 x[STEPS][Long::V][4];
        int at = n * PANEL;
        char* panel = memory + (n - first) % 2 * (N * PITCH);
        u32 from = shared_address(panel) + along * STEPS * STEP_BYTES + threadIdx.x % 4 * 16;
#pragma unroll
        for (int u = 0; u < STEPS; ++u) operand.load(x[u], at + (along * STEPS + u) * Long::STEP);
        load_short<E::BYTES, N, LENGTH, PITCH>(panel, across, ld, count, k, at, s);
        __syncthreads(); /* and so nobody reads the other panel any more */
#pragma unroll
        for (int u = 0; u < STEPS; ++u) {
            if constexpr (k_major(L)) {
                acc.template multiply<PITCH>(x[u], from + u * STEP_BYTES);
            } else {
                u32 y[Long::V][4];
                transpose_words<E::BYTES>(y, x[u]);
                acc.template multiply<PITCH>(y, from + u * STEP_BYTES);
            }
        }
    }
    launch_dependents();
    __syncthreads();
    Partial* tiles = (Partial*)memory;
    acc.template write<Long, T, P>(tiles + along * TILE + warp % ACROSS * Long::ROWS);
    __syncthreads();
    Partial* block_tile = tiles + ALONG * TILE; /* the sum of those of the warps */
#pragma unroll
    for (int e = threadIdx.x; e < N * ROWS; e += NARROW_THREADS) {
        int j = s.swapped ? e / ROWS : e % N, r = s.swapped ? e % ROWS : e / N;
        Partial sum = tiles[j * P + r];
#pragma unroll
        for (int w = 1; w < ALONG; ++w) sum = T::add(sum, tiles[w * TILE + j * P + r]);
        i64 i = first_row + r;
        if (split > 1) block_tile[e] = sum;
        else if (j < count && i < rows) store_element<T>(p, s.swapped ? j : i, s.swapped ? i : j, sum);
    }
    if (split > 1) {
        int slice = N * ROWS / split;
        cluster_sync();
#pragma unroll 1
        for (int e = rank * slice + threadIdx.x; e < (rank + 1) * slice; e += NARROW_THREADS) {
            Partial sum = cluster_load(block_tile + e, 0);
#pragma unroll 4
            for (int other = 1; other < split; ++other) sum = T::add(sum, cluster_load(block_tile + e, other));
            int j = s.swapped ? e / ROWS : e % N;
            i64 i = first_row + (s.swapped ? e % ROWS : e / N);
            if (j < count && i < rows) store_element<T>(p, s.swapped ? j : i, s.swapped ? i : j, sum);
        }
        cluster_sync(); /* no block exits while others read its tile */
    }
}
