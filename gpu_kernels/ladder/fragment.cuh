/* fragment.cuh: the register tile of a thread: TM x TN accumulators, one rank-1 update per k.
 *
 * The TM rows come in groups of 4 that lie GAP apart in the block tile (GAP 4: they are adjacent); columns likewise.
 */
#pragma once
#include "gemm.cuh"

/* N elements of a row of shared memory, 16 bytes a load. */
template <int N, int GAP>
__device__ inline void load_fragment(float (&f)[N], const float* from) {
#pragma unroll
    for (int q = 0; q < N / 4; ++q) read4(f + 4 * q, from + q * GAP);
}

/* The outer product of a column of A and a row of B: TM * TN multiply-adds for TM + TN elements. */
template <int TM, int TN>
__device__ inline void rank1_update(float (&acc)[TM][TN], const float (&a)[TM], const float (&b)[TN]) {
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i][j] = multiply_add(a[i], b[j], acc[i][j]);
}

/* The accumulators to C, from row i and column j on. */
template <int GAP_M, int GAP_N, int TM, int TN>
__device__ inline void store_thread_tile(const Gemm& p, u32 product, i64 i, i64 j, const float (&acc)[TM][TN]) {
#pragma unroll
    for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int q = 0; q < TN / 4; ++q)
            store_row<4>(p, product, i + r / 4 * GAP_M + r % 4, j + q * GAP_N, &acc[r][4 * q]);
}
