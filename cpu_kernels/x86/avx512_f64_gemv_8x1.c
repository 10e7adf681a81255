/* avx512_f64_gemv_8x1: C[8,1] += A[8,K] * B[K,1], double; matrix times vector.
 *
 * contract  pysimd.h; form gemv: A by rows or by columns, B contiguous in k; k_group 1, panel plain.
 * tile      mr 8  nr 1; a row of A at a time in each accumulator
 * regs      8 accumulators + 1 operand = 9 of 32 zmm
 * per 8 k   8 vfmadd231pd m512  1 vmovupd m512
 * ratio     8*1 / (8+1) = 0.89 multiply-adds per element loaded; inner product 0.50;
 *           8 / 9 = 0.89 multiply-add instructions per load instruction
 * bound     the loads: each element of A is used once
 * rounding  A by rows: one fma per term into accumulator p modulo 8, p ascending; these added as a tree, l
 *           and l + half; then one add into C. By columns: one fma per term, p ascending, then one add into C; fewer
 *           than 8 rows of a dense A and K from 32 on: by lanes (templates/gemv_chain.h)
 * needs     AVX-512 F BW DQ VL
 * idea      both orders of A are read in the order of memory: see templates/gemv.h
 */
#include "vec_avx512_gemv.h"

#define KERNEL avx512_f64_gemv_8x1
#define VEC f64x8
#define DOTS 24
#define ONE_CHAIN 16
#include "../templates/gemv.h"
