/* generic_f64_outer_4x4: C[4,4] += A[4,K] * B[K,4], double; plain C, for any processor.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is 2 registers
 * regs      8 accumulators + 8 operands = 16 of 16 xmm
 * per k     8 mulpd  8 addpd  9/2 movupd m128  2 movdqu m128  2 punpckhqdq  2 punpcklqdq; as gcc lowers it for the
 *           baseline processor
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           8 / 6.5 = 1.23 multiply-add instructions per load instruction
 * rounding  one multiply and one add per term (fused where the compiler may), k ascending from 0 (from K = 8 on, even
 *           and odd k in accumulators of their own, added at the end), then one add into C
 * needs     nothing
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_generic.h"

#define KERNEL generic_f64_outer_4x4
#define VEC f64x2
#define MR 4
#define NR 4
#include "../templates/outer.h"
