/* avx512_f32_outer_16x16: C[16,16] += A[16,K] * B[K,16], float; one whole 16-column product.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 16  nr 16: row i of C is 1 register
 * regs      16 accumulators + 1 row of B = 17 of 32 zmm
 * per k     16 vfmadd231ps m32bcst  1 vmovups m512
 * ratio     16*16 / (16+16) = 8.00 multiply-adds per element loaded; inner product 0.50;
 *           16 / 17 = 0.94 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx512.h"

#define KERNEL avx512_f32_outer_16x16
#define VEC f32x16
#define MR 16
#define NR 16
#define B_IN_REGISTERS
#define DOTS
#include "../templates/outer.h"
