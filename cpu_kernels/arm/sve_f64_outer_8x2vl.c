/* sve_f64_outer_8x2vl: C[8,2vl] += A[8,K] * B[K,2vl], double; vl elements of C in a vector.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 2vl: row i of C is 2 registers
 * regs      16 accumulators + 5 operands = 21 of 32 z
 * per k     16 fmla  2 ld1d  8 ld1rd
 * ratio     8*2*vl / (8+2*vl) = 2.67 multiply-adds per element loaded; inner product 0.50;
 *           16 / 10 = 1.60 multiply-add instructions per load instruction; in vectors of the least length
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     SVE
 * idea      rows of C of two vectors, as in the SVE kernels of BLIS and OpenBLAS; code written here
 */
#include "vec_sve.h"

#define KERNEL sve_f64_outer_8x2vl
#define VEC f64
#define MR 8
#define VECTORS 2
#include "../templates/outer_vla.h"
