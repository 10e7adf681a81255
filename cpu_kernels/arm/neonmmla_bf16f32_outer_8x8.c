/* neonmmla_bf16f32_outer_8x8: C[8,8] += A[8,K] * B[K,8], bfloat16 into float; blocks of 2 x 2.
 *
 * contract  pysimd.h; k_group 4, panel plain.
 * tile      mr 8  nr 8; an accumulator is a block of two rows and two columns
 * regs      16 accumulators + 7 operands = 23 of 32 v
 * per 4 k   16 bfmmla  4 ldp q
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           16 / 4 = 4.00 multiply-add instructions per load instruction
 * rounding  two sums of two products in an instruction, each rounded to odd, then one add into C
 * needs     NEON I8MM BF16
 * idea      the blocks of KleidiAI and of gemmlowp for the matrix multiply instructions of Armv8.6; code written here
 */
#include "vec_neonmmla.h"

#define KERNEL neonmmla_bf16f32_outer_8x8
#define VEC bf16x4
#define MR 8
#define NR 8
#include "../templates/mmla.h"
