/* avx2_bf16f32_outer_6x16: C[6,16] += A[6,K] * B[K,16], bfloat16 into float; widened while packing.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 6  nr 16: row i of C is 2 registers
 * regs      12 accumulators + 4 operands of two steps of k = 16 of 16 ymm
 * per k     12 vfmadd231ps  2 vmovups m256  6 vbroadcastss m32
 * ratio     6*16 / (6+16) = 4.36 multiply-adds per element loaded; inner product 0.50;
 *           12 / 8 = 1.50 multiply-add instructions per load instruction
 * rounding  bfloat16 products are exact in float; one fma per term, k ascending from 0, then one add into C
 * needs     AVX2 FMA
 * idea      the functions are those of avx2_f32_outer_6x16: float is what float16 and bfloat16 widen to
 */
