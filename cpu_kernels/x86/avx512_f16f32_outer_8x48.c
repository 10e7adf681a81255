/* avx512_f16f32_outer_8x48: C[8,48] += A[8,K] * B[K,48], float16 into float; widened while packing or loading.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 8  nr 48: row i of C is 3 registers
 * regs      24 accumulators + 3 of a row of B + 1 broadcast = 28 of 32 zmm
 * per k     24 vfmadd231ps  3 vmovups m512  8 vbroadcastss m32
 * ratio     8*48 / (8+48) = 6.86 multiply-adds per element loaded; inner product 0.50;
 *           24 / 11 = 2.18 multiply-add instructions per load instruction
 * rounding  float16 products are exact in float; one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      panels are those of avx512_f32_outer_8x48, whose function computes them; a batch of products reads B from
 *           the array, and widens its values in the step of k that loads them
 */
#include "vec_avx512_f16.h"

#define KERNEL avx512_f16f32_outer_8x48
#define VEC f32_f16x16
#define MR 8
#define NR 48
#define K_UNROLL 1
#define DOTS
#define HALF_VECTORS
#define WIDENS_B
#include "../templates/outer.h"
