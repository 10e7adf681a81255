/* generic_f32_inner_4x4: C[4,4] += A[4,K] * B[K,4], float; one dot product per element of C.
 *
 * contract  pysimd.h; inner form: A by rows, B by columns, both contiguous in k; k_group 1, panel plain.
 * tile      mr 4  nr 4; one element of C at a time
 * regs      4 accumulators of one element + 3 operands = 7 of 16 xmm
 * per 16 k  4 mulps  4 addps  8 movups m128; as gcc lowers it for the baseline processor
 * ratio     1 / 2 = 0.50 multiply-adds per element loaded; outer product 2.00;
 *           4 / 8 = 0.50 multiply-add instructions per load instruction
 * bound     the loads: four accumulators hide the latency of the add; what remains is the ratio
 * rounding  4 accumulators of 4 lanes, added as a tree; products rounded unless the compiler fuses them; then one
 *           add into C
 * needs     nothing
 * idea      row times column, as in the definition; kept as the baseline of the outer product
 */
#include "vec_generic.h"

#define KERNEL generic_f32_inner_4x4
#define VEC f32x4
#define MR 4
#define NR 4
#include "../templates/inner.h"
