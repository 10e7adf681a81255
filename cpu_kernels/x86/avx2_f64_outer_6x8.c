/* avx2_f64_outer_6x8: C[6,8] += A[6,K] * B[K,8], double; the tile that fills the AVX2 registers.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 6  nr 8: row i of C is 2 registers
 * regs      12 accumulators + 4 operands of two steps of k = 16 of 16 ymm
 * per k     12 vfmadd231pd  2 vmovupd m256  6 vbroadcastsd m64
 * ratio     6*8 / (6+8) = 3.43 multiply-adds per element loaded; inner product 0.50;
 *           12 / 8 = 1.50 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX2 FMA
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx2.h"

#define KERNEL avx2_f64_outer_6x8
#define VEC f64x4
#define MR 6
#define NR 8
#define HALVES
#include "../templates/outer.h"
