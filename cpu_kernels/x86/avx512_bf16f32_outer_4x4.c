/* avx512_bf16f32_outer_4x4: C[4,4] += A[4,K] * B[K,4], bfloat16 into float; widened while packing.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 4  nr 4; row i of C is lane i of the accumulator
 * regs      1 accumulator * 4 sets + 1 for four columns of A + 1 of their elements + 1 row of B + 1 index of
 *           the transposition = 8 of 32 zmm
 * per 4 k   4 vfmadd231ps  4 vbroadcastf32x4 m128  4 vpermilps  1 vpermps m512
 * ratio     4*4 / (4+4) = 2.00 multiply-adds per element loaded; inner product 0.50;
 *           4 / 5 = 0.80 multiply-add instructions per load instruction
 * rounding  bfloat16 products are exact in float; the first product rounded, then one fma per term, p ascending; from
 *           K = 8 on p = 4.. in four accumulators (p mod 4), added as a tree; then one add into C
 * needs     AVX-512 F BW DQ VL
 * bound     the permute and the fma share two ports on Intel: 8 operations, 4 cycles for K = 4
 * idea      the functions are those of avx512_f32_outer_4x4: float is what float16 and bfloat16 widen to
 * tried     vmovddup/vmovsldup loads in place of the permutes: B then needs four shuffles; 11 operations instead of 8
 */
