/* avx2_i8i32_gemv_8x1: C[8,1] += A[8,K] * B[K,1], int8 into int32; matrix times vector.
 *
 * contract  pysimd.h; form gemv: A by rows or by columns, B contiguous in k; k_group 1, panel plain.
 * tile      mr 8  nr 1; a row of A at a time in each accumulator
 * regs      8 accumulators + 2 operands = 10 of 16 ymm
 * per 16 k  9 vpmovsxbw m128  8 vpmaddwd  8 vpaddd
 * ratio     8*1 / (8+1) = 0.89 multiply-adds per element loaded; inner product 0.50;
 *           8 / 9 = 0.89 multiply-add instructions per load instruction
 * bound     the loads: each element of A is used once
 * rounding  exact; int32 wraps
 * needs     AVX2 FMA F16C
 * idea      the bits do not depend on the order in which A is stored: see templates/gemv.h
 */
#include "vec_avx2_gemv.h"

#define SHORT_ROWS 8
#define KERNEL avx2_i8i32_gemv_8x1
#define VEC i8x16
#include "../templates/gemv.h"
