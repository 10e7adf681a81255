/* avx_f32_outer_8x8: C[8,8] += A[8,K] * B[K,8], float; one rank-1 update per k.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 8: row i of C is 1 register
 * regs      8 accumulators + 1 row of B + 2 for a broadcast and its product = 11 of 16 ymm
 * per k     8 vmulps  8 vaddps  1 vmovups m256  8 vbroadcastss m32
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           8 / 9 = 0.89 multiply-add instructions per load instruction
 * bound     16 operations on two ports take 8 cycles, the loads 4.5: the arithmetic binds, so a larger tile would gain
 *           nothing without fma
 * rounding  one multiply and one add per term, both rounded, k ascending from 0, then one add into C
 * needs     AVX
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx.h"

#define KERNEL avx_f32_outer_8x8
#define VEC f32x8
#define MR 8
#define NR 8
#include "../templates/outer.h"
