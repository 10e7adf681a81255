/* avx2_bf16f32_gemv_8x1: C[8,1] += A[8,K] * B[K,1], bfloat16 into float; matrix times vector.
 *
 * contract  pysimd.h; form gemv: A by rows or by columns, B contiguous in k; k_group 1, panel plain.
 * tile      mr 8  nr 1; a row of A at a time in each accumulator
 * regs      8 accumulators + 2 operands = 10 of 16 ymm
 * per 8 k   9 vpmovzxwd m128  9 vpslld  8 vfmadd231ps
 * ratio     8*1 / (8+1) = 0.89 multiply-adds per element loaded; inner product 0.50;
 *           8 / 9 = 0.89 multiply-add instructions per load instruction
 * bound     the loads: each element of A is used once
 * rounding  A by rows: one fma per term into accumulator p modulo 8, p ascending; these added as a tree, l and
 *           l + half; then one add into C. By columns: one fma per term, p ascending, then one add into C; of up to
 *           three registers of rows and a long K, in another order (templates/gemv_chain.h)
 * needs     AVX2 FMA F16C
 * idea      both orders of A are read in the order of memory: see templates/gemv.h
 */
#include "vec_avx2_gemv.h"

#define SHORT_ROWS 4
#define ONE_CHAIN 12
#define KERNEL avx2_bf16f32_gemv_8x1
#define VEC bf16x8
#include "../templates/gemv.h"
