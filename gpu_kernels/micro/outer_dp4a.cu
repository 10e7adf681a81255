/* outer_dp4a: C[MR,NR] += A[MR,K] * B[K,NR], int8 into int32; four k to an instruction.
 *
 * contract  call.cuh; any K: a last group of fewer than 4 is filled with zeros. K = 0 gives C0 or zeros. An edge tile
 *           (EDGE) reads and writes the elements that exist.
 * tile      cuda_i8i32_outer_4x4, cuda_i8i32_outer_8x8; k_group 4
 * regs      MR*NR accumulators; at most 66 registers, at most 168 registers for 8x8; no spills
 * per k     MR*NR/4 IDP.4A; (MR + NR)/16 loads of 16 bytes; K-major operands; others are transposed in registers
 * ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8
 * rounding  none: exact, int32 wraps around
 * needs     sm_75
 * idea      A. Atluri, Musings on GEMM (2017), Int4 GEMM: int4 there is a vector of four words, the values are int8
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0 bytes
 */
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"
#include "int8.cuh"

/* f[r][g] holds element r of group g of 4 k, for U steps of k. */
template <int R, int U, Layout L, bool EDGE>
__device__ inline void load_groups(u32 (&f)[R][U / 4], const signed char* from, i64 r_stride, i64 k_stride, int count) {
    if constexpr (L == K_MAJOR) {
#pragma unroll
        for (int r = 0; r < R; ++r) load_words<U>(f[r], from + r * r_stride);
    } else if constexpr (L == MN_MAJOR || L == PACKED) {
#pragma unroll
        for (int g = 0; g < U / 4; ++g) {
            u32 w[4][R / 4];
#pragma unroll
            for (int u = 0; u < 4; ++u)
                load_words<R>(w[u], from + (L == PACKED ? (i64)((4 * g + u) * R) : (4 * g + u) * k_stride));
#pragma unroll
            for (int q = 0; q < R / 4; ++q) {
                u32 x[4] = {w[0][q], w[1][q], w[2][q], w[3][q]};
                transpose_bytes(x);
#pragma unroll
                for (int r = 0; r < 4; ++r) f[4 * q + r][g] = x[r];
            }
        }
    } else {
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int g = 0; g < U / 4; ++g)
                f[r][g] = !EDGE || r < count ? gather_group(from + r * r_stride + 4 * g * k_stride, k_stride, 4) : 0u;
    }
}

template <int MR, int NR, Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128) outer_dp4a(const __grid_constant__ Call p) {
    typedef signed char Elem;
    constexpr int U = steps<Elem>(LA, LB) < 4 ? 4 : steps<Elem>(LA, LB);
    Tile t = tile_of<MR, NR, EDGE>(p, group_index<1>());
    if (!t.inside) return;
    const Elem* a = (const Elem*)p.a + t.offsets.a + t.i * p.a_rs;
    const Elem* b = (const Elem*)p.b + t.offsets.b + t.j * p.b_cs;
    int acc[MR][NR] = {};
    u32 k = (u32)(p.k / U);
#pragma unroll 1
    for (; k > 0; --k) {
        u32 fa[MR][U / 4], fb[NR][U / 4];
        load_groups<MR, U, LA, EDGE>(fa, a, p.a_rs, p.a_cs, t.rows);
        load_groups<NR, U, LB, EDGE>(fb, b, p.b_cs, p.b_rs, t.cols);
        a += LA == PACKED ? (i64)(U * MR) : LA == K_MAJOR ? (i64)U : U * p.a_cs;
        b += LB == PACKED ? (i64)(U * NR) : LB == K_MAJOR ? (i64)U : U * p.b_rs;
#pragma unroll
        for (int g = 0; g < U / 4; ++g)
#pragma unroll
            for (int i = 0; i < MR; ++i)
#pragma unroll
                for (int j = 0; j < NR; ++j) acc[i][j] = __dp4a((int)fa[i][g], (int)fb[j][g], acc[i][j]);
    }
#pragma unroll 1
    for (int left = (int)(p.k % U); left > 0; left -= 4) {
        u32 fa[MR], fb[NR];
#pragma unroll
        for (int i = 0; i < MR; ++i)
            fa[i] = !EDGE || i < t.rows ? gather_group(a + i * p.a_rs, p.a_cs, left) : 0u;
#pragma unroll
        for (int j = 0; j < NR; ++j)
            fb[j] = !EDGE || j < t.cols ? gather_group(b + j * p.b_cs, p.b_rs, left) : 0u;
        a += 4 * p.a_cs;
        b += 4 * p.b_rs;
#pragma unroll
        for (int i = 0; i < MR; ++i)
#pragma unroll
            for (int j = 0; j < NR; ++j) acc[i][j] = __dp4a((int)fa[i], (int)fb[j], acc[i][j]);
    }
    store_tile<I8I32, MR, NR, EDGE>(p, t, acc);
}
