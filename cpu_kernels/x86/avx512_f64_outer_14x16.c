/* avx512_f64_outer_14x16: C[14,16] += A[14,K] * B[K,16], double; the tile that fills the AVX-512 registers.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 14  nr 16: row i of C is 2 registers
 * regs      28 accumulators + 4 operands of two steps of k = 32 of 32 zmm
 * per k     28 vfmadd231pd  2 vmovupd m512  14 vbroadcastsd m64
 * ratio     14*16 / (14+16) = 7.47 multiply-adds per element loaded; inner product 0.50;
 *           28 / 16 = 1.75 multiply-add instructions per load instruction
 * bound     multiply-adds; B comes from L2 and C from L3 or memory, prefetched to L1: see outer.h
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); code written here
 */
#include "vec_avx512.h"

#define KERNEL avx512_f64_outer_14x16
#define VEC f64x8
#define MR 14
#define B_AHEAD 2048
#define NR 16
#define DOTS
#define HALF_VECTORS
#include "../templates/outer.h"
