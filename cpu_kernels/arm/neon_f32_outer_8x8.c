/* neon_f32_outer_8x8: C[8,8] += A[8,K] * B[K,8], float; one rank-1 update per k.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 8: row i of C is 2 registers
 * regs      16 accumulators + 10 operands = 26 of 32 v
 * per k     16 fmla  1 ldp q  5/2 ldp s  3 ldr s; a mean of two steps
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           16 / (13/2) = 2.46 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     NEON
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_neon.h"

#define KERNEL neon_f32_outer_8x8
#define VEC f32x4
#define MR 8
#define NR 8
#include "../templates/outer.h"
