/* pad_rows.cuh: a copy of an operand of 16-bit elements whose rows (MN-major: columns) start at multiples of 16 bytes,
 * as TMA reads them.
 */
#include "dependent_launch.cuh"
#include "gemm.cuh"

/* An operand and its copy: products of `rows` rows of k elements, `pitch` elements from line to line of the copy, a
 * multiple of 8. */
struct Pad {
    const u16* x;
    u16* padded;
    i64 rows, k, ld, batch, products, pitch;
};

/* i / by, in 32 bits where they suffice. */
__device__ inline i64 divided(i64 i, i64 by) { return (i | by) >> 32 ? i / by : (u32)i / (u32)by; }

/* A thread copies 8 elements of a line at a time; those past the end of the line are 0. */
template <Layout L>
__device__ inline void pad_rows(const Pad& s) {
    i64 lines = k_major(L) ? s.rows : s.k, length = k_major(L) ? s.k : s.rows, chunks = s.pitch / 8;
    i64 count = s.products * lines * chunks;
    launch_dependents();
    grid_dependency_wait();
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (i64)gridDim.x * blockDim.x) {
        i64 line = divided(i, chunks), at = (i - line * chunks) * 8, product = divided(line, lines);
        const u16* from = s.x + product * s.batch + (line - product * lines) * s.ld + at;
        u32 w[4];
        if (at > 0 && at + 8 < length) { /* the words that hold them, neighbours in the line included */
            u32 x[5], shift = (u64)from % 4 * 8;
#pragma unroll
            for (int word = 0; word < 5; ++word)
                x[word] = word < 4 || shift ? ((const u32*)(from - shift / 16))[word] : 0;
#pragma unroll
            for (int word = 0; word < 4; ++word) w[word] = __funnelshift_r(x[word], x[word + 1], shift);
        } else {
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                u32 low = at + 2 * pair < length ? from[2 * pair] : 0;
                u32 high = at + 2 * pair + 1 < length ? from[2 * pair + 1] : 0;
                w[pair] = low | high << 16;
            }
        }
        *(uint4*)(s.padded + i * 8) = make_uint4(w[0], w[1], w[2], w[3]);
    }
}
