/* gemm.cuh: the parameters of every rung, the tile of C that a thread block computes, and the epilogue from
 * accumulators to C.
 *
 * A launch computes products C[m,n] = alpha A[m,k] B[k,n] + beta C0[m,n]. C0 may be null, which is how beta = 0 is
 * passed: C0 is then not read. C is row-major,
 *
 *     C   element (i, j) at c[i*ldc + j]
 *     C0  element (i, j) at c0[i*c0_rs + j*c0_cs]
 *     A   element (i, q) at a[i*lda + q] (K_MAJOR) or a[i + q*lda] (MN_MAJOR)
 *     B   element (q, j) at b[q*ldb + j] (MN_MAJOR) or b[q + j*ldb] (K_MAJOR)
 *
 * A column-major C is computed with the operands swapped: C^T = B^T A^T, and the layouts of A and B are exchanged.
 * Leading dimensions count elements and may have any sign; offsets are 64-bit. m, n, k are any; k = 0 gives beta C0.
 * Not one byte outside the elements named above is read or written. C overlaps neither A nor B; C0 is C itself or does
 * not overlap it. Batch and tiles share grid.x, 2^31 - 1 blocks at most. Every field is 64 bits wide (alpha and beta
 * together): on the host a Gemm is one array of int64.
 */
#pragma once
#include "vector.cuh"

/* R is the dimension of an operand that is not k: rows of A, columns of B. The VEC4 layouts are read 16 bytes at a
 * time: address, leading dimension and batch stride are multiples of 16 bytes, and so is the extent of the contiguous
 * dimension. */
enum Layout { K_MAJOR, MN_MAJOR, K_MAJOR_VEC4, MN_MAJOR_VEC4 };

__device__ constexpr bool k_major(Layout l) { return l == K_MAJOR || l == K_MAJOR_VEC4; }
__device__ constexpr int width(Layout l) { return l == K_MAJOR || l == MN_MAJOR ? 1 : 4; }

struct Gemm {
    const float *a, *b, *c0;
    float* c;
    i64 m, n, k;
    i64 lda, ldb, c0_rs, c0_cs, ldc;
    i64 a_batch, b_batch, c0_batch, c_batch;
    i64 c_vector; /* rows of C, and of C0 if there is one, may be accessed 16 bytes at a time */
    float alpha, beta; /* the bits of two int32 where C holds integers */
};

/* A tile of C: the product it belongs to, and its row and column in units of tiles. */
struct TileCoordinates {
    u32 product, row, column;
};

/* The tile of this block, tiles in row-major order. The coordinates lie in shared memory, so that they take no
 * registers in the main loop. All threads of the block call. */
template <int BM, int BN>
__device__ inline const TileCoordinates& tile_coordinates(const Gemm& p) {
    __shared__ TileCoordinates t;
    if (threadIdx.x == 0) {
        u32 rows = (u32)((p.m + BM - 1) / BM), columns = (u32)((p.n + BN - 1) / BN);
        u32 product = blockIdx.x / (rows * columns), rest = blockIdx.x - product * (rows * columns),
            row = rest / columns;
        t = {product, row, rest - row * columns};
    }
    __syncthreads();
    return t;
}

/* The same in grouped raster order: GROUP rows of tiles are taken together, column by column, so that blocks that run
 * at the same time share rows of A and columns of B. */
template <int BM, int BN, int GROUP>
__device__ inline TileCoordinates grouped_tile_coordinates(const Gemm& p) {
    u32 rows = (u32)((p.m + BM - 1) / BM), columns = (u32)((p.n + BN - 1) / BN);
    u32 product = blockIdx.x / (rows * columns), rest = blockIdx.x - product * (rows * columns);
    if (GROUP == 1) return {product, rest / columns, rest % columns};
    u32 group = rest / (GROUP * columns), in_group = rest - group * GROUP * columns,
        height = min(GROUP, rows - group * GROUP);
    return {product, group * GROUP + in_group % height, in_group / height};
}

/* alpha * acc + beta * C0. Adding -0 changes nothing, -0 included. */
__device__ inline float scaled(const Gemm& p, float acc) { return multiply_add(p.alpha, acc, -0.0f); }
__device__ inline float scaled(const Gemm& p, float acc, float c0) { return multiply_add(p.beta, c0, scaled(p, acc)); }

/* W accumulators of row i from column j on to C; elements outside C are skipped. */
template <int W>
__device__ inline void store_row(const Gemm& p, u32 product, i64 i, i64 j, const float* acc) {
    if (i >= p.m) return;
    float* c = p.c + product * p.c_batch + i * p.ldc + j;
    const float* c0 = p.c0 + product * p.c0_batch + i * p.c0_rs + j * p.c0_cs;
    if constexpr (W == 4) {
        if (p.c_vector && j + 4 <= p.n) {
            float x[4], y[4];
            if (p.c0) read4(y, c0);
#pragma unroll
            for (int w = 0; w < 4; ++w) x[w] = p.c0 ? scaled(p, acc[w], y[w]) : scaled(p, acc[w]);
            store4(c, x);
            return;
        }
    }
#pragma unroll
    for (int w = 0; w < W; ++w)
        if (j + w < p.n) c[w] = p.c0 ? scaled(p, acc[w], c0[w * p.c0_cs]) : scaled(p, acc[w]);
}
