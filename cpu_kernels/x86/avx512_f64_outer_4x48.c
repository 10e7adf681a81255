/* avx512_f64_outer_4x48: C[4,48] += A[4,K] * B[K,48], double; one rank-1 update per k.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 48: row i of C is 6 registers
 * regs      24 accumulators + 6 row of B + 1 broadcast of A = 31 of 32 zmm
 * per k     24 vfmadd231pd  6 vmovupd m512  4 vbroadcastsd m64
 * ratio     4*48 / (4+48) = 3.69 multiply-adds per element loaded; inner product 0.50;
 *           24 / 10 = 2.40 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx512.h"

#define KERNEL avx512_f64_outer_4x48
#define VEC f64x8
#define MR 4
#define NR 48
#define K_UNROLL 1
#include "../templates/outer.h"
