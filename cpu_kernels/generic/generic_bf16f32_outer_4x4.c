/* generic_bf16f32_outer_4x4: C[4,4] += A[4,K] * B[K,4], bfloat16 into float; plain C, for any processor.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is 1 register
 * regs      4 accumulators + 10 operands = 14 of 16 xmm; twice the accumulators where K is long
 * per k     4 mulps  4 addps  2 movq m64  4 movzx m16  1 pshufd  1 pslld  1 punpcklqdq  2 punpcklwd  1 pxor  12 shufps
 *           4 unpcklps; as gcc lowers it for the baseline processor
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           4 / 6 = 0.67 multiply-add instructions per load instruction
 * rounding  bfloat16 products are exact in float; one add per term (or one fma), k ascending from 0 (from K = 8 on,
 *           even and odd k in accumulators of their own, added at the end), then one add into C
 * needs     nothing
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_generic.h"

#define KERNEL generic_bf16f32_outer_4x4
#define VEC bf16x4
#define MR 4
#define NR 4
#include "../templates/outer.h"
