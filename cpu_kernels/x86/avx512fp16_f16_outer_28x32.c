/* avx512fp16_f16_outer_28x32: C[28,32] += A[28,K] * B[K,32], half; accumulated in half.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 28  nr 32: row i of C is 1 register
 * regs      28 accumulators + 1 row of B = 29 of 32 zmm
 * per k     28 vfmadd231ph m16bcst  1 vmovdqu16 m512
 * ratio     28*32 / (28+32) = 14.93 multiply-adds per element loaded; inner product 0.50;
 *           28 / 29 = 0.97 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C, all in half: |error| is at most
 *           (K + 3) 2^-11 (|A||B| + |C|) where nothing is denormal; a sum beyond 65504 is infinite
 * needs     AVX-512 F BW DQ VL FP16
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx512fp16.h"

#define KERNEL avx512fp16_f16_outer_28x32
#define VEC f16x32
#define MR 28
#define NR 32
#include "../templates/outer.h"
