/* generic_bf16f32_outer_4x4: C[4,4] += A[4,K] * B[K,4], bfloat16 into float; widened while packing.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 4  nr 4: row i of C is 1 register
 * regs      4 accumulators + 5 operands = 9 of 16 xmm; twice the accumulators where K is long
 * per k     4 mulps  4 addps  1 movups m128  1 movdqu m128  4 pshufd; as gcc lowers it for the baseline processor
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           4 / 2 = 2.00 multiply-add instructions per load instruction
 * rounding  bfloat16 products are exact in float; one multiply and one add per term (fused where the compiler may), k
 *           ascending from 0 (from K = 8 on, even and odd k in accumulators of their own, added at the end), then one
 *           add into C
 * needs     nothing
 * idea      the functions are those of generic_f32_outer_4x4: float is what float16 and bfloat16 widen to
 */
