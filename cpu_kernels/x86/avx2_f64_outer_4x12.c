/* avx2_f64_outer_4x12: C[4,12] += A[4,K] * B[K,12], double; 9 to 12 columns in one tile.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 12: row i of C is 3 registers
 * regs      12 accumulators + 3 of a row of B + 1 broadcast = 16 of 16 ymm
 * per k     12 vfmadd231pd  3 vmovupd m256  4 vbroadcastsd m64
 * ratio     4*12 / (4+12) = 3.00 multiply-adds per element loaded; inner product 0.50;
 *           12 / 7 = 1.71 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX2 FMA
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx2.h"

#define KERNEL avx2_f64_outer_4x12
#define VEC f64x4
#define MR 4
#define NR 12
#define HALVES
#define K_UNROLL 1
#include "../templates/outer.h"
