/* avx512_f16f32_outer_14x32: C[14,32] += A[14,K] * B[K,32], float16 into float; widened while packing or loading.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 14  nr 32: row i of C is 2 registers
 * regs      28 accumulators + 4 operands of two steps of k = 32 of 32 zmm
 * per k     28 vfmadd231ps  2 vmovups m512  14 vbroadcastss m32
 * ratio     14*32 / (14+32) = 9.74 multiply-adds per element loaded; inner product 0.50;
 *           28 / 16 = 1.75 multiply-add instructions per load instruction
 * tried     on AMX, each value as the sum of two bfloat16: bfloat16 products of four times the K took 0.92 to 1.1 times
 *           as long from 64 to 2048 rows and columns, 0.56 times for 4096 x 64 x 4096, 1.4 to 1.7 times for 16 rows or
 *           columns (Xeon, while another virtual machine used its core; else it was not measured)
 * rounding  float16 products are exact in float; one fma per term, k ascending from 0, then one add into C
 * needs     AVX-512 F BW DQ VL
 * idea      panels are those of avx512_f32_outer_14x32, whose function computes them; a batch of products reads B from
 *           the array, and widens its values in the step of k that loads them
 */
#include "vec_avx512_f16.h"

#define KERNEL avx512_f16f32_outer_14x32
#define VEC f32_f16x16
#define MR 14
#define NR 32
#define DOTS
#define HALF_VECTORS
#define WIDENS_B
#include "../templates/outer.h"
