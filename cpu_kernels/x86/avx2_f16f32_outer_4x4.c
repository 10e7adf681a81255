/* avx2_f16f32_outer_4x4: C[4,4] += A[4,K] * B[K,4], float16 into float; widened while packing.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 4  nr 4: row i of C is 1 register
 * regs      4 accumulators + 1 row of B + 2 broadcasts = 7 of 16 xmm; twice the accumulators where K is long
 * per k     4 vfmadd231ps  1 vmovups m128  4 vbroadcastss m32
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           4 / 5 = 0.80 multiply-add instructions per load instruction
 * bound     the loads
 * rounding  float16 products are exact in float; one fma per term, k ascending from 0 (from K = 8 on, even and odd k
 *           in accumulators of their own, added at the end), then one add into C
 * needs     AVX2 FMA
 * idea      the functions are those of avx2_f32_outer_4x4: float is what float16 and bfloat16 widen to
 */
