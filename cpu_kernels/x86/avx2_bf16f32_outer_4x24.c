/* avx2_bf16f32_outer_4x24: C[4,24] += A[4,K] * B[K,24], bfloat16 into float; widened while packing.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 4  nr 24: row i of C is 3 registers
 * regs      12 accumulators + 3 of a row of B + 1 broadcast = 16 of 16 ymm
 * per k     12 vfmadd231ps  3 vmovups m256  4 vbroadcastss m32
 * ratio     4*24 / (4+24) = 3.43 multiply-adds per element loaded; inner product 0.50;
 *           12 / 7 = 1.71 multiply-add instructions per load instruction
 * rounding  bfloat16 products are exact in float; one fma per term, k ascending from 0, then one add into C
 * needs     AVX2 FMA
 * idea      the functions are those of avx2_f32_outer_4x24: float is what float16 and bfloat16 widen to
 */
