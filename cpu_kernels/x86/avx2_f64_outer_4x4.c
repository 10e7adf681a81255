/* avx2_f64_outer_4x4: C[4,4] += A[4,K] * B[K,4], double; one rank-1 update per k.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is 1 register
 * regs      4 accumulators + 1 row of B + 2 broadcasts = 7 of 16 ymm; twice the accumulators where K is long
 * per k     4 vfmadd231pd  1 vmovupd m256  4 vbroadcastsd m64
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           4 / 5 = 0.80 multiply-add instructions per load instruction
 * bound     the loads, and the latency of the fma
 * rounding  one fma per term, k ascending from 0 (from K = 8 on, even and odd k in accumulators of their
 *           own, added at the end), then one add into C
 * needs     AVX2 FMA
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx2.h"

#define KERNEL avx2_f64_outer_4x4
#define VEC f64x4
#define MR 4
#define NR 4
#include "../templates/outer.h"
