/* outer: C[MR,NR] += A[MR,K] * B[K,NR]; one rank-1 update per k, the whole tile in the registers of one thread.
 *
 * contract  call.cuh; any K, K = 0 gives C0 or zeros. An edge tile (EDGE) reads and writes the elements that exist.
 * tile      cuda_f16f32_outer_8x8, cuda_f32_outer_4x4, cuda_f32_outer_8x8, cuda_f64_outer_4x4
 * regs      MR*NR accumulators; at most 128 registers, at most 255 registers for 8x8, at most 154 registers for f64;
 *           no spills; operands are double-buffered: those of the next iteration are loaded before this one multiplies
 * per k     MR*NR FFMA, MR*NR DFMA for f64; (MR + NR)/4 loads of 16 bytes, (MR + NR)/2 loads of 16 bytes for f64,
 *           (MR + NR)/4 loads of 8 bytes for f16f32; K-major operands; f16f32 converts each element to f32, exactly
 * ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8
 * rounding  one fma per term, k ascending from 0, then one add of C0; denormals are kept
 * needs     sm_75
 * idea      A. Atluri, Musings on GEMM (2017): the outer product on NVIDIA GPUs; written here for any K, batch and
 *           stride
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0 bytes
 */
#include "call.cuh"
#include "types.cuh"
#include "memory.cuh"

template <class Y, int MR, int NR, Layout LA, Layout LB, bool EDGE>
__global__ void __launch_bounds__(128, 1) outer(const __grid_constant__ Call p) {
    typedef typename Y::Elem Elem;
    typedef typename Y::Acc Acc;
    constexpr int U = steps<Elem>(LA, LB);
    Tile t = tile_of<MR, NR, EDGE>(p, group_index<1>());
    if (!t.inside) return;
    const Elem* a = (const Elem*)p.a + t.offsets.a + t.i * p.a_rs;
    const Elem* b = (const Elem*)p.b + t.offsets.b + t.j * p.b_cs;
    Acc acc[MR][NR] = {};
    u32 k = (u32)(p.k / U);
    if (k > 0) {
        Acc fa[2][MR][U], fb[2][NR][U];
        auto fetch = [&](Acc(&x)[MR][U], Acc(&y)[NR][U]) {
            load_fragment<Y, MR, U, LA, EDGE>(x, a, p.a_rs, p.a_cs, t.rows);
            load_fragment<Y, NR, U, LB, EDGE>(y, b, p.b_cs, p.b_rs, t.cols);
            a += LA == PACKED ? (i64)(U * MR) : LA == K_MAJOR ? (i64)U : U * p.a_cs;
            b += LB == PACKED ? (i64)(U * NR) : LB == K_MAJOR ? (i64)U : U * p.b_rs;
        };
        auto update = [&](const Acc(&x)[MR][U], const Acc(&y)[NR][U]) {
#pragma unroll
            for (int u = 0; u < U; ++u)
#pragma unroll
                for (int i = 0; i < MR; ++i)
#pragma unroll
                    for (int j = 0; j < NR; ++j) acc[i][j] = multiply_add(x[i][u], y[j][u], acc[i][j]);
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
#pragma unroll 1
    for (int left = (int)(p.k % U); left > 0; --left) {
        Acc fa[MR][1], fb[NR][1];
        load_fragment<Y, MR, 1, ANY, EDGE>(fa, a, p.a_rs, p.a_cs, t.rows);
        load_fragment<Y, NR, 1, ANY, EDGE>(fb, b, p.b_cs, p.b_rs, t.cols);
        a += p.a_cs;
        b += p.b_rs;
#pragma unroll
        for (int i = 0; i < MR; ++i)
#pragma unroll
            for (int j = 0; j < NR; ++j) acc[i][j] = multiply_add(fa[i][0], fb[j][0], acc[i][j]);
    }
    store_tile<Y, MR, NR, EDGE>(p, t, acc);
}
