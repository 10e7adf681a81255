/* generic_f64_outer_4x4: C[4,4] += A[4,K] * B[K,4], double; plain C, for any processor.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is 2 registers
 * regs      8 accumulators + 2 of a row of B + 1 broadcast, as the target has them
 * per k     8 multiply-adds of 2 lanes  2 loads of 2  4 broadcasts
 * ratio     4*4 / (4+4) = 2.00 FMA per element loaded (inner product 0.50)
 *           8 / 6 = 1.33 counted in vector operations
 * rounding  one product and one sum per term (fused where the compiler may), k ascending from 0 (from K = 8
 *           on even and odd k apart, then summed), then one add into C
 * needs     nothing
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_generic.h"

#define KERNEL generic_f64_outer_4x4
#define VEC f64x2
#define MR 4
#define NR 4
#include "../templates/outer.h"
