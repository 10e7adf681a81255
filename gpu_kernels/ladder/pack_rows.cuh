/* pack_rows.cuh: a K-major copy of an int8 operand, whose rows start at multiples of 16 bytes and end with zeros. Of
 * the ladder's instructions ldmatrix and wgmma transpose 16-bit elements only.
 */
#include "gemm.cuh"

/* An operand and its packed copy: products of `rows` rows of k elements, `pitch` from row to row of the copy, a
 * multiple of 16; from k on the rows of the copy are zero. */
struct Pack {
    const unsigned char* x;
    unsigned char* packed;
    i64 rows, k, ld, batch, products, pitch;
};

/* Four words whose byte i becomes word i. */
__device__ inline void transpose_bytes(u32 (&w)[4]) {
    u32 even = __byte_perm(w[0], w[1], 0x5140), odd = __byte_perm(w[2], w[3], 0x5140);
    u32 even_high = __byte_perm(w[0], w[1], 0x7362), odd_high = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(even, odd, 0x5410), w[1] = __byte_perm(even, odd, 0x7632);
    w[2] = __byte_perm(even_high, odd_high, 0x5410), w[3] = __byte_perm(even_high, odd_high, 0x7632);
}

/* Four bytes, of which the first `count` exist; the others are zero. */
__device__ inline u32 load_bytes(const unsigned char* from, i64 count, bool aligned) {
    if (aligned && count >= 4) return *(const u32*)from;
    u32 word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (i < count) word |= (u32)from[i] << 8 * i;
    return word;
}

/* A block packs 64 rows by 64 k at a time: a thread loads 4 x 4 elements, then stores 16 of one row. */
template <Layout L>
__device__ __forceinline__ void pack_rows(const Pack& s) {
    constexpr int EDGE = 64;
    __shared__ u32 words[EDGE][EDGE / 4 + 1];
    i64 tile_rows = (s.rows + EDGE - 1) / EDGE, tile_columns = (s.pitch + EDGE - 1) / EDGE;
    bool aligned = ((u64)s.x | (u64)s.ld | (u64)s.batch) % 4 == 0;
    int fast = threadIdx.x % 16 * 4, slow = threadIdx.x / 16 * 4;
    for (i64 tile = blockIdx.x; tile < s.products * tile_rows * tile_columns; tile += gridDim.x) {
        i64 product = tile / (tile_rows * tile_columns);
        i64 row = tile / tile_columns % tile_rows * EDGE, k = tile % tile_columns * EDGE;
        i64 rows = s.rows - row, left = s.k - k;
        const unsigned char* from = s.x + product * s.batch + (k_major(L) ? row * s.ld + k : row + k * s.ld);
        i64 lines = k_major(L) ? rows : left, length = k_major(L) ? left : rows;
        u32 w[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            w[i] = slow + i < lines ? load_bytes(from + (slow + i) * s.ld + fast, length - fast, aligned) : 0;
        if constexpr (!k_major(L)) transpose_bytes(w);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (k_major(L)) words[slow + i][fast / 4] = w[i];
            else words[fast + i][slow / 4] = w[i];
        }
        __syncthreads();
        int r = threadIdx.x / 4, chunk = threadIdx.x % 4;
        if (r < rows && k + 16 * chunk < s.pitch) {
            const u32* x = &words[r][4 * chunk];
            *(uint4*)(s.packed + (product * s.rows + row + r) * s.pitch + k + 16 * chunk) =
                make_uint4(x[0], x[1], x[2], x[3]);
        }
    }
}
