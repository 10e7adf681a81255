/* avx2_f64_gemv_8x1: C[8,1] += A[8,K] * B[K,1], double; matrix times vector.
 *
 * contract  pysimd.h; form gemv: A by rows or by columns, B contiguous in k; k_group 1, panel plain.
 * tile      mr 8  nr 1; a row of A at a time in each accumulator
 * regs      8 accumulators + 1 operand = 9 of 16 ymm
 * per 4 k   8 vfmadd231pd m256  1 vmovupd m256
 * ratio     8*1 / (8+1) = 0.89 multiply-adds per element loaded; inner product 0.50;
 *           8 / 9 = 0.89 multiply-add instructions per load instruction
 * bound     the loads: each element of A is used once
 * rounding  A by rows: one fma per term into accumulator p modulo 4, p ascending; these added as a tree, l and
 *           l + half; then one add into C. By columns: one fma per term, p ascending, then one add into C; of up to
 *           three registers of rows and a long K, in another order (templates/gemv_chain.h)
 * needs     AVX2 FMA F16C
 * idea      both orders of A are read in the order of memory: see templates/gemv.h
 */
#include "vec_avx2_gemv.h"

#define ONE_CHAIN 12
#define KERNEL avx2_f64_gemv_8x1
#define VEC f64x4
#include "../templates/gemv.h"
