/* neon_f32_outer_8x12: C[8,12] += A[8,K] * B[K,12], float; the tile that fills the NEON registers.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 12: row i of C is 3 registers
 * regs      24 accumulators + 8 operands = 32 of 32 v
 * per k     24 fmla  1 ldp q  1 ldr q  3/2 ldp s  5 ldr s; a mean of two steps
 * ratio     8*12 / (8+12) = 4.80 multiply-adds per element loaded; inner product 0.50;
 *           24 / (17/2) = 2.82 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     NEON
 * idea      the 8x12 tile of BLIS for ARMv8 (Van Zee and van de Geijn, 2015); code written here
 */
#include "vec_neon.h"

#define KERNEL neon_f32_outer_8x12
#define VEC f32x4
#define MR 8
#define NR 12
#include "../templates/outer.h"
