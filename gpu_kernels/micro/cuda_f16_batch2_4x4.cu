/* cuda_f16_batch2_4x4: C[4,4] += A[4,K] * B[K,4] in f16 for two products at once, one in each lane of a half2.
 *
 * contract  call.cuh; any K, K = 0 gives C0 or zeros. Products 2i and 2i + 1 of the batch form a pair; an odd last one
 *           is computed alone. For batch2_paired the two are interleaved in memory, element by element: pointers,
 *           strides and the batch then count pairs. An edge tile (EDGE) reads and writes the elements that exist.
 * tile      cuda_f16_batch2_4x4
 * regs      16 accumulators; at most 66 registers; no spills; an accumulator is a half2, one element of either product
 * per k     16 HFMA2; 2 loads of 16 bytes; interleaved K-major operands
 * ratio     16 / (4 + 4) = 2.00
 * rounding  one f16 fma per term, k ascending from 0, then one f16 add of C0
 * needs     sm_75
 * idea      A. Atluri, Musings on GEMM (2017), Half2 GEMM as printed: __hfma2 multiplies element by element, which is
 *           right for two interleaved products and for them alone
 * lanes     1; a thread computes two tiles
 * launch    128 threads a block; grid ceil(ceil(batch / 2) * ceil(m/4) * ceil(n/4) / 128)
 * smem      0 bytes
 */
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"

__device__ inline __half2 pair(u32 w) {
    __half2 h;
    *(u32*)&h = w;
    return h;
}
__device__ inline u32 word(__half2 h) { return *(u32*)&h; }

/* A half2: one element of either product. */
struct Pair {
    typedef u32 Elem, Acc, Out;
    __device__ static Acc word(const u32* w, int e) { return w[e]; }
    __device__ static Acc value(Elem x) { return x; }
    __device__ static Acc add(Out c0, Acc x) { return ::word(__hadd2_rn(pair(c0), pair(x))); }
    __device__ static Out result(Acc x) { return x; }
    __device__ static u32 bits(const Out* x, int w) { return x[w]; }
};

constexpr int MR = 4, NR = 4;

template <int R, int C>
__device__ inline void step(u32 (&acc)[MR][NR], const u32 (&fa)[MR][R], const u32 (&fb)[NR][C], int u) {
#pragma unroll
    for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int j = 0; j < NR; ++j) acc[i][j] = word(__hfma2(pair(fa[i][u]), pair(fb[j][u]), pair(acc[i][j])));
}

/* The two products are interleaved in memory. */
template <Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128) batch2_paired(const __grid_constant__ Call p) {
    constexpr int U = steps<u32>(LA, LB);
    Tile t = tile_of<MR, NR, EDGE>(p, group_index<1>());
    if (!t.inside) return;
    const u32* a = (const u32*)p.a + t.offsets.a + t.i * p.a_rs;
    const u32* b = (const u32*)p.b + t.offsets.b + t.j * p.b_cs;
    u32 acc[MR][NR] = {};
    u32 k = (u32)(p.k / U);
#pragma unroll 1
    for (; k > 0; --k) {
        u32 fa[MR][U], fb[NR][U];
        load_fragment<Pair, MR, U, LA, EDGE>(fa, a, p.a_rs, p.a_cs, t.rows);
        load_fragment<Pair, NR, U, LB, EDGE>(fb, b, p.b_cs, p.b_rs, t.cols);
        a += LA == PACKED ? (i64)(U * MR) : LA == K_MAJOR ? (i64)U : U * p.a_cs;
        b += LB == PACKED ? (i64)(U * NR) : LB == K_MAJOR ? (i64)U : U * p.b_rs;
#pragma unroll
        for (int u = 0; u < U; ++u) step(acc, fa, fb, u);
    }
#pragma unroll 1
    for (int left = (int)(p.k % U); left > 0; --left) {
        u32 fa[MR][1], fb[NR][1];
        load_fragment<Pair, MR, 1, ANY, EDGE>(fa, a, p.a_rs, p.a_cs, t.rows);
        load_fragment<Pair, NR, 1, ANY, EDGE>(fb, b, p.b_cs, p.b_rs, t.cols);
        a += p.a_cs;
        b += p.b_rs;
        step(acc, fa, fb, 0);
    }
    store_tile<Pair, MR, NR, EDGE>(p, t, acc);
}

/* The two products are apart in memory: pairs are gathered element by element. */
template <bool EDGE>
__global__ void __launch_bounds__(128) batch2_gathered(const __grid_constant__ Call p) {
    u32 index = group_index<1>();
    u32 tiles = (u32)((p.m + MR - 1) / MR) * (u32)((p.n + NR - 1) / NR), pair_index = index / tiles;
    Tile t = tile_of<MR, NR, EDGE>(p, 2 * pair_index * tiles + (index - pair_index * tiles));
    if (!t.inside) return;
    bool second = 2 * pair_index + 1 < p.batch;
    Offsets other = second ? offsets_of(p, 2 * pair_index + 1) : t.offsets;
    const u16 *a0 = (const u16*)p.a + t.i * p.a_rs, *a1 = a0 + other.a;
    const u16 *b0 = (const u16*)p.b + t.j * p.b_cs, *b1 = b0 + other.b;
    a0 += t.offsets.a, b0 += t.offsets.b;
    u32 acc[MR][NR] = {};
#pragma unroll 1
    for (i64 k = 0; k < p.k; ++k) {
        u32 fa[MR][1], fb[NR][1];
#pragma unroll
        for (int i = 0; i < MR; ++i) {
            i64 at = i * p.a_rs + k * p.a_cs;
            fa[i][0] = !EDGE || i < t.rows ? (u32)__ldg(a0 + at) | (u32)__ldg(a1 + at) << 16 : 0u;
        }
#pragma unroll
        for (int j = 0; j < NR; ++j) {
            i64 at = j * p.b_cs + k * p.b_rs;
            fb[j][0] = !EDGE || j < t.cols ? (u32)__ldg(b0 + at) | (u32)__ldg(b1 + at) << 16 : 0u;
        }
        step(acc, fa, fb, 0);
    }
    u16* c = (u16*)p.c + t.i * p.c_rs + t.j * p.c_cs;
    const u16* c0 = (const u16*)p.c0 + t.i * p.c0_rs + t.j * p.c0_cs;
#pragma unroll
    for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int j = 0; j < NR; ++j)
            if (!EDGE || (i < t.rows && j < t.cols)) {
                i64 to = i * p.c_rs + j * p.c_cs, from = i * p.c0_rs + j * p.c0_cs;
                u32 x = acc[i][j];
                if (p.c0) x = Pair::add((u32)c0[t.offsets.c0 + from] | (u32)c0[other.c0 + from] << 16, x);
                c[t.offsets.c + to] = (u16)x;
                if (second) c[other.c + to] = (u16)(x >> 16);
            }
}
