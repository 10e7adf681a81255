/* avx512_f32_gemv_16x1: C[16,1] += A[16,K] * B[K,1], float; matrix times vector.
 *
 * contract  pysimd.h; form gemv: A by rows or by columns, B contiguous in k; k_group 1, panel plain.
 * tile      mr 16  nr 1; a row of A at a time in each accumulator
 * regs      16 accumulators + 1 operand = 17 of 32 zmm
 * per 16 k  16 vfmadd231ps m512  1 vmovups m512
 * ratio     16*1 / (16+1) = 0.94 multiply-adds per element loaded; inner product 0.50;
 *           16 / 17 = 0.94 multiply-add instructions per load instruction
 * bound     the loads: each element of A is used once
 * rounding  A by rows: one fma per term into accumulator p modulo 16, p ascending; these added as a tree, l
 *           and l + half; then one add into C. By columns: one fma per term, p ascending, then one add into C; fewer
 *           than 16 rows of a dense A and K from 32 on: by lanes (templates/gemv_chain.h)
 * needs     AVX-512 F BW DQ VL
 * idea      both orders of A are read in the order of memory: see templates/gemv.h
 */
#include "vec_avx512_gemv.h"

#define KERNEL avx512_f32_gemv_16x1
#define VEC f32x16
#define DOTS 24
#define ONE_CHAIN 16
#define ROWS_AT_A_TIME 16
#include "../templates/gemv.h"
