/* gemm.cuh: what every rung is given, which tile of C a block works on, and how sums become C.
 *
 * A launch computes products C[m,n] = alpha A[m,k] B[k,n] + beta C0[m,n], without C0 where that is null, which
 * is what beta = 0 comes as: C0 is then not read. C is row-major,
 *
 *     C   element (i, j) at c[i*ldc + j]
 *     C0  element (i, j) at c0[i*c0_rs + j*c0_cs]
 *     A   element (i, q) at a[i*lda + q] (K_MAJOR) or a[i + q*lda] (MN_MAJOR)
 *     B   element (q, j) at b[q*ldb + j] (MN_MAJOR) or b[q + j*ldb] (K_MAJOR)
 *
 * A column-major C is the swapped call: C^T = B^T A^T, and the layouts change places. Leading dimensions count elements
 * and may have any sign; offsets are 64-bit. m, n, k are any; k = 0 gives beta C0. Not one byte outside the elements
 * named above is read or written. C overlaps neither A nor B; C0 is C itself or apart from it. The batch lies on grid.x
 * with the tiles, 2^31 - 1 blocks at most.
 * Every field is 64 bits wide (alpha and beta together): on the host a Gemm is one array of int64.
 */

/* R is the dimension of an operand beside k: rows of A, columns of B. The 4 forms are read in pieces of 16 bytes:
 * address, leading dimension and batch stride are multiples of that, and so is the extent that lies along memory. */
enum Layout { K_MAJOR, MN_MAJOR, K_MAJOR_VEC4, MN_MAJOR_VEC4 };

__device__ constexpr bool k_major(Layout l) { return l == K_MAJOR || l == K_MAJOR_VEC4; }
__device__ constexpr int width(Layout l) { return l == K_MAJOR || l == MN_MAJOR ? 1 : 4; }

struct Gemm {
    const float *a, *b, *c0;
    float* c;
    i64 m, n, k;
    i64 lda, ldb, c0_rs, c0_cs, ldc;
    i64 a_batch, b_batch, c0_batch, c_batch;
    i64 c_vector; /* rows of C, and of C0 if there is one, may be accessed in pieces of 16 bytes */
    float alpha, beta; /* the bits of two int32 where C holds integers */
};

/* The tile of C that this block computes: which product, and which tile of it. It lies in shared memory, so that it
 * takes no registers while the block multiplies. All threads of the block call. */
struct Tile {
    u32 product, row, column;
};

template <int BM, int BN>
__device__ inline const Tile& tile_of(const Gemm& p) {
    __shared__ Tile t;
    if (threadIdx.x == 0) {
        u32 down = (u32)((p.m + BM - 1) / BM), across = (u32)((p.n + BN - 1) / BN);
        u32 product = blockIdx.x / (down * across), rest = blockIdx.x - product * (down * across), row = rest / across;
        t = {product, row, rest - row * across};
    }
    __syncthreads();
    return t;
}

/* Blocks in rows of GROUP tiles: what runs at the same time shares rows of A and columns of B. */
template <int BM, int BN, int GROUP>
__device__ inline Tile grouped_tile(const Gemm& p) {
    u32 down = (u32)((p.m + BM - 1) / BM), across = (u32)((p.n + BN - 1) / BN);
    u32 product = blockIdx.x / (down * across), rest = blockIdx.x - product * (down * across);
    if (GROUP == 1) return {product, rest / across, rest % across};
    u32 group = rest / (GROUP * across), in_group = rest - group * GROUP * across,
        height = min(GROUP, down - group * GROUP);
    return {product, group * GROUP + in_group % height, in_group / height};
}

/* alpha * sum + beta * C0. Adding -0 changes nothing, -0 included. */
__device__ inline float result(const Gemm& p, float sum) { return multiply_add(p.alpha, sum, -0.0f); }
__device__ inline float result(const Gemm& p, float sum, float c0) { return multiply_add(p.beta, c0, result(p, sum)); }

/* Sums of W elements of row i from column j on into C of a product: those that exist. */
template <int W>
__device__ inline void store_row(const Gemm& p, u32 product, i64 i, i64 j, const float* sum) {
    if (i >= p.m) return;
    float* c = p.c + product * p.c_batch + i * p.ldc + j;
    const float* c0 = p.c0 + product * p.c0_batch + i * p.c0_rs + j * p.c0_cs;
    if constexpr (W == 4) {
        if (p.c_vector && j + 4 <= p.n) {
            float x[4], y[4];
            if (p.c0) read4(y, c0);
#pragma unroll
            for (int w = 0; w < 4; ++w) x[w] = p.c0 ? result(p, sum[w], y[w]) : result(p, sum[w]);
            store4(c, x);
            return;
        }
    }
#pragma unroll
    for (int w = 0; w < W; ++w)
        if (j + w < p.n) c[w] = p.c0 ? result(p, sum[w], c0[w * p.c0_cs]) : result(p, sum[w]);
}
