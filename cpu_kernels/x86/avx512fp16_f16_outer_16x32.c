/* avx512fp16_f16_outer_16x32: C[16,32] += A[16,K] * B[K,32], half; accumulated in half.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 16  nr 32: row i of C is 1 register
 * regs      16 accumulators + 1 row of B = 17 of 32 zmm
 * per k     16 vfmadd231ph m16bcst  1 vmovdqu16 m512
 * ratio     16*32 / (16+32) = 10.67 multiply-adds per element loaded; inner product 0.50;
 *           16 / 17 = 0.94 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C, all in half: |error| is at most
 *           (K + 3) 2^-11 (|A||B| + |C|) where nothing is denormal; a sum beyond 65504 is infinite
 * needs     AVX-512 F BW DQ VL FP16
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx512fp16.h"

#define KERNEL avx512fp16_f16_outer_16x32
#define VEC f16x32
#define MR 16
#define NR 32
#include "../templates/outer.h"
