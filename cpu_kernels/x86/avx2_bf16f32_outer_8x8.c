/* avx2_bf16f32_outer_8x8: C[8,8] += A[8,K] * B[K,8], bfloat16 into float; widened while packing.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 8  nr 8: row i of C is 1 register
 * regs      8 accumulators + 8 operands of two steps of k = 16 of 16 ymm
 * per k     8 vfmadd231ps  1 vmovups m256  8 vbroadcastss m32
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           8 / 9 = 0.89 multiply-add instructions per load instruction
 * bound     with two loads a cycle the loads bind: 4.5 cycles, where the fma take 4
 * rounding  bfloat16 products are exact in float; one fma per term, k ascending from 0, then one add into C
 * needs     AVX2 FMA
 * idea      the functions are those of avx2_f32_outer_8x8: float is what float16 and bfloat16 widen to
 */
