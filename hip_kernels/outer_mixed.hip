/* outer_mixed: C[MR,NR] += A[MR,K] * B[K,NR], half in, summed in float.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. Tiles that stick out of C (EDGE) read and write
 *           what exists.
 * tile      hip_f16f32_outer_4x4, hip_f16f32_outer_8x8
 * regs      MR*NR sums; 4 steps of k of A and B of this turn and of the next, which are already being loaded, as
 *           halves; no scratch
 * per k     MR*NR v_fma_mix_f32, which take either half of a register as a float (v_mad_mix_f32 on gfx900). On gfx90a
 *           and gfx942 the compiler prefers MR + NR conversions and MR*NR/2 v_pk_fma_f32
 * ratio     MR*NR / (MR + NR): 2.00 for 4x4, 4.00 for 8x8 (inner product 0.50)
 * rounding  one float fma per term, k ascending from 0, then one add of C0. The product of two halves is exact in
 *           float, so that v_mad_mix_f32, which is not fused, rounds alike
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017), mixed precision on AMD GPUs. The article's inline assembly has the bits
 *           that tell halves from floats wrong (op_sel_hi [0,1,1] for [1,1,0]): here the compiler sets them
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0
 */
#include "halves.h"

/* gfx900 has no fused mixed instruction: written as two operations, it is free to take the other. */
__device__ inline float multiply_add(half_t a, half_t b, float c) {
#if defined(__gfx900__) || defined(__gfx902__)
    return wide(a) * wide(b) + c;
#else
    return multiply_add(wide(a), wide(b), c);
#endif
}

struct Mixed {
    template <int MR, int NR>
    struct Sums {
        float acc[MR][NR];

        template <int U, Layout LA, Layout LB>
        __device__ void add(const Halves<MR, U, LA>& a, const Halves<NR, U, LB>& b) {
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
