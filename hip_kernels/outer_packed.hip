/* outer_packed: C[MR,NR] += A[MR,K] * B[K,NR] in f16, two columns of C to an instruction.
 *
 * contract  gpu_kernels/micro/call.cuh; any K, K = 0 gives C0 or zeros. An edge tile (EDGE) reads and writes the
 *           elements that exist.
 * tile      hip_f16_outer_4x4, hip_f16_outer_8x8
 * regs      MR*NR/2 accumulators; at most 88 registers, at most 156 registers for 8x8; no spills; an accumulator is a
 *           pair of columns; operands are double-buffered as in outer.hip
 * per k     MR*NR/2 v_pk_fma_f16; (MR + NR)/4 loads of 8 bytes; K-major operands; v_pk_fma broadcasts an element of A
 *           (op_sel) and multiplies it by two of B; a K-major B costs a v_perm_b32 or v_pack_b32_f16 a pair of columns
 * ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8
 * rounding  one f16 fma per term, k ascending from 0, then one add of C0: the error grows with K * 2^-11.
 *           hip_f16f32_outer_* accumulate in f32
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017), Half2 GEMM on AMD GPUs: the broadcast in the operand. The article's
 *           inline assembly is not needed: the compiler selects it from vectors of two
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0 bytes
 */
#include "f16.h"

struct Packed {
    template <int MR, int NR>
    struct Accumulators {
        Pair acc[MR][NR / 2];

        template <int U, Layout LA, Layout LB>
        __device__ void add(const F16Fragment<MR, U, LA>& a, const F16Fragment<NR, U, LB>& b) {
#pragma unroll
            for (int u = 0; u < U; ++u)
#pragma unroll
                for (int i = 0; i < MR; ++i)
#pragma unroll
                    for (int j = 0; j < NR; j += 2)
                        acc[i][j / 2] = multiply_add(a.broadcast(i, u), b.pair(j, u), acc[i][j / 2]);
        }

        template <bool EDGE>
        __device__ void store(const Call& p, const Tile& t) const {
            f16 tile[MR][NR];
#pragma unroll
            for (int i = 0; i < MR; ++i)
#pragma unroll
                for (int j = 0; j < NR; ++j) tile[i][j] = element(acc[i][j / 2], j % 2);
            store_tile<F16Only, MR, NR, EDGE>(p, t, tile);
        }
    };
};
