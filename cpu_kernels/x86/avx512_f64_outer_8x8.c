/* avx512_f64_outer_8x8: C[8,8] += A[8,K] * B[K,8], double; one rank-1 update per k.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 8: row i of C is 1 register
 * regs      8 accumulators + 1 row of B = 9 of 32 zmm
 * per k     8 vfmadd231pd m64bcst  1 vmovupd m512
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           8 / 9 = 0.89 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx512.h"

#define KERNEL avx512_f64_outer_8x8
#define VEC f64x8
#define MR 8
#define NR 8
#include "../templates/outer.h"
