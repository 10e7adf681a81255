/* avx512_f64_outer_4x4: C[4,4] += A[4,K] * B[K,4], double; one rank-1 update per k.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 4  nr 4: row i of C is one register
 * regs      4 accumulators + 1 row of B of 32 ymm; the broadcasts are memory operands of the fma
 * per k     4 vfmadd231pd (each with a broadcast load)  1 vmovupd
 * ratio     4*4 / (4+4) = 2.00 FMA per element loaded (inner product 0.50)
 *           4 / 5 = 0.80 counted in instructions
 * rounding  one fma per term, k ascending from 0 (from K = 8 on even and odd k
 *           apart, then summed), then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 * tried     two rows of C in a zmm with vpermpd: 8 fma and 8 permutes for K = 4 on two ports, no gain over 16 fma
 */
#include "vec_avx512.h"

#define KERNEL avx512_f64_outer_4x4
#define VEC f64x4
#define MR 4
#define NR 4
#include "../templates/outer.h"
