/* avx512_f16f32_outer_16x16: C[16,16] += A[16,K] * B[K,16], float16 into float; widened while packing or loading.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 16  nr 16: row i of C is 1 register
 * regs      16 accumulators + 1 row of B = 17 of 32 zmm
 * per k     16 vfmadd231ps m32bcst  1 vmovups m512
 * ratio     16*16 / (16+16) = 8.00 multiply-adds per element loaded; inner product 0.50;
 *           16 / 17 = 0.94 multiply-add instructions per load instruction
 * rounding  float16 products are exact in float; one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      panels are those of avx512_f32_outer_16x16, whose function computes them; a batch of products reads B from
 *           the array, and widens its values in the step of k that loads them
 */
#include "vec_avx512_f16.h"

#define KERNEL avx512_f16f32_outer_16x16
#define VEC f32_f16x16
#define MR 16
#define NR 16
#define B_IN_REGISTERS
#define DOTS
#define WIDENS_B
#include "../templates/outer.h"
