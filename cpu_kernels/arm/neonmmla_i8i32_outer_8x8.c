/* neonmmla_i8i32_outer_8x8: C[8,8] += A[8,K] * B[K,8], int8 into int32; blocks of 2 x 2.
 *
 * contract  pysimd.h; k_group 8, panel plain.
 * tile      mr 8  nr 8; an accumulator is a block of two rows and two columns
 * regs      16 accumulators + 7 operands = 23 of 32 v
 * per 8 k   16 smmla  4 ldp q
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           16 / 4 = 4.00 multiply-add instructions per load instruction
 * rounding  exact; int32 wraps
 * needs     NEON I8MM BF16
 * idea      the blocks of KleidiAI and of gemmlowp for the matrix multiply instructions of Armv8.6; code written here
 */
#include "vec_neonmmla.h"

#define KERNEL neonmmla_i8i32_outer_8x8
#define VEC i8x8
#define MR 8
#define NR 8
#include "../templates/mmla.h"
