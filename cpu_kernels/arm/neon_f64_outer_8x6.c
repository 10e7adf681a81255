/* neon_f64_outer_8x6: C[8,6] += A[8,K] * B[K,6], double; the tile that fills the NEON registers.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 6: row i of C is 3 registers
 * regs      24 accumulators + 8 operands = 32 of 32 v
 * per k     24 fmla  1 ldp q  1 ldr q  3/2 ldp d  5 ldr d; a mean of two steps
 * ratio     8*6 / (8+6) = 3.43 multiply-adds per element loaded; inner product 0.50;
 *           24 / (17/2) = 2.82 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     NEON
 * idea      the 8x12 tile of BLIS for ARMv8 (Van Zee and van de Geijn, 2015); code written here
 */
#include "vec_neon.h"

#define KERNEL neon_f64_outer_8x6
#define VEC f64x2
#define MR 8
#define NR 6
#include "../templates/outer.h"
