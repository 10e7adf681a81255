/* avx512vnni_i8i32_outer_14x32: C[14,32] += A[14,K] * B[K,32], int8 into int32; signed by an offset of 128.
 *
 * contract  pysimd.h; k_group 4, panel offset.
 * tile      mr 14  nr 32: row i of C is 2 registers
 * regs      28 accumulators + 4 operands of two groups of k = 32 of 32 zmm
 * per 4 k   28 vpdpbusd  2 vmovdqu64 m512  14 vpbroadcastd m32
 * ratio     14*32 / (14+32) = 9.74 multiply-adds per element loaded; inner product 0.50;
 *           28 / 16 = 1.75 multiply-add instructions per load instruction
 * rounding  exact; int32 wraps
 * needs     AVX-512 F BW DQ VL VNNI
 * idea      b + 128 is unsigned; -128 * sum(a) is packed after each row of A and added once
 * tried     B offset in the kernel (two vpxord a step) and the sum of A by vpdpbusd: 31 operations instead of 28
 */
#include "vec_avx512vnni.h"

#define KERNEL avx512vnni_i8i32_outer_14x32
#define VEC i8x64
#define MR 14
#define NR 32
#include "../templates/outer.h"
