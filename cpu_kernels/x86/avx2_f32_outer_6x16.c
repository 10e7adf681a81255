/* avx2_f32_outer_6x16: C[6,16] += A[6,K] * B[K,16], float; the tile that fills the AVX2 registers.
 *
 * contract  pysimd.h; k_group 1, panel plain.
 * tile      mr 6  nr 16: row i of C is 2 registers
 * regs      12 accumulators + 4 operands of two steps of k = 16 of 16 ymm
 * per k     12 vfmadd231ps  2 vmovups m256  6 vbroadcastss m32
 * ratio     6*16 / (6+16) = 4.36 multiply-adds per element loaded; inner product 0.50;
 *           12 / 8 = 1.50 multiply-add instructions per load instruction
 * rounding  one fma per term, k ascending from 0, then one add into C
 * needs     AVX2 FMA
 * idea      the 6x16 tile of BLIS (Van Zee and van de Geijn, 2015); code written here
 */
#include "vec_avx2.h"

#define KERNEL avx2_f32_outer_6x16
#define VEC f32x8
#define MR 6
#define NR 16
#define HALVES
#include "../templates/outer.h"
