/* neon_f32_inner_8x8: C[8,8] += A[8,K] * B[K,8], float; one dot product per element of C.
 *
 * contract  pysimd.h; inner form: A by rows, B by columns, both contiguous in k; k_group 1, panel plain.
 * tile      mr 8  nr 8; one element of C at a time
 * regs      4 accumulators of one element + 8 operands = 12 of 32 v
 * per 16 k  4 fmla  4 ldp q
 * ratio     1 / 2 = 0.50 multiply-adds per element loaded; outer product 4.00;
 *           4 / 4 = 1.00 multiply-add instructions per load instruction
 * bound     the loads: four accumulators hide the latency of the add; what remains is the ratio
 * rounding  4 accumulators of 4 lanes, added as a tree; fma; then one add into C
 * needs     NEON
 * idea      row times column, as in the definition; kept as the baseline of the outer product
 */
#include "vec_neon.h"

#define KERNEL neon_f32_inner_8x8
#define VEC f32x4
#define MR 8
#define NR 8
#include "../templates/inner.h"
