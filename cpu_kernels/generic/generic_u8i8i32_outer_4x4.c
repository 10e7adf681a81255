/* generic_u8i8i32_outer_4x4: C[4,4] += A[4,K] * B[K,4], uint8 * int8 into int32; plain C, for any processor.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is 1 register
 * regs      4 accumulators + 10 operands = 14 of 16 xmm
 * per k     8 pmuludq  4 paddd  1 mov m32  4 movzx m8  32 pshufd  5 psrlq  6 punpckldq  1 punpcklqdq  1 pxor; as gcc
 *           lowers it for the baseline processor
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           8 / 5 = 1.60 multiply-add instructions per load instruction
 * rounding  exact; int32 wraps
 * needs     nothing
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_generic.h"

#define KERNEL generic_u8i8i32_outer_4x4
#define VEC u8i8x4
#define MR 4
#define NR 4
#include "../templates/outer.h"
