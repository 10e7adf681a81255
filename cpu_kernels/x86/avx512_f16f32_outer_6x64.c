/* avx512_f16f32_outer_6x64: C[6,64] += A[6,K] * B[K,64], float16 into float; widened while packing or loading.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 6  nr 64: row i of C is 4 registers
 * regs      24 accumulators + 4 of a row of B + 1 broadcast = 29 of 32 zmm
 * per k     24 vfmadd231ps  4 vmovups m512  6 vbroadcastss m32
 * ratio     6*64 / (6+64) = 5.49 multiply-adds per element loaded; inner product 0.50;
 *           24 / 10 = 2.40 multiply-add instructions per load instruction
 * rounding  float16 products are exact in float; one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      panels are those of avx512_f32_outer_6x64, whose function computes them; a batch of products reads B from
 *           the array, and widens its values in the step of k that loads them
 */
#include "vec_avx512_f16.h"

#define KERNEL avx512_f16f32_outer_6x64
#define VEC f32_f16x16
#define MR 6
#define NR 64
#define K_UNROLL 1
#define DOTS
#define HALF_VECTORS
#define WIDENS_B
#include "../templates/outer.h"
