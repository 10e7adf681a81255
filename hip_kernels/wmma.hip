/* wmma: C[16,16] += A[16,K] * B[K,16], half in, summed in float, on the matrix units of RDNA, one tile to a wave of 32.
 *
 * contract  gpu_kernels/micro/call.cuh; any K: steps past it are zeros in registers. K = 0 gives C0 or zeros. Tiles
 *           that stick out of C (EDGE) read and write what exists.
 * tile      hip_f16f32_wmma_16x16; k_group 16
 * regs      8 sums a lane; 16 halves of A and of B (8 on gfx12); no scratch
 * per k     1/16 v_wmma_f32_16x16x16_f16; each lane loads a row of A and a column of B, 16 bytes at a time where they
 *           lie along k. gfx11 wants both halves of the wave to hold all 16 k, gfx12 each its own 8. No LDS
 * ratio     256 / (16 + 16) = 8.00; gfx11 loads everything twice: 4.00 counted
 * rounding  products exact; the matrix unit adds the 16 steps of k in an order of its own, then one add of C0
 * needs     wmma: gfx11, gfx12
 * idea      AMD, RDNA 3 and 4 instruction sets; the fragments are loaded from the arrays. Written here
 * lanes     32
 * launch    128 threads a block, 4 tiles; grid ceil(batch * ceil(m/16) * ceil(n/16) / 4)
 * smem      0
 */
#include "halves.h"

#if !defined(__GFX11__) && !defined(__GFX12__)
#error "WMMA: gfx11 and gfx12 have it, this target does not"
#endif

constexpr int SIDE = 16;
#if defined(__GFX12__)
constexpr int U = 8; /* steps of k in a lane */
#else
constexpr int U = 16;
#endif
typedef float Sums __attribute__((ext_vector_type(8)));
typedef half_t Line __attribute__((ext_vector_type(U)));

__device__ inline Line line_of(const half_t (&x)[1][U]) {
    Line v;
#pragma unroll
    for (int u = 0; u < U; ++u) v[u] = x[0][u];
    return v;
}

__device__ inline Sums multiply(const half_t (&a)[1][U], const half_t (&b)[1][U], Sums c) {
#if defined(__GFX12__)
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(line_of(a), line_of(b), c);
#else
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(line_of(a), line_of(b), c);
#endif
}

template <Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128) wmma_tile(const __grid_constant__ Call p) {
    Tile t = tile_of<SIDE, SIDE, EDGE>(p, group_index<32>());
    if (!t.inside) return;
    int lane = threadIdx.x % 32, line = lane % SIDE, group = lane / SIDE, first = U == SIDE ? 0 : group * U;
    /* Lanes outside of C read its last row or column again; their sums are dropped. */
    int row = EDGE ? min(line, t.rows - 1) : line, col = EDGE ? min(line, t.cols - 1) : line;
    const u16* a = (const u16*)p.a + t.at.a + (t.i + row) * p.a_rs + first * p.a_cs;
    const u16* b = (const u16*)p.b + t.at.b + (t.j + col) * p.b_cs + first * p.b_rs;
    Sums sums = {};
    i64 k = p.k;
#pragma unroll 1
    for (; k >= SIDE; k -= SIDE) {
        half_t fa[1][U], fb[1][U];
        load_fragment<Half, 1, U, LA, false>(fa, a, 0, p.a_cs, 1);
        load_fragment<Half, 1, U, LB, false>(fb, b, 0, p.b_rs, 1);
        a += SIDE * p.a_cs;
        b += SIDE * p.b_rs;
        sums = multiply(fa, fb, sums);
    }
    if (k > 0) { /* the last steps: past them, the last one is read again and zero is taken */
        int left = (int)k - first;
        half_t fa[1][U], fb[1][U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            int at = min(u, left - 1);
            half_t x = Half::value(__ldg(a + at * p.a_cs)), y = Half::value(__ldg(b + at * p.b_rs));
            fa[0][u] = u < left ? x : half_t(0);
            fb[0][u] = u < left ? y : half_t(0);
        }
        sums = multiply(fa, fb, sums);
    }
    t.j += line;
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        Tile one = t;
        int i = U == SIDE ? 2 * r + group : 8 * group + r;
        one.i += i;
        if (!EDGE || (i < t.rows && line < t.cols)) store_element<F32>(p, one, sums[r]);
    }
}
