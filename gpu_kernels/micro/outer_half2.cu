/* outer_half2: C[MR,NR] += A[MR,K] * B[K,NR] in f16, two steps of k to an instruction.
 *
 * contract  call.cuh; any K, K = 0 gives C0 or zeros. An edge tile (EDGE) reads and writes the elements that exist.
 * tile      cuda_f16_outer_4x4, cuda_f16_outer_8x8
 * regs      MR*NR accumulators; at most 96 registers, at most 168 registers for 8x8; no spills; an accumulator is a
 *           half2, the sum of the even k and that of the odd k; operands are double-buffered as in outer.cu
 * per k     MR*NR/2 HFMA2; (MR + NR)/4 loads of 8 bytes; K-major operands; others are transposed in registers; HFMA2
 *           multiplies an element of A at k and at the next k by one of B: two multiply-adds of one outer product
 * ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8
 * rounding  one f16 fma per term, even k and odd k apart, each ascending from 0; then the two are added, then C0: the
 *           error grows with K/2 * 2^-11. cuda_f16f32_outer_8x8 accumulates in f32
 * needs     sm_75
 * idea      A. Atluri, Musings on GEMM (2017), Half2 GEMM. An element of A broadcast to both lanes of the half2
 *           (.H0_H0) for two columns of B is an outer product too, but on an H200 that operand form runs at half the
 *           rate of plain registers, 67 against 124 TFLOP/s: only one of two pipes executes it. The element-wise form
 *           of the article is cuda_f16_batch2_4x4
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0 bytes
 */
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"

__device__ inline __half2 as_half2(u32 w) {
    __half2 h;
    *(u32*)&h = w;
    return h;
}

/* f[r][u/2] holds element r at k = u (low) and u + 1 (high), for U steps. */
template <int R, int U, Layout L, bool EDGE>
__device__ inline void load_pairs(u32 (&f)[R][U / 2], const u16* from, i64 r_stride, i64 k_stride, int count) {
    if constexpr (L == K_MAJOR) {
#pragma unroll
        for (int r = 0; r < R; ++r) load_words<2 * U>(f[r], from + r * r_stride);
    } else if constexpr (L == MN_MAJOR || L == PACKED) {
#pragma unroll
        for (int u = 0; u < U; u += 2) {
            u32 even[R / 2], odd[R / 2];
            load_words<2 * R>(even, from + (L == PACKED ? (i64)(u * R) : u * k_stride));
            load_words<2 * R>(odd, from + (L == PACKED ? (i64)((u + 1) * R) : (u + 1) * k_stride));
#pragma unroll
            for (int r = 0; r < R; ++r) f[r][u / 2] = __byte_perm(even[r / 2], odd[r / 2], r % 2 ? 0x7632 : 0x5410);
        }
    } else {
        const u16* row = from; /* advances, except at edges: NVRTC 13.0 would spill on sm_100, or 13.5 at edges */
#pragma unroll
        for (int r = 0; r < R; ++r, row += r_stride) {
            const u16* at = EDGE ? from + r * r_stride : row;
#pragma unroll
            for (int u = 0; u < U; u += 2, at += 2 * k_stride) {
                bool exists = !EDGE || r < count;
                u32 low = exists ? __ldg(at) : 0;
                u32 high = exists ? __ldg(at + k_stride) : 0;
                f[r][u / 2] = low | high << 16;
            }
        }
    }
}

/* f16 throughout. */
struct F16Only {
    typedef u16 Elem, Out;
    typedef __half Acc;
    __device__ static Acc add(Out c0, Acc x) { return __hadd_rn(__ushort_as_half(c0), x); }
    __device__ static Out result(Acc x) { return __half_as_ushort(x); }
    __device__ static u32 bits(const Out* x, int w) { return (u32)x[2 * w] | (u32)x[2 * w + 1] << 16; }
};

template <int MR, int NR, Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128, 1) outer_half2(const __grid_constant__ Call p) {
    constexpr int U = steps<u16>(LA, LB) < 2 ? 2 : 4;
    Tile t = tile_of<MR, NR, EDGE>(p, group_index<1>());
    if (!t.inside) return;
    const u16* a = (const u16*)p.a + t.offsets.a + t.i * p.a_rs;
    const u16* b = (const u16*)p.b + t.offsets.b + t.j * p.b_cs;
    __half2 acc[MR][NR] = {};
    u32 k = (u32)(p.k / U);
    if (k > 0) {
        u32 fa[2][MR][U / 2], fb[2][NR][U / 2];
        auto fetch = [&](u32(&x)[MR][U / 2], u32(&y)[NR][U / 2]) {
            load_pairs<MR, U, LA, EDGE>(x, a, p.a_rs, p.a_cs, t.rows);
            load_pairs<NR, U, LB, EDGE>(y, b, p.b_cs, p.b_rs, t.cols);
            a += LA == PACKED ? (i64)(U * MR) : LA == K_MAJOR ? (i64)U : U * p.a_cs;
            b += LB == PACKED ? (i64)(U * NR) : LB == K_MAJOR ? (i64)U : U * p.b_rs;
        };
        auto update = [&](const u32(&x)[MR][U / 2], const u32(&y)[NR][U / 2]) {
#pragma unroll
            for (int u = 0; u < U / 2; ++u)
#pragma unroll
                for (int i = 0; i < MR; ++i)
#pragma unroll
                    for (int j = 0; j < NR; ++j) acc[i][j] = __hfma2(as_half2(x[i][u]), as_half2(y[j][u]), acc[i][j]);
        };
        fetch(fa[0], fb[0]);
#pragma unroll 1
        for (; k > 2; k -= 2) {
            fetch(fa[1], fb[1]);
            update(fa[0], fb[0]);
            fetch(fa[0], fb[0]);
            update(fa[1], fb[1]);
        }
        if (k == 2) fetch(fa[1], fb[1]);
        update(fa[0], fb[0]);
        if (k == 2) update(fa[1], fb[1]);
    }
    /* The remainder of K, a pair at a time; the last odd step is paired with a zero. */
#pragma unroll 1
    for (int left = (int)(p.k % U); left > 0; left -= 2) {
        u32 fa[MR], fb[NR];
#pragma unroll
        for (int i = 0; i < MR; ++i) {
            bool exists = !EDGE || i < t.rows;
            fa[i] = exists ? __ldg(a + i * p.a_rs) : 0;
            if (left > 1 && exists) fa[i] |= (u32)__ldg(a + i * p.a_rs + p.a_cs) << 16;
        }
#pragma unroll
        for (int j = 0; j < NR; ++j) {
            bool exists = !EDGE || j < t.cols;
            fb[j] = exists ? __ldg(b + j * p.b_cs) : 0;
            if (left > 1 && exists) fb[j] |= (u32)__ldg(b + j * p.b_cs + p.b_rs) << 16;
        }
#pragma unroll
        for (int i = 0; i < MR; ++i)
#pragma unroll
            for (int j = 0; j < NR; ++j) acc[i][j] = __hfma2(as_half2(fa[i]), as_half2(fb[j]), acc[i][j]);
        a += 2 * p.a_cs;
        b += 2 * p.b_rs;
    }
    __half tile[MR][NR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int j = 0; j < NR; ++j) tile[i][j] = __hadd_rn(__low2half(acc[i][j]), __high2half(acc[i][j]));
    store_tile<F16Only, MR, NR, EDGE>(p, t, tile);
}
