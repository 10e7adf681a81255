/* fragment.cuh: a thread's part of a tile: TM x TN sums in registers, one rank-1 update per k.
 *
 * The TM rows come in pieces of 4 that lie GAP apart in the tile (GAP 4: they are adjacent); columns likewise.
 */

/* N elements of a row of shared memory, 16 bytes a load. */
template <int N, int GAP>
__device__ inline void read_fragment(float (&f)[N], const float* from) {
#pragma unroll
    for (int q = 0; q < N / 4; ++q) read4(f + 4 * q, from + q * GAP);
}

/* The outer product of a column of A and a row of B: TM * TN multiply-adds for TM + TN elements. */
template <int TM, int TN>
__device__ inline void update(float (&sum)[TM][TN], const float (&a)[TM], const float (&b)[TN]) {
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) sum[i][j] = multiply_add(a[i], b[j], sum[i][j]);
}

/* The thread's sums into C of a product, from row i and column j on. */
template <int GAP_M, int GAP_N, int TM, int TN>
__device__ inline void store_fragment(const Gemm& p, u32 product, i64 i, i64 j, const float (&sum)[TM][TN]) {
#pragma unroll
    for (int r = 0; r < TM; ++r)
#pragma unroll
        for (int q = 0; q < TN / 4; ++q)
            store_row<4>(p, product, i + r / 4 * GAP_M + r % 4, j + q * GAP_N, &sum[r][4 * q]);
}
