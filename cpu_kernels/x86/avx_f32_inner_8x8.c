/* avx_f32_inner_8x8: C[8,8] += A[8,K] * B[K,8], float; one dot product per element of C.
 *
 * contract  pysimd.h; inner form: A by rows, B by columns, both contiguous in k; k_group 1, panel plain.
 * tile      mr 8  nr 8; one element of C at a time
 * regs      4 accumulators of one element + 4 operands = 8 of 16 ymm
 * per 32 k  4 vmulps m256  4 vaddps  4 vmovups m256
 * ratio     1 / 2 = 0.50 multiply-adds per element loaded; outer product 4.00;
 *           4 / 8 = 0.50 multiply-add instructions per load instruction
 * bound     the loads: four accumulators hide the latency of the add; what remains is the ratio
 * rounding  4 accumulators of 8 lanes, added as a tree; products rounded; then one add into C
 * needs     AVX
 * idea      row times column, as in the definition; kept as the baseline of the outer product
 */
#include "vec_avx.h"

#define KERNEL avx_f32_inner_8x8
#define VEC f32x8
#define MR 8
#define NR 8
#include "../templates/inner.h"
