/* generic_bf16f32_outer_4x4: C[4,4] += A[4,K] * B[K,4], float sums of bfloat16; plain C, for any processor.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is one register
 * regs      4 accumulators + 1 row of B + 1 broadcast, as the target has them
 * per k     4 multiply-adds of 4 lanes  1 row of 4  4 broadcasts
 * ratio     4*4 / (4+4) = 2.00 FMA per element loaded (inner product 0.50)
 *           4 / 5 = 0.80 counted in vector operations
 * rounding  bfloat16 products are exact in float; one sum per term (or one fma), k ascending from 0 (from K = 8 on
 *           even and odd k apart, then summed), one add into C
 * needs     nothing
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_generic.h"

#define KERNEL generic_bf16f32_outer_4x4
#define VEC bf16x4
#define MR 4
#define NR 4
#include "../templates/outer.h"
