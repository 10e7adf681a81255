/* avx2_f64_outer_4x4: C[4,4] += A[4,K] * B[K,4], double; one rank-1 update per k.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is one register
 * regs      4 accumulators + 1 row of B + 1 broadcast of 16 ymm
 * per k     4 vfmadd231pd  1 vmovupd  4 vbroadcastsd
 * ratio     4*4 / (4+4) = 2.00 FMA per element loaded (inner product 0.50)
 *           4 / 5 = 0.80 counted in instructions: loads and the fma latency bind
 * rounding  one fma per term, k ascending from 0 (from K = 8 on even and odd k
 *           apart, then summed), then one add into C
 * needs     AVX2 FMA
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx2.h"

#define KERNEL avx2_f64_outer_4x4
#define VEC f64x4
#define MR 4
#define NR 4
#include "../templates/outer.h"
