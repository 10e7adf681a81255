/* avx2_f32_inner_8x8: C[8,8] += A[8,K] * B[K,8], float; one dot product per element of C.
 *
 * contract  pysimd.h; inner form: A by rows, B by columns, both contiguous in k; k_group 1, panel plain.
 * tile      mr 8  nr 8, one element at a time
 * regs      4 accumulators of one element (to hide the latency of the sum) + 1 of A and 1 of B
 * per 8 k   8 lanes multiplied and added  2 loads of 8 elements
 * ratio     K / 2K = 0.50 FMA per element loaded, at any tile; the outer product of this tile has 4.00
 * rounding  4 * 8 partial sums, then a tree; fma; then one add into C
 * needs     AVX2 FMA
 * idea      row times column, as in the definition; kept as the measure for the outer product
 */
#include "vec_avx2.h"

#define KERNEL avx2_f32_inner_8x8
#define VEC f32x8
#define MR 8
#define NR 8
#include "../templates/inner.h"
