/* outer_mixed: C[MR,NR] += A[MR,K] * B[K,NR], f16 in, accumulated in f32.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. An edge tile (EDGE) reads and writes the
 *           elements that exist.
 * tile      hip_f16f32_outer_4x4, hip_f16f32_outer_8x8
 * regs      MR*NR accumulators; at most 128 registers, at most 252 registers for 8x8; no spills; operands are f16, and
 *           double-buffered as in outer.hip
 * per k     MR*NR v_fma_mix_f32, MR*NR v_mad_mix_f32 for gfx900, MR*NR/2 v_pk_fma_f32 for gfx90a and gfx942;
 *           (MR + NR)/4 loads of 8 bytes; K-major operands; v_fma_mix takes either f16 of a register as an operand; for
 *           v_pk_fma the compiler converts each element to f32 first
 * ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8
 * rounding  one f32 fma per term, k ascending from 0, then one add of C0. The product of two f16 is exact in f32, so
 *           that v_mad_mix_f32, which is not fused, rounds alike
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017), mixed precision on AMD GPUs. The article's inline assembly has the bits
 *           that select f16 or f32 wrong (op_sel_hi [0,1,1] for [1,1,0]): here the compiler sets them
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0 bytes
 */
#include "f16.h"

/* gfx900 has v_mad_mix, not v_fma_mix: the compiler selects it from a product and a sum. */
__device__ inline float multiply_add(f16 a, f16 b, float c) {
#if defined(__gfx900__) || defined(__gfx902__)
    return to_f32(a) * to_f32(b) + c;
#else
    return multiply_add(to_f32(a), to_f32(b), c);
#endif
}

struct Mixed {
    template <int MR, int NR>
    struct Accumulators {
        float acc[MR][NR];

        template <int U, Layout LA, Layout LB>
        __device__ void add(const F16Fragment<MR, U, LA>& a, const F16Fragment<NR, U, LB>& b) {
#pragma unroll
            for (int u = 0; u < U; ++u)
#pragma unroll
                for (int i = 0; i < MR; ++i)
#pragma unroll
                    for (int j = 0; j < NR; ++j) acc[i][j] = multiply_add(a.one(i, u), b.one(j, u), acc[i][j]);
        }

        template <bool EDGE>
        __device__ void store(const Call& p, const Tile& t) const {
            store_tile<F16F32, MR, NR, EDGE>(p, t, acc);
        }
    };
};
