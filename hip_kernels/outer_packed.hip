/* outer_packed: C[MR,NR] += A[MR,K] * B[K,NR] in half, two columns of C to an instruction.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. Tiles that stick out of C (EDGE) read and write
 *           what exists.
 * tile      hip_f16_outer_4x4, hip_f16_outer_8x8
 * regs      MR*NR/2 pairs of sums; 4 steps of k of A and B of this turn and of the next, which are already being
 *           loaded; no scratch
 * per k     MR*NR/2 v_pk_fma_f16, each multiplying one element of A, taken twice by op_sel, by two of B; nothing is
 *           unpacked or turned, but where B lies along k: there a pair of columns costs a v_perm_b32 or v_pack_b32_f16
 * ratio     MR*NR / (MR + NR): 2.00 for 4x4, 4.00 for 8x8 (inner product 0.50)
 * rounding  one half fma per term, k ascending from 0, then one add of C0: the error grows with K * 2^-11.
 *           hip_f16f32_outer_* sum in float
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017), Half2 GEMM on AMD GPUs: the broadcast in the operand. The article's
 *           inline assembly is not needed: the compiler selects it from vectors of two
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0
 */
#include "halves.h"

struct Packed {
    template <int MR, int NR>
    struct Sums {
        Pair acc[MR][NR / 2];

        template <int U, Layout LA, Layout LB>
        __device__ void add(const Halves<MR, U, LA>& a, const Halves<NR, U, LB>& b) {
#pragma unroll
            for (int u = 0; u < U; ++u)
#pragma unroll
                for (int i = 0; i < MR; ++i)
#pragma unroll
                    for (int j = 0; j < NR; j += 2)
                        acc[i][j / 2] = multiply_add(a.twice(i, u), b.two(j, u), acc[i][j / 2]);
        }

        template <bool EDGE>
        __device__ void store(const Call& p, const Tile& t) const {
            half_t tile[MR][NR];
#pragma unroll
            for (int i = 0; i < MR; ++i)
#pragma unroll
                for (int j = 0; j < NR; ++j) tile[i][j] = half_of(acc[i][j / 2], j % 2);
            store_tile<Half, MR, NR, EDGE>(p, t, tile);
        }
    };
};
