/* generic_f32_inner_4x4: C[4,4] += A[4,K] * B[K,4], float; one dot product per element of C.
 *
 * contract  pysimd.h; inner form: A by rows, B by columns, both contiguous in k; k_group 1, panel plain.
 * tile      mr 4  nr 4, one element at a time
 * regs      4 accumulators of one element (to hide the latency of the sum) + 1 of A and 1 of B
 * per 4 k   4 lanes multiplied and added  2 loads of 4 elements
 * ratio     K / 2K = 0.50 FMA per element loaded, at any tile; the outer product of this tile has 2.00
 * rounding  4 * 4 partial sums, then a tree; products rounded unless the compiler fuses them; then one add into C
 * needs     nothing
 * idea      row times column, as in the definition; kept as the measure for the outer product
 */
#include "vec_generic.h"

#define KERNEL generic_f32_inner_4x4
#define VEC f32x4
#define MR 4
#define NR 4
#include "../templates/inner.h"
