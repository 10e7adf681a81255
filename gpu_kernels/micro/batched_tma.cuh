/* batched_tma.cuh: what the kernels for batches of float32 products by TMA share. */
#include "../ladder/tma.cuh"
#include "../ladder/tile_loop.cuh"

/* Every field is 64 bits wide: on the host it is an array of int64. */
struct TmaBatch {
    float* c;
    i64 batch, m, n, k, ldc, c_batch;
    i64 across, in_product, tiles; /* of C: in a row of tiles, of a product, of the batch, PRODUCTS products together */
    i64 a_step, b_step;            /* 0 for an operand that all products share, else 1 */
    float one, unused;             /* 1, opaque to the compiler (warp_specialized.cuh) */
};

struct TmaPosition {
    int product, row, column;
};

template <class T>
__device__ inline TmaPosition position_of(const TmaBatch& p, u32 tile) {
    u32 group = tile / (u32)p.in_product, rest = tile - group * (u32)p.in_product, down = rest / (u32)p.across;
    return {(int)group * T::PRODUCTS, (int)down * T::BM, (int)(rest - down * (u32)p.across) * T::BN};
}

/* A ring of panels, and its mbarriers: `full` of each stage, then `empty`, then those of the file. */
struct TmaRing {
    u32 panels, barriers;
};

template <int N>
__device__ inline void shared_load(u32* x, u32 from) {
    if constexpr (N == 4) shared_load4(x, from);
    else if constexpr (N == 2) asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(from));
    else asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x[0]) : "r"(from));
}

/* Register reallocation: T::PRODUCER_REGISTERS a thread for the producers, what they release for the consumers. */
template <class T, bool PRODUCER>
__device__ inline void reallocate_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int AT_LAUNCH = T::GROUPS == 3 ? 4 * 128 : 3 * 168; /* of a thread of each warpgroup together */
    constexpr int OF_CONSUMER = (AT_LAUNCH - T::PRODUCER_REGISTERS) / T::GROUPS / 8 * 8;
    if constexpr (PRODUCER) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(T::PRODUCER_REGISTERS));
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(OF_CONSUMER));
#endif
}

/* N elements of a k in groups of VECTOR, of LANES lanes side by side. */
template <int N, int VECTOR, int LANES>
__device__ inline void load_vectors(u32 (&x)[N], u32 from) {
#pragma unroll
    for (int q = 0; q < N; q += VECTOR) shared_load<VECTOR>(x + q, from + q * LANES * 4);
}

/* The accumulators of a thread to C. `row` and `column` are those of its first one in the tile, `in_stage` the product
 * among those of a position. */
template <class T>
__device__ __forceinline__ void store_tile(const TmaBatch& p, u32 tile, int in_stage, int row, int column,
                                           const float (&acc)[T::TM][T::TN]) {
    constexpr int V = T::VECTOR_N, W = T::VECTOR_M;
    TmaPosition at = position_of<T>(p, tile);
    i64 product = at.product + in_stage, i0 = at.row + row, j0 = at.column + column;
    float* c = p.c + product * p.c_batch + i0 * p.ldc + j0;
    int rows = product < p.batch ? (int)(p.m - i0) : 0, columns = (int)(p.n - j0); /* left from there on */
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
