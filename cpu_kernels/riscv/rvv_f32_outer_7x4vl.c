/* rvv_f32_outer_7x4vl: C[7,4vl] += A[7,K] * B[K,4vl], float; vl elements of C in a vector.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 7  nr 4vl: row i of C is 4 registers
 * regs      28 accumulators + 4 of a row of B = 32 of 32 v
 * per k     7 vfmacc.vf  1 vle32.v  7 flw
 * ratio     7*4*vl / (7+4*vl) = 4.87 multiply-adds per element loaded; inner product 0.50;
 *           7 / 8 = 0.88 multiply-add instructions per load instruction; in vectors of the least length
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     RVV
 * idea      the 7 x 4 vectors of the RVV kernels of BLIS: with B they fill the registers; code written here
 */
#include "vec_rvv.h"

#define KERNEL rvv_f32_outer_7x4vl
#define VEC f32
#define MR 7
#define VECTORS 1
#include "../templates/outer_vla.h"
