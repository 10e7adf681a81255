/* wmma: C[16,16] += A[16,K] * B[K,16], f16 in, accumulated in f32, on the matrix units of RDNA, one tile a wave of 32.
 *
 * contract  gpu_kernels/micro/call.cuh; any K: the last step is filled with zeros in registers. K = 0 gives C0 or
 *           zeros. An edge tile (EDGE) reads and writes the elements that exist.
 * tile      hip_f16f32_wmma_16x16; k_group 16
 * regs      8 accumulators; at most 53 registers; no spills
 * per k     1/16 v_wmma_f32_16x16x16_f16; 1/8 loads of 16 bytes, 1/4 loads of 16 bytes for gfx11; K-major operands; a
 *           lane loads a row of A and a column of B; gfx11 wants all steps of k in both halves of the wave
 * ratio     MR*NR / (MR + NR) = 8.00; counted 4.00 for gfx11
 * rounding  products are exact; the matrix unit adds the 16 steps of k in an order of its own, then one add of C0
 * needs     wmma: gfx11, gfx12
 * idea      AMD, RDNA 3 and 4 instruction sets; the fragments are loaded from the arrays. Written here
 * lanes     32
 * launch    128 threads a block; grid ceil(batch * ceil(m/16) * ceil(n/16) / 4)
 * smem      0 bytes
 */
#include "f16.h"

#if !defined(__GFX11__) && !defined(__GFX12__)
#error "WMMA: gfx11 and gfx12 have it, this target does not"
#endif

constexpr int SIDE = 16;
#if defined(__GFX12__)
constexpr int U = 8; /* steps of k in a lane */
#else
constexpr int U = 16;
#endif
typedef float Accumulators __attribute__((ext_vector_type(8)));
typedef f16 Row __attribute__((ext_vector_type(U)));

__device__ inline Row row_of(const f16 (&x)[1][U]) {
    Row v;
#pragma unroll
    for (int u = 0; u < U; ++u) v[u] = x[0][u];
    return v;
}

__device__ inline Accumulators multiply(const f16 (&a)[1][U], const f16 (&b)[1][U], Accumulators c) {
#if defined(__GFX12__)
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(row_of(a), row_of(b), c);
#else
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(row_of(a), row_of(b), c);
#endif
}

template <Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128) wmma_tile(const __grid_constant__ Call p) {
    Tile t = tile_of<SIDE, SIDE, EDGE>(p, group_index<32>());
    if (!t.inside) return;
    int lane = threadIdx.x % 32, line = lane % SIDE, group = lane / SIDE, first = U == SIDE ? 0 : group * U;
    /* Lanes outside of C read its last row or column again; their accumulators are not stored. */
    int row = EDGE ? min(line, t.rows - 1) : line, col = EDGE ? min(line, t.cols - 1) : line;
    const u16* a = (const u16*)p.a + t.offsets.a + (t.i + row) * p.a_rs + first * p.a_cs;
    const u16* b = (const u16*)p.b + t.offsets.b + (t.j + col) * p.b_cs + first * p.b_rs;
    Accumulators acc = {};
    i64 k = p.k;
#pragma unroll 1
    for (; k >= SIDE; k -= SIDE) {
        f16 fa[1][U], fb[1][U];
        load_fragment<F16Only, 1, U, LA, false>(fa, a, 0, p.a_cs, 1);
        load_fragment<F16Only, 1, U, LB, false>(fb, b, 0, p.b_rs, 1);
        a += SIDE * p.a_cs;
        b += SIDE * p.b_rs;
        acc = multiply(fa, fb, acc);
    }
    if (k > 0) { /* the remainder of K: past its end the last element is read again and replaced by zero */
        int left = (int)k - first;
        f16 fa[1][U], fb[1][U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            int at = min(u, left - 1);
            f16 x = F16Only::value(__ldg(a + at * p.a_cs)), y = F16Only::value(__ldg(b + at * p.b_rs));
            fa[0][u] = u < left ? x : f16(0);
            fb[0][u] = u < left ? y : f16(0);
        }
        acc = multiply(fa, fb, acc);
    }
    t.j += line;
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        Tile one = t;
        int i = U == SIDE ? 2 * r + group : 8 * group + r;
        one.i += i;
        if (!EDGE || (i < t.rows && line < t.cols)) store_element<F32>(p, one, acc[r]);
    }
}
