/* outer_dot4: C[MR,NR] += A[MR,K] * B[K,NR], int8 into int32; four k to an instruction.
 *
 * contract  gpu_kernels/micro/call.cuh; any K: a last group of fewer than 4 is filled with zeros. K = 0 gives C0 or
 *           zeros. An edge tile (EDGE) reads and writes the elements that exist.
 * tile      hip_i8i32_outer_4x4, hip_i8i32_outer_8x8; k_group 4
 * regs      MR*NR accumulators; at most 76 registers, at most 148 registers for 8x8; no spills
 * per k     MR*NR/4 v_dot4c_i32_i8, MR*NR/4 v_dot4_i32_i8 for gfx906, MR*NR/4 v_dot4_i32_iu8 for gfx11 and gfx12,
 *           MR*NR v_mul_i32_i24 for gfx900; (MR + NR)/16 loads of 16 bytes; K-major operands; others are transposed in
 *           registers; gfx900 has no dot product and adds each product by an instruction of its own
 * ratio     MR*NR / (MR + NR) = 2.00 for 4x4, 4.00 for 8x8
 * rounding  none: exact, int32 wraps around
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017), Int4 GEMM: int4 there is a vector of four words, the values are int8
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0 bytes
 */
#include "amd.h"
#include "../gpu_kernels/micro/outer_dp4a.cu"
