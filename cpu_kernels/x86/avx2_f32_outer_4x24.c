/* avx2_f32_outer_4x24: C[4,24] += A[4,K] * B[K,24], float; 17 to 24 columns in one tile.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 24: row i of C is 3 registers
 * regs      12 accumulators + 3 of a row of B + 1 broadcast = 16 of 16 ymm
 * per k     12 vfmadd231ps  3 vmovups m256  4 vbroadcastss m32
 * ratio     4*24 / (4+24) = 3.43 multiply-adds per element loaded; inner product 0.50;
 *           12 / 7 = 1.71 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX2 FMA
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx2.h"

#define KERNEL avx2_f32_outer_4x24
#define VEC f32x8
#define MR 4
#define NR 24
#define HALVES
#define K_UNROLL 1
#include "../templates/outer.h"
