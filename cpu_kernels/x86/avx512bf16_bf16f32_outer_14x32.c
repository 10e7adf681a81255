/* avx512bf16_bf16f32_outer_14x32: C[14,32] += A[14,K] * B[K,32], bfloat16 into float; two k in each 32-bit lane.
 *
 * contract  pysimd.h; k_group 2, panel plain.
 * tile      mr 14  nr 32: row i of C is 2 registers
 * regs      28 accumulators + 4 operands of two groups of k = 32 of 32 zmm
 * per 2 k   28 vdpbf16ps  2 vmovdqu64 m512  14 vpbroadcastd m32
 * ratio     14*32 / (14+32) = 9.74 multiply-adds per element loaded; inner product 0.50;
 *           28 / 16 = 1.75 multiply-add instructions per load instruction
 * rounding  two rounded terms per vdpbf16ps, k ascending from 0, then one add into C; denormals are zero
 * needs     AVX-512 F BW DQ VL BF16
 * idea      the dot-product instruction as the rank-2 update of a register tile
 */
#include "vec_avx512bf16.h"

#define KERNEL avx512bf16_bf16f32_outer_14x32
#define VEC bf16x32
#define MR 14
#define NR 32
#include "../templates/outer.h"
