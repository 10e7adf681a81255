/* avx512_f64_outer_8x24: C[8,24] += A[8,K] * B[K,24], double; three vectors of columns in one tile.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 8  nr 24: row i of C is 3 registers
 * regs      24 accumulators + 3 of a row of B + 1 broadcast = 28 of 32 zmm
 * per k     24 vfmadd231pd  3 vmovupd m512  8 vbroadcastsd m64
 * ratio     8*24 / (8+24) = 6.00 multiply-adds per element loaded; inner product 0.50;
 *           24 / 11 = 2.18 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx512.h"

#define KERNEL avx512_f64_outer_8x24
#define VEC f64x8
#define MR 8
#define NR 24
#define K_UNROLL 1
#define DOTS
#define HALF_VECTORS
#include "../templates/outer.h"
