/* sse_f32_outer_6x8: C[6,8] += A[6,K] * B[K,8], float; the tile that fills the SSE registers.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 6  nr 8: row i of C is 2 registers
 * regs      12 accumulators + 2 of a row of B + 2 for a broadcast and its product = 16 of 16 xmm
 * per k     12 mulps  12 addps  2 movups m128  6 movss m32  6 shufps
 * ratio     6*8 / (6+8) = 3.43 multiply-adds per element loaded; inner product 0.50;
 *           12 / 8 = 1.50 multiply-add instructions per load instruction
 * bound     the two-operand form also copies registers (movaps)
 * rounding  one multiply and one add per term, both rounded, k ascending from 0, then one add into C
 * needs     SSE2 (every x86-64)
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_sse.h"

#define KERNEL sse_f32_outer_6x8
#define VEC f32x4
#define MR 6
#define NR 8
#define K_UNROLL 1
#include "../templates/outer.h"
