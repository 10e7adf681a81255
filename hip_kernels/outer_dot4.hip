/* outer_dot4: C[MR,NR] += A[MR,K] * B[K,NR], int8 into int32; four k to an instruction.
 *
 * contract  gpu_kernels/micro/call.cuh; any K: a last group of fewer than 4 is filled with zeros. K = 0 gives C0 or
 *           zeros. Tiles that stick out of C (EDGE) read and write what exists.
 * tile      hip_i8i32_outer_4x4, hip_i8i32_outer_8x8; k_group 4
 * regs      MR*NR sums, 16 steps of k in (MR + NR)*4 words; no scratch
 * per k     MR*NR/4 v_dot4_i32_i8 (gfx906), v_dot4c_i32_i8 (gfx908 to gfx950, gfx103x), v_dot4_i32_iu8 (from gfx11 on);
 *           gfx900 has none and multiplies byte by byte: MR*NR v_mad_i32_i24 or v_mul_i32_i24 with an add.
 *           (MR + NR)/16 16-byte loads along k. An operand that lies along its rows is turned in registers, 8
 *           v_perm_b32 for 4 elements of 4 k
 * ratio     MR*NR / (MR + NR): 2.00 for 4x4, 4.00 for 8x8
 * rounding  none: exact, int32 wraps around
 * needs     gfx900
 * idea      A. Atluri, Musings on GEMM (2017), Int4 GEMM: int4 there is a vector of four words, the values are int8
 * lanes     1
 * launch    128 threads a block; grid ceil(batch * ceil(m/MR) * ceil(n/NR) / 128)
 * smem      0
 */
#include "amd.h"
#include "../gpu_kernels/micro/outer_dp4a.cu"
