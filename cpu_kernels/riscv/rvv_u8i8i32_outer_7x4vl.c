/* rvv_u8i8i32_outer_7x4vl: C[7,4vl] += A[7,K] * B[K,4vl], uint8 * int8 into int32; vl elements of C in a vector.
 *
 * contract  pysimd.h; k_group 1, panel wide.
 * tile      mr 7  nr 4vl: row i of C is 4 registers
 * regs      28 accumulators + 2 of a row of B = 30 of 32 v
 * per k     7 vwmacc.vx  1 vle16.v  7 lh
 * ratio     7*4*vl / (7+4*vl) = 4.87 multiply-adds per element loaded; inner product 0.50;
 *           7 / 8 = 0.88 multiply-add instructions per load instruction; in vectors of the least length
 * rounding  exact; int32 wraps
 * needs     RVV
 * idea      the 7 x 4 vectors of the RVV kernels of BLIS: with B they fill the registers; code written here
 */
#include "vec_rvv.h"

#define KERNEL rvv_u8i8i32_outer_7x4vl
#define VEC i16
#define MR 7
#define VECTORS 1
#include "../templates/outer_vla.h"
