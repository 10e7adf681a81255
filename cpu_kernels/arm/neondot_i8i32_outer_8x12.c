/* neondot_i8i32_outer_8x12: C[8,12] += A[8,K] * B[K,12], int8 into int32; four products an instruction and lane.
 *
 * contract  pysimd.h; k_group 4, panel plain.
 * tile      mr 8  nr 12: row i of C is 3 registers
 * regs      24 accumulators + 7 operands = 31 of 32 v
 * per 4 k   24 sdot  1 ldp q  1 ldr q  2 ldp s  4 ldr s
 * ratio     8*12 / (8+12) = 4.80 multiply-adds per element loaded; inner product 0.50;
 *           24 / 8 = 3.00 multiply-add instructions per load instruction
 * rounding  exact; int32 wraps
 * needs     NEON DOTPROD
 * idea      the 8x12 tile with sdot, which adds four products to a lane; code written here
 */
#include "vec_neondot.h"

#define KERNEL neondot_i8i32_outer_8x12
#define VEC i8x16
#define MR 8
#define NR 12
#define K_UNROLL 1
#include "../templates/outer.h"
