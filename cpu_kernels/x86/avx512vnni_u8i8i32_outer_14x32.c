/* avx512vnni_u8i8i32_outer_14x32: C[14,32] += A[14,K] * B[K,32], uint8 * int8 into int32; four k in each 32-bit lane.
 *
 * contract  pysimd.h; k_group 4, panel plain.
 * tile      mr 14  nr 32: row i of C is 2 registers
 * regs      28 accumulators + 4 operands of two groups of k = 32 of 32 zmm
 * per 4 k   28 vpdpbusd  2 vmovdqu64 m512  14 vpbroadcastd m32
 * ratio     14*32 / (14+32) = 9.74 multiply-adds per element loaded; inner product 0.50;
 *           28 / 16 = 1.75 multiply-add instructions per load instruction
 * rounding  exact; int32 wraps
 * needs     AVX-512 F BW DQ VL VNNI
 * idea      the dot-product instruction as the rank-4 update of a register tile
 */
#include "vec_avx512vnni.h"

#define KERNEL avx512vnni_u8i8i32_outer_14x32
#define VEC u8i8x64
#define MR 14
#define NR 32
#include "../templates/outer.h"
