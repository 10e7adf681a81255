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
