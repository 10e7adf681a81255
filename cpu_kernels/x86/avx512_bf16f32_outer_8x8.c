/* avx512_bf16f32_outer_8x8: C[8,8] += A[8,K] * B[K,8], bfloat16 into float; widened while packing.
 *
 * contract  pysimd.h; k_group 1, panel wide (float).
 * tile      mr 8  nr 8; even lanes of accumulator i add the terms of even p, odd lanes those of odd p
 * regs      8 accumulators + 1 pair of rows of B + 1 pair of columns of A + 1 broadcast pair + 9 indices of
 *           permutations = 20 of 32 zmm
 * per 2 k   8 vfmadd231ps  8 vpermpd  2 vpermps m512
 * ratio     8*8 / (8+8) = 4.00 multiply-adds per element loaded; inner product 0.50;
 *           8 / 2 = 4.00 multiply-add instructions per load instruction
 * rounding  bfloat16 products are exact in float; one fma per term, even and odd p in accumulators of their own; then
 *           even + odd, then one add into C
 * needs     AVX-512 F BW DQ VL
 * bound     K = 8 dense: 32 fma + 4 permutes + 12 to fold the pairs = 48 operations on two ports of Intel, 24 cycles;
 *           the plain ymm tile takes 64 fma, 32 cycles
 * idea      the functions are those of avx512_f32_outer_8x8: float is what float16 and bfloat16 widen to
 * tried     one zmm = two rows of C, a[i,p] and a[i+1,p] by vpermps: one permute for each fma, 64 operations
 */
