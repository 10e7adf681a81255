/* inner: C[MR,NR] += A[MR,K] * B[K,NR]; every element of C is a dot product of its own thread.
 *
 * contract  call.cuh; any K, K = 0 gives C0 or zeros. An edge tile (EDGE) reads and writes the elements that exist.
 * tile      cuda_f32_inner_4x4, cuda_f32_inner_8x8
 * regs      1 accumulator; at most 35 registers; no spills
 * per k     1 FFMA; 1/2 loads of 16 bytes; K-major operands
 * ratio     1 / 2 = 0.50
 * rounding  one fma per term, k ascending from 0, then one add of C0: bit-equal to cuda_f32_outer_*
 * needs     sm_75
 * idea      A. Atluri, Musings on GEMM (2017): the form that the outer product is compared with
 * lanes     MR*NR
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) * MR*NR / 128)
 * smem      0 bytes
 */
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"

template <class Y, int MR, int NR, Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128) inner(const __grid_constant__ Call p) {
    typedef typename Y::Elem Elem;
    typedef typename Y::Acc Acc;
    constexpr int U = steps<Elem>(LA, LB);
    Tile t = tile_of<MR, NR, EDGE>(p, group_index<MR * NR>());
    int i = threadIdx.x % (MR * NR) / NR, j = threadIdx.x % NR;
    if (!t.inside || (EDGE && (i >= t.rows || j >= t.cols))) return;
    t.i += i, t.j += j;
    const Elem* a = (const Elem*)p.a + t.offsets.a + t.i * p.a_rs;
    const Elem* b = (const Elem*)p.b + t.offsets.b + t.j * p.b_cs;
    Acc acc[1][1] = {};
    u32 k = (u32)(p.k / U);
#pragma unroll 1
    for (; k > 0; --k) {
        Acc fa[1][U], fb[1][U];
        load_fragment<Y, 1, U, LA, false>(fa, a, 0, p.a_cs, 1);
        load_fragment<Y, 1, U, LB, false>(fb, b, 0, p.b_rs, 1);
        a += LA == K_MAJOR ? (i64)U : U * p.a_cs;
        b += LB == K_MAJOR ? (i64)U : U * p.b_rs;
#pragma unroll
        for (int u = 0; u < U; ++u) acc[0][0] = multiply_add(fa[0][u], fb[0][u], acc[0][0]);
    }
#pragma unroll 1
    for (int left = (int)(p.k % U); left > 0; --left) {
        acc[0][0] = multiply_add(Y::value(__ldg(a)), Y::value(__ldg(b)), acc[0][0]);
        a += p.a_cs;
        b += p.b_rs;
    }
    store_element<Y>(p, t, acc[0][0]);
}
